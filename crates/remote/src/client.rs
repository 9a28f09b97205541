//! Making calls: one request each, and again where no answer came.

use std::time::Duration;

use bytes::Bytes;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue, RETRY_AFTER};
use reqwest::{Method, Response, StatusCode};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use throughline_model::Owner;
use throughline_store::{ErrorKind, StoreError};

use crate::patience::Patience;
use crate::wire::{
    Call, Failure, ON_BEHALF_OF, OWNER_HEADER, SPOKEN_PATH, Spoken, VERSION, VERSION_HEADER, path,
};
use crate::{ServerUrl, TalkError, TokenText};

/// How long everything may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// A connection, once.
    pub connect: Duration,
    /// The next bytes of an answer.
    pub answer: Duration,
    /// A connection, with everything that was tried.
    pub reach: Duration,
    /// An answer, with everything that was tried. What is under way is not cut off.
    pub patience: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            // Longer than the server takes over anything.
            answer: Duration::from_secs(90),
            reach: Duration::from_secs(3),
            patience: Duration::from_secs(30),
        }
    }
}

/// One who makes calls to one server.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    http: reqwest::Client,
    server: ServerUrl,
    timing: Timing,
}

/// On whose behalf a call is made, and what proves it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Badge {
    headers: HeaderMap,
    /// The largest body that is taken, where that is known.
    largest: Option<u64>,
}

/// What came of a call.
#[derive(Debug)]
pub(crate) struct Outcome<T> {
    /// The answer.
    pub(crate) result: Result<T, StoreError>,
    /// Whether an earlier attempt may have done it already, since its answer never came.
    pub(crate) again: bool,
}

/// What is sent.
#[derive(Clone, Debug)]
struct Message {
    method: Method,
    path: String,
    kind: &'static str,
    body: Bytes,
}

/// Why an attempt came to nothing.
struct Failed {
    error: StoreError,
    /// Whether it may be worth trying again.
    passes: Passes,
    /// Whether it may have been done all the same.
    may_be_done: bool,
}

/// Whether a failure may pass.
enum Passes {
    Never,
    /// Once there is a way to the server.
    Reached,
    /// After a while, which the server may have told.
    Later(Option<Duration>),
}

impl Badge {
    /// What is shown with every call; none on a server that asks for no token.
    pub(crate) fn new(token: Option<&TokenText>) -> Self {
        let mut headers = HeaderMap::new();
        let shown = token.map(|token| format!("Bearer {}", token.expose()));
        if let Some(mut value) = shown.and_then(|shown| HeaderValue::from_str(&shown).ok()) {
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        Self {
            headers,
            largest: None,
        }
    }

    /// The same for one of a service's users.
    pub(crate) fn for_user(mut self, name: &str) -> Self {
        self.set(ON_BEHALF_OF, name);
        self
    }

    /// The same once it is known whose it is, and how much is taken at once.
    pub(crate) fn known(mut self, owner: &Owner, largest: u64) -> Self {
        self.set(OWNER_HEADER, owner.as_str());
        self.largest = Some(largest);
        self
    }

    /// How many bytes of payload certainly fit into a call: as text within JSON, JSON is at
    /// most twice as long, and entries have more than their payload.
    pub(crate) fn room(&self) -> usize {
        let room = self.largest.map(|largest| largest / 4);
        room.and_then(|room| usize::try_from(room).ok())
            .unwrap_or(usize::MAX)
    }

    fn set(&mut self, name: &'static str, value: &str) {
        // Names of owners have no control characters, and everything else may be sent.
        if let Ok(value) = HeaderValue::from_bytes(value.as_bytes()) {
            self.headers.insert(name, value);
        }
    }

    fn has_token(&self) -> bool {
        self.headers.contains_key(AUTHORIZATION)
    }
}

impl Client {
    pub(crate) fn new(server: ServerUrl, timing: Timing) -> Result<Self, TalkError> {
        // Whoever embeds this may have chosen another; theirs stays.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut builder = reqwest::Client::builder()
            .connect_timeout(timing.connect)
            .read_timeout(timing.answer)
            // Elsewhere is not where the token belongs.
            .redirect(reqwest::redirect::Policy::none())
            .tcp_nodelay(true);
        if server.is_here() {
            builder = builder.no_proxy();
        }
        let http = builder
            .build()
            .map_err(|error| TalkError::Client(error.into()))?;
        Ok(Self {
            http,
            server,
            timing,
        })
    }

    /// Makes a call.
    pub(crate) async fn call<C: Call>(
        &self,
        badge: &Badge,
        call: &C,
    ) -> Result<C::Answer, StoreError> {
        self.ask(badge, call).await.result
    }

    /// Makes a call; tells whether an earlier attempt may have done it already.
    pub(crate) async fn ask<C: Call>(&self, badge: &Badge, call: &C) -> Outcome<C::Answer> {
        let body = match serde_json::to_vec(call) {
            Ok(body) => body.into(),
            Err(error) => {
                let error = self.garbled(C::NAME, error);
                return Outcome {
                    result: Err(error.into()),
                    again: false,
                };
            }
        };
        let message = Message {
            method: Method::POST,
            path: path::<C>(),
            kind: "application/json",
            body,
        };
        let Outcome { result, again } = self.send(badge, message).await;
        let result = result.and_then(|bytes| self.read(C::NAME, &bytes));
        Outcome { result, again }
    }

    /// Sends bytes; answers with what comes back.
    pub(crate) async fn put<T: DeserializeOwned>(
        &self,
        badge: &Badge,
        path: &str,
        bytes: Bytes,
    ) -> Result<T, StoreError> {
        let message = Message {
            method: Method::POST,
            path: path.to_owned(),
            kind: "application/octet-stream",
            body: bytes,
        };
        let answer = self.send(badge, message).await.result?;
        self.read(path, &answer)
    }

    /// The bytes at a path.
    pub(crate) async fn get(&self, badge: &Badge, path: String) -> Result<Bytes, StoreError> {
        let message = Message {
            method: Method::GET,
            path,
            kind: "application/octet-stream",
            body: Bytes::new(),
        };
        self.send(badge, message).await.result
    }

    fn read<T: DeserializeOwned>(&self, call: &str, bytes: &[u8]) -> Result<T, StoreError> {
        serde_json::from_slice(bytes).map_err(|error| self.garbled(call, error).into())
    }

    fn garbled(&self, call: &str, error: serde_json::Error) -> TalkError {
        TalkError::Garbled {
            server: self.server.to_string(),
            call: call.to_owned(),
            source: error.into(),
        }
    }

    /// Sends a message until it is answered, refused, or enough time has passed.
    async fn send(&self, badge: &Badge, message: Message) -> Outcome<Bytes> {
        let bytes = message.body.len() as u64;
        if let Some(max) = badge.largest.filter(|max| bytes > *max) {
            let server = self.server.to_string();
            return Outcome {
                result: Err(TalkError::TooLarge { server, bytes, max }.into()),
                again: false,
            };
        }
        let mut patience = Patience::new();
        let mut again = false;
        loop {
            let failed = match self.attempt(badge, &message).await {
                Ok(bytes) => {
                    return Outcome {
                        result: Ok(bytes),
                        again,
                    };
                }
                Err(failed) => failed,
            };
            let worth_it = match failed.passes {
                Passes::Never => false,
                Passes::Reached => patience.wait(None, self.timing.reach).await,
                Passes::Later(asked) => patience.wait(asked, self.timing.patience).await,
            };
            if !worth_it {
                return Outcome {
                    result: Err(failed.error),
                    again,
                };
            }
            again |= failed.may_be_done;
        }
    }

    async fn attempt(&self, badge: &Badge, message: &Message) -> Result<Bytes, Failed> {
        let sent = self
            .http
            .request(message.method.clone(), self.server.at(&message.path))
            .headers(badge.headers.clone())
            .header(CONTENT_TYPE, message.kind)
            .body(message.body.clone())
            .send()
            .await;
        let response = sent.map_err(|error| self.cut_off(error))?;
        let status = response.status();
        if !response.headers().contains_key(VERSION_HEADER) {
            return Err(self.not_the_store(badge, response).await);
        }
        let asked = retry_after(&response);
        let bytes = response
            .bytes()
            .await
            .map_err(|error| self.cut_off(error))?;
        if status.is_success() {
            return Ok(bytes);
        }
        let failure: Failure = match self.read(&message.path, &bytes) {
            Ok(failure) => failure,
            Err(error) => return Err(Failed::for_good(error)),
        };
        let error = StoreError::from(failure);
        if error.kind() == ErrorKind::Unavailable {
            return Err(Failed {
                error,
                passes: Passes::Later(asked),
                may_be_done: true,
            });
        }
        Err(Failed::for_good(error))
    }

    /// The request got no answer, or not all of it.
    fn cut_off(&self, error: reqwest::Error) -> Failed {
        let server = self.server.to_string();
        // The address is told once, and not by every part of the error.
        let error = error.without_url();
        if error.is_builder() {
            // Nothing was sent, and nothing else would be the next time.
            return Failed {
                error: TalkError::Unreachable {
                    server,
                    source: error.into(),
                }
                .into(),
                passes: Passes::Never,
                may_be_done: false,
            };
        }
        if error.is_connect() {
            return Failed {
                error: TalkError::Unreachable {
                    server,
                    source: error.into(),
                }
                .into(),
                passes: Passes::Reached,
                may_be_done: false,
            };
        }
        Failed {
            error: TalkError::NoAnswer {
                server,
                source: error.into(),
            }
            .into(),
            passes: Passes::Later(None),
            may_be_done: true,
        }
    }

    /// Something before the store answered: the server's door, a proxy, or a stranger.
    async fn not_the_store(&self, badge: &Badge, response: Response) -> Failed {
        let server = self.server.to_string();
        let status = response.status();
        let asked = retry_after(&response);
        let problem = Problem::read(response).await;
        let passes = match status {
            StatusCode::TOO_MANY_REQUESTS
            | StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT => Passes::Later(asked),
            _ => Passes::Never,
        };
        let error = match (status, problem) {
            (StatusCode::UNAUTHORIZED, Some(_)) if badge.has_token() => {
                TalkError::TokenRefused { server }
            }
            (StatusCode::UNAUTHORIZED, Some(_)) => TalkError::TokenNeeded { server },
            (StatusCode::NOT_FOUND, problem) if !problem.as_ref().is_some_and(Problem::is_told) => {
                self.what_is_there(status).await
            }
            (_, Some(problem)) => TalkError::Refused {
                server,
                detail: problem.detail,
                kind: kind_of(status),
            },
            (_, None) => TalkError::NotThroughline {
                server,
                what: format!("it answers with {status}"),
            },
        };
        Failed {
            error: error.into(),
            // Told by a proxy, nobody knows what became of it.
            may_be_done: status.is_server_error(),
            passes,
        }
    }

    /// What answers where our paths are not known.
    async fn what_is_there(&self, status: StatusCode) -> TalkError {
        let server = self.server.to_string();
        let spoken = async {
            let response = self
                .http
                .get(self.server.at(SPOKEN_PATH))
                .send()
                .await
                .ok()?;
            let bytes = response.bytes().await.ok()?;
            serde_json::from_slice::<Spoken>(&bytes).ok()
        };
        match spoken.await {
            Some(spoken) if spoken.store.contains(&VERSION) => TalkError::Refused {
                server,
                detail: "it does not know what it was asked".to_owned(),
                kind: ErrorKind::Invalid,
            },
            Some(spoken) => TalkError::OtherVersion {
                server,
                program: spoken.throughline,
            },
            None => TalkError::NotThroughline {
                server,
                what: format!("it answers with {status}"),
            },
        }
    }
}

impl Failed {
    fn for_good(error: StoreError) -> Self {
        Self {
            error,
            passes: Passes::Never,
            may_be_done: false,
        }
    }
}

/// What a server says where no store answered.
#[derive(Debug, Deserialize)]
struct Problem {
    code: String,
    detail: String,
}

impl Problem {
    /// Whether it is about what was asked, and not about a path that nobody knows.
    fn is_told(&self) -> bool {
        self.code != "no_such_path"
    }

    async fn read(response: Response) -> Option<Self> {
        let kind = response.headers().get(CONTENT_TYPE)?.to_str().ok()?;
        if kind != "application/problem+json" {
            return None;
        }
        serde_json::from_slice(&response.bytes().await.ok()?).ok()
    }
}

/// What kind of failure a status is, where the server's door told it.
fn kind_of(status: StatusCode) -> ErrorKind {
    match status {
        StatusCode::NOT_FOUND => ErrorKind::NotFound,
        StatusCode::CONFLICT => ErrorKind::Conflict,
        StatusCode::TOO_MANY_REQUESTS => ErrorKind::Unavailable,
        status if status.is_server_error() => ErrorKind::Unavailable,
        _ => ErrorKind::Invalid,
    }
}

fn retry_after(response: &Response) -> Option<Duration> {
    let seconds = response.headers().get(RETRY_AFTER)?.to_str().ok()?;
    seconds.parse().ok().map(Duration::from_secs)
}

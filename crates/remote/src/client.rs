//! The HTTP client: makes calls to the server and retries those that got no answer.

use std::time::Duration;

use bytes::Bytes;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue, RETRY_AFTER};
use reqwest::{Method, Response, StatusCode};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use throughline_model::Owner;
use throughline_store::{ErrorKind, StoreError};

use crate::retry::Backoff;
use crate::wire::{
    Call, ON_BEHALF_OF_HEADER, OWNER_HEADER, StoreFailure, SupportedVersions, VERSION,
    VERSION_HEADER, VERSIONS_PATH, call_path,
};
use crate::{BearerToken, RemoteError, ServerUrl};

/// Timeouts for connections and calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// One connection attempt.
    pub connect: Duration,
    /// The next bytes of an answer.
    pub read: Duration,
    /// Connecting, with all retries.
    pub connect_deadline: Duration,
    /// A call, with all retries. An attempt in progress is not cut off.
    pub deadline: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            // Longer than the server takes for anything.
            read: Duration::from_secs(90),
            connect_deadline: Duration::from_secs(3),
            deadline: Duration::from_secs(30),
        }
    }
}

/// A client of one server.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    http: reqwest::Client,
    server: ServerUrl,
    timeouts: Timeouts,
}

/// The headers that authenticate a call and name its owner.
#[derive(Clone, Debug, Default)]
pub(crate) struct Credentials {
    headers: HeaderMap,
    /// The largest body the server accepts, if known.
    max_body_bytes: Option<u64>,
}

/// The outcome of a call.
#[derive(Debug)]
pub(crate) struct CallOutcome<T> {
    /// The answer.
    pub(crate) result: Result<T, StoreError>,
    /// Whether an earlier attempt, whose answer was lost, may have done it already.
    pub(crate) may_be_done: bool,
}

/// A request to send.
#[derive(Clone, Debug)]
struct HttpRequest {
    method: Method,
    path: String,
    content_type: &'static str,
    body: Bytes,
}

/// Why an attempt failed.
struct AttemptError {
    error: StoreError,
    /// Whether a retry may help.
    retry: RetryAdvice,
    /// Whether the server may have performed it anyway.
    may_be_done: bool,
}

/// Whether, and when, to retry after a failure.
enum RetryAdvice {
    Never,
    /// As soon as the server can be reached.
    OnceReachable,
    /// After a delay, which the server may have given.
    After(Option<Duration>),
}

impl Credentials {
    /// Credentials with this token; without one, for a server that requires none.
    pub(crate) fn new(token: Option<&BearerToken>) -> Self {
        let mut headers = HeaderMap::new();
        let shown = token.map(|token| format!("Bearer {}", token.expose()));
        if let Some(mut value) = shown.and_then(|shown| HeaderValue::from_str(&shown).ok()) {
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        Self {
            headers,
            max_body_bytes: None,
        }
    }

    /// Returns the credentials for one of a service's users.
    pub(crate) fn with_user(mut self, name: &str) -> Self {
        self.set_header(ON_BEHALF_OF_HEADER, name);
        self
    }

    /// Adds the owner and the largest body the server accepts, once they are known.
    pub(crate) fn with_owner(mut self, owner: &Owner, largest: u64) -> Self {
        self.set_header(OWNER_HEADER, owner.as_str());
        self.max_body_bytes = Some(largest);
        self
    }

    /// Returns how many bytes of payload certainly fit into a call: JSON escaped within JSON is
    /// at most twice as long, and entries have more than their payload.
    pub(crate) fn max_payload_bytes(&self) -> usize {
        let room = self.max_body_bytes.map(|largest| largest / 4);
        room.and_then(|room| usize::try_from(room).ok())
            .unwrap_or(usize::MAX)
    }

    fn set_header(&mut self, name: &'static str, value: &str) {
        // Owner names have no control characters; everything else can be sent.
        if let Ok(value) = HeaderValue::from_bytes(value.as_bytes()) {
            self.headers.insert(name, value);
        }
    }

    fn has_token(&self) -> bool {
        self.headers.contains_key(AUTHORIZATION)
    }
}

impl Client {
    pub(crate) fn new(server: ServerUrl, timeouts: Timeouts) -> Result<Self, RemoteError> {
        // An embedding program may have installed another provider, which then stays.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut builder = reqwest::Client::builder()
            .connect_timeout(timeouts.connect)
            .read_timeout(timeouts.read)
            // The token must not be sent to another server.
            .redirect(reqwest::redirect::Policy::none())
            .tcp_nodelay(true);
        if server.is_local() {
            builder = builder.no_proxy();
        }
        let http = builder
            .build()
            .map_err(|error| RemoteError::ClientSetup(error.into()))?;
        Ok(Self {
            http,
            server,
            timeouts,
        })
    }

    /// Makes a call.
    pub(crate) async fn call<C: Call>(
        &self,
        credentials: &Credentials,
        call: &C,
    ) -> Result<C::Answer, StoreError> {
        self.call_with_outcome(credentials, call).await.result
    }

    /// Makes a call; the outcome says whether an earlier attempt may have done it already.
    pub(crate) async fn call_with_outcome<C: Call>(
        &self,
        credentials: &Credentials,
        call: &C,
    ) -> CallOutcome<C::Answer> {
        let body = match serde_json::to_vec(call) {
            Ok(body) => body.into(),
            Err(error) => {
                let error = self.invalid_response(C::NAME, error);
                return CallOutcome {
                    result: Err(error.into()),
                    may_be_done: false,
                };
            }
        };
        let message = HttpRequest {
            method: Method::POST,
            path: call_path::<C>(),
            content_type: "application/json",
            body,
        };
        let CallOutcome {
            result,
            may_be_done,
        } = self.send_with_retries(credentials, message).await;
        let result = result.and_then(|bytes| self.decode(C::NAME, &bytes));
        CallOutcome {
            result,
            may_be_done,
        }
    }

    /// Posts bytes; returns the decoded answer.
    pub(crate) async fn post_bytes<T: DeserializeOwned>(
        &self,
        credentials: &Credentials,
        path: &str,
        bytes: Bytes,
    ) -> Result<T, StoreError> {
        let message = HttpRequest {
            method: Method::POST,
            path: path.to_owned(),
            content_type: "application/octet-stream",
            body: bytes,
        };
        let answer = self.send_with_retries(credentials, message).await.result?;
        self.decode(path, &answer)
    }

    /// Gets the bytes at a path.
    pub(crate) async fn get_bytes(
        &self,
        credentials: &Credentials,
        path: String,
    ) -> Result<Bytes, StoreError> {
        let message = HttpRequest {
            method: Method::GET,
            path,
            content_type: "application/octet-stream",
            body: Bytes::new(),
        };
        self.send_with_retries(credentials, message).await.result
    }

    fn decode<T: DeserializeOwned>(&self, call: &str, bytes: &[u8]) -> Result<T, StoreError> {
        serde_json::from_slice(bytes).map_err(|error| self.invalid_response(call, error).into())
    }

    fn invalid_response(&self, call: &str, error: serde_json::Error) -> RemoteError {
        RemoteError::InvalidResponse {
            server: self.server.to_string(),
            call: call.to_owned(),
            source: error.into(),
        }
    }

    /// Sends a request until it is answered, refused, or the deadline has passed.
    async fn send_with_retries(
        &self,
        credentials: &Credentials,
        message: HttpRequest,
    ) -> CallOutcome<Bytes> {
        let bytes = message.body.len() as u64;
        if let Some(max) = credentials.max_body_bytes.filter(|max| bytes > *max) {
            let server = self.server.to_string();
            return CallOutcome {
                result: Err(RemoteError::TooLarge { server, bytes, max }.into()),
                may_be_done: false,
            };
        }
        let mut backoff = Backoff::new();
        let mut may_be_done = false;
        loop {
            let failed = match self.attempt(credentials, &message).await {
                Ok(bytes) => {
                    return CallOutcome {
                        result: Ok(bytes),
                        may_be_done,
                    };
                }
                Err(failed) => failed,
            };
            let worth_it = match failed.retry {
                RetryAdvice::Never => false,
                RetryAdvice::OnceReachable => {
                    backoff.wait(None, self.timeouts.connect_deadline).await
                }
                RetryAdvice::After(delay) => backoff.wait(delay, self.timeouts.deadline).await,
            };
            if !worth_it {
                return CallOutcome {
                    result: Err(failed.error),
                    may_be_done,
                };
            }
            may_be_done |= failed.may_be_done;
        }
    }

    async fn attempt(
        &self,
        credentials: &Credentials,
        message: &HttpRequest,
    ) -> Result<Bytes, AttemptError> {
        let sent = self
            .http
            .request(message.method.clone(), self.server.join_path(&message.path))
            .headers(credentials.headers.clone())
            .header(CONTENT_TYPE, message.content_type)
            .body(message.body.clone())
            .send()
            .await;
        let response = sent.map_err(|error| self.transport_error(error))?;
        let status = response.status();
        if !response.headers().contains_key(VERSION_HEADER) {
            return Err(self.gateway_error(credentials, response).await);
        }
        let delay = retry_after(&response);
        let bytes = response
            .bytes()
            .await
            .map_err(|error| self.transport_error(error))?;
        if status.is_success() {
            return Ok(bytes);
        }
        let failure: StoreFailure = match self.decode(&message.path, &bytes) {
            Ok(failure) => failure,
            Err(error) => return Err(AttemptError::permanent(error)),
        };
        let error = StoreError::from(failure);
        if error.kind() == ErrorKind::Unavailable {
            return Err(AttemptError {
                error,
                retry: RetryAdvice::After(delay),
                may_be_done: true,
            });
        }
        Err(AttemptError::permanent(error))
    }

    /// Converts a transport failure: the request got no answer, or only part of one.
    fn transport_error(&self, error: reqwest::Error) -> AttemptError {
        let server = self.server.to_string();
        // The URL is named once, not by every source of the error.
        let error = error.without_url();
        if error.is_builder() {
            // Nothing was sent, and a retry would not change that.
            return AttemptError {
                error: RemoteError::Unreachable {
                    server,
                    source: error.into(),
                }
                .into(),
                retry: RetryAdvice::Never,
                may_be_done: false,
            };
        }
        if error.is_connect() {
            return AttemptError {
                error: RemoteError::Unreachable {
                    server,
                    source: error.into(),
                }
                .into(),
                retry: RetryAdvice::OnceReachable,
                may_be_done: false,
            };
        }
        AttemptError {
            error: RemoteError::NoResponse {
                server,
                source: error.into(),
            }
            .into(),
            retry: RetryAdvice::After(None),
            may_be_done: true,
        }
    }

    /// Converts an answer that did not come from the store: from the server's authentication or
    /// limits, a proxy, or another program.
    async fn gateway_error(&self, credentials: &Credentials, response: Response) -> AttemptError {
        let server = self.server.to_string();
        let status = response.status();
        let delay = retry_after(&response);
        let problem = Problem::read(response).await;
        let passes = match status {
            StatusCode::TOO_MANY_REQUESTS
            | StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT => RetryAdvice::After(delay),
            _ => RetryAdvice::Never,
        };
        let error = match (status, problem) {
            (StatusCode::UNAUTHORIZED, Some(_)) if credentials.has_token() => {
                RemoteError::TokenRefused { server }
            }
            (StatusCode::UNAUTHORIZED, Some(_)) => RemoteError::TokenRequired { server },
            (StatusCode::NOT_FOUND, problem)
                if !problem.as_ref().is_some_and(Problem::is_about_request) =>
            {
                self.identify_server(status).await
            }
            (_, Some(problem)) => RemoteError::Refused {
                server,
                detail: problem.detail,
                kind: error_kind(status),
            },
            (_, None) => RemoteError::NotThroughline {
                server,
                what: format!("it responded with {status}"),
            },
        };
        AttemptError {
            error: error.into(),
            // If a proxy sent it, whether the call was performed is unknown.
            may_be_done: status.is_server_error(),
            retry: passes,
        }
    }

    /// Determines what kind of server answers if our paths are unknown to it.
    async fn identify_server(&self, status: StatusCode) -> RemoteError {
        let server = self.server.to_string();
        let spoken = async {
            let response = self
                .http
                .get(self.server.join_path(VERSIONS_PATH))
                .send()
                .await
                .ok()?;
            let bytes = response.bytes().await.ok()?;
            serde_json::from_slice::<SupportedVersions>(&bytes).ok()
        };
        match spoken.await {
            Some(spoken) if spoken.store.contains(&VERSION) => RemoteError::Refused {
                server,
                detail: "it does not know the requested call".to_owned(),
                kind: ErrorKind::Invalid,
            },
            Some(spoken) => RemoteError::UnsupportedVersion {
                server,
                program: spoken.throughline,
            },
            None => RemoteError::NotThroughline {
                server,
                what: format!("it responded with {status}"),
            },
        }
    }
}

impl AttemptError {
    fn permanent(error: StoreError) -> Self {
        Self {
            error,
            retry: RetryAdvice::Never,
            may_be_done: false,
        }
    }
}

/// The problem document of an answer that did not come from the store.
#[derive(Debug, Deserialize)]
struct Problem {
    code: String,
    detail: String,
}

impl Problem {
    /// Whether it concerns the request rather than an unknown path.
    fn is_about_request(&self) -> bool {
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

/// Maps an HTTP status that did not come from the store to an error kind.
fn error_kind(status: StatusCode) -> ErrorKind {
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

//! Models that are reached over the network.
//!
//! One [`Provider`] speaks with Anthropic, OpenAI, Gemini and whatever is compatible
//! with OpenAI, through the genai crate: it writes the requests and reads the streams.
//! What it leaves out is added here, so that what we keep of an answer is all of it.
//!
//! Invariant: a request is only ever repeated while nothing of the answer has been told.

mod anthropic;
mod embed;
mod failure;
mod form;
mod frames;
mod gather;
mod http;
mod plain;
mod timing;
mod too_long;
mod wire;

use std::fmt;
use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use futures_util::StreamExt;
use genai::chat::{ChatOptions, ChatRequest, ChatStream, ReasoningEffort, Tool};
use genai::resolver::{AuthData, Endpoint};
use genai::{Headers, ModelIden, ServiceTarget};
use serde_json::json;

use crate::{
    Answer, Ask, Broken, ConnectError, Connection, Delta, Form, Model, ModelError, Term, Terms,
};
use failure::Failure;
use frames::{Frames, Reached};
use gather::Gathered;

pub use timing::Timing;
pub use wire::Wire;

/// A model at the other end of a connection.
pub struct Provider {
    at: Connection,
    timing: Timing,
    seed: u64,
    url: reqwest::Url,
    client: OnceLock<genai::Client>,
}

impl fmt::Debug for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Provider")
            .field("at", &self.at)
            .field("timing", &self.timing)
            .finish_non_exhaustive()
    }
}

impl Provider {
    /// A model at `at`. The `seed` spreads its retries: take it from chance.
    ///
    /// Nothing is sent before it is asked. Asking needs a tokio runtime with I/O and time.
    pub fn new(at: Connection, timing: Timing, seed: u64) -> Result<Self, ConnectError> {
        Ok(Self {
            url: http::address(&at.base_url)?,
            at,
            timing,
            seed,
            client: OnceLock::new(),
        })
    }

    /// How the model is reached.
    pub fn connection(&self) -> &Connection {
        &self.at
    }

    /// The client, made when it is first needed.
    fn client(&self) -> Result<&genai::Client, Failure> {
        if let Some(client) = self.client.get() {
            return Ok(client);
        }
        let made = http::client(&self.url, &self.timing).map_err(|source| {
            Failure::lasting(ModelError::NoNetwork {
                provider: self.at.provider.clone(),
                source,
            })
        })?;
        Ok(self.client.get_or_init(|| made))
    }

    /// A model at `at` that turns texts into vectors; refused where there are none to be had.
    pub fn embedding(at: Connection, timing: Timing, seed: u64) -> Result<Self, ConnectError> {
        embed::check(&at)?;
        Self::new(at, timing, seed)
    }

    fn target(&self) -> ServiceTarget {
        self.target_at(self.address())
    }

    fn target_at(&self, address: String) -> ServiceTarget {
        let auth = match &self.at.key {
            Some(key) => AuthData::from_single(key.expose()),
            // The client wants a key; a request of our own address needs none.
            None => AuthData::RequestOverride {
                url: address,
                headers: Headers::default(),
            },
        };
        ServiceTarget {
            endpoint: Endpoint::from_owned(self.at.base_url.clone()),
            auth,
            model: ModelIden::new(self.at.wire.adapter(), self.at.model.clone()),
        }
    }

    fn address(&self) -> String {
        let base = &self.at.base_url;
        match self.at.wire {
            Wire::Anthropic => format!("{base}messages"),
            Wire::Chat => format!("{base}chat/completions"),
            Wire::Responses => format!("{base}responses"),
            Wire::Gemini => {
                let model = &self.at.model;
                format!("{base}models/{model}:streamGenerateContent?alt=sse")
            }
        }
    }

    fn request(&self, ask: &Ask<'_>) -> ChatRequest {
        let messages = match self.at.wire {
            Wire::Anthropic => anthropic::messages(ask.messages),
            wire => plain::messages(ask.messages, wire, self.at.provider == "deepseek"),
        };
        let request = ChatRequest::new(messages);
        if ask.tools.is_empty() {
            return request;
        }
        let tools = ask.tools.iter().map(|tool| {
            Tool::new(tool.name.clone())
                .with_description(tool.description.clone())
                .with_schema(plain::object(&tool.schema))
        });
        request.with_tools(tools)
    }

    fn options(&self, terms: &Terms, form: &Form, frames: Arc<Frames>) -> ChatOptions {
        let mut options = ChatOptions::default()
            .with_capture_usage(true)
            .with_capture_tool_calls(true)
            .with_stream_header_timeout(self.timing.begin)
            .with_stream_read_timeout(self.timing.idle)
            .with_raw_frame_fn(move |_, frame| frames.take(frame));
        if let Some(most) = terms.max_output {
            options = options.with_max_tokens(u32::try_from(most).unwrap_or(u32::MAX));
        }
        options.temperature = terms.temperature;
        options.top_p = terms.top_p;
        let (format, mut members) = form::said(form, self.at.wire);
        options.response_format = format;
        // The client would read an effort out of a name such as `qwen-max`, unless it is
        // given one. These are efforts that it does not send.
        let is_mistaken = ReasoningEffort::from_model_name(&self.at.model).0.is_some();
        options.reasoning_effort = is_mistaken.then_some(match self.at.wire {
            Wire::Anthropic | Wire::Gemini => ReasoningEffort::Zero,
            Wire::Chat | Wire::Responses => ReasoningEffort::Budget(0),
        });
        match self.at.wire {
            Wire::Anthropic => options = options.with_capture_reasoning_content(true),
            Wire::Responses => {
                let include = json!(["reasoning.encrypted_content"]);
                members.insert("include".to_owned(), include);
            }
            Wire::Chat | Wire::Gemini => {}
        }
        if members.is_empty() {
            return options;
        }
        options.with_extra_body(serde_json::Value::Object(members))
    }

    /// Asks once. What arrives is gathered, whatever becomes of it.
    async fn attempt(
        &self,
        ask: &Ask<'_>,
        form: &Form,
        gathered: &mut Gathered,
        tell: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<Answer, Failure> {
        let frames = Arc::new(Frames::of(self.at.wire));
        let options = self.options(ask.terms, form, Arc::clone(&frames));
        let response = self
            .client()?
            .exec_chat_stream(self.target(), self.request(ask), Some(&options))
            .await
            .map_err(|error| Failure::of(error, &self.at))?;
        let read = self.read(response.stream, &frames, gathered, tell).await;
        frames.with(|seen| {
            gathered.take_seen(seen, tell);
            gathered.usage = gathered.usage.or(seen.usage);
            read?;
            self.check_end(seen.reached)?;
            let usage = gathered.usage;
            let (content, stop) = std::mem::take(gathered).finish(&seen.refusal, tell);
            Ok(Answer {
                content,
                usage,
                model: seen.model.take(),
                stop,
            })
        })
    }

    /// Reads a stream to its end.
    async fn read(
        &self,
        mut stream: ChatStream,
        frames: &Frames,
        gathered: &mut Gathered,
        tell: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<(), Failure> {
        while let Some(event) = stream.next().await {
            match event {
                Ok(event) => frames.with(|seen| gathered.take(event, seen, tell)),
                // The client stumbled over something it does not know, and goes on.
                Err(genai::Error::JsonValueExt(_)) if frames.with(|seen| seen.passed_over) => {}
                Err(error) => return Err(Failure::of(error, &self.at)),
            }
        }
        Ok(())
    }

    /// Refuses a stream that did not come to its end.
    fn check_end(&self, reached: Reached) -> Result<(), Failure> {
        let why = match reached {
            Reached::End => return Ok(()),
            Reached::Begun => {
                let why = "the connection was closed before the end";
                return Err(Failure::broke_off(why));
            }
            Reached::Nothing => "there is no stream of events in it",
            Reached::Garbled => "there are events in it that are no JSON",
        };
        Err(Failure::lasting(ModelError::BadAnswer {
            provider: self.at.provider.clone(),
            why: why.to_owned(),
        }))
    }
}

#[async_trait]
impl Model for Provider {
    fn name(&self) -> &str {
        &self.at.model
    }

    fn provider(&self) -> &str {
        &self.at.provider
    }

    fn window(&self) -> Option<u64> {
        self.at.window
    }

    fn cannot(&self, terms: &Terms) -> Option<Term> {
        let term = terms.form.term();
        term.filter(|_| !form::can(&terms.form, self.at.wire))
    }

    async fn answer(
        &self,
        ask: &Ask<'_>,
        tell: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<Answer, Broken> {
        let mut form = &ask.terms.form;
        let mut attempt = 1;
        loop {
            let mut gathered = Gathered::default();
            let failure = match self.attempt(ask, form, &mut gathered, tell).await {
                Ok(answer) => return Ok(answer),
                Err(failure) => failure,
            };
            if *form == Form::JsonIfPossible && failure.no_json {
                form = &Form::Text;
                continue;
            }
            let wait = if failure.may_pass && !gathered.told {
                self.timing.wait(attempt, failure.retry_after, self.seed)
            } else {
                None
            };
            let Some(after) = wait else {
                return Err(Broken {
                    error: failure.error,
                    usage: gathered.usage,
                    so_far: gathered.so_far(),
                });
            };
            tell(Delta::Retrying {
                after,
                why: failure::causes(&failure.error),
                attempt,
            });
            tokio::time::sleep(after).await;
            attempt += 1;
        }
    }
}

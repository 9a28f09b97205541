//! Models that are reached over the network.
//!
//! One [`Provider`] speaks with Anthropic, OpenAI, Gemini and whatever is compatible
//! with OpenAI, through the genai crate: it writes the requests and reads the streams.
//! What it leaves out is added here, so that what we keep of an answer is all of it.
//!
//! Invariant: a request is only ever repeated while nothing of the answer has been told.

mod answer_builder;
mod anthropic;
mod api_protocol;
mod attempt_error;
mod chat_messages;
mod context_overflow;
mod embed;
mod frames;
mod http;
mod response_format;
mod timeout_policy;

use std::fmt;
use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use futures_util::StreamExt;
use genai::chat::{ChatOptions, ChatRequest, ChatStream, ReasoningEffort, Tool};
use genai::resolver::{AuthData, Endpoint};
use genai::{Headers, ModelIden, ServiceTarget};
use serde_json::json;

use crate::{
    Answer, Delta, EndpointError, Model, ModelEndpoint, ModelError, ModelRequest, PartialAnswer,
    ResponseFormat, SamplingOption, SamplingOptions,
};
use answer_builder::AnswerBuilder;
use attempt_error::AttemptError;
use frames::{FrameObserver, StreamProgress};

pub use api_protocol::ApiProtocol;
pub use timeout_policy::TimeoutPolicy;

/// A model at the other end of a connection.
pub struct Provider {
    endpoint: ModelEndpoint,
    timeouts: TimeoutPolicy,
    seed: u64,
    url: reqwest::Url,
    client: OnceLock<genai::Client>,
}

impl fmt::Debug for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Provider")
            .field("at", &self.endpoint)
            .field("timing", &self.timeouts)
            .finish_non_exhaustive()
    }
}

impl Provider {
    /// A model at `at`. The `seed` spreads its retries: take it from chance.
    ///
    /// Nothing is sent before it is asked. Asking needs a tokio runtime with I/O and time.
    pub fn new(at: ModelEndpoint, timing: TimeoutPolicy, seed: u64) -> Result<Self, EndpointError> {
        Ok(Self {
            url: http::parse_url(&at.base_url)?,
            endpoint: at,
            timeouts: timing,
            seed,
            client: OnceLock::new(),
        })
    }

    /// How the model is reached.
    pub fn endpoint(&self) -> &ModelEndpoint {
        &self.endpoint
    }

    /// The client, made when it is first needed.
    fn client(&self) -> Result<&genai::Client, AttemptError> {
        if let Some(client) = self.client.get() {
            return Ok(client);
        }
        let made = http::build_client(&self.url, &self.timeouts).map_err(|source| {
            AttemptError::permanent(ModelError::Unreachable {
                provider: self.endpoint.provider.clone(),
                source,
            })
        })?;
        Ok(self.client.get_or_init(|| made))
    }

    /// A model at `at` that turns texts into vectors; refused where there are none to be had.
    pub fn for_embeddings(
        at: ModelEndpoint,
        timing: TimeoutPolicy,
        seed: u64,
    ) -> Result<Self, EndpointError> {
        embed::check_supports_embeddings(&at)?;
        Self::new(at, timing, seed)
    }

    fn target(&self) -> ServiceTarget {
        self.target_at(self.request_url())
    }

    fn target_at(&self, address: String) -> ServiceTarget {
        let auth = match &self.endpoint.key {
            Some(key) => AuthData::from_single(key.expose()),
            // The client wants a key; a request of our own address needs none.
            None => AuthData::RequestOverride {
                url: address,
                headers: Headers::default(),
            },
        };
        ServiceTarget {
            endpoint: Endpoint::from_owned(self.endpoint.base_url.clone()),
            auth,
            model: ModelIden::new(
                self.endpoint.protocol.adapter(),
                self.endpoint.model.clone(),
            ),
        }
    }

    fn request_url(&self) -> String {
        let base = &self.endpoint.base_url;
        match self.endpoint.protocol {
            ApiProtocol::Anthropic => format!("{base}messages"),
            ApiProtocol::Chat => format!("{base}chat/completions"),
            ApiProtocol::Responses => format!("{base}responses"),
            ApiProtocol::Gemini => {
                let model = &self.endpoint.model;
                format!("{base}models/{model}:streamGenerateContent?alt=sse")
            }
        }
    }

    fn build_request(&self, ask: &ModelRequest<'_>) -> ChatRequest {
        let messages = match self.endpoint.protocol {
            ApiProtocol::Anthropic => anthropic::to_chat_messages(ask.messages),
            wire => chat_messages::to_chat_messages(
                ask.messages,
                wire,
                self.endpoint.provider == "deepseek",
            ),
        };
        let request = ChatRequest::new(messages);
        if ask.tools.is_empty() {
            return request;
        }
        let tools = ask.tools.iter().map(|tool| {
            Tool::new(tool.name.clone())
                .with_description(tool.description.clone())
                .with_schema(chat_messages::to_json_object(&tool.schema))
        });
        request.with_tools(tools)
    }

    fn build_options(
        &self,
        terms: &SamplingOptions,
        form: &ResponseFormat,
        frames: Arc<FrameObserver>,
    ) -> ChatOptions {
        let mut options = ChatOptions::default()
            .with_capture_usage(true)
            .with_capture_tool_calls(true)
            .with_stream_header_timeout(self.timeouts.first_byte)
            .with_stream_read_timeout(self.timeouts.idle)
            .with_raw_frame_fn(move |_, frame| frames.observe(frame));
        if let Some(most) = terms.max_output {
            options = options.with_max_tokens(u32::try_from(most).unwrap_or(u32::MAX));
        }
        options.temperature = terms.temperature;
        options.top_p = terms.top_p;
        let (format, mut members) = response_format::encode_format(form, self.endpoint.protocol);
        options.response_format = format;
        // The client would read an effort out of a name such as `qwen-max`, unless it is
        // given one. These are efforts that it does not send.
        let is_mistaken = ReasoningEffort::from_model_name(&self.endpoint.model)
            .0
            .is_some();
        options.reasoning_effort = is_mistaken.then_some(match self.endpoint.protocol {
            ApiProtocol::Anthropic | ApiProtocol::Gemini => ReasoningEffort::Zero,
            ApiProtocol::Chat | ApiProtocol::Responses => ReasoningEffort::Budget(0),
        });
        match self.endpoint.protocol {
            ApiProtocol::Anthropic => options = options.with_capture_reasoning_content(true),
            ApiProtocol::Responses => {
                let include = json!(["reasoning.encrypted_content"]);
                members.insert("include".to_owned(), include);
            }
            ApiProtocol::Chat | ApiProtocol::Gemini => {}
        }
        if members.is_empty() {
            return options;
        }
        options.with_extra_body(serde_json::Value::Object(members))
    }

    /// Asks once. What arrives is gathered, whatever becomes of it.
    async fn attempt(
        &self,
        ask: &ModelRequest<'_>,
        form: &ResponseFormat,
        gathered: &mut AnswerBuilder,
        tell: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<Answer, AttemptError> {
        let frames = Arc::new(FrameObserver::new(self.endpoint.protocol));
        let options = self.build_options(ask.options, form, Arc::clone(&frames));
        let response = self
            .client()?
            .exec_chat_stream(self.target(), self.build_request(ask), Some(&options))
            .await
            .map_err(|error| AttemptError::from_client(error, &self.endpoint))?;
        let read = self
            .read_stream(response.stream, &frames, gathered, tell)
            .await;
        frames.with_state(|seen| {
            gathered.push_frame_blocks(seen, tell);
            gathered.usage = gathered.usage.or(seen.usage);
            read?;
            self.check_end(seen.progress)?;
            let usage = gathered.usage;
            let (content, stop) = std::mem::take(gathered).finish(&seen.refusal, tell);
            Ok(Answer {
                content,
                usage,
                model: seen.model.take(),
                finish_reason: stop,
            })
        })
    }

    /// Reads a stream to its end.
    async fn read_stream(
        &self,
        mut stream: ChatStream,
        frames: &FrameObserver,
        gathered: &mut AnswerBuilder,
        tell: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<(), AttemptError> {
        while let Some(event) = stream.next().await {
            match event {
                Ok(event) => frames.with_state(|seen| gathered.push_event(event, seen, tell)),
                // The client stumbled over something it does not know, and goes on.
                Err(genai::Error::JsonValueExt(_))
                    if frames.with_state(|seen| seen.is_unknown_to_client) => {}
                Err(error) => return Err(AttemptError::from_client(error, &self.endpoint)),
            }
        }
        Ok(())
    }

    /// Refuses a stream that did not come to its end.
    fn check_end(&self, reached: StreamProgress) -> Result<(), AttemptError> {
        let why = match reached {
            StreamProgress::Finished => return Ok(()),
            StreamProgress::Started => {
                let why = "the connection was closed before the end";
                return Err(AttemptError::interrupted(why));
            }
            StreamProgress::NotStarted => "there is no stream of events in it",
            StreamProgress::Corrupt => "there are events in it that are no JSON",
        };
        Err(AttemptError::permanent(ModelError::InvalidResponse {
            provider: self.endpoint.provider.clone(),
            reason: why.to_owned(),
        }))
    }
}

#[async_trait]
impl Model for Provider {
    fn name(&self) -> &str {
        &self.endpoint.model
    }

    fn provider(&self) -> &str {
        &self.endpoint.provider
    }

    fn window(&self) -> Option<u64> {
        self.endpoint.window
    }

    fn unsupported_option(&self, terms: &SamplingOptions) -> Option<SamplingOption> {
        let term = terms.format.required_option();
        term.filter(|_| !response_format::is_supported(&terms.format, self.endpoint.protocol))
    }

    async fn answer(
        &self,
        ask: &ModelRequest<'_>,
        tell: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<Answer, PartialAnswer> {
        let mut form = &ask.options.format;
        let mut attempt = 1;
        loop {
            let mut gathered = AnswerBuilder::default();
            let failure = match self.attempt(ask, form, &mut gathered, tell).await {
                Ok(answer) => return Ok(answer),
                Err(failure) => failure,
            };
            if *form == ResponseFormat::JsonIfPossible && failure.rejects_json_mode {
                form = &ResponseFormat::Text;
                continue;
            }
            let wait = if failure.is_transient && !gathered.has_emitted {
                self.timeouts
                    .retry_delay(attempt, failure.retry_after, self.seed)
            } else {
                None
            };
            let Some(after) = wait else {
                return Err(PartialAnswer {
                    error: failure.error,
                    usage: gathered.usage,
                    content: gathered.into_partial(),
                });
            };
            tell(Delta::Retry {
                after,
                reason: attempt_error::format_error_chain(&failure.error),
                attempt,
            });
            tokio::time::sleep(after).await;
            attempt += 1;
        }
    }
}

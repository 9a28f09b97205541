//! Models reached over the network.
//!
//! One [`Provider`] talks to Anthropic, OpenAI, Gemini and OpenAI-compatible servers through
//! the genai crate, which encodes the requests and decodes the streams. The submodules add
//! what genai drops, so that the complete answer is stored.
//!
//! Invariant: a request is retried only while nothing of its answer has been emitted.

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

/// A model served by a remote endpoint.
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
    /// Creates a model at `at`. The random `seed` adds jitter to its retries.
    ///
    /// Sends nothing yet. Requests need a tokio runtime with I/O and time enabled.
    pub fn new(at: ModelEndpoint, timing: TimeoutPolicy, seed: u64) -> Result<Self, EndpointError> {
        Ok(Self {
            url: http::parse_url(&at.base_url)?,
            endpoint: at,
            timeouts: timing,
            seed,
            client: OnceLock::new(),
        })
    }

    /// Returns the endpoint.
    pub fn endpoint(&self) -> &ModelEndpoint {
        &self.endpoint
    }

    /// Returns the HTTP client, created on first use.
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

    /// Creates an embedding model at `at`; fails if the API has no embeddings.
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
            // The client insists on a key; overriding the request avoids it.
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

    fn build_request(&self, request: &ModelRequest<'_>) -> ChatRequest {
        let messages = match self.endpoint.protocol {
            ApiProtocol::Anthropic => anthropic::to_chat_messages(request.messages),
            wire => chat_messages::to_chat_messages(
                request.messages,
                wire,
                self.endpoint.provider == "deepseek",
            ),
        };
        let chat = ChatRequest::new(messages);
        if request.tools.is_empty() {
            return chat;
        }
        let tools = request.tools.iter().map(|tool| {
            Tool::new(tool.name.clone())
                .with_description(tool.description.clone())
                .with_schema(chat_messages::to_json_object(&tool.schema))
        });
        chat.with_tools(tools)
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
        // genai would derive a reasoning effort from a name such as `qwen-max`, unless one is
        // set. The efforts set here are ones it does not send.
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

    /// Makes one attempt. What arrives is added to `builder`, even if the attempt fails.
    async fn attempt(
        &self,
        request: &ModelRequest<'_>,
        form: &ResponseFormat,
        builder: &mut AnswerBuilder,
        on_delta: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<Answer, AttemptError> {
        let frames = Arc::new(FrameObserver::new(self.endpoint.protocol));
        let options = self.build_options(request.options, form, Arc::clone(&frames));
        let response = self
            .client()?
            .exec_chat_stream(self.target(), self.build_request(request), Some(&options))
            .await
            .map_err(|error| AttemptError::from_client(error, &self.endpoint))?;
        let read = self
            .read_stream(response.stream, &frames, builder, on_delta)
            .await;
        frames.with_state(|seen| {
            builder.push_frame_blocks(seen, on_delta);
            builder.usage = builder.usage.or(seen.usage);
            read?;
            self.check_end(seen.progress)?;
            let usage = builder.usage;
            let (content, stop) = std::mem::take(builder).finish(&seen.refusal, on_delta);
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
        builder: &mut AnswerBuilder,
        on_delta: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<(), AttemptError> {
        while let Some(event) = stream.next().await {
            match event {
                Ok(event) => frames.with_state(|seen| builder.push_event(event, seen, on_delta)),
                // The client failed on an unknown frame; the stream continues.
                Err(genai::Error::JsonValueExt(_))
                    if frames.with_state(|seen| seen.is_unknown_to_client) => {}
                Err(error) => return Err(AttemptError::from_client(error, &self.endpoint)),
            }
        }
        Ok(())
    }

    /// Fails if the stream did not reach its end.
    fn check_end(&self, reached: StreamProgress) -> Result<(), AttemptError> {
        let why = match reached {
            StreamProgress::Finished => return Ok(()),
            StreamProgress::Started => {
                let why = "the connection closed early";
                return Err(AttemptError::interrupted(why));
            }
            StreamProgress::NotStarted => "it is not an event stream",
            StreamProgress::Corrupt => "an event is not valid JSON",
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

    fn unsupported_option(&self, options: &SamplingOptions) -> Option<SamplingOption> {
        let term = options.format.required_option();
        term.filter(|_| !response_format::is_supported(&options.format, self.endpoint.protocol))
    }

    async fn answer(
        &self,
        request: &ModelRequest<'_>,
        on_delta: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<Answer, PartialAnswer> {
        let mut form = &request.options.format;
        let mut attempt = 1;
        loop {
            let mut builder = AnswerBuilder::default();
            let failure = match self.attempt(request, form, &mut builder, on_delta).await {
                Ok(answer) => return Ok(answer),
                Err(failure) => failure,
            };
            if *form == ResponseFormat::JsonIfPossible && failure.rejects_json_mode {
                form = &ResponseFormat::Text;
                continue;
            }
            let wait = if failure.is_transient && !builder.has_emitted {
                self.timeouts
                    .retry_delay(attempt, failure.retry_after, self.seed)
            } else {
                None
            };
            let Some(after) = wait else {
                return Err(PartialAnswer {
                    error: failure.error,
                    usage: builder.usage,
                    content: builder.into_partial(),
                });
            };
            on_delta(Delta::Retry {
                after,
                reason: attempt_error::format_error_chain(&failure.error),
                attempt,
            });
            tokio::time::sleep(after).await;
            attempt += 1;
        }
    }
}

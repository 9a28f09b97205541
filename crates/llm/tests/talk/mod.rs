//! Talking with the stand-in, over every wire.

#![allow(
    dead_code,
    clippy::unwrap_used,
    reason = "each test takes what it needs"
)]

use std::time::Duration;

use throughline_context::RequestMessage;
use throughline_llm::{
    Answer, ApiProtocol, Delta, Model, ModelEndpoint, ModelRequest, PartialAnswer, Provider,
    Secret, TimeoutPolicy,
};
use throughline_mock_provider::{MockProvider, Reply, Script};
use throughline_model::{Content, Role};

pub(crate) const KEY: &str = "sk-very-secret";

/// The wires that the stand-in speaks.
pub(crate) const WIRES: [ApiProtocol; 4] = [
    ApiProtocol::Anthropic,
    ApiProtocol::Chat,
    ApiProtocol::Responses,
    ApiProtocol::Gemini,
];

pub(crate) fn start(replies: impl IntoIterator<Item = Reply>) -> MockProvider {
    MockProvider::start_with_key(Script::replies(replies), KEY).unwrap()
}

/// Retries that a test can wait for; the limits are for machines that are busy.
pub(crate) fn quick() -> TimeoutPolicy {
    TimeoutPolicy {
        connect: Duration::from_secs(5),
        first_byte: Duration::from_secs(5),
        idle: Duration::from_secs(5),
        retries: 2,
        backoff: Duration::from_millis(2),
        max_wait: Duration::from_millis(50),
    }
}

pub(crate) fn connection(stand_in: &MockProvider, wire: ApiProtocol) -> ModelEndpoint {
    let provider = match wire {
        ApiProtocol::Anthropic => "anthropic",
        ApiProtocol::Chat | ApiProtocol::Responses => "openai",
        ApiProtocol::Gemini => "gemini",
    };
    ModelEndpoint {
        provider: provider.to_owned(),
        model: "model-max".to_owned(),
        base_url: format!("{}/v1/", stand_in.url()),
        key: Secret::new(KEY),
        key_source: Some("SOME_API_KEY".to_owned()),
        protocol: wire,
        window: Some(200_000),
    }
}

pub(crate) fn provider(stand_in: &MockProvider, wire: ApiProtocol) -> Provider {
    Provider::new(connection(stand_in, wire), quick(), 7).unwrap()
}

pub(crate) fn said(role: Role, content: Content) -> RequestMessage {
    RequestMessage {
        role,
        content,
        breakpoints: Vec::new(),
    }
}

pub(crate) fn hello() -> Vec<RequestMessage> {
    vec![said(Role::User, Content::text("Hello?"))]
}

pub(crate) fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(future)
}

/// Asks, and remembers what was told.
pub(crate) fn ask(
    model: &dyn Model,
    ask: &ModelRequest<'_>,
) -> (Result<Answer, PartialAnswer>, Vec<Delta>) {
    let mut told = Vec::new();
    let answer = run(model.answer(ask, &mut |delta| told.push(delta)));
    (answer, told)
}

pub(crate) fn say_hello(
    stand_in: &MockProvider,
    wire: ApiProtocol,
) -> (Result<Answer, PartialAnswer>, Vec<Delta>) {
    let messages = hello();
    let asked = ModelRequest {
        messages: &messages,
        ..ModelRequest::default()
    };
    ask(&provider(stand_in, wire), &asked)
}

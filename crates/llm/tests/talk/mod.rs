//! Test helpers: requests to the mock provider with every protocol.

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

/// The protocols that the mock provider supports.
pub(crate) const WIRES: [ApiProtocol; 4] = [
    ApiProtocol::Anthropic,
    ApiProtocol::Chat,
    ApiProtocol::Responses,
    ApiProtocol::Gemini,
];

pub(crate) fn start(replies: impl IntoIterator<Item = Reply>) -> MockProvider {
    MockProvider::start_with_key(Script::replies(replies), KEY).unwrap()
}

/// Short retries for tests; the timeouts allow for busy machines.
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

pub(crate) fn connection(mock: &MockProvider, wire: ApiProtocol) -> ModelEndpoint {
    let provider = match wire {
        ApiProtocol::Anthropic => "anthropic",
        ApiProtocol::Chat | ApiProtocol::Responses => "openai",
        ApiProtocol::Gemini => "gemini",
    };
    ModelEndpoint {
        provider: provider.to_owned(),
        model: "model-max".to_owned(),
        base_url: format!("{}/v1/", mock.url()),
        key: Secret::new(KEY),
        key_source: Some("SOME_API_KEY".to_owned()),
        protocol: wire,
        window: Some(200_000),
    }
}

pub(crate) fn provider(mock: &MockProvider, wire: ApiProtocol) -> Provider {
    Provider::new(connection(mock, wire), quick(), 7).unwrap()
}

pub(crate) fn request_message(role: Role, content: Content) -> RequestMessage {
    RequestMessage {
        role,
        content,
        breakpoints: Vec::new(),
    }
}

pub(crate) fn hello() -> Vec<RequestMessage> {
    vec![request_message(Role::User, Content::text("Hello?"))]
}

pub(crate) fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(future)
}

/// Sends a request; returns the answer and the deltas.
pub(crate) fn ask(
    model: &dyn Model,
    ask: &ModelRequest<'_>,
) -> (Result<Answer, PartialAnswer>, Vec<Delta>) {
    let mut deltas = Vec::new();
    let answer = run(model.answer(ask, &mut |delta| deltas.push(delta)));
    (answer, deltas)
}

pub(crate) fn say_hello(
    mock: &MockProvider,
    wire: ApiProtocol,
) -> (Result<Answer, PartialAnswer>, Vec<Delta>) {
    let messages = hello();
    let asked = ModelRequest {
        messages: &messages,
        ..ModelRequest::default()
    };
    ask(&provider(mock, wire), &asked)
}

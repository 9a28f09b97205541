//! Talking with the stand-in, over every wire.

#![allow(
    dead_code,
    clippy::unwrap_used,
    reason = "each test takes what it needs"
)]

use std::time::Duration;

use throughline_context::RequestMessage;
use throughline_llm::{
    Answer, Ask, Broken, Connection, Delta, Model, Provider, Secret, Timing, Wire,
};
use throughline_model::{Content, Role};
use throughline_stand_in::{Reply, Script, StandIn};

pub(crate) const KEY: &str = "sk-very-secret";

/// The wires that the stand-in speaks.
pub(crate) const WIRES: [Wire; 4] = [Wire::Anthropic, Wire::Chat, Wire::Responses, Wire::Gemini];

pub(crate) fn start(replies: impl IntoIterator<Item = Reply>) -> StandIn {
    StandIn::start_with_key(Script::replies(replies), KEY).unwrap()
}

/// Retries that a test can wait for; the limits are for machines that are busy.
pub(crate) fn quick() -> Timing {
    Timing {
        connect: Duration::from_secs(5),
        begin: Duration::from_secs(5),
        idle: Duration::from_secs(5),
        retries: 2,
        backoff: Duration::from_millis(2),
        patience: Duration::from_millis(50),
    }
}

pub(crate) fn connection(stand_in: &StandIn, wire: Wire) -> Connection {
    let provider = match wire {
        Wire::Anthropic => "anthropic",
        Wire::Chat | Wire::Responses => "openai",
        Wire::Gemini => "gemini",
    };
    Connection {
        provider: provider.to_owned(),
        model: "model-max".to_owned(),
        base_url: format!("{}/v1/", stand_in.url()),
        key: Secret::new(KEY),
        key_from: Some("SOME_API_KEY".to_owned()),
        wire,
        window: Some(200_000),
    }
}

pub(crate) fn provider(stand_in: &StandIn, wire: Wire) -> Provider {
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
pub(crate) fn ask(model: &dyn Model, ask: &Ask<'_>) -> (Result<Answer, Broken>, Vec<Delta>) {
    let mut told = Vec::new();
    let answer = run(model.answer(ask, &mut |delta| told.push(delta)));
    (answer, told)
}

pub(crate) fn say_hello(stand_in: &StandIn, wire: Wire) -> (Result<Answer, Broken>, Vec<Delta>) {
    let messages = hello();
    let asked = Ask {
        messages: &messages,
        ..Ask::default()
    };
    ask(&provider(stand_in, wire), &asked)
}

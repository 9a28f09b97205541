//! Mock providers for the chat tests, and the settings that point `tl` at them.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use serde_json::json;
use throughline_mock_provider::{MockProvider, Reply, Request, Script};

use crate::harness::Tl;
use crate::pty::{PtyCommand, TIMEOUT};

/// An API key that must never appear anywhere.
pub(crate) const KEY: &str = "sk-not-to-be-seen-anywhere";

/// A wire format, and the environment variables that select it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WireFormat {
    pub(crate) name: &'static str,
    pub(crate) key: &'static str,
    pub(crate) address: &'static str,
    pub(crate) model: &'static str,
}

pub(crate) const ANTHROPIC: WireFormat = WireFormat {
    name: "anthropic",
    key: "ANTHROPIC_API_KEY",
    address: "ANTHROPIC_BASE_URL",
    model: "claude-sonnet-5-5",
};

pub(crate) const OPENAI: WireFormat = WireFormat {
    name: "openai",
    key: "OPENAI_API_KEY",
    address: "OPENAI_BASE_URL",
    model: "gpt-6.1-sol",
};

pub(crate) const WIRE_FORMATS: [WireFormat; 2] = [ANTHROPIC, OPENAI];

/// What a request is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestPurpose {
    Answer,
    Title,
    Summary,
}

pub(crate) fn purpose(request: &Request) -> RequestPurpose {
    let system = request.system();
    if system.starts_with("Name the conversation") {
        RequestPurpose::Title
    } else if system.contains("\"open_tasks\"") {
        RequestPurpose::Summary
    } else {
        RequestPurpose::Answer
    }
}

/// Starts a provider with these replies, in order, and default titles and summaries.
pub(crate) fn start_provider(replies: impl IntoIterator<Item = Reply>) -> MockProvider {
    start_provider_by_purpose(replies, || Reply::text("rate limiter"), summary_reply)
}

/// Starts a provider with these replies, in order, and these titles and summaries.
pub(crate) fn start_provider_by_purpose(
    replies: impl IntoIterator<Item = Reply>,
    title: fn() -> Reply,
    summary: fn() -> Reply,
) -> MockProvider {
    MockProvider::start_with_key(build_script(replies, title, summary), KEY).unwrap()
}

fn build_script(
    replies: impl IntoIterator<Item = Reply>,
    title: fn() -> Reply,
    summary: fn() -> Reply,
) -> Script {
    let mut replies: VecDeque<Reply> = replies.into_iter().collect();
    Script::from_fn(move |request| match purpose(request) {
        RequestPurpose::Title => title(),
        RequestPurpose::Summary => summary(),
        RequestPurpose::Answer => replies
            .pop_front()
            .unwrap_or_else(|| Reply::text("There is nothing more to say.")),
    })
}

/// Waits until the provider has received a request for an answer.
pub(crate) fn wait_for_request(provider: &MockProvider) {
    let end = Instant::now() + TIMEOUT;
    let asked = || {
        let requests = provider.requests();
        requests
            .iter()
            .any(|request| purpose(request) == RequestPurpose::Answer)
    };
    while !asked() {
        assert!(Instant::now() < end, "nobody asked the provider");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A summary as a model writes it.
pub(crate) fn summary_reply() -> Reply {
    let summary = json!({
        "background": "",
        "topics": ["A rate limiter, in the model's words"],
        "completed": [],
        "in_progress": [],
        "pending": [],
        "blockers": [],
        "decisions": ["Use a token bucket"],
        "facts": [],
        "files_touched": [],
        "open_tasks": ["Test the burst"],
    });
    Reply::text(summary.to_string())
}

impl Tl {
    /// Prepares `tl` with these arguments for a terminal, with a key for the provider.
    pub(crate) fn connected_terminal(
        &self,
        args: &[&str],
        to: &MockProvider,
        wire: WireFormat,
    ) -> PtyCommand {
        self.terminal(args)
            .env(wire.key, KEY)
            .env(wire.address, &to.url())
    }
}

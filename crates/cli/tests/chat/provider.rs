//! A provider of models that is not one, and how `tl` is pointed at it.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use serde_json::json;
use throughline_stand_in::{Reply, Request, Script, StandIn};

use crate::harness::Tl;
use crate::pty::{PATIENCE, Terminal};

/// A key that must never be seen anywhere.
pub(crate) const KEY: &str = "sk-not-to-be-seen-anywhere";

/// A wire format, and the variables that lead to it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wire {
    pub(crate) name: &'static str,
    pub(crate) key: &'static str,
    pub(crate) address: &'static str,
    pub(crate) model: &'static str,
}

pub(crate) const ANTHROPIC: Wire = Wire {
    name: "anthropic",
    key: "ANTHROPIC_API_KEY",
    address: "ANTHROPIC_BASE_URL",
    model: "claude-sonnet-5-5",
};

pub(crate) const OPENAI: Wire = Wire {
    name: "openai",
    key: "OPENAI_API_KEY",
    address: "OPENAI_BASE_URL",
    model: "gpt-6.1-sol",
};

pub(crate) const BOTH: [Wire; 2] = [ANTHROPIC, OPENAI];

/// What a request is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum For {
    Answer,
    Title,
    Summary,
}

pub(crate) fn purpose(request: &Request) -> For {
    let system = request.system();
    if system.starts_with("Name the conversation") {
        For::Title
    } else if system.contains("\"open_tasks\"") {
        For::Summary
    } else {
        For::Answer
    }
}

/// A provider that answers so, in turn, and names and summarizes as it is asked to.
pub(crate) fn answering(replies: impl IntoIterator<Item = Reply>) -> StandIn {
    by_purpose(replies, || Reply::text("rate limiter"), summary)
}

/// A provider that answers so, in turn, and names and summarizes so.
pub(crate) fn by_purpose(
    replies: impl IntoIterator<Item = Reply>,
    title: fn() -> Reply,
    summary: fn() -> Reply,
) -> StandIn {
    StandIn::start_with_key(script(replies, title, summary), KEY).unwrap()
}

fn script(
    replies: impl IntoIterator<Item = Reply>,
    title: fn() -> Reply,
    summary: fn() -> Reply,
) -> Script {
    let mut replies: VecDeque<Reply> = replies.into_iter().collect();
    Script::by(move |request| match purpose(request) {
        For::Title => title(),
        For::Summary => summary(),
        For::Answer => replies
            .pop_front()
            .unwrap_or_else(|| Reply::text("There is nothing more to say.")),
    })
}

/// Waits until the provider was asked for an answer.
pub(crate) fn wait_until_asked(provider: &StandIn) {
    let end = Instant::now() + PATIENCE;
    let asked = || {
        let requests = provider.requests();
        requests
            .iter()
            .any(|request| purpose(request) == For::Answer)
    };
    while !asked() {
        assert!(Instant::now() < end, "nobody asked the provider");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A summary as a model writes it.
pub(crate) fn summary() -> Reply {
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
    /// `tl` with these arguments, for a terminal, with a key for the provider.
    pub(crate) fn connected(&self, args: &[&str], to: &StandIn, wire: Wire) -> Terminal {
        self.terminal(args)
            .env(wire.key, KEY)
            .env(wire.address, &to.url())
    }
}

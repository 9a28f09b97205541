//! Scripts that decide which request gets which reply.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use crate::echo::echo;
use crate::{Reply, Request};

type ReplyFn = Box<dyn FnMut(&Request) -> Reply + Send>;

/// The replies to send, request by request.
pub struct Script(Mutex<ReplyFn>);

impl fmt::Debug for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Script")
    }
}

impl Default for Script {
    /// Echoes, or summarizes if requested.
    fn default() -> Self {
        Self::from_fn(echo)
    }
}

impl Script {
    /// Sends these replies in turn, then echoes.
    pub fn replies(replies: impl IntoIterator<Item = Reply>) -> Self {
        let mut left: VecDeque<Reply> = replies.into_iter().collect();
        Self::from_fn(move |request| left.pop_front().unwrap_or_else(|| echo(request)))
    }

    /// Sends the replies that a function returns.
    pub fn from_fn(answer: impl FnMut(&Request) -> Reply + Send + 'static) -> Self {
        Self(Mutex::new(Box::new(answer)))
    }

    /// Reads replies from JSON: an array of objects with `said` (the blocks), `usage`, `stop`,
    /// `delay_ms` and `fault`.
    ///
    /// ```
    /// use throughline_mock_provider::Script;
    ///
    /// Script::parse(r#"[
    ///     {"said": [{"text": "Hello!"}], "usage": {"input": 10, "output": 2}},
    ///     {"fault": {"rate_limited": {"retry_after": "1"}}},
    ///     {"said": [{"call": {"id": "c1", "name": "read", "input": {"path": "a.rs"}}}]},
    ///     {"said": [{"text": "half of this"}], "fault": {"cut": {"after": 2}}, "delay_ms": 5}
    /// ]"#).unwrap();
    /// ```
    pub fn parse(json: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str::<Vec<Reply>>(json).map(Self::replies)
    }

    pub(crate) fn next_reply(&self, request: &Request) -> Reply {
        (self.0.lock().unwrap_or_else(PoisonError::into_inner))(request)
    }
}

//! What is served, to whom, and within which limits.

use std::sync::Arc;
use std::time::Duration;

use jiff::tz::TimeZone;
use throughline::{Owner, Throughline};

use crate::Voices;

/// What a server is made of.
#[derive(Clone, Debug)]
pub struct Serving {
    /// The store. On whose behalf it was opened does not matter here.
    pub tl: Throughline,
    /// Who answers.
    pub voices: Arc<dyn Voices>,
    /// Who may call.
    pub gate: Gate,
    /// How much of everything.
    pub limits: Limits,
    /// Names it may be called by, besides those of this machine; any, where there are
    /// none and tokens are asked for.
    pub hosts: Vec<String>,
    /// Other places whose pages may call it: `https://app.example.org`.
    pub origins: Vec<String>,
    /// Where the people are, for what is told in words.
    pub zone: TimeZone,
    /// Whether whoever calls reaches it by `https`: cookies then travel by that only.
    pub secure: bool,
}

/// Who may call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Gate {
    /// Whoever reaches it is this owner, as long as no token has been made. For loopback.
    Open(Owner),
    /// Nobody without a token.
    Tokens,
}

/// How much is too much; each has its own clear answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a request's body: 413.
    pub body: usize,
    /// Bytes of an attachment: 413.
    pub blob: usize,
    /// Items on a page: 400.
    pub page: usize,
    /// Requests of one caller: 429.
    pub rate: Option<Rate>,
    /// How long a request's head may take to arrive; the connection is closed after.
    pub head_time: Duration,
    /// How long a request's body may take to arrive: 408.
    pub body_time: Duration,
    /// How long an answer may take to be made, turns and compactions apart: 503.
    pub time: Duration,
    /// Connections at once; others wait.
    pub connections: usize,
    /// Turns at once, over all sessions; others wait.
    pub turns: usize,
    /// How far behind the feed a reader of events may resume.
    pub behind: u64,
}

/// So many requests a second, with a reserve for bursts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// Requests a second, in the long run.
    pub per_second: u32,
    /// Requests at once, after a rest.
    pub burst: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body: 8 * 1024 * 1024,
            blob: 64 * 1024 * 1024,
            page: 1_000,
            rate: None,
            head_time: Duration::from_secs(15),
            body_time: Duration::from_secs(60),
            time: Duration::from_secs(60),
            connections: 20_000,
            turns: 64,
            behind: 1_000_000,
        }
    }
}

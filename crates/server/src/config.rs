//! What is served, to whom, and within which limits.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use ipnet::IpNet;
use jiff::tz::TimeZone;
use throughline::{ApiToken, Owner, Throughline, Timestamp};

use crate::ResponderRegistry;

/// What a server is made of.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// The store. On whose behalf it was opened does not matter here.
    pub tl: Throughline,
    /// Who answers.
    pub responders: Arc<dyn ResponderRegistry>,
    /// Who may call.
    pub gate: AccessMode,
    /// How much of everything.
    pub limits: Limits,
    /// Names it may be called by, besides those of this machine; any, where there are
    /// none and tokens are asked for.
    pub hosts: Vec<String>,
    /// Other places whose pages may call it: `https://app.example.org`.
    pub origins: Vec<String>,
    /// Where the people are, for what is told in words.
    pub time_zone: TimeZone,
    /// Whether whoever calls reaches it by `https`: cookies then travel by that only.
    pub secure: bool,
    /// Reverse proxies whose `Forwarded` and `X-Forwarded-*` headers are believed.
    pub trusted_proxies: Vec<IpNet>,
    /// The folder for large request bodies while they arrive; the system's folder for
    /// temporary files where none is named.
    pub spool_dir: Option<PathBuf>,
}

/// Who may call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AccessMode {
    /// Whoever reaches it is this owner, until the first token is made. For loopback.
    Open(Owner),
    /// Nobody without a token.
    Tokens,
}

/// Which tokens a store has, as far as that decides who may call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IssuedTokens {
    /// None was ever made.
    Never,
    /// All of them were revoked or have expired.
    NoneValid,
    /// At least one is valid.
    Valid,
}

impl IssuedTokens {
    /// What these tokens amount to at this time.
    pub fn of(tokens: &[ApiToken], now: Timestamp) -> Self {
        match tokens {
            [] => Self::Never,
            tokens if tokens.iter().any(|token| token.is_valid(now)) => Self::Valid,
            _ => Self::NoneValid,
        }
    }
}

/// How much is too much; each has its own clear answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a request's body: 413.
    pub body_bytes: usize,
    /// Bytes of an attachment: 413.
    pub blob_bytes: usize,
    /// Items on a page: 400.
    pub page_items: usize,
    /// Requests of one caller: 429.
    pub rate: Option<RateLimit>,
    /// Whether `rate` also applies while no token is required.
    pub rate_while_open: bool,
    /// Requests being answered at once: 429 for one caller, 503 in total.
    pub requests: Cap,
    /// Event streams and other long requests at once: 429 for one caller, 503 in total.
    pub streams: Cap,
    /// Bytes of bodies on their way in or out: 429 for one caller, 503 in total.
    pub in_flight_bytes: Cap,
    /// Bytes of large bodies in memory at once; complete ones wait on disk for their turn.
    pub buffered_body_bytes: usize,
    /// How long a request's head may take to arrive; the connection is closed after.
    pub header_timeout: Duration,
    /// How long a request's body may take to arrive: 408.
    pub body_timeout: Duration,
    /// How long an answer may take to be made, turns and compactions apart: 503.
    pub response_timeout: Duration,
    /// Connections at once; others wait.
    pub connections: usize,
    /// Turns at once, over all sessions; others wait.
    pub turns: usize,
    /// How far behind the feed a reader of events may resume.
    pub event_lag: u64,
}

/// How much one caller may have at once, and everybody together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cap {
    /// Everybody together.
    pub total: usize,
    /// One caller: the owner of a token, or an address without one.
    pub per_caller: usize,
}

/// So many requests a second, with a reserve for bursts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLimit {
    /// Requests a second, in the long run.
    pub per_second: u32,
    /// Requests at once, after a rest.
    pub burst: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body_bytes: 8 * 1024 * 1024,
            blob_bytes: 64 * 1024 * 1024,
            page_items: 1_000,
            rate: None,
            rate_while_open: true,
            requests: Cap {
                total: 4_096,
                per_caller: 256,
            },
            streams: Cap {
                total: 4_096,
                per_caller: 256,
            },
            in_flight_bytes: Cap {
                total: 1024 * 1024 * 1024,
                per_caller: 256 * 1024 * 1024,
            },
            buffered_body_bytes: 128 * 1024 * 1024,
            header_timeout: Duration::from_secs(15),
            body_timeout: Duration::from_secs(60),
            response_timeout: Duration::from_secs(60),
            connections: 20_000,
            turns: 64,
            event_lag: 1_000_000,
        }
    }
}

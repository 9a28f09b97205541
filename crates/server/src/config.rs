//! Server configuration: the store, access control and limits.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use ipnet::IpNet;
use jiff::tz::TimeZone;
use throughline::{ApiToken, Owner, Throughline, Timestamp};

use crate::ResponderRegistry;

/// Configuration of a server.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// The store. Its owner is irrelevant: every request acts on behalf of its caller.
    pub tl: Throughline,
    /// Provides the models and agents that answer turns.
    pub responders: Arc<dyn ResponderRegistry>,
    /// Whether a token is required.
    pub gate: AccessMode,
    /// Resource limits.
    pub limits: Limits,
    /// Host names the server accepts besides those of the local machine. If empty and tokens are
    /// required, any host name is accepted.
    pub hosts: Vec<String>,
    /// Other origins whose pages may call the server, such as `https://app.example.org`.
    pub origins: Vec<String>,
    /// Time zone for displayed times.
    pub time_zone: TimeZone,
    /// Whether clients connect over `https`; cookies are then marked `Secure`.
    pub secure: bool,
    /// Reverse proxies whose `Forwarded` and `X-Forwarded-*` headers are trusted.
    pub trusted_proxies: Vec<IpNet>,
    /// Folder for large request bodies while they arrive. Defaults to the system's temporary
    /// folder.
    pub spool_dir: Option<PathBuf>,
}

/// Whether callers need a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AccessMode {
    /// Every caller acts as this owner until the first token is created. For loopback addresses.
    Open(Owner),
    /// Every caller needs a token.
    Tokens,
}

/// Which tokens a store has, as far as it matters for access control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IssuedTokens {
    /// No token was ever created.
    Never,
    /// All tokens were revoked or have expired.
    NoneValid,
    /// At least one token is valid.
    Valid,
}

impl IssuedTokens {
    /// Classifies the tokens at the given time.
    pub fn of(tokens: &[ApiToken], now: Timestamp) -> Self {
        match tokens {
            [] => Self::Never,
            tokens if tokens.iter().any(|token| token.is_valid(now)) => Self::Valid,
            _ => Self::NoneValid,
        }
    }
}

/// Resource limits, each with the status that is returned when it is exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Size of a request body in bytes: 413.
    pub body_bytes: usize,
    /// Size of an attachment in bytes: 413.
    pub blob_bytes: usize,
    /// Items per page: 400.
    pub page_items: usize,
    /// Request rate per caller: 429.
    pub rate: Option<RateLimit>,
    /// Whether `rate` also applies while no token is required.
    pub rate_while_open: bool,
    /// Concurrent requests: 429 per caller, 503 in total.
    pub requests: Cap,
    /// Concurrent event streams and other long-running requests: 429 per caller, 503 in total.
    pub streams: Cap,
    /// Body bytes in transit, in either direction: 429 per caller, 503 in total.
    pub in_flight_bytes: Cap,
    /// Bytes of large bodies in memory at once. Complete bodies wait on disk until there is room.
    pub buffered_body_bytes: usize,
    /// Time for a request's headers to arrive; the connection is closed afterwards.
    pub header_timeout: Duration,
    /// Time for a request's body to arrive: 408.
    pub body_timeout: Duration,
    /// Time to produce a response, except for turns and compactions: 503.
    pub response_timeout: Duration,
    /// Concurrent connections; further ones wait.
    pub connections: usize,
    /// Concurrent turns over all sessions; further ones wait.
    pub turns: usize,
    /// How many changes an event subscriber may be behind and still resume.
    pub event_lag: u64,
}

/// A cap per caller and in total.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cap {
    /// Cap for all callers together.
    pub total: usize,
    /// Cap for one caller: the owner of a token, or a client address without a token.
    pub per_caller: usize,
}

/// A sustained request rate with a burst allowance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLimit {
    /// Sustained requests per second.
    pub per_second: u32,
    /// Requests accepted at once after an idle period.
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

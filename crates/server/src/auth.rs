//! Authenticates callers by token and determines the owner they act for.
//!
//! Invariant: a handler reaches sessions only through the [`Throughline`] of its [`Caller`], which
//! is created here and acts for one owner.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use throughline::{ApiToken, Digest, Error, Owner, Throughline, TokenId, TokenRole};
use throughline_remote::wire::ON_BEHALF_OF_HEADER;

use crate::access_monitor::{AccessEndReason, Credential};
use crate::{AccessMode, App, Problem};

/// Name of the cookie that holds the token for the web page.
pub(crate) const TOKEN_COOKIE: &str = "tl_token";
/// How long a token lookup is cached, and so how long a revoked token may still be accepted. A
/// stream opened at the very end is then closed within the documented second.
const TOKEN_CACHE_TTL: Duration = Duration::from_millis(500);
/// Maximum number of cached tokens.
const TOKEN_CACHE_CAPACITY: usize = 10_000;

/// An authenticated caller.
#[derive(Clone, Debug)]
pub struct Caller {
    /// The store, acting on behalf of the caller.
    pub tl: Throughline,
    /// The caller's role.
    pub role: TokenRole,
    /// The caller's token; `None` if no token is required.
    pub token: Option<TokenId>,
    /// Whether the token came in a cookie, which a browser sends automatically.
    pub by_cookie: bool,
    /// The token's own owner, even when it acts on behalf of another; quotas count by this.
    pub principal: Owner,
    /// What the caller was authenticated with, to check whether it is still valid.
    pub(crate) credential: Credential,
}

impl Caller {
    /// The owner the caller acts for.
    pub fn owner(&self) -> &Owner {
        self.tl.owner()
    }

    /// Returns an error unless the caller is an admin.
    pub fn require_admin(&self) -> Result<(), Problem> {
        match self.role {
            TokenRole::Admin => Ok(()),
            TokenRole::User | TokenRole::Service => Err(Problem::forbidden(
                "not_an_admin",
                "this requires a token with the admin role",
            )),
        }
    }
}

/// The guard's authentication result, for handlers that need a caller.
#[derive(Clone, Debug)]
pub(crate) struct AuthResult(pub(crate) Result<Caller, Problem>);

impl FromRequestParts<App> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, Problem> {
        match parts.extensions.get::<AuthResult>() {
            Some(AuthResult(admitted)) => admitted.clone(),
            None => Err(unauthorized("the request did not pass the guard")),
        }
    }
}

/// The problem for a caller whose access has ended.
pub(crate) fn access_ended(end: AccessEndReason) -> Problem {
    unauthorized(end.detail())
}

fn unauthorized(detail: impl Into<String>) -> Problem {
    Problem::new(StatusCode::UNAUTHORIZED, "unauthorized", detail)
}

/// Authenticates requests, with a short-lived token cache.
#[derive(Debug)]
pub(crate) struct Authenticator {
    tl: Throughline,
    gate: AccessMode,
    token_cache: Mutex<HashMap<Digest, CachedToken>>,
    /// Whether a token was ever created. Tokens are never deleted, so this never becomes false
    /// again.
    has_tokens: AtomicBool,
    /// When the last check that found no token started.
    last_open_check: tokio::sync::Mutex<Option<Instant>>,
}

#[derive(Clone, Debug)]
struct CachedToken {
    fetched_at: Instant,
    token: Option<Arc<ApiToken>>,
}

impl Authenticator {
    pub(crate) fn new(tl: Throughline, gate: AccessMode) -> Self {
        Self {
            tl,
            gate,
            token_cache: Mutex::default(),
            has_tokens: AtomicBool::new(false),
            last_open_check: tokio::sync::Mutex::new(None),
        }
    }

    /// Returns whether no token was ever created. Revoked and expired tokens count as created,
    /// since they show that the server was meant to be closed.
    ///
    /// While the server is open the result is never cached: the store is read after the request
    /// arrived. Concurrent requests share one read.
    pub(crate) async fn is_open(&self) -> Result<bool, Error> {
        if self.has_tokens.load(Ordering::Acquire) {
            return Ok(false);
        }
        let arrived = Instant::now();
        let mut checked = self.last_open_check.lock().await;
        if self.has_tokens.load(Ordering::Acquire) {
            return Ok(false);
        }
        if checked.is_some_and(|began| began >= arrived) {
            return Ok(true);
        }
        let began = Instant::now();
        let open = self.tl.tokens().await?.is_empty();
        if open {
            *checked = Some(began);
        } else {
            self.has_tokens.store(true, Ordering::Release);
        }
        Ok(open)
    }

    /// Authenticates the caller by the request's headers.
    pub(crate) async fn authenticate(&self, headers: &HeaderMap) -> Result<Caller, Problem> {
        let acting_for = header_text(headers, ON_BEHALF_OF_HEADER)?;
        if let AccessMode::Open(owner) = &self.gate
            && self.is_open().await?
        {
            if acting_for.is_some() {
                return Err(not_a_service());
            }
            return Ok(Caller {
                tl: self.tl.on_behalf_of(owner.clone()),
                role: TokenRole::Admin,
                token: None,
                by_cookie: false,
                principal: owner.clone(),
                credential: None,
            });
        }
        let (text, by_cookie) = match bearer_token(headers)? {
            Some(text) => (text, false),
            None => match cookie_token(headers) {
                Some(text) => (text, true),
                None => return Err(unauthorized("send a token: `Authorization: Bearer tl_…`")),
            },
        };
        let token = self.find_token(text).await?;
        let now = self.tl.now();
        let Some(token) = token.filter(|token| token.is_valid(now)) else {
            return Err(unauthorized("the token is unknown, expired or revoked"));
        };
        let owner = match (acting_for, token.role) {
            (None, _) => token.owner.clone(),
            (Some(user), TokenRole::Service) => token
                .owner
                .user(user)
                .map_err(|error| Problem::bad_request("bad_owner", error.to_string()))?,
            (Some(_), TokenRole::User | TokenRole::Admin) => return Err(not_a_service()),
        };
        Ok(Caller {
            tl: self.tl.on_behalf_of(owner),
            role: token.role,
            token: Some(token.id.clone()),
            by_cookie,
            principal: token.owner.clone(),
            credential: Some(token.hash),
        })
    }

    async fn find_token(&self, text: &str) -> Result<Option<Arc<ApiToken>>, Problem> {
        let hash = Digest::of(text.as_bytes());
        let cached = self.token_cache().get(&hash).cloned();
        if let Some(seen) = cached.filter(|seen| seen.fetched_at.elapsed() < TOKEN_CACHE_TTL) {
            return Ok(seen.token);
        }
        let token = self.tl.store().token_by_hash(&hash).await?.map(Arc::new);
        let mut known = self.token_cache();
        if known.len() >= TOKEN_CACHE_CAPACITY {
            known.retain(|_, seen| seen.fetched_at.elapsed() < TOKEN_CACHE_TTL);
            if known.len() >= TOKEN_CACHE_CAPACITY {
                known.clear();
            }
        }
        let at = Instant::now();
        known.insert(
            hash,
            CachedToken {
                fetched_at: at,
                token: token.clone(),
            },
        );
        Ok(token)
    }

    /// Clears the token cache after a token was created or revoked by this server.
    pub(crate) fn clear_token_cache(&self) {
        self.token_cache().clear();
    }

    fn token_cache(&self) -> std::sync::MutexGuard<'_, HashMap<Digest, CachedToken>> {
        self.token_cache
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

fn not_a_service() -> Problem {
    Problem::forbidden(
        "not_a_service",
        "only a token with the service role may act for other users",
    )
}

fn header_text<'a>(headers: &'a HeaderMap, name: &str) -> Result<Option<&'a str>, Problem> {
    headers
        .get(name)
        .map(|value| {
            std::str::from_utf8(value.as_bytes()).map_err(|_| {
                Problem::bad_request("bad_header", format!("the header {name} is not UTF-8"))
            })
        })
        .transpose()
}

fn bearer_token(headers: &HeaderMap) -> Result<Option<&str>, Problem> {
    let Some(value) = header_text(headers, header::AUTHORIZATION.as_str())? else {
        return Ok(None);
    };
    match value.split_once(' ') {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") => Ok(Some(token.trim())),
        _ => Err(unauthorized(
            "the header Authorization is not `Bearer tl_…`",
        )),
    }
}

fn cookie_token(headers: &HeaderMap) -> Option<&str> {
    let cookies = headers.get_all(header::COOKIE).into_iter();
    let mut pairs = cookies
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(';'))
        .filter_map(|pair| pair.trim().split_once('='));
    pairs
        .find(|(name, _)| *name == TOKEN_COOKIE)
        .map(|(_, value)| value)
}

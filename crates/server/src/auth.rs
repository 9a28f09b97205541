//! Who calls, and on whose behalf.
//!
//! Invariant: a handler reaches sessions only through the [`Throughline`] of its
//! [`Caller`], which is made here and speaks for one owner.

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

/// The cookie that holds a token for the page.
pub(crate) const TOKEN_COOKIE: &str = "tl_token";
/// How long what is known of a token is believed: so long a revoked one may still work. A
/// stream that it opens at the very end is then closed within the documented second.
const TOKEN_CACHE_TTL: Duration = Duration::from_millis(500);
/// How many tokens are remembered.
const TOKEN_CACHE_CAPACITY: usize = 10_000;

/// Who calls.
#[derive(Clone, Debug)]
pub struct Caller {
    /// The store, on behalf of the caller.
    pub tl: Throughline,
    /// What the caller may do.
    pub role: TokenRole,
    /// The token they called with; none where none is needed.
    pub token: Option<TokenId>,
    /// Whether the token came in a cookie, which a browser sends by itself.
    pub by_cookie: bool,
    /// Whose token it is, whomever it calls on behalf of: what limits count by.
    pub principal: Owner,
    /// What they were let in by, to see whether it still holds.
    pub(crate) credential: Credential,
}

impl Caller {
    /// On whose behalf.
    pub fn owner(&self) -> &Owner {
        self.tl.owner()
    }

    /// Refuses whoever is not an admin.
    pub fn require_admin(&self) -> Result<(), Problem> {
        match self.role {
            TokenRole::Admin => Ok(()),
            TokenRole::User | TokenRole::Service => Err(Problem::forbidden(
                "not_an_admin",
                "this needs a token with the role admin",
            )),
        }
    }
}

/// What the guard found out about the caller, for the handlers that need one.
#[derive(Clone, Debug)]
pub(crate) struct AuthResult(pub(crate) Result<Caller, Problem>);

impl FromRequestParts<App> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, Problem> {
        match parts.extensions.get::<AuthResult>() {
            Some(AuthResult(admitted)) => admitted.clone(),
            None => Err(unauthorized("there was no guard")),
        }
    }
}

/// Whoever was let in may no longer be served.
pub(crate) fn access_ended(end: AccessEndReason) -> Problem {
    unauthorized(end.detail())
}

fn unauthorized(detail: impl Into<String>) -> Problem {
    Problem::new(StatusCode::UNAUTHORIZED, "unauthorized", detail)
}

/// Knows who may come in.
#[derive(Debug)]
pub(crate) struct Authenticator {
    tl: Throughline,
    gate: AccessMode,
    token_cache: Mutex<HashMap<Digest, CachedToken>>,
    /// Whether a token was ever made. Tokens are never deleted, so it stays so.
    has_tokens: AtomicBool,
    /// When the last look that found no token began.
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

    /// Whether no token was ever made. Revoked and expired ones count: somebody wanted
    /// the server closed.
    ///
    /// While it is open this is never answered from memory: the look at the store began
    /// after the request came. Requests that come at the same time share one look.
    pub(crate) async fn is_open(&self) -> Result<bool, Error> {
        if self.has_tokens.load(Ordering::Acquire) {
            return Ok(false);
        }
        let came = Instant::now();
        let mut checked = self.last_open_check.lock().await;
        if self.has_tokens.load(Ordering::Acquire) {
            return Ok(false);
        }
        if checked.is_some_and(|began| began >= came) {
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

    /// Who calls, by the headers of a request.
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
        let (shown, by_cookie) = match bearer_token(headers)? {
            Some(shown) => (shown, false),
            None => match cookie_token(headers) {
                Some(shown) => (shown, true),
                None => return Err(unauthorized("send a token: `Authorization: Bearer tl_…`")),
            },
        };
        let token = self.find_token(shown).await?;
        let now = self.tl.now();
        let Some(token) = token.filter(|token| token.is_valid(now)) else {
            return Err(unauthorized(
                "the token is not known here, has ended or was taken back",
            ));
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

    async fn find_token(&self, shown: &str) -> Result<Option<Arc<ApiToken>>, Problem> {
        let hash = Digest::of(shown.as_bytes());
        let lately = self.token_cache().get(&hash).cloned();
        if let Some(seen) = lately.filter(|seen| seen.fetched_at.elapsed() < TOKEN_CACHE_TTL) {
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

    /// Forgets what is known of tokens, since one was made or taken back here.
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
        "only a token with the role service calls on behalf of others",
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

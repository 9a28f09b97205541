//! Ends open streams when the access they were opened with ends.
//!
//! A request is checked once when it arrives, but a stream stays open. While there are streams, one
//! task checks their tokens about twice a second and ends those whose token was revoked (by any
//! process) or has expired. A stream opened without a token ends when the first token is created.
//!
//! While the store cannot be read, streams stay open until their token expires: they cannot receive
//! anything new.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use throughline::{Digest, StoreError, Throughline, Timestamp};
use tokio::sync::{Notify, watch};

/// How often tokens of open streams are checked: well within the documented second.
const CHECK_INTERVAL: Duration = Duration::from_millis(400);

/// Why access ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AccessEndReason {
    /// The token was revoked.
    Revoked,
    /// The token has expired.
    Expired,
    /// A token has been required since the stream was opened.
    TokenRequired,
}

impl AccessEndReason {
    /// The message shown to the caller.
    pub(crate) fn detail(self) -> &'static str {
        match self {
            Self::Revoked => "the token was revoked",
            Self::Expired => "the token has expired",
            Self::TokenRequired => "a token is now required",
        }
    }
}

/// What a stream was opened with: the hash of a token, or none while none was required.
pub(crate) type Credential = Option<Digest>;

/// Watches the tokens of open streams. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct AccessMonitor(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    watched: Mutex<HashMap<Credential, WatchedCredential>>,
    wake: Arc<Notify>,
}

#[derive(Debug)]
struct WatchedCredential {
    ended: watch::Sender<Option<AccessEndReason>>,
    streams: usize,
}

impl Drop for Inner {
    fn drop(&mut self) {
        // The task finds the monitor gone and ends.
        self.wake.notify_one();
    }
}

impl Inner {
    fn watched(&self) -> MutexGuard<'_, HashMap<Credential, WatchedCredential>> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the streams that were opened with these credentials.
    fn end_streams(&self, ended: impl IntoIterator<Item = (Credential, AccessEndReason)>) {
        let watched = self.watched();
        for (credential, end) in ended {
            if let Some(entry) = watched.get(&credential) {
                entry.ended.send_replace(Some(end));
            }
        }
    }
}

impl AccessMonitor {
    /// Starts the monitor. Must be called within a Tokio runtime.
    pub(crate) fn start(tl: Throughline) -> Self {
        let wake = Arc::new(Notify::new());
        let monitor = Self(Arc::new(Inner {
            watched: Mutex::default(),
            wake: Arc::clone(&wake),
        }));
        tokio::spawn(monitor_tokens(Arc::downgrade(&monitor.0), wake, tl));
        monitor
    }

    /// Checks all tokens now, after one was created or revoked by this server.
    pub(crate) fn check_now(&self) {
        self.0.wake.notify_one();
    }

    /// Watches the credential of a stream until the returned watch is dropped.
    pub(crate) fn watch(&self, credential: Credential) -> AccessWatch {
        let mut watched = self.0.watched();
        let entry = watched
            .entry(credential)
            .or_insert_with(|| WatchedCredential {
                ended: watch::Sender::new(None),
                streams: 0,
            });
        let first = entry.streams == 0;
        entry.streams += 1;
        let ended = entry.ended.subscribe();
        drop(watched);
        // Check at once: the request may have been admitted from the token cache.
        if first {
            self.0.wake.notify_one();
        }
        AccessWatch {
            monitor: Arc::clone(&self.0),
            credential,
            ended,
        }
    }
}

/// A watched credential of a stream.
#[derive(Debug)]
pub(crate) struct AccessWatch {
    monitor: Arc<Inner>,
    credential: Credential,
    ended: watch::Receiver<Option<AccessEndReason>>,
}

impl AccessWatch {
    /// Resolves when access ends.
    pub(crate) fn ended(&self) -> impl Future<Output = AccessEndReason> + Send + 'static {
        let mut ended = self.ended.clone();
        async move {
            let end = ended
                .wait_for(Option::is_some)
                .await
                .ok()
                .and_then(|end| *end);
            match end {
                Some(end) => end,
                // The sender is dropped with the watch, so nobody is waiting.
                None => std::future::pending().await,
            }
        }
    }
}

impl Drop for AccessWatch {
    fn drop(&mut self) {
        let mut watched = self.monitor.watched();
        if let Some(entry) = watched.get_mut(&self.credential) {
            entry.streams -= 1;
            if entry.streams == 0 {
                watched.remove(&self.credential);
            }
        }
    }
}

/// Checks tokens for as long as the monitor exists.
async fn monitor_tokens(monitor: Weak<Inner>, wake: Arc<Notify>, tl: Throughline) {
    let mut expiries = HashMap::new();
    loop {
        let Some(inner) = monitor.upgrade() else {
            return;
        };
        let credentials: Vec<Credential> = inner.watched().keys().copied().collect();
        if credentials.is_empty() {
            drop(inner);
            expiries.clear();
            wake.notified().await;
            continue;
        }
        let mut check = std::pin::pin!(check_tokens(&tl, &credentials));
        let checked = loop {
            tokio::select! {
                checked = &mut check => break checked,
                // Expiry times are known, however long the store takes to answer.
                () = tokio::time::sleep(CHECK_INTERVAL) => {
                    let now = tl.now();
                    let expired = expiries.iter().filter(|(_, expiry)| **expiry <= now);
                    inner.end_streams(expired.map(|(hash, _)| (Some(*hash), AccessEndReason::Expired)));
                }
            }
        };
        match checked {
            Ok(checked) => {
                inner.end_streams(checked.ended);
                expiries = checked.expiries;
            }
            Err(error) => {
                tracing::error!(%error, "cannot check the tokens of open streams");
            }
        }
        drop(inner);
        tokio::select! {
            () = wake.notified() => {}
            () = tokio::time::sleep(CHECK_INTERVAL) => {}
        }
    }
}

/// Result of checking the tokens of open streams.
struct TokenCheck {
    /// Credentials whose access ended.
    ended: Vec<(Credential, AccessEndReason)>,
    /// Expiry times of the others.
    expiries: HashMap<Digest, Timestamp>,
}

async fn check_tokens(
    tl: &Throughline,
    credentials: &[Credential],
) -> Result<TokenCheck, StoreError> {
    let hashes: Vec<Digest> = credentials.iter().flatten().copied().collect();
    let mut ended = Vec::new();
    if credentials.contains(&None) && !tl.store().list_tokens().await?.is_empty() {
        ended.push((None, AccessEndReason::TokenRequired));
    }
    let tokens = tl.store().tokens_by_hash(&hashes).await?.into_iter();
    let tokens: HashMap<Digest, _> = tokens.map(|token| (token.hash, token)).collect();
    let mut expiries = HashMap::new();
    let now = tl.now();
    for hash in hashes {
        let end = match tokens.get(&hash) {
            Some(token) if token.is_valid(now) => {
                expiries.extend(token.expires_at.map(|expiry| (hash, expiry)));
                continue;
            }
            Some(token) if token.revoked_at.is_none() => AccessEndReason::Expired,
            _ => AccessEndReason::Revoked,
        };
        ended.push((Some(hash), end));
    }
    Ok(TokenCheck { ended, expiries })
}

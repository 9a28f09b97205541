//! Running turns: a question, and the answer as it is streamed.
//!
//! A turn runs in its own task. The client may disconnect and reconnect, and other clients of the
//! same owner may follow: all events of a turn are kept until some time after its end. Each session
//! runs one turn at a time; another one waits or is refused, as requested.
//!
//! Events are known only to the process that runs the turn. That a turn is running is visible to
//! every process on the store ([`TurnClaim`](throughline::TurnClaim)), and so is its result
//! (`remote_turn.rs`).

mod remote_turn;
mod turn_stream;
mod turn_task;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::http::StatusCode;
use throughline::SessionRef;
use tokio::sync::Semaphore;

pub(crate) use remote_turn::follow_remote_turn;
pub(crate) use turn_stream::{TurnId, TurnStream};
pub(crate) use turn_task::{
    TurnOptions, TurnReport, TurnRequest, compaction_event_data, start_turn,
};

use crate::Problem;

/// How long a finished turn can still be streamed.
const ENDED_TURN_TTL: Duration = Duration::from_secs(600);
/// Maximum number of finished turns kept, over all sessions.
const MAX_ENDED_TURNS: usize = 1_024;
/// Maximum number of turns waiting in one session.
const MAX_QUEUED_TURNS: usize = 32;

/// What to do if a turn is running in the session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum WhenBusy {
    /// Wait until it has ended.
    #[default]
    Queue,
    /// Refuse with 409 `session_busy`.
    Refuse,
}

/// Running and recently finished turns.
#[derive(Debug)]
pub(crate) struct TurnRegistry {
    sessions: Mutex<HashMap<SessionRef, Vec<Arc<TurnStream>>>>,
    permits: Arc<Semaphore>,
}

impl TurnRegistry {
    pub(crate) fn new(at_once: usize) -> Self {
        Self {
            sessions: Mutex::default(),
            permits: Arc::new(Semaphore::new(at_once)),
        }
    }

    fn sessions(&self) -> MutexGuard<'_, HashMap<SessionRef, Vec<Arc<TurnStream>>>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reserves a slot for a turn; returns the turn it has to wait for.
    ///
    /// A repeated request, by its key, gets the existing turn.
    fn reserve(
        &self,
        session: &SessionRef,
        key: Option<&str>,
        when_busy: WhenBusy,
        new: impl FnOnce() -> TurnStream,
    ) -> Result<TurnSlot, Problem> {
        let mut sessions = self.sessions();
        evict_ended(&mut sessions);
        let turns = sessions.entry(session.clone()).or_default();
        // A failed turn may be retried under the same key.
        let same =
            |live: &&Arc<TurnStream>| key.is_some() && live.key() == key && !live.has_failed();
        if let Some(same) = turns.iter().find(same) {
            return Ok(TurnSlot::Existing(Arc::clone(same)));
        }
        let busy: Vec<_> = turns
            .iter()
            .filter(|live| live.ended_at().is_none())
            .collect();
        match when_busy {
            WhenBusy::Refuse if !busy.is_empty() => {
                return Err(session_busy());
            }
            WhenBusy::Queue if busy.len() >= MAX_QUEUED_TURNS => {
                return Err(Problem::new(
                    StatusCode::TOO_MANY_REQUESTS,
                    "queue_full",
                    format!("{MAX_QUEUED_TURNS} turns are already waiting in this session"),
                )
                .with_retry_after(5));
            }
            WhenBusy::Queue | WhenBusy::Refuse => {}
        }
        let after = busy.last().map(|live| Arc::clone(live));
        let live = Arc::new(new());
        turns.push(Arc::clone(&live));
        Ok(TurnSlot::New { turn: live, after })
    }

    /// Finds a turn of a session by id; without an id, the running turn or else the last one.
    pub(crate) fn find(
        &self,
        session: &SessionRef,
        id: Option<&TurnId>,
    ) -> Option<Arc<TurnStream>> {
        let sessions = self.sessions();
        let turns = sessions.get(session)?;
        let found = match id {
            Some(id) => turns.iter().find(|live| live.id() == id),
            None => turns
                .iter()
                .find(|live| live.ended_at().is_none())
                .or(turns.last()),
        };
        found.cloned()
    }

    /// Waits until all turns have ended; stops them after the timeout.
    pub(crate) async fn drain(&self, patience: Duration) {
        let under_way: Vec<_> = self
            .sessions()
            .values()
            .flatten()
            .filter(|live| live.ended_at().is_none())
            .cloned()
            .collect();
        let all = async {
            for live in &under_way {
                live.wait().await;
            }
        };
        if tokio::time::timeout(patience, all).await.is_err() {
            for live in &under_way {
                live.stop();
            }
            let stopped = async {
                for live in &under_way {
                    live.wait().await;
                }
            };
            // Partial answers are stored, if the store is fast enough.
            let _ = tokio::time::timeout(Duration::from_secs(5), stopped).await;
        }
    }
}

/// The problem for a turn that was not to wait for a running one.
fn session_busy() -> Problem {
    Problem::new(
        StatusCode::CONFLICT,
        "session_busy",
        "a turn is running in this session; wait for it, stop it, or send \
         \"when_busy\": \"queue\"",
    )
}

/// A slot for a turn.
enum TurnSlot {
    /// The turn exists already.
    Existing(Arc<TurnStream>),
    /// A new turn, possibly after a running one.
    New {
        turn: Arc<TurnStream>,
        after: Option<Arc<TurnStream>>,
    },
}

/// Removes turns that ended a while ago.
fn evict_ended(sessions: &mut HashMap<SessionRef, Vec<Arc<TurnStream>>>) {
    let ended = sessions
        .values()
        .flatten()
        .filter_map(|live| live.ended_at());
    let mut ended: Vec<Instant> = ended.collect();
    ended.sort_unstable();
    let crowded = ended.len().saturating_sub(MAX_ENDED_TURNS);
    let oldest = ended.get(crowded).copied();
    for turns in sessions.values_mut() {
        turns.retain(|live| {
            live.ended_at().is_none_or(|at| {
                at.elapsed() < ENDED_TURN_TTL && oldest.is_none_or(|oldest| at >= oldest)
            })
        });
    }
    sessions.retain(|_, turns| !turns.is_empty());
}

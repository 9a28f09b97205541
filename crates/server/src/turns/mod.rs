//! Turns under way: a question, and the answer as it comes.
//!
//! A turn runs by itself. Whoever asked may leave and come back, or somebody else of the
//! same owner may listen: everything told of it is kept until a while after its end. In
//! one session there is one turn at a time; another waits or is refused, as asked.
//!
//! What is told of a turn is known to the process that runs it. That there is one is known to
//! every process over the store ([`TurnClaim`](throughline::TurnClaim)), and so is what comes of it (`elsewhere.rs`).

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

/// How long a turn that ended can still be listened to.
const ENDED_TURN_TTL: Duration = Duration::from_secs(600);
/// How many that ended are kept at most, over all sessions.
const MAX_ENDED_TURNS: usize = 1_024;
/// How many may wait in one session.
const MAX_QUEUED_TURNS: usize = 32;

/// What to do where a turn is under way in the session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum WhenBusy {
    /// Wait until it has ended.
    #[default]
    Queue,
    /// Refuse, with 409 `session_busy`.
    Refuse,
}

/// Turns under way, and those that ended lately.
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

    /// Takes a place for a turn; answers with the turn it has to wait for.
    ///
    /// The same question asked again, by its key, is the turn that is there.
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
        // One that came to nothing is no reason not to try again.
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
                    format!("{MAX_QUEUED_TURNS} turns wait in this session already"),
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

    /// The turn of this id in a session; the one under way, or else the last, where none
    /// is named.
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

    /// Waits until what is under way has ended; stops it after a while.
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
            // What came of them is kept, if the store is quick about it.
            let _ = tokio::time::timeout(Duration::from_secs(5), stopped).await;
        }
    }
}

/// A turn is under way, and another is not to wait.
fn session_busy() -> Problem {
    Problem::new(
        StatusCode::CONFLICT,
        "session_busy",
        "an answer is under way in this session; wait for it, stop it, or send \
         \"when_busy\": \"queue\"",
    )
}

/// A place for a turn.
enum TurnSlot {
    /// It is there already.
    Existing(Arc<TurnStream>),
    /// A new one, after another that is under way.
    New {
        turn: Arc<TurnStream>,
        after: Option<Arc<TurnStream>>,
    },
}

/// Forgets turns that ended a while ago.
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

//! The queue of appends: what waits, and how it is answered.
//!
//! Appends are queued and committed in batches by one task ([`WriterTask`]), which starts with
//! the first append. Every append has one deadline, counted from when it was queued.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use deadpool_postgres::Pool;
use throughline_model::SessionRef;
use throughline_store::{How, Prepared, RetryPolicy, StoreError};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use crate::append::Answer;
use crate::tx::Manner;
use crate::wake::Wake;
use crate::writer_task::WriterTask;

/// An append that waits for its turn.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) to: SessionRef,
    pub(crate) prepared: Arc<Prepared>,
    /// What it came to, as far as it has been settled.
    pub(crate) settled: Option<Result<Answer, StoreError>>,
    /// What it will have come to if a commit whose outcome is unknown took place.
    pub(crate) may_be: Option<How>,
    /// Whether a lock that others hold keeps it from being run.
    pub(crate) blocked: bool,
    /// When it is given up.
    pub(crate) deadline: Instant,
    reply: oneshot::Sender<Result<Answer, StoreError>>,
}

impl Job {
    /// Whether nobody waits for it any more.
    pub(crate) fn is_abandoned(&self) -> bool {
        self.reply.is_closed()
    }

    /// Answers with what it came to, once that is committed.
    pub(crate) fn answer(self) {
        let Self {
            prepared,
            settled,
            reply,
            ..
        } = self;
        // Whoever asked wants back what they share with the writer.
        drop(prepared);
        // Whoever asked may have left meanwhile.
        let _ = reply.send(settled.unwrap_or(Err(StoreError::Closed)));
    }

    /// Answers that it was not done, or that nobody knows whether it was: it is not run again.
    pub(crate) fn give_up(mut self, failure: Option<&StoreError>, policy: &RetryPolicy) {
        let failure = match (self.may_be, failure) {
            (Some(_), failure) => StoreError::OutcomeUnknown {
                source: match failure {
                    Some(failure) => crate::open::chain(failure).into(),
                    None => "no later attempt could find out in time".into(),
                },
            },
            (None, Some(failure)) if !matches!(failure, StoreError::OutcomeUnknown { .. }) => {
                failure.duplicate()
            }
            (None, _) => StoreError::Busy {
                during: "waiting to append",
                seconds: policy.time_limit.as_secs(),
            },
        };
        self.settled = Some(Err(failure));
        self.answer();
    }
}

/// The appending side of a store: its task starts with the first append.
pub(crate) struct Writer {
    lane: Lane,
    state: Mutex<State>,
}

/// What a writer writes with.
#[derive(Clone)]
pub(crate) struct Lane {
    pub(crate) pool: Pool,
    pub(crate) manner: Manner,
    pub(crate) policy: RetryPolicy,
    pub(crate) wake: Arc<Wake>,
}

enum State {
    NotStarted,
    Running(mpsc::UnboundedSender<Job>, JoinHandle<()>),
    Closed,
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer").finish_non_exhaustive()
    }
}

impl Writer {
    pub(crate) fn new(pool: Pool, manner: Manner, time_limit: Duration, wake: Arc<Wake>) -> Self {
        Self {
            lane: Lane {
                pool,
                manner,
                policy: RetryPolicy {
                    seed: std::process::id(),
                    ..RetryPolicy::new(time_limit)
                },
                wake,
            },
            state: Mutex::new(State::NotStarted),
        }
    }

    /// Something was committed beside the writer.
    pub(crate) fn woke(&self) {
        self.lane.wake.announce();
    }

    /// Appends; answers once it is durable. If the returned future is dropped before the append
    /// has been run, it is not run at all.
    pub(crate) async fn append(
        &self,
        to: &SessionRef,
        prepared: &Arc<Prepared>,
    ) -> Result<Answer, StoreError> {
        let (reply, answer) = oneshot::channel();
        self.send(Job {
            to: to.clone(),
            prepared: Arc::clone(prepared),
            settled: None,
            may_be: None,
            blocked: false,
            deadline: self.lane.policy.deadline(Instant::now()),
            reply,
        })?;
        answer.await.map_err(|_| StoreError::Closed)?
    }

    fn send(&self, job: Job) -> Result<(), StoreError> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let State::NotStarted = *state {
            let (jobs, waiting) = mpsc::unbounded_channel();
            let task = tokio::spawn(WriterTask::new(self.lane.clone()).run(waiting));
            *state = State::Running(jobs, task);
        }
        match &*state {
            State::Running(jobs, _) => jobs.send(job).map_err(|_| StoreError::Closed),
            State::NotStarted | State::Closed => Err(StoreError::Closed),
        }
    }

    /// Waits until everything under way is committed, and ends the task.
    pub(crate) async fn close(&self) {
        let state = {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::replace(&mut *state, State::Closed)
        };
        if let State::Running(jobs, task) = state {
            drop(jobs);
            // A panic in the task has been told to whoever waited for an answer.
            let _ = task.await;
        }
        self.lane.wake.close().await;
        self.lane.pool.close();
    }
}

//! The queue of appends, and how each is answered.
//!
//! Appends are queued and committed in batches by one task ([`WriterTask`]), which starts
//! with the first append. Every append has one deadline, counted from when it was queued.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use deadpool_postgres::Pool;
use throughline_model::SessionRef;
use throughline_store::{AppendKind, PreparedAppend, RetryPolicy, StoreError};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use crate::append::WriterReply;
use crate::change_notifier::ChangeNotifier;
use crate::tx::TxSettings;
use crate::writer_task::WriterTask;

/// An append in the queue.
#[derive(Debug)]
pub(crate) struct QueuedAppend {
    pub(crate) to: SessionRef,
    pub(crate) prepared: Arc<PreparedAppend>,
    /// Its outcome, once decided.
    pub(crate) outcome: Option<Result<WriterReply, StoreError>>,
    /// Its outcome if a commit whose result is unknown succeeded.
    pub(crate) unconfirmed: Option<AppendKind>,
    /// Whether a lock held by another transaction blocks it.
    pub(crate) blocked: bool,
    /// When it is given up.
    pub(crate) deadline: Instant,
    reply: oneshot::Sender<Result<WriterReply, StoreError>>,
}

impl QueuedAppend {
    /// Whether the caller has stopped waiting.
    pub(crate) fn is_abandoned(&self) -> bool {
        self.reply.is_closed()
    }

    /// Sends the outcome to the caller, once it is committed.
    pub(crate) fn answer(self) {
        let Self {
            prepared,
            outcome,
            reply,
            ..
        } = self;
        // Released first: the caller then holds the only reference.
        drop(prepared);
        // The caller may have stopped waiting.
        let _ = reply.send(outcome.unwrap_or(Err(StoreError::Closed)));
    }

    /// Answers that it failed, or that its outcome is unknown; it is not run again.
    pub(crate) fn give_up(mut self, failure: Option<&StoreError>, policy: &RetryPolicy) {
        let failure = match (self.unconfirmed, failure) {
            (Some(_), failure) => StoreError::OutcomeUnknown {
                source: match failure {
                    Some(failure) => crate::open::error_chain(failure).into(),
                    None => "no later attempt could determine it in time".into(),
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
        self.outcome = Some(Err(failure));
        self.answer();
    }
}

/// The append side of a store. Its task starts with the first append.
pub(crate) struct Writer {
    context: WriterContext,
    state: Mutex<TaskState>,
}

/// What the writer task needs.
#[derive(Clone)]
pub(crate) struct WriterContext {
    pub(crate) pool: Pool,
    pub(crate) settings: TxSettings,
    pub(crate) policy: RetryPolicy,
    pub(crate) notifier: Arc<ChangeNotifier>,
}

enum TaskState {
    NotStarted,
    Running(mpsc::UnboundedSender<QueuedAppend>, JoinHandle<()>),
    Closed,
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer").finish_non_exhaustive()
    }
}

impl Writer {
    pub(crate) fn new(
        pool: Pool,
        settings: TxSettings,
        time_limit: Duration,
        wake: Arc<ChangeNotifier>,
    ) -> Self {
        Self {
            context: WriterContext {
                pool,
                settings,
                policy: RetryPolicy {
                    seed: std::process::id(),
                    ..RetryPolicy::new(time_limit)
                },
                notifier: wake,
            },
            state: Mutex::new(TaskState::NotStarted),
        }
    }

    /// Reports a commit that did not go through the writer.
    pub(crate) fn notify_committed(&self) {
        self.context.notifier.announce();
    }

    /// Appends; returns once it is durable. If the returned future is dropped before the
    /// append has been run, it is not run at all.
    pub(crate) async fn append(
        &self,
        to: &SessionRef,
        prepared: &Arc<PreparedAppend>,
    ) -> Result<WriterReply, StoreError> {
        let (reply, answer) = oneshot::channel();
        self.send(QueuedAppend {
            to: to.clone(),
            prepared: Arc::clone(prepared),
            outcome: None,
            unconfirmed: None,
            blocked: false,
            deadline: self.context.policy.deadline(Instant::now()),
            reply,
        })?;
        answer.await.map_err(|_| StoreError::Closed)?
    }

    fn send(&self, job: QueuedAppend) -> Result<(), StoreError> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let TaskState::NotStarted = *state {
            let (jobs, waiting) = mpsc::unbounded_channel();
            let task = tokio::spawn(WriterTask::new(self.context.clone()).run(waiting));
            *state = TaskState::Running(jobs, task);
        }
        match &*state {
            TaskState::Running(jobs, _) => jobs.send(job).map_err(|_| StoreError::Closed),
            TaskState::NotStarted | TaskState::Closed => Err(StoreError::Closed),
        }
    }

    /// Waits until everything in progress is committed, and ends the task.
    pub(crate) async fn close(&self) {
        let state = {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::replace(&mut *state, TaskState::Closed)
        };
        if let TaskState::Running(jobs, task) = state {
            drop(jobs);
            // If the task panicked, waiting callers have already received an error.
            let _ = task.await;
        }
        self.context.notifier.close().await;
        self.context.pool.close();
    }
}

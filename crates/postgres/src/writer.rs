//! Appends: one writer, and everything that waits in one commit.
//!
//! The writer waits for one append, takes what else is waiting, settles all of it in one
//! transaction and answers everybody after the commit. There is no timer: while one batch
//! is being synced the next one gathers. A batch that failed because others were in the
//! way, or because the database went away, is tried again; entry ids tell whether an
//! attempt whose outcome nobody knows was committed. A batch that failed otherwise is
//! run one by one, so that nobody pays for somebody else's failure.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use deadpool_postgres::Pool;
use throughline_model::SessionRef;
use throughline_store::{How, Prepared, StoreError};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use crate::append::Answer;
use crate::batch::{self, Cache};
use crate::error::Fault;
use crate::patience::Patience;
use crate::tx::Manner;
use crate::wake::Wake;

/// The most appends in one commit: enough to share a sync, and short enough to wait for.
const BATCH: usize = 512;

/// An append that waits for its turn.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) to: SessionRef,
    pub(crate) prepared: Arc<Prepared>,
    /// What it came to, as far as it has been settled.
    pub(crate) settled: Option<Result<Answer, StoreError>>,
    /// What it will have come to if a commit whose outcome is unknown took place.
    pub(crate) may_be: Option<How>,
    reply: oneshot::Sender<Result<Answer, StoreError>>,
}

impl Job {
    fn answer(self, failure: Option<StoreError>) {
        let Self {
            prepared,
            settled,
            reply,
            ..
        } = self;
        // Whoever asked wants back what they share with the writer.
        drop(prepared);
        let answer = match (settled, failure) {
            // A refusal stands whether or not the others' work was committed.
            (Some(Err(refusal)), _) => Err(refusal),
            (_, Some(failure)) => Err(failure),
            (Some(Ok(answer)), None) => Ok(answer),
            (None, None) => Err(StoreError::Closed),
        };
        // Whoever asked may have gone away: the work is done all the same.
        let _ = reply.send(answer);
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
    patience: Duration,
    wake: Arc<Wake>,
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
    pub(crate) fn new(pool: Pool, manner: Manner, patience: Duration, wake: Arc<Wake>) -> Self {
        Self {
            lane: Lane {
                pool,
                manner,
                patience,
                wake,
            },
            state: Mutex::new(State::NotStarted),
        }
    }

    /// Something was committed beside the writer.
    pub(crate) fn woke(&self) {
        self.lane.wake.announce();
    }

    /// Appends; answers once it is durable.
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
            reply,
        })?;
        answer.await.map_err(|_| StoreError::Closed)?
    }

    fn send(&self, job: Job) -> Result<(), StoreError> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let State::NotStarted = *state {
            let (jobs, waiting) = mpsc::unbounded_channel();
            let task = tokio::spawn(run(self.lane.clone(), waiting));
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

async fn run(lane: Lane, mut waiting: mpsc::UnboundedReceiver<Job>) {
    let mut cache = Cache::default();
    let mut batch = Vec::with_capacity(BATCH);
    while waiting.recv_many(&mut batch, BATCH).await > 0 {
        // What cannot be settled beside the rest of a batch comes in the next one.
        while !batch.is_empty() {
            let several = batch.len() > 1;
            batch = commit(&lane, &mut cache, batch).await;
            lane.wake.announce();
            if several {
                // Those who were answered may have more to say, and it shares the next commit.
                tokio::task::yield_now().await;
            }
        }
    }
}

/// Runs a batch to its end and answers everybody in it but those left for the next.
async fn commit(lane: &Lane, cache: &mut Cache, mut batch: Vec<Job>) -> Vec<Job> {
    match attempts(lane, cache, &mut batch).await {
        Ok(()) => answer(batch, None),
        Err(fault) if batch.len() == 1 => answer(batch, Some(fault)),
        Err(_) => {
            let mut left = Vec::new();
            for job in batch {
                let mut alone = vec![job];
                let failure = attempts(lane, cache, &mut alone).await.err();
                left.extend(answer(alone, failure));
            }
            left
        }
    }
}

/// Answers those whose append was settled; gives back the others.
fn answer(batch: Vec<Job>, failure: Option<Fault>) -> Vec<Job> {
    let failure = failure.map(StoreError::from);
    let mut left = Vec::new();
    for job in batch {
        match (&failure, &job.settled) {
            (None, None) => left.push(job),
            (None, Some(_)) => job.answer(None),
            (Some(failure), _) => {
                let failure = again(failure);
                job.answer(Some(failure));
            }
        }
    }
    left
}

/// The same failure once more, for another who shares it.
fn again(failure: &StoreError) -> StoreError {
    match failure {
        StoreError::Closed => StoreError::Closed,
        StoreError::Busy { during, seconds } => StoreError::Busy {
            during,
            seconds: *seconds,
        },
        StoreError::Full { during, source } => StoreError::Full {
            during,
            source: crate::open::chain(&**source).into(),
        },
        StoreError::ReadOnly { during, source } => StoreError::ReadOnly {
            during,
            source: crate::open::chain(&**source).into(),
        },
        StoreError::Backend { during, source } => StoreError::Backend {
            during,
            source: crate::open::chain(&**source).into(),
        },
        other => StoreError::Backend {
            during: "appending",
            source: crate::open::chain(other).into(),
        },
    }
}

/// Tries a batch until it is committed, refused, or enough time has passed.
async fn attempts(lane: &Lane, cache: &mut Cache, batch: &mut [Job]) -> Result<(), Fault> {
    let mut patience = Patience::new(lane.patience);
    loop {
        let fault = match batch::attempt(lane, cache, batch).await {
            Ok(()) => return Ok(()),
            Err(fault) => fault,
        };
        cache.clear();
        if fault.is_cut() {
            // Whether this was committed nobody knows: if the entries are there, it was.
            for job in batch.iter_mut() {
                if let Some(Ok(Answer::Placed { how, .. })) = &job.settled {
                    job.may_be = Some(*how);
                }
            }
        }
        for job in batch.iter_mut() {
            job.settled = None;
        }
        if !fault.passes() || !patience.wait().await {
            return Err(fault);
        }
    }
}

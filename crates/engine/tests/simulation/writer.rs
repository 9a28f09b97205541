//! The writer of a simulated process: writes are queued and committed in batches, as in the SQL
//! stores, on a store in memory with simulated file locks and disk failures.
//!
//! The code under test, [`BatchRun`], decides how to handle a failed batch. The checks here:
//! every write is answered by its deadline, and a write that was answered is not run again.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use throughline::StoreError;
use throughline_store::{
    BatchAction, BatchFault, BatchRun, MemoryStore, QueuedWrite, RetryPolicy, is_expired,
};
use tokio::sync::{Notify, oneshot};

use crate::executor::{ProcessId, Simulation};

/// The deadline of a write.
pub(crate) const TIME_LIMIT: Duration = Duration::from_secs(60);
/// How late after its deadline a write may be answered, since a commit in progress is finished.
const SLACK: Duration = Duration::from_millis(500);
const BATCH: usize = 512;

type WriteFuture<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

/// A write with any result type.
pub(crate) trait WriteOperation: Send {
    fn run<'a>(&'a mut self, store: &'a Arc<MemoryStore>) -> WriteFuture<'a>;
    fn answer(self: Box<Self>, failure: Option<StoreError>);
    fn is_abandoned(&self) -> bool;
}

pub(crate) struct WriteJob<T, F> {
    pub(crate) work: F,
    pub(crate) result: Option<Result<T, StoreError>>,
    pub(crate) reply: oneshot::Sender<Result<T, StoreError>>,
}

impl<T, F, R> WriteOperation for WriteJob<T, F>
where
    T: Send,
    F: FnMut(Arc<MemoryStore>) -> R + Send,
    R: Future<Output = Result<T, StoreError>> + Send,
{
    fn run<'a>(&'a mut self, store: &'a Arc<MemoryStore>) -> WriteFuture<'a> {
        Box::pin(async move {
            self.result = Some((self.work)(Arc::clone(store)).await);
        })
    }

    fn answer(self: Box<Self>, failure: Option<StoreError>) {
        let result = match (failure, self.result) {
            (Some(failure), _) => Err(failure),
            (None, Some(result)) => result,
            (None, None) => Err(StoreError::Closed),
        };
        let _ = self.reply.send(result);
    }

    fn is_abandoned(&self) -> bool {
        self.reply.is_closed()
    }
}

struct PendingWrite {
    write: Box<dyn WriteOperation>,
    submitted: Instant,
    deadline: Instant,
    /// The total stall time of the process when the write was submitted.
    stalls: Duration,
}

impl QueuedWrite for PendingWrite {
    fn deadline(&self) -> Instant {
        self.deadline
    }

    fn is_abandoned(&self) -> bool {
        self.write.is_abandoned()
    }
}

/// The current faults of the store's file.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Disk {
    /// Until when another program holds its lock.
    pub(crate) locked_until: Duration,
    /// Until when writes fail.
    pub(crate) failing_until: Duration,
}

/// The queue of a process's writer.
#[derive(Clone, Default)]
pub(crate) struct Queue {
    jobs: Arc<Mutex<VecDeque<PendingWrite>>>,
    more: Arc<Notify>,
}

impl Queue {
    pub(crate) fn submit(
        &self,
        simulation: &Simulation,
        process: ProcessId,
        write: Box<dyn WriteOperation>,
    ) {
        let submitted = simulation.instant();
        self.jobs.lock().unwrap().push_back(PendingWrite {
            write,
            submitted,
            deadline: retry_policy(process).deadline(submitted),
            stalls: simulation.stalls(process),
        });
        self.more.notify_one();
    }
}

fn retry_policy(process: ProcessId) -> RetryPolicy {
    RetryPolicy {
        seed: u32::try_from(process.0).unwrap(),
        ..RetryPolicy::new(TIME_LIMIT)
    }
}

pub(crate) struct Writer {
    pub(crate) simulation: Simulation,
    pub(crate) process: ProcessId,
    pub(crate) queue: Queue,
    pub(crate) store: Arc<MemoryStore>,
    pub(crate) disk: Arc<Mutex<Disk>>,
}

impl Writer {
    pub(crate) async fn run(self) {
        loop {
            let batch: Vec<PendingWrite> = {
                let mut jobs = self.queue.jobs.lock().unwrap();
                let waiting = jobs.len().min(BATCH);
                jobs.drain(..waiting).collect()
            };
            if batch.is_empty() {
                self.queue.more.notified().await;
                continue;
            }
            self.commit(batch).await;
        }
    }

    async fn commit(&self, batch: Vec<PendingWrite>) {
        let mut run = BatchRun::new(retry_policy(self.process), batch);
        loop {
            match run.next(self.simulation.instant()) {
                BatchAction::Done => return,
                BatchAction::Pause(pause) => self.simulation.sleep(pause).await,
                BatchAction::Expire(expired) => self.answer(expired, Some(busy)),
                BatchAction::Attempt { batch, deadline } => {
                    self.attempt(&mut run, batch, deadline).await;
                }
            }
        }
    }

    async fn attempt(
        &self,
        run: &mut BatchRun<PendingWrite>,
        mut batch: Vec<PendingWrite>,
        deadline: Instant,
    ) {
        let simulation = &self.simulation;
        // Waits for the file lock like SQLite's busy handler.
        let fault = loop {
            let now = simulation.elapsed();
            let Disk {
                locked_until,
                failing_until,
            } = *self.disk.lock().unwrap();
            if now < failing_until {
                break Some(BatchFault::Permanent);
            }
            if now >= locked_until {
                break None;
            }
            if is_expired(deadline, simulation.instant()) {
                break Some(BatchFault::Transient);
            }
            let left = deadline - simulation.instant();
            let pause = Duration::from_millis(50).min(left);
            simulation.sleep(pause).await;
        };
        if let Some(fault) = fault {
            let now = simulation.instant();
            if let Some(batch) = run.record_failure(batch, fault, now) {
                let error = match fault {
                    BatchFault::Permanent => failing,
                    BatchFault::Transient | BatchFault::Write => busy,
                };
                self.answer(batch, Some(error));
            }
            return;
        }
        for queued in &mut batch {
            queued.write.run(&self.store).await;
        }
        run.record_commit();
        // The sync. What was committed remains committed even if the reply is lost.
        simulation.sleep(simulation.random_duration(20)).await;
        self.answer(batch, None);
    }

    fn answer(&self, batch: Vec<PendingWrite>, failure: Option<fn() -> StoreError>) {
        let simulation = &self.simulation;
        for queued in batch {
            let waited = simulation.instant() - queued.submitted;
            let stalled = simulation
                .stalls(self.process)
                .saturating_sub(queued.stalls);
            if waited > TIME_LIMIT + SLACK + stalled {
                simulation.record_violation(format!("a write was answered after {waited:?}"));
            }
            queued.write.answer(failure.map(|failure| failure()));
        }
    }
}

fn busy() -> StoreError {
    StoreError::Busy {
        during: "waiting to write",
        seconds: TIME_LIMIT.as_secs(),
    }
}

fn failing() -> StoreError {
    StoreError::Backend {
        during: "writing",
        source: "the disk fails".into(),
    }
}

//! An append workload: tasks that each append to their own session and wait for every append.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use throughline_model::{Owner, SessionRef};
use throughline_store::Store;
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

use crate::sample::{self, SampleClock};
use crate::units::to_f64;

/// A store with one session per task.
pub(crate) struct AppendLoad {
    store: Arc<dyn Store>,
    sessions: Vec<SessionRef>,
}

impl AppendLoad {
    /// Creates `count` sessions.
    pub(crate) async fn new(
        store: Arc<dyn Store>,
        clock: &SampleClock,
        writers: usize,
    ) -> Result<Self> {
        let mut sessions = Vec::new();
        for n in 0..writers {
            let name = format!("writer-{n}-of-{writers}");
            let owner = Owner::local();
            sessions.push(sample::create_session(&*store, clock, &owner, &name, 1).await?);
        }
        Ok(Self { store, sessions })
    }

    /// Returns appends per second.
    pub(crate) fn run(
        &self,
        on: &Runtime,
        clock: &Arc<SampleClock>,
        slice: Duration,
    ) -> Result<f64> {
        on.block_on(async {
            let start = Instant::now();
            let mut tasks = JoinSet::new();
            for session in self.sessions.clone() {
                let (store, clock) = (Arc::clone(&self.store), Arc::clone(clock));
                tasks.spawn(async move {
                    let text = sample::message_text();
                    let mut done = 0;
                    while start.elapsed() < slice {
                        store.append(&session, clock.messages(&text, 1)?).await?;
                        done += 1;
                    }
                    anyhow::Ok(done)
                });
            }
            total_rate(tasks, start).await
        })
    }
}

/// Returns the tasks' combined operations per second.
pub(crate) async fn total_rate(tasks: JoinSet<Result<u64>>, start: Instant) -> Result<f64> {
    let done: u64 = tasks.join_all().await.into_iter().sum::<Result<u64>>()?;
    Ok(to_f64(done) / start.elapsed().as_secs_f64())
}

//! A read workload through the store trait, with warm caches.

use std::sync::Arc;
use std::time::Instant;

use anyhow::{Result, ensure};
use throughline_model::{Owner, SessionRef};
use throughline_store::{ReadRange, SessionFilter, Store};
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

use crate::sample::{self, SampleClock};

/// Items per read.
pub(crate) const PAGE: usize = 50;
/// Reads per round.
const READS: u32 = 500;

/// Returns the time to read the end of a session.
pub(crate) fn time_tail(on: &Runtime, store: &dyn Store, session: &SessionRef) -> Result<f64> {
    on.block_on(async {
        let start = Instant::now();
        for _ in 0..READS {
            let entries = store.read(session, ReadRange::tail(PAGE)).await?;
            ensure!(entries.len() == PAGE, "a short tail");
        }
        Ok(start.elapsed().as_secs_f64() / f64::from(READS))
    })
}

/// Returns the time to list a page of an owner's sessions.
pub(crate) fn time_list(on: &Runtime, store: &dyn Store, owner: &Owner) -> Result<f64> {
    let filter = SessionFilter::default();
    on.block_on(async {
        let start = Instant::now();
        for _ in 0..READS {
            let page = store.list(owner, &filter, None, PAGE).await?;
            ensure!(page.items.len() == PAGE, "a short page");
        }
        Ok(start.elapsed().as_secs_f64() / f64::from(READS))
    })
}

/// Creates sessions with one message each, many at a time to share syncs.
pub(crate) async fn fill_sessions(
    store: &Arc<dyn Store>,
    clock: &Arc<SampleClock>,
    owner: &Owner,
    sessions: u64,
) -> Result<()> {
    const AT_ONCE: u64 = 100;
    let mut tasks = JoinSet::new();
    for first in 0..AT_ONCE {
        let (store, clock, owner) = (Arc::clone(store), Arc::clone(clock), owner.clone());
        tasks.spawn(async move {
            for n in (first..sessions).step_by(usize::try_from(AT_ONCE)?) {
                let name = format!("session-{n}");
                sample::create_session(&*store, &clock, &owner, &name, 1).await?;
            }
            anyhow::Ok(())
        });
    }
    tasks.join_all().await.into_iter().collect()
}

//! Feeding the index what was appended since.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use throughline_model::{Lineage, Owner, Seq, SessionId, Timestamp};
use throughline_recall::{Anchor, Batch, Indexer, RecallError, Removal};
use throughline_store::{Change, ChangeKind, Position, StoreError};

use super::passages::{EntryLocation, to_passage};
use super::{IndexRebuild, is_busy, needs_rebuild, run_blocking, run_index_task};
use crate::{Error, Throughline};

/// Changes fed at once: a commit each, so few of them.
const BATCH_CHANGES: usize = 4_000;
/// And about how many bytes of them: what a tool answered may be large.
const BATCH_BYTES: usize = 8 << 20;
/// Changes read at once.
const PAGE: usize = 250;
/// How often another process is looked after that feeds the index.
const POLL_INTERVAL: Duration = Duration::from_millis(15);

/// How often an index is rebuilt before its error is told.
const MAX_REBUILDS: u32 = 2;

/// How long whoever is at work on an index that is to be dropped is waited for.
const DISCARD_WAIT: IndexWait = IndexWait::For(Duration::from_secs(2));

/// How long to wait for the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexWait {
    /// Until it has everything.
    Unlimited,
    /// No longer than this.
    For(Duration),
}

/// How far the index is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexProgress {
    /// Everything up to here can be found.
    pub watermark: Position,
    /// How many positions the store is ahead of it.
    pub lag: u64,
}

/// Told how far feeding is: done, and in all.
pub type IndexProgressSink<'a> = &'a mut (dyn FnMut(u64, u64) + Send);

/// What is known of where sessions' logs lead to.
type ForkOrigins = HashMap<(Owner, SessionId), Option<(SessionId, Seq)>>;

impl Throughline {
    /// Brings the index up to what is in the store now, or waits for whoever is at it.
    ///
    /// An index that turns out to be unusable is rebuilt; see
    /// [`Throughline::take_index_rebuild`].
    pub async fn catch_up(
        &self,
        patience: IndexWait,
        fed: IndexProgressSink<'_>,
    ) -> Result<IndexProgress, Error> {
        let began = self.now();
        let mut rebuilds = 0;
        loop {
            let error = match self.try_catch_up(patience, fed).await {
                Err(error) if needs_rebuild(&error) && rebuilds < MAX_REBUILDS => {
                    let why = match error {
                        Error::Recall(RecallError::Mismatch) => IndexRebuild::Mismatch,
                        _ => IndexRebuild::Damaged,
                    };
                    match self.discard_index(why).await {
                        Ok(()) => {
                            rebuilds += 1;
                            continue;
                        }
                        Err(error) => error,
                    }
                }
                Err(error) => error,
                caught => return caught,
            };
            // Another process feeds what is to be replaced: it finds out as well.
            if !is_busy(&error) || self.is_wait_over(began, patience) {
                return Err(error);
            }
            self.environment.sleep(POLL_INTERVAL).await;
        }
    }

    /// Why the index was rebuilt by itself, if it was since this was last asked.
    pub fn take_index_rebuild(&self) -> Option<IndexRebuild> {
        let mut rebuilt = self.index.last_rebuild.lock();
        let rebuilt = rebuilt.as_deref_mut();
        match rebuilt {
            Ok(rebuilt) => rebuilt.take(),
            Err(poisoned) => poisoned.get_mut().take(),
        }
    }

    /// Drops an index that turned out to be unusable; the next who needs it feeds it again.
    /// Waits a little for whoever is at work on it.
    pub(super) async fn discard_index(&self, why: IndexRebuild) -> Result<(), Error> {
        let began = self.now();
        loop {
            let shelf = Arc::clone(&self.index);
            match run_blocking(move || shelf.discard(why)).await {
                Err(error) if is_busy(&error) && !self.is_wait_over(began, DISCARD_WAIT) => {
                    self.environment.sleep(POLL_INTERVAL).await;
                }
                done => return done,
            }
        }
    }

    fn is_wait_over(&self, began: Timestamp, patience: IndexWait) -> bool {
        match patience {
            IndexWait::Unlimited => false,
            IndexWait::For(limit) => self.now().duration_since(began).unsigned_abs() >= limit,
        }
    }

    /// Brings the index up to what is in the store now, and waits for nothing.
    pub(super) fn catch_up_in_background(&self) {
        if self.index.is_indexing.swap(true, Ordering::AcqRel) {
            return;
        }
        let (tl, runtime) = (self.clone(), tokio::runtime::Handle::current());
        self.index.spawn_background(move || {
            drop(runtime.block_on(tl.catch_up(IndexWait::Unlimited, &mut |_, _| {})));
            tl.index.is_indexing.store(false, Ordering::Release);
        });
    }

    /// Makes the index anew from the whole store.
    pub async fn reindex(&self, fed: IndexProgressSink<'_>) -> Result<IndexProgress, Error> {
        self.index.wait_for_background().await;
        self.clear_index().await?;
        self.catch_up(IndexWait::Unlimited, fed).await
    }

    async fn clear_index(&self) -> Result<(), Error> {
        let shelf = Arc::clone(&self.index);
        run_blocking(move || shelf.clear()).await
    }

    async fn try_catch_up(
        &self,
        patience: IndexWait,
        fed: IndexProgressSink<'_>,
    ) -> Result<IndexProgress, Error> {
        let began = self.now();
        if !self.is_index_consistent().await? {
            return Err(RecallError::Mismatch.into());
        }
        // What was acknowledged before is here at the latest.
        let target = self.store.acknowledged_position().await?;
        let mut feeder: Option<Indexer> = None;
        let mut origins = ForkOrigins::new();
        let first = self.watermark().await?;
        loop {
            let watermark = self.watermark().await?;
            let mut behind = target.0.saturating_sub(watermark.0);
            let mut is_over = behind == 0 || self.is_wait_over(began, patience);
            let mut last = target;
            if !is_over {
                last = self.store.last_position().await?;
                if last <= watermark {
                    // Somebody is still committing what comes next, or has given it up.
                    if self.store.acknowledged_position().await? <= watermark {
                        behind = 0;
                    }
                    is_over = behind == 0 || patience == IndexWait::Unlimited;
                    if !is_over {
                        self.environment.sleep(POLL_INTERVAL).await;
                        continue;
                    }
                }
            }
            if is_over {
                if let Some(feeder) = feeder {
                    // Until its files are merged they are read as they were.
                    self.index.spawn_background(move || drop(feeder.finish()));
                }
                return Ok(IndexProgress {
                    watermark,
                    lag: behind,
                });
            }
            fed(
                watermark.0.saturating_sub(first.0),
                target.0.saturating_sub(first.0),
            );
            if feeder.is_none() {
                let shelf = Arc::clone(&self.index);
                feeder =
                    run_index_task(move || Ok(shelf.open_index()?.as_index().indexer()?)).await?;
            }
            match feeder.take() {
                Some(hungry) => {
                    feeder = Some(
                        self.index_batch(hungry, watermark, last, &mut origins)
                            .await?,
                    );
                }
                // Another process feeds it.
                None => self.environment.sleep(POLL_INTERVAL).await,
            }
        }
    }

    /// The position up to which everything can be found.
    pub async fn watermark(&self) -> Result<Position, Error> {
        let shelf = Arc::clone(&self.index);
        run_index_task(move || Ok(Position(shelf.open_index()?.as_index().watermark()?))).await
    }

    async fn index_batch(
        &self,
        mut feeder: Indexer,
        after: Position,
        target: Position,
        origins: &mut ForkOrigins,
    ) -> Result<Indexer, Error> {
        let mut batch = Batch {
            after: after.0,
            upto: after.0,
            ..Batch::default()
        };
        let (mut count, mut bytes) = (0, 0);
        while count < BATCH_CHANGES && bytes < BATCH_BYTES {
            let changes = self.store.changes(Position(batch.upto), PAGE).await?;
            let more = changes.len() == PAGE;
            count += changes.len();
            for change in changes {
                batch.anchors.push(Anchor {
                    position: change.position.0,
                    digest: change.fingerprint(),
                });
                batch.upto = change.position.0;
                bytes += payload_bytes(&change);
                self.add_to_batch(change, &mut batch, origins).await?;
            }
            if !more {
                // Positions at the end may belong to what is gone.
                batch.upto = batch.upto.max(target.0);
                break;
            }
        }
        let scrub = !batch.removed.is_empty();
        run_index_task(move || {
            feeder.index_batch(batch)?;
            if scrub {
                // What was erased must not stay on the disk.
                feeder.vacuum()?;
            }
            Ok(feeder)
        })
        .await
    }

    async fn add_to_batch(
        &self,
        change: Change,
        batch: &mut Batch,
        origins: &mut ForkOrigins,
    ) -> Result<(), Error> {
        let Change {
            position,
            owner,
            session,
            kind: what,
        } = change;
        let seq = match what {
            ChangeKind::Appended(stored) => {
                // One that is damaged is `tl doctor`'s business, and cannot be found.
                let Ok(entry) = stored.decode() else {
                    return Ok(());
                };
                let place = EntryLocation {
                    position: position.0,
                    owner: &owner,
                    session: &session,
                    origin: self.fork_origin(&owner, &session, origins).await?,
                };
                batch.passages.extend(to_passage(&entry, place));
                return Ok(());
            }
            ChangeKind::Erased(seq) => Some(seq),
            ChangeKind::Removed => None,
            _ => return Ok(()),
        };
        // What the same batch brought is gone again.
        batch.passages.retain(|passage| {
            (&passage.owner, &passage.session) != (&owner, &session)
                || seq.is_some_and(|seq| passage.seq != seq)
        });
        batch.removed.push(Removal {
            owner,
            session,
            seq,
        });
        Ok(())
    }

    /// Where a session's log leads to before its own first entry.
    async fn fork_origin(
        &self,
        owner: &Owner,
        session: &SessionId,
        known: &mut ForkOrigins,
    ) -> Result<Option<(SessionId, Seq)>, Error> {
        let key = (owner.clone(), session.clone());
        if let Some(origin) = known.get(&key) {
            return Ok(origin.clone());
        }
        let origin = match self.store.header(&owner.session(session)).await {
            Ok(birth) => match birth.lineage {
                Lineage::Forked { session, at } => Some((session, at)),
                Lineage::Root | Lineage::Continued { .. } => None,
            },
            // It may have gone into the trash since.
            Err(StoreError::InTrash(_) | StoreError::NoSuchSession(_)) => None,
            Err(error) => return Err(error.into()),
        };
        known.insert(key, origin.clone());
        Ok(origin)
    }
}

fn payload_bytes(change: &Change) -> usize {
    match &change.kind {
        ChangeKind::Appended(stored) => stored.payload.len(),
        _ => 0,
    }
}

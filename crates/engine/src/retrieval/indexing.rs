//! Updates the index from the store's change feed.

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

/// The most changes per batch. Each batch is one commit, so batches are large.
const BATCH_CHANGES: usize = 4_000;
/// The approximate maximum of bytes per batch: tool results can be large.
const BATCH_BYTES: usize = 8 << 20;
/// The number of changes read at a time.
const PAGE: usize = 250;
/// How often to check on another process that is updating the index.
const POLL_INTERVAL: Duration = Duration::from_millis(15);

/// How often an index is rebuilt before its error is returned.
const MAX_REBUILDS: u32 = 2;

/// How long to wait for other processes before dropping an index.
const DISCARD_WAIT: IndexWait = IndexWait::For(Duration::from_secs(2));

/// How long to wait for the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexWait {
    /// Until it is up to date.
    Unlimited,
    /// At most this long.
    For(Duration),
}

/// How far the index is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexProgress {
    /// The position up to which everything is indexed.
    pub watermark: Position,
    /// The number of positions by which it lags behind the store.
    pub lag: u64,
}

/// A callback for progress: positions done, and in total.
pub type IndexProgressSink<'a> = &'a mut (dyn FnMut(u64, u64) + Send);

/// A cache of the sessions and entries that sessions were forked from.
type ForkOrigins = HashMap<(Owner, SessionId), Option<(SessionId, Seq)>>;

impl Throughline {
    /// Brings the index up to date with the store, or waits for the process that is
    /// doing so.
    ///
    /// An unusable index is rebuilt; see [`Throughline::take_index_rebuild`].
    pub async fn catch_up(
        &self,
        wait: IndexWait,
        progress: IndexProgressSink<'_>,
    ) -> Result<IndexProgress, Error> {
        let started_at = self.now();
        let mut rebuilds = 0;
        loop {
            let error = match self.try_catch_up(wait, progress).await {
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
                result => return result,
            };
            // Another process is updating the index that has to be replaced; it will
            // notice as well.
            if !is_busy(&error) || self.is_wait_over(started_at, wait) {
                return Err(error);
            }
            self.environment.sleep(POLL_INTERVAL).await;
        }
    }

    /// Returns why the index was rebuilt automatically, if it was since the last call.
    pub fn take_index_rebuild(&self) -> Option<IndexRebuild> {
        let mut last_rebuild = self.index.last_rebuild.lock();
        let last_rebuild = last_rebuild.as_deref_mut();
        match last_rebuild {
            Ok(last_rebuild) => last_rebuild.take(),
            Err(poisoned) => poisoned.get_mut().take(),
        }
    }

    /// Drops an unusable index; the next process that needs it rebuilds it. Waits
    /// briefly for other processes to finish with it.
    pub(super) async fn discard_index(&self, why: IndexRebuild) -> Result<(), Error> {
        let started_at = self.now();
        loop {
            let index = Arc::clone(&self.index);
            match run_blocking(move || index.discard(why)).await {
                Err(error) if is_busy(&error) && !self.is_wait_over(started_at, DISCARD_WAIT) => {
                    self.environment.sleep(POLL_INTERVAL).await;
                }
                done => return done,
            }
        }
    }

    fn is_wait_over(&self, started_at: Timestamp, wait: IndexWait) -> bool {
        match wait {
            IndexWait::Unlimited => false,
            IndexWait::For(limit) => self.now().duration_since(started_at).unsigned_abs() >= limit,
        }
    }

    /// Brings the index up to date in the background.
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

    /// Rebuilds the index from the whole store.
    pub async fn reindex(&self, progress: IndexProgressSink<'_>) -> Result<IndexProgress, Error> {
        self.index.wait_for_background().await;
        self.clear_index().await?;
        self.catch_up(IndexWait::Unlimited, progress).await
    }

    async fn clear_index(&self) -> Result<(), Error> {
        let index = Arc::clone(&self.index);
        run_blocking(move || index.clear()).await
    }

    async fn try_catch_up(
        &self,
        wait: IndexWait,
        progress: IndexProgressSink<'_>,
    ) -> Result<IndexProgress, Error> {
        let started_at = self.now();
        if !self.is_index_consistent().await? {
            return Err(RecallError::Mismatch.into());
        }
        // Everything acknowledged before this call is at or before this position.
        let target = self.store.acknowledged_position().await?;
        let mut indexer: Option<Indexer> = None;
        let mut origins = ForkOrigins::new();
        let first = self.watermark().await?;
        loop {
            let watermark = self.watermark().await?;
            let mut lag = target.0.saturating_sub(watermark.0);
            let mut is_over = lag == 0 || self.is_wait_over(started_at, wait);
            let mut last = target;
            if !is_over {
                last = self.store.last_position().await?;
                if last <= watermark {
                    // Another writer is still committing the next position, or has
                    // given it up.
                    if self.store.acknowledged_position().await? <= watermark {
                        lag = 0;
                    }
                    is_over = lag == 0 || wait == IndexWait::Unlimited;
                    if !is_over {
                        self.environment.sleep(POLL_INTERVAL).await;
                        continue;
                    }
                }
            }
            if is_over {
                if let Some(indexer) = indexer {
                    // Until its files are merged, the old ones are read.
                    self.index.spawn_background(move || drop(indexer.finish()));
                }
                return Ok(IndexProgress { watermark, lag });
            }
            progress(
                watermark.0.saturating_sub(first.0),
                target.0.saturating_sub(first.0),
            );
            if indexer.is_none() {
                let index = Arc::clone(&self.index);
                indexer =
                    run_index_task(move || Ok(index.open_index()?.as_index().indexer()?)).await?;
            }
            match indexer.take() {
                Some(available) => {
                    indexer = Some(
                        self.index_batch(available, watermark, last, &mut origins)
                            .await?,
                    );
                }
                // Another process is updating the index.
                None => self.environment.sleep(POLL_INTERVAL).await,
            }
        }
    }

    /// Returns the position up to which everything is indexed.
    pub async fn watermark(&self) -> Result<Position, Error> {
        let index = Arc::clone(&self.index);
        run_index_task(move || Ok(Position(index.open_index()?.as_index().watermark()?))).await
    }

    async fn index_batch(
        &self,
        mut indexer: Indexer,
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
                // Positions at the end may belong to removed changes.
                batch.upto = batch.upto.max(target.0);
                break;
            }
        }
        let needs_vacuum = !batch.removed.is_empty();
        run_index_task(move || {
            indexer.index_batch(batch)?;
            if needs_vacuum {
                // Erased content must not remain on disk.
                indexer.vacuum()?;
            }
            Ok(indexer)
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
            kind,
        } = change;
        let seq = match kind {
            ChangeKind::Appended(stored) => {
                // A damaged entry is reported by `tl doctor`, and is not indexed.
                let Ok(entry) = stored.decode() else {
                    return Ok(());
                };
                let location = EntryLocation {
                    position: position.0,
                    owner: &owner,
                    session: &session,
                    origin: self.fork_origin(&owner, &session, origins).await?,
                };
                batch.passages.extend(to_passage(&entry, location));
                return Ok(());
            }
            ChangeKind::Erased(seq) => Some(seq),
            ChangeKind::Removed => None,
            _ => return Ok(()),
        };
        // Removes passages that were added earlier in the same batch.
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

    /// Returns the session and entry that a session was forked from.
    async fn fork_origin(
        &self,
        owner: &Owner,
        session: &SessionId,
        origins: &mut ForkOrigins,
    ) -> Result<Option<(SessionId, Seq)>, Error> {
        let key = (owner.clone(), session.clone());
        if let Some(origin) = origins.get(&key) {
            return Ok(origin.clone());
        }
        let origin = match self.store.header(&owner.session(session)).await {
            Ok(header) => match header.lineage {
                Lineage::Forked { session, at } => Some((session, at)),
                Lineage::Root | Lineage::Continued { .. } => None,
            },
            // The session may have been trashed since.
            Err(StoreError::InTrash(_) | StoreError::NoSuchSession(_)) => None,
            Err(error) => return Err(error.into()),
        };
        origins.insert(key, origin.clone());
        Ok(origin)
    }
}

fn payload_bytes(change: &Change) -> usize {
    match &change.kind {
        ChangeKind::Appended(stored) => stored.payload.len(),
        _ => 0,
    }
}

//! Reads and writes the change feed: all appends and session events in commit-safe order.
//!
//! Two tables share one sequence of positions: `entry` for appends, and `change` for events
//! on sessions as a whole. Reading merges them.
//!
//! Positions come from a sequence, and transactions may commit in a different order than
//! they took positions. To keep readers from skipping one that commits late, a writer first
//! takes a shared advisory lock whose key is the last position taken, and holds it until it
//! commits. A reader reads the last position, then looks for such locks, and reads no
//! further than the lowest of them. Any writer it does not see has either committed, and is
//! visible, or has yet to take positions, which will be later. Writers wait neither for one
//! another nor for readers.
//!
//! Invariant: within a session, positions increase with entry numbers, because they are
//! taken while the session's row is locked.

use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::join;
use throughline_model::{Owner, SessionId};
use throughline_store::{Change, ChangeFeed, ChangeKind, Position, SessionEvent, StoreError};
use tokio_postgres::Row;

use crate::error::{Fault, damaged, during};
use crate::log::in_transaction;
use crate::open::PostgresStore;
use crate::rows;
use crate::tx::{Tx, TxMode};

/// The class of our advisory locks, to tell them from other programs': "TLin".
const LOCK_CLASS: i32 = 0x544c_696e;

/// How often a waiting reader polls when no notification arrives.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Selects the last position taken.
const SELECT_LAST_POSITION: &str = "SELECT CASE WHEN is_called THEN last_value ELSE 0 END
    FROM throughline.feed_position";

/// Locks the last position before this transaction takes its own. `$1` is the lock class.
/// The key is the lower half of the position; readers know the upper half.
pub(crate) const LOCK_LAST_POSITION: &str = "SELECT pg_advisory_xact_lock_shared($1,
        (CASE WHEN is_called THEN last_value ELSE 0 END & 4294967295)::bit(32)::int)
    FROM throughline.feed_position";

/// Takes `$1` positions.
pub(crate) const TAKE_POSITIONS: &str =
    "SELECT nextval('throughline.feed_position') FROM generate_series(1, $1::bigint)";

/// Selects the keys of transactions that are taking positions. `$1` is the lock class.
const SELECT_POSITION_LOCKS: &str = "SELECT objid::bigint FROM pg_locks
    WHERE locktype = 'advisory' AND objsubid = 2 AND classid::bigint = $1::int
        AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";

/// The lock class, as a statement parameter.
pub(crate) fn lock_class() -> i32 {
    LOCK_CLASS
}

/// Session events to record in a transaction, before the entries it appends.
#[derive(Debug, Default)]
pub(crate) struct PendingChanges {
    owners: Vec<String>,
    sessions: Vec<String>,
    kinds: Vec<&'static str>,
    seqs: Vec<Option<i64>>,
}

impl PendingChanges {
    pub(crate) fn add(&mut self, owner: &Owner, session: &SessionId, event: SessionEvent) {
        self.owners.push(owner.as_str().to_owned());
        self.sessions.push(session.to_string());
        let (kind, seq) = event.to_row();
        self.kinds.push(kind);
        self.seqs.push(seq.map(rows::seq_to_i64));
    }

    /// Writes the events of a transaction that appends nothing.
    pub(crate) async fn write(self, tx: &Tx) -> Result<(), Fault> {
        self.write_and_take_positions(tx, 0).await?;
        Ok(())
    }

    /// Writes the events and takes positions after them for `entries` entries.
    pub(crate) async fn write_and_take_positions(
        self,
        tx: &Tx,
        entries: usize,
    ) -> Result<Vec<i64>, Fault> {
        let doing = "recording changes";
        let events = self.kinds.len();
        let count = rows::u64_to_i64((events + entries) as u64);
        if count == 0 {
            return Ok(Vec::new());
        }
        tx.query(doing, LOCK_LAST_POSITION, params![LOCK_CLASS])
            .await?;
        let taken = tx.query(doing, TAKE_POSITIONS, params![count]).await?;
        let mut positions = taken
            .iter()
            .map(|row| rows::get(row, 0))
            .collect::<Result<Vec<i64>, _>>()?;
        let later = positions.split_off(events);
        if events > 0 {
            tx.execute(
                doing,
                "INSERT INTO throughline.change (position, owner, session, kind, seq)
                 SELECT * FROM unnest($1::bigint[], $2::text[], $3::text[], $4::text[],
                     $5::bigint[])",
                params![positions, self.owners, self.sessions, self.kinds, self.seqs],
            )
            .await?;
        }
        Ok(later)
    }
}

/// Where the feed ends.
struct FeedEnd {
    /// Every transaction with a position up to here has ended.
    committed: i64,
    /// The last position taken, committed or not.
    taken: i64,
}

async fn read_feed_end(tx: &Tx) -> Result<FeedEnd, Fault> {
    let failed = during("finding the end of the feed");
    let client = tx.client()?;
    let lookup = async {
        let last = client
            .prepare_cached(SELECT_LAST_POSITION)
            .await
            .map_err(failed)?;
        let taking = client
            .prepare_cached(SELECT_POSITION_LOCKS)
            .await
            .map_err(failed)?;
        let mark: &[&(dyn tokio_postgres::types::ToSql + Sync)] = params![LOCK_CLASS];
        // In this order: the locks must be read after the last position.
        let (last, taking) = join(client.query_one(&last, &[]), client.query(&taking, mark)).await;
        Ok((last.map_err(failed)?, taking.map_err(failed)?))
    };
    let (last, taking) = tx.run_while_opening(lookup).await?;
    let last: i64 = rows::get(&last, 0)?;
    let mut committed = last;
    for row in taking {
        let lower: i64 = rows::get(&row, 0)?;
        // The nearest position at or below `last` with this lower half.
        let behind = (last - lower) & 0xffff_ffff;
        // A distance of nearly the whole range means a position after `last`, locked since.
        if behind < 0x8000_0000 {
            committed = committed.min(last - behind);
        }
    }
    Ok(FeedEnd {
        committed,
        taken: last,
    })
}

#[async_trait]
impl ChangeFeed for PostgresStore {
    async fn last_position(&self) -> Result<Position, StoreError> {
        in_transaction!(self, self.begin_system(TxMode::ReadCommitted), |tx| {
            read_last_position(tx).await
        })
    }

    async fn acknowledged_position(&self) -> Result<Position, StoreError> {
        in_transaction!(self, self.begin_system(TxMode::ReadCommitted), |tx| {
            read_acknowledged_position(tx).await
        })
    }

    async fn changes(&self, after: Position, limit: usize) -> Result<Vec<Change>, StoreError> {
        self.read_changes(None, after, limit).await
    }

    async fn owner_changes(
        &self,
        owner: &Owner,
        after: Position,
        limit: usize,
    ) -> Result<Vec<Change>, StoreError> {
        self.read_changes(Some(owner), after, limit).await
    }

    async fn wait_for_change(&self, after: Position) -> Result<bool, StoreError> {
        let mut notifications = self.inner.notifier.subscribe();
        loop {
            notifications.mark_unchanged();
            if self.last_position().await? > after {
                return Ok(true);
            }
            // Poll even without a notification: it may have been lost.
            if let Ok(Err(_)) = tokio::time::timeout(POLL_INTERVAL, notifications.changed()).await {
                return Err(StoreError::Closed);
            }
        }
    }
}

impl PostgresStore {
    /// Reads the changes after a position, of all owners or of one.
    async fn read_changes(
        &self,
        owner: Option<&Owner>,
        after: Position,
        limit: usize,
    ) -> Result<Vec<Change>, StoreError> {
        in_transaction!(self, self.begin_system(TxMode::ReadCommitted), |tx| {
            select_changes(tx, owner, after, limit).await
        })
    }
}

/// The position of the last committed change.
async fn read_last_position(tx: &Tx) -> Result<Position, Fault> {
    let FeedEnd { committed, .. } = read_feed_end(tx).await?;
    read_last_position_upto(tx, committed).await
}

/// The last position taken while commits are in progress, else that of the last change.
async fn read_acknowledged_position(tx: &Tx) -> Result<Position, Fault> {
    let FeedEnd { committed, taken } = read_feed_end(tx).await?;
    if committed < taken {
        return Ok(to_position(taken));
    }
    read_last_position_upto(tx, committed).await
}

/// The position of the last change at or before `settled`.
async fn read_last_position_upto(tx: &Tx, committed: i64) -> Result<Position, Fault> {
    let row = tx
        .query_opt(
            "finding the last change",
            "SELECT greatest(
                 coalesce((SELECT max(position) FROM throughline.entry WHERE position <= $1), 0),
                 coalesce((SELECT max(position) FROM throughline.change WHERE position <= $1), 0))",
            params![committed],
        )
        .await?;
    Ok(match row {
        None => Position(0),
        Some(row) => to_position(rows::get(&row, 0)?),
    })
}

async fn select_changes(
    tx: &Tx,
    owner: Option<&Owner>,
    after: Position,
    limit: usize,
) -> Result<Vec<Change>, Fault> {
    let FeedEnd { committed, .. } = read_feed_end(tx).await?;
    let after = rows::u64_to_i64(after.0);
    let most = rows::u64_to_i64(limit as u64);
    let owner = owner.map(Owner::as_str);
    let window = params![after, committed, most, owner];
    let columns = rows::ENTRY_COLUMNS;
    let sql = format!(
        "SELECT e.position, e.owner, s.id, {columns} FROM throughline.entry e
         JOIN throughline.session s ON s.owner = e.owner AND s.log = e.log
         WHERE e.position > $1 AND e.position <= $2 AND ($4::text IS NULL OR e.owner = $4)
         ORDER BY e.position LIMIT $3"
    );
    let appended = tx.query("reading appended entries", &sql, window).await?;
    let mut changes = appended
        .iter()
        .map(|row| {
            Ok(Change {
                position: to_position(rows::get(row, 0)?),
                owner: rows::parse_column(row, 1)?,
                session: rows::parse_column(row, 2)?,
                kind: ChangeKind::Appended(rows::stored_entry_from_row(row, 3)?),
            })
        })
        .collect::<Result<Vec<_>, StoreError>>()?;
    let other = tx
        .query(
            "reading changes",
            "SELECT position, owner, session, kind, seq FROM throughline.change
             WHERE position > $1 AND position <= $2 AND ($4::text IS NULL OR owner = $4)
             ORDER BY position LIMIT $3",
            window,
        )
        .await?;
    for row in &other {
        changes.push(Change {
            position: to_position(rows::get(row, 0)?),
            owner: rows::parse_column(row, 1)?,
            session: rows::parse_column(row, 2)?,
            kind: decode_change_kind(row)?,
        });
    }
    changes.sort_by_key(|change| change.position);
    changes.truncate(limit);
    Ok(changes)
}

fn decode_change_kind(row: &Row) -> Result<ChangeKind, StoreError> {
    let kind: &str = rows::get(row, 3)?;
    let seq: Option<i64> = rows::get(row, 4)?;
    match SessionEvent::from_row(kind, seq.map(rows::seq_from_i64)) {
        Some(event) => Ok(event.into()),
        None => Err(damaged("a change of unknown kind", kind.to_owned())),
    }
}

fn to_position(position: i64) -> Position {
    Position(u64::try_from(position).unwrap_or(0))
}

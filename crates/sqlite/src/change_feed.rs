//! The change feed: everything that happened in the store, ordered by position.
//!
//! Two tables share one sequence of positions: the entries themselves, and events that concern
//! a whole session (created, trashed, removed…). Reading merges them.

use async_trait::async_trait;
use rusqlite::{Connection, Row, params};
use throughline_model::{Owner, SessionId};
use throughline_store::{Change, ChangeFeed, ChangeKind, Position, SessionEvent, StoreError};

use crate::error::{damaged, during};
use crate::open::SqliteStore;
use crate::rows;
use crate::tx::Tx;

/// Records a session event in the feed.
pub(crate) fn record_event(
    tx: &mut Tx<'_>,
    owner: &Owner,
    session: &str,
    event: SessionEvent,
) -> Result<(), StoreError> {
    let position = tx.next_position()?;
    let (kind, seq) = event.to_row();
    tx.prepare_write(
        "INSERT INTO change (position, owner, session, kind, seq) VALUES (?1, ?2, ?3, ?4, ?5)",
    )
    .and_then(|mut insert| {
        insert.execute(params![
            position,
            owner.as_str(),
            session,
            kind,
            seq.map(rows::seq_to_i64)
        ])
    })
    .map_err(during("recording a change"))?;
    Ok(())
}

/// Returns the largest position in use.
pub(crate) fn read_last_position(connection: &Connection) -> Result<i64, StoreError> {
    connection
        .prepare_cached(
            "SELECT max(coalesce((SELECT max(pk) FROM entry), 0),
                        coalesce((SELECT max(position) FROM change), 0))",
        )
        .and_then(|mut query| query.query_row([], |row| row.get(0)))
        .map_err(during("finding the last change"))
}

#[async_trait]
impl ChangeFeed for SqliteStore {
    async fn last_position(&self) -> Result<Position, StoreError> {
        self.reader_pool
            .read(|connection| read_last_position(connection).map(to_position))
            .await
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
        self.read_changes(Some(owner.clone()), after, limit).await
    }
}

impl SqliteStore {
    /// Returns the changes after a position, for all owners or for one.
    async fn read_changes(
        &self,
        owner: Option<Owner>,
        after: Position,
        limit: usize,
    ) -> Result<Vec<Change>, StoreError> {
        self.reader_pool
            .read(move |connection| {
                let owner = owner.as_ref();
                let mut changes = read_appended(connection, owner, after, limit)?;
                changes.extend(read_events(connection, owner, after, limit)?);
                changes.sort_by_key(|change| change.position);
                changes.truncate(limit);
                Ok(changes)
            })
            .await
    }
}

fn read_appended(
    connection: &Connection,
    owner: Option<&Owner>,
    after: Position,
    limit: usize,
) -> Result<Vec<Change>, StoreError> {
    let failed = during("reading appended entries");
    let mut query = connection
        .prepare_cached(
            "SELECT entry.pk, entry.session, entry.seq, back, jump, entry.id, entry.at,
                    entry.digest, payload, owner.id, session.id
             FROM entry
             JOIN session ON session.pk = entry.session AND session.gone = 0
             JOIN owner ON owner.pk = session.owner
             WHERE entry.pk > ?1 AND (?3 IS NULL OR owner.id = ?3)
             ORDER BY entry.pk LIMIT ?2",
        )
        .map_err(failed)?;
    let [after, limit] = page_params(after, limit);
    let owner = owner.map(Owner::as_str);
    let mut found = query.query(params![after, limit, owner]).map_err(failed)?;
    let mut changes = Vec::new();
    while let Some(row) = found.next().map_err(failed)? {
        changes.push(Change {
            position: to_position(row.get(0).map_err(failed)?),
            owner: parse_column(row, 9)?,
            session: parse_column(row, 10)?,
            kind: ChangeKind::Appended(rows::stored_entry_from_row(row)?),
        });
    }
    Ok(changes)
}

fn read_events(
    connection: &Connection,
    owner: Option<&Owner>,
    after: Position,
    limit: usize,
) -> Result<Vec<Change>, StoreError> {
    let failed = during("reading changes");
    let mut query = connection
        .prepare_cached(
            "SELECT position, owner, session, kind, seq FROM change
             WHERE position > ?1 AND (?3 IS NULL OR owner = ?3)
             ORDER BY position LIMIT ?2",
        )
        .map_err(failed)?;
    let [after, limit] = page_params(after, limit);
    let owner = owner.map(Owner::as_str);
    let mut found = query.query(params![after, limit, owner]).map_err(failed)?;
    let mut changes = Vec::new();
    while let Some(row) = found.next().map_err(failed)? {
        let kind: String = row.get(3).map_err(failed)?;
        let seq: Option<i64> = row.get(4).map_err(failed)?;
        let Some(event) = SessionEvent::from_row(&kind, seq.map(rows::seq_from_i64)) else {
            return Err(damaged("a change of unknown kind", kind));
        };
        changes.push(Change {
            position: to_position(row.get(0).map_err(failed)?),
            owner: parse_column(row, 1)?,
            session: parse_column::<SessionId>(row, 2)?,
            kind: event.into(),
        });
    }
    Ok(changes)
}

fn page_params(after: Position, limit: usize) -> [i64; 2] {
    [
        i64::try_from(after.0).unwrap_or(i64::MAX),
        i64::try_from(limit).unwrap_or(i64::MAX),
    ]
}

fn to_position(position: i64) -> Position {
    Position(u64::try_from(position).unwrap_or(0))
}

fn parse_column<T: std::str::FromStr<Err: std::error::Error + Send + Sync + 'static>>(
    row: &Row<'_>,
    column: usize,
) -> Result<T, StoreError> {
    let text: String = row.get(column).map_err(during("reading changes"))?;
    text.parse()
        .map_err(|error| damaged("a change cannot be decoded", error))
}

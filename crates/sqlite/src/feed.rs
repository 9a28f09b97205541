//! What happened, in the order it happened.
//!
//! Two tables share one row of positions: the log itself, and what happened to sessions
//! as a whole. Reading merges them.

use async_trait::async_trait;
use rusqlite::{Connection, Row, params};
use throughline_model::{Owner, SessionId};
use throughline_store::{Change, Event, Feed, Position, StoreError, What};

use crate::error::{damaged, during};
use crate::open::SqliteStore;
use crate::rows;
use crate::tx::Tx;

/// Notes that something happened.
pub(crate) fn note(
    tx: &mut Tx<'_>,
    owner: &Owner,
    session: &str,
    event: Event,
) -> Result<(), StoreError> {
    let position = tx.position()?;
    let (kind, seq) = event.noted();
    tx.change(
        "INSERT INTO change (position, owner, session, kind, seq) VALUES (?1, ?2, ?3, ?4, ?5)",
    )
    .and_then(|mut insert| {
        insert.execute(params![
            position,
            owner.as_str(),
            session,
            kind,
            seq.map(rows::seq)
        ])
    })
    .map_err(during("noting a change"))?;
    Ok(())
}

/// The largest position there is.
pub(crate) fn last(connection: &Connection) -> Result<i64, StoreError> {
    connection
        .prepare_cached(
            "SELECT max(coalesce((SELECT max(pk) FROM entry), 0),
                        coalesce((SELECT max(position) FROM change), 0))",
        )
        .and_then(|mut query| query.query_row([], |row| row.get(0)))
        .map_err(during("finding the last change"))
}

#[async_trait]
impl Feed for SqliteStore {
    async fn last_position(&self) -> Result<Position, StoreError> {
        self.readers
            .read(|connection| last(connection).map(to_position))
            .await
    }

    async fn changes(&self, after: Position, limit: usize) -> Result<Vec<Change>, StoreError> {
        self.happened(None, after, limit).await
    }

    async fn changes_of(
        &self,
        owner: &Owner,
        after: Position,
        limit: usize,
    ) -> Result<Vec<Change>, StoreError> {
        self.happened(Some(owner.clone()), after, limit).await
    }
}

impl SqliteStore {
    /// What happened after a position: to everybody, or to one owner.
    async fn happened(
        &self,
        owner: Option<Owner>,
        after: Position,
        limit: usize,
    ) -> Result<Vec<Change>, StoreError> {
        self.readers
            .read(move |connection| {
                let owner = owner.as_ref();
                let mut changes = appended(connection, owner, after, limit)?;
                changes.extend(other(connection, owner, after, limit)?);
                changes.sort_by_key(|change| change.position);
                changes.truncate(limit);
                Ok(changes)
            })
            .await
    }
}

fn appended(
    connection: &Connection,
    owner: Option<&Owner>,
    after: Position,
    limit: usize,
) -> Result<Vec<Change>, StoreError> {
    let failed = during("reading what was appended");
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
    let [after, limit] = window(after, limit);
    let owner = owner.map(Owner::as_str);
    let mut found = query.query(params![after, limit, owner]).map_err(failed)?;
    let mut changes = Vec::new();
    while let Some(row) = found.next().map_err(failed)? {
        changes.push(Change {
            position: to_position(row.get(0).map_err(failed)?),
            owner: parsed(row, 9)?,
            session: parsed(row, 10)?,
            what: What::Appended(rows::stored(row)?),
        });
    }
    Ok(changes)
}

fn other(
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
    let [after, limit] = window(after, limit);
    let owner = owner.map(Owner::as_str);
    let mut found = query.query(params![after, limit, owner]).map_err(failed)?;
    let mut changes = Vec::new();
    while let Some(row) = found.next().map_err(failed)? {
        let kind: String = row.get(3).map_err(failed)?;
        let seq: Option<i64> = row.get(4).map_err(failed)?;
        let Some(event) = Event::read(&kind, seq.map(rows::to_seq)) else {
            return Err(damaged("a change of no known kind", kind));
        };
        changes.push(Change {
            position: to_position(row.get(0).map_err(failed)?),
            owner: parsed(row, 1)?,
            session: parsed::<SessionId>(row, 2)?,
            what: event.into(),
        });
    }
    Ok(changes)
}

fn window(after: Position, limit: usize) -> [i64; 2] {
    [
        i64::try_from(after.0).unwrap_or(i64::MAX),
        i64::try_from(limit).unwrap_or(i64::MAX),
    ]
}

fn to_position(position: i64) -> Position {
    Position(u64::try_from(position).unwrap_or(0))
}

fn parsed<T: std::str::FromStr<Err: std::error::Error + Send + Sync + 'static>>(
    row: &Row<'_>,
    column: usize,
) -> Result<T, StoreError> {
    let text: String = row.get(column).map_err(during("reading changes"))?;
    text.parse().map_err(|error| damaged("a change", error))
}

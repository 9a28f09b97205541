//! Forks: a row, a few references, and no copying.

use rusqlite::{OptionalExtension, params};
use throughline_model::{Lineage, Record, Seq, SessionHeader, SessionRef};
use throughline_store::StoreError;

use crate::append::{refuse_taken_key, write_snapshot};
use crate::error::{damaged, during};
use crate::open::SqliteStore;
use crate::rows;
use crate::skip_list::{self, EntryLink, LogEnd};
use crate::tx::Tx;

impl SqliteStore {
    pub(crate) async fn fork_session(
        &self,
        of: &SessionRef,
        at: Seq,
        birth: SessionHeader,
    ) -> Result<Record, StoreError> {
        let of = of.clone();
        self.writer
            .write(move |tx| fork(tx, &of, at, birth.clone()))
            .await
    }
}

/// Makes a fork of `of` at `at`.
pub(crate) fn fork(
    tx: &mut Tx<'_>,
    of: &SessionRef,
    at: Seq,
    mut birth: SessionHeader,
) -> Result<Record, StoreError> {
    let live = tx.load_session(of)?;
    let (pk, end) = (live.pk, live.anchors.end());
    if at > end.head {
        return Err(StoreError::NoSuchEntry {
            id: of.id.clone(),
            seq: at,
            head: end.head,
        });
    }
    birth.lineage = Lineage::Forked {
        session: of.id.clone(),
        at,
    };
    let at_head = (at == end.head).then(|| live.record.clone());
    let last = match at {
        Seq::ZERO => None,
        at => Some(skip_list::seek(tx.connection, end, at)?),
    };
    let shared = LogEnd {
        head: at,
        entry: last.map(|link| link.pk),
    };
    let record = match (at_head, last) {
        (Some(record), _) => record,
        (None, Some(link)) => load_record_at(tx, link.session, shared)?,
        // At zero, nothing is shared: the fork starts as its origin did.
        (None, None) => Record::new(&rows::load_header(tx.connection, pk)?),
    };
    let (birth, record) = record.fork(birth);

    let session = of.owner.session(&birth.id);
    if let Some(found) = rows::find_session(tx.connection, &session)? {
        if !found.trashed && rows::load_header(tx.connection, found.pk)? == birth {
            return Ok(tx.load_session(&session)?.record.clone());
        }
        return Err(StoreError::SessionExists(birth.id));
    }
    refuse_taken_key(tx, &of.owner, &birth)?;
    let fork = tx.insert_session(&of.owner, &birth, shared, &record)?;
    if let Some(link) = last {
        record_inherited(tx, fork, pk, link)?;
    }
    write_snapshot(tx, fork, &record)?;
    Ok(record)
}

/// Notes whose entries a fork shares: those its origin shares before the fork, and then
/// those of the session that the last shared entry belongs to.
fn record_inherited(
    tx: &mut Tx<'_>,
    fork: i64,
    origin: i64,
    last: EntryLink,
) -> Result<(), StoreError> {
    let failed = during("noting what a fork shares");
    tx.prepare_write(
        "INSERT INTO inherits (session, upto, base)
         SELECT ?1, upto, base FROM inherits WHERE session = ?2 AND upto < ?3
         UNION ALL SELECT ?1, ?3, ?4",
    )
    .and_then(|mut insert| {
        insert.execute(params![
            fork,
            origin,
            rows::seq_to_i64(last.seq),
            last.session
        ])
    })
    .map_err(failed)?;
    Ok(())
}

/// The record of the session that an entry belongs to, as it was at that entry: the
/// nearest one kept, and the few entries after it.
fn load_record_at(tx: &Tx<'_>, session: i64, end: LogEnd) -> Result<Record, StoreError> {
    let failed = during("finding a record");
    let kept: Option<String> = tx
        .prepare_read(
            "SELECT json FROM snapshot WHERE session = ?1 AND seq <= ?2
             ORDER BY seq DESC LIMIT 1",
        )
        .and_then(|mut query| {
            query
                .query_row(params![session, rows::seq_to_i64(end.head)], |row| {
                    row.get(0)
                })
                .optional()
        })
        .map_err(failed)?;
    let birth = rows::load_header(tx.connection, session)?;
    let mut record = match kept {
        None => Record::new(&birth),
        Some(json) => serde_json::from_str(&json)
            .map_err(|error| damaged("a record that was kept cannot be decoded", error))?,
    };
    crate::check::fold_to(tx.connection, &mut record, end, |_| Ok(()))?;
    Ok(record)
}

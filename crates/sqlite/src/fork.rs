//! Forks sessions without copying: a new row and references to the shared entries.

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
        header: SessionHeader,
    ) -> Result<Record, StoreError> {
        let of = of.clone();
        self.writer
            .write(move |tx| fork(tx, &of, at, header.clone()))
            .await
    }
}

/// Creates a fork of `of` at `at`.
pub(crate) fn fork(
    tx: &mut Tx<'_>,
    of: &SessionRef,
    at: Seq,
    mut header: SessionHeader,
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
    header.lineage = Lineage::Forked {
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
        // At zero nothing is shared: the fork starts from its origin's header.
        (None, None) => Record::new(&rows::load_header(tx.connection, pk)?),
    };
    let (header, record) = record.fork(header);

    let session = of.owner.session(&header.id);
    if let Some(found) = rows::find_session(tx.connection, &session)? {
        if !found.trashed && rows::load_header(tx.connection, found.pk)? == header {
            return Ok(tx.load_session(&session)?.record.clone());
        }
        return Err(StoreError::SessionExists(header.id));
    }
    refuse_taken_key(tx, &of.owner, &header)?;
    let fork = tx.insert_session(&of.owner, &header, shared, &record)?;
    if let Some(link) = last {
        record_inherited(tx, fork, pk, link)?;
    }
    write_snapshot(tx, fork, &record)?;
    Ok(record)
}

/// Records whose entries a fork shares: those its origin inherits before the fork point, then
/// those of the session that owns the last shared entry.
fn record_inherited(
    tx: &mut Tx<'_>,
    fork: i64,
    origin: i64,
    last: EntryLink,
) -> Result<(), StoreError> {
    let failed = during("recording what a fork shares");
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

/// Loads the record as of an entry, of the session that owns the entry: the nearest snapshot,
/// plus the entries after it.
fn load_record_at(tx: &Tx<'_>, session: i64, end: LogEnd) -> Result<Record, StoreError> {
    let failed = during("finding a record");
    let snapshot: Option<String> = tx
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
    let header = rows::load_header(tx.connection, session)?;
    let mut record = match snapshot {
        None => Record::new(&header),
        Some(json) => serde_json::from_str(&json)
            .map_err(|error| damaged("a record snapshot cannot be decoded", error))?,
    };
    crate::check::fold_to(tx.connection, &mut record, end, |_| Ok(()))?;
    Ok(record)
}

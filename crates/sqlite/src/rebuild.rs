//! Rebuilds all derived data from the logs.

use rusqlite::{Connection, params};
use throughline_model::Record;
use throughline_store::StoreError;

use crate::append::{is_snapshot_due, write_snapshot};
use crate::check::fold_to;
use crate::error::during;
use crate::rows;
use crate::skip_list::LogEnd;
use crate::tx::Tx;

/// Returns the row ids of all sessions, in creation order.
pub(crate) fn list_session_pks(connection: &Connection) -> Result<Vec<i64>, StoreError> {
    connection
        .prepare("SELECT pk FROM session ORDER BY pk")
        .and_then(|mut query| query.query_map([], |row| row.get(0))?.collect())
        .map_err(during("reading the sessions"))
}

/// Rebuilds everything derived from the logs of a session and its forks.
pub(crate) fn rebuild_with_forks(tx: &mut Tx<'_>, pk: i64) -> Result<(), StoreError> {
    rebuild_one(tx, pk)?;
    let forks: Vec<i64> = tx
        .prepare_read("SELECT DISTINCT session FROM inherits WHERE base = ?1 ORDER BY session")
        .and_then(|mut query| query.query_map([pk], |row| row.get(0))?.collect())
        .map_err(during("reading forks"))?;
    for fork in forks {
        rebuild_one(tx, fork)?;
    }
    Ok(())
}

/// The result of folding a session's log, with the snapshots to store.
struct FoldedSession {
    owner: i64,
    gone: bool,
    end: LogEnd,
    record: Record,
    snapshots: Vec<Record>,
}

/// Rebuilds everything derived from one session's log.
///
/// Leaves a session whose log is damaged unchanged: its derived data may be the only trace of
/// what was lost.
pub(crate) fn rebuild_one(tx: &mut Tx<'_>, pk: i64) -> Result<(), StoreError> {
    let folded = fold_session(tx, pk)?;
    let failed = during("rebuilding a session");
    tx.prepare_write("DELETE FROM snapshot WHERE session = ?1")
        .and_then(|mut delete| delete.execute([pk]))
        .map_err(failed)?;
    for record in &folded.snapshots {
        write_snapshot(tx, pk, record)?;
    }
    if folded.gone {
        return Ok(());
    }
    let info = &folded.record.info;
    rows::write_info(tx.connection, pk, info, folded.end.entry)?;
    rows::write_state(tx.connection, pk, &folded.record.state)?;
    rows::write_tags(tx.connection, folded.owner, pk, &info.tags)?;
    rebuild_blob_uses(tx, folded.owner, pk)
}

/// Folds the log of a session from its first entry to its last.
fn fold_session(tx: &Tx<'_>, pk: i64) -> Result<FoldedSession, StoreError> {
    let (owner, shared, gone, end) = tx
        .prepare_read(
            "SELECT owner, shared, gone, ifnull(entry.seq, head), head_entry
             FROM session LEFT JOIN entry ON entry.pk = head_entry WHERE session.pk = ?1",
        )
        .and_then(|mut query| {
            query.query_row([pk], |row| {
                let end = LogEnd {
                    head: rows::seq_from_i64(row.get(3)?),
                    entry: row.get(4)?,
                };
                Ok((
                    row.get(0)?,
                    rows::seq_from_i64(row.get(1)?),
                    row.get(2)?,
                    end,
                ))
            })
        })
        .map_err(during("reading a session to rebuild"))?;
    let header = rows::load_header(tx.connection, pk)?;
    let mut folded = FoldedSession {
        owner,
        gone,
        end,
        record: Record::new(&header),
        snapshots: Vec::new(),
    };
    let FoldedSession {
        record,
        snapshots: kept,
        ..
    } = &mut folded;
    fold_to(tx.connection, record, end, |record| {
        let head = record.info.head;
        if (head > shared && is_snapshot_due(head)) || head == shared {
            kept.push(record.clone());
        }
        Ok(())
    })?;
    Ok(folded)
}

fn rebuild_blob_uses(tx: &mut Tx<'_>, owner: i64, pk: i64) -> Result<(), StoreError> {
    let failed = during("rebuilding attachment references");
    tx.prepare_write("DELETE FROM blob_use WHERE session = ?1")
        .and_then(|mut delete| delete.execute([pk]))
        .map_err(failed)?;
    for digest in crate::blob::load_referenced(tx, pk)? {
        tx.prepare_write(
            "INSERT OR IGNORE INTO blob_use (session, blob)
             SELECT ?1, pk FROM blob WHERE owner = ?2 AND digest = ?3",
        )
        .and_then(|mut insert| insert.execute(params![pk, owner, digest.as_bytes()]))
        .map_err(failed)?;
    }
    Ok(())
}

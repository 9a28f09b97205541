//! Moves sessions to the trash, restores them and removes them permanently.
//!
//! A removed session whose entries are shared by forks keeps its row, marked as gone and hidden
//! from every query, with only the entries that are shared.

use rusqlite::params;
use throughline_model::{Seq, SessionRef, Timestamp};
use throughline_store::{Fence, SessionEvent, StoreError};

use crate::append::refuse_taken_key;
use crate::change_feed::record_event;
use crate::error::{damaged, during};
use crate::lease::refuse_lost_lease;
use crate::open::SqliteStore;
use crate::skip_list::{self, LogEnd};
use crate::tx::{Tx, last_shared_seq};
use crate::{read, rows};

impl SqliteStore {
    pub(crate) async fn trash_session(
        &self,
        session: &SessionRef,
        at: Timestamp,
        fence: Option<&Fence>,
    ) -> Result<(), StoreError> {
        let (session, fence) = (session.clone(), fence.cloned());
        self.writer
            .write(move |tx| {
                refuse_lost_lease(tx, &session.owner, fence.as_ref())?;
                let found = rows::find_session(tx.connection, &session)?
                    .ok_or_else(|| StoreError::NoSuchSession(session.id.clone()))?;
                tx.flush()?;
                let put = tx
                    .prepare_write(
                        "UPDATE session SET trashed_at = ?2 WHERE pk = ?1 AND trashed_at IS NULL",
                    )
                    .and_then(|mut update| update.execute(params![found.pk, at.as_microsecond()]))
                    .map_err(during("moving a session to the trash"))?;
                if put > 0 {
                    record_event(
                        tx,
                        &session.owner,
                        session.id.as_str(),
                        SessionEvent::Trashed,
                    )?;
                }
                tx.evict_sessions();
                Ok(())
            })
            .await
    }

    pub(crate) async fn restore_session(&self, session: &SessionRef) -> Result<(), StoreError> {
        let session = session.clone();
        self.writer
            .write(move |tx| {
                let pk = find_in_trash(tx, &session)?;
                let header = rows::load_header(tx.connection, pk)?;
                refuse_taken_key(tx, &session.owner, &header)?;
                tx.prepare_write("UPDATE session SET trashed_at = NULL WHERE pk = ?1")
                    .and_then(|mut update| update.execute([pk]))
                    .map_err(during("restoring a session from the trash"))?;
                record_event(
                    tx,
                    &session.owner,
                    session.id.as_str(),
                    SessionEvent::Restored,
                )
            })
            .await
    }

    pub(crate) async fn remove_session(
        &self,
        session: &SessionRef,
        trashed_at: Option<Timestamp>,
        fence: Option<&Fence>,
    ) -> Result<(), StoreError> {
        let (session, fence) = (session.clone(), fence.cloned());
        self.writer
            .write(move |tx| {
                refuse_lost_lease(tx, &session.owner, fence.as_ref())?;
                let pk = find_in_trash(tx, &session)?;
                if let Some(expected) = trashed_at {
                    refuse_trashed_again(tx, &session, pk, expected)?;
                }
                tx.enable_secure_delete()?;
                // Before its entries are deleted, so that their positions are never reused.
                record_event(
                    tx,
                    &session.owner,
                    session.id.as_str(),
                    SessionEvent::Removed,
                )?;
                remove_rows(tx, pk)
            })
            .await
    }
}

fn find_in_trash(tx: &Tx<'_>, session: &SessionRef) -> Result<i64, StoreError> {
    match rows::find_session(tx.connection, session)? {
        None => Err(StoreError::NoSuchSession(session.id.clone())),
        Some(found) if !found.trashed => Err(StoreError::NotInTrash(session.id.clone())),
        Some(found) => Ok(found.pk),
    }
}

/// Refuses a session that was trashed at another time than the one the caller decided on.
fn refuse_trashed_again(
    tx: &Tx<'_>,
    session: &SessionRef,
    pk: i64,
    expected: Timestamp,
) -> Result<(), StoreError> {
    let trashed_at: i64 = tx
        .prepare_read("SELECT trashed_at FROM session WHERE pk = ?1")
        .and_then(|mut query| query.query_row([pk], |row| row.get(0)))
        .map_err(during("looking up a session in the trash"))?;
    if trashed_at == expected.as_microsecond() {
        return Ok(());
    }
    Err(StoreError::TrashedAgain {
        id: session.id.clone(),
        at: Timestamp::from_microsecond(trashed_at)
            .map_err(|error| damaged("a session's time in the trash cannot be decoded", error))?,
    })
}

/// Removes a session, and then any removed sessions that were retained only for it.
fn remove_rows(tx: &mut Tx<'_>, pk: i64) -> Result<(), StoreError> {
    tx.flush()?;
    execute_for(tx, "DELETE FROM session_tag WHERE session = ?1", pk)?;
    execute_for(tx, "DELETE FROM standing WHERE session = ?1", pk)?;
    execute_for(
        tx,
        "UPDATE session SET gone = 1, key = NULL, preview = '' WHERE pk = ?1",
        pk,
    )?;
    trim_removed(tx, pk)?;
    tx.evict_sessions();
    Ok(())
}

/// Deletes everything of a removed session that no fork shares, and its row if nothing is
/// shared.
///
/// While any of its entries are retained, so are those it inherits: a fork that shares its entries
/// shares the inherited ones too, and its own could not be verified without them.
fn trim_removed(tx: &mut Tx<'_>, pk: i64) -> Result<(), StoreError> {
    let failed = during("removing entries");
    let last_shared = last_shared_seq(tx.connection, pk)?.unwrap_or(Seq::ZERO);
    let end = delete_after(tx, pk, last_shared)?;
    tx.prepare_write("UPDATE session SET head = ?2, head_entry = ?3 WHERE pk = ?1")
        .and_then(|mut update| update.execute(params![pk, rows::seq_to_i64(end.head), end.entry]))
        .map_err(failed)?;
    tx.prepare_write("DELETE FROM snapshot WHERE session = ?1 AND seq > ?2")
        .and_then(|mut delete| delete.execute([pk, rows::seq_to_i64(last_shared)]))
        .map_err(failed)?;
    crate::blob::release_unreferenced(tx, pk)?;
    if last_shared == Seq::ZERO {
        let bases: Vec<i64> = tx
            .prepare_read(
                "SELECT DISTINCT base FROM inherits JOIN session ON session.pk = base
                 WHERE inherits.session = ?1 AND gone <> 0",
            )
            .and_then(|mut query| query.query_map([pk], |row| row.get(0))?.collect())
            .map_err(failed)?;
        for sql in [
            "DELETE FROM inherits WHERE session = ?1",
            "DELETE FROM snapshot WHERE session = ?1",
            "DELETE FROM birth WHERE session = ?1",
            "DELETE FROM session WHERE pk = ?1",
        ] {
            execute_for(tx, sql, pk)?;
        }
        for base in bases {
            // A base is always older than what shares it, so the recursion ends; it may be
            // deleted already, as a base of a base.
            trim_removed(tx, base)?;
        }
    }
    Ok(())
}

/// Deletes a session's own entries after `last_shared`; returns the new end of its log.
fn delete_after(tx: &mut Tx<'_>, pk: i64, last_shared: Seq) -> Result<LogEnd, StoreError> {
    let Some(mut end) = read::load_log_end(tx.connection, pk)? else {
        return Ok(LogEnd::EMPTY);
    };
    while end.head > last_shared {
        let link = match skip_list::seek(tx.connection, end, end.head) {
            Ok(link) if link.session == pk => link,
            // The remaining entries belong to another session, or the log is damaged and cannot
            // be followed.
            _ => break,
        };
        tx.prepare_write("DELETE FROM entry WHERE pk = ?1")
            .and_then(|mut delete| delete.execute([link.pk]))
            .map_err(during("removing entries"))?;
        tx.prepare_write("DELETE FROM token_count WHERE entry = ?1")
            .and_then(|mut delete| delete.execute([link.pk]))
            .map_err(during("removing token counts"))?;
        end = LogEnd {
            head: Seq(link.seq.0 - 1),
            entry: link.back,
        };
    }
    Ok(end)
}

fn execute_for(tx: &mut Tx<'_>, sql: &str, pk: i64) -> Result<(), StoreError> {
    tx.prepare_write(sql)
        .and_then(|mut statement| statement.execute([pk]))
        .map_err(during("removing a session"))?;
    Ok(())
}

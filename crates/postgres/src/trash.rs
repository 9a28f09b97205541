//! Moves sessions to the trash, restores them, and removes them permanently.
//!
//! When a session is removed, the entries that forks share stay in its log, which no
//! listing shows.

use futures_util::future::BoxFuture;
use throughline_model::{Owner, Seq, SessionRef, Timestamp};
use throughline_store::{Fence, SessionEvent, StoreError};

use crate::append::refuse_taken_key;
use crate::change_feed::PendingChanges;
use crate::error::Fault;
use crate::lease::refuse_lost_lease;
use crate::log::in_write_transaction;
use crate::open::PostgresStore;
use crate::retry::retry;
use crate::rows::{self, SessionRow};
use crate::tx::Tx;

impl PostgresStore {
    pub(crate) async fn trash_session(
        &self,
        session: &SessionRef,
        at: Timestamp,
        fence: Option<&Fence>,
    ) -> Result<(), StoreError> {
        let done = in_write_transaction!(self, &session.owner, |tx| trash(tx, session, at, fence)
            .await);
        self.inner.writer.notify_committed();
        done
    }

    pub(crate) async fn restore_session(&self, session: &SessionRef) -> Result<(), StoreError> {
        let done = retry(self.inner.time_limit, |attempt| {
            Box::pin(async move {
                let tx = self.begin_write(&session.owner).await?;
                let done = restore(&tx, session).await;
                match tx.finish(done).await {
                    Err(Fault::Store(StoreError::NotInTrash(_))) if attempt.may_be_committed => {
                        Ok(())
                    }
                    done => done,
                }
            })
        })
        .await;
        self.inner.writer.notify_committed();
        done
    }

    pub(crate) async fn remove_session(
        &self,
        session: &SessionRef,
        trashed_at: Option<Timestamp>,
        fence: Option<&Fence>,
    ) -> Result<(), StoreError> {
        let done = retry(self.inner.time_limit, |attempt| {
            Box::pin(async move {
                let tx = self.begin_write(&session.owner).await?;
                let done = remove(&tx, session, trashed_at, fence).await;
                match tx.finish(done).await {
                    Err(Fault::Store(StoreError::NoSuchSession(_))) if attempt.may_be_committed => {
                        Ok(())
                    }
                    done => done,
                }
            })
        })
        .await;
        self.inner.writer.notify_committed();
        done
    }
}

async fn trash(
    tx: &Tx,
    session: &SessionRef,
    at: Timestamp,
    fence: Option<&Fence>,
) -> Result<(), Fault> {
    let owner = &session.owner;
    refuse_lost_lease(tx, owner, fence).await?;
    let found = rows::lock_session(tx, session)
        .await?
        .ok_or_else(|| StoreError::NoSuchSession(session.id.clone()))?;
    if found.trashed {
        return Ok(());
    }
    set_trashed(tx, owner, found.log, Some(at)).await?;
    let mut notes = PendingChanges::default();
    notes.add(owner, &session.id, SessionEvent::Trashed);
    notes.write(tx).await
}

async fn restore(tx: &Tx, session: &SessionRef) -> Result<(), Fault> {
    let owner = &session.owner;
    let found = lock_in_trash(tx, session).await?;
    let header = rows::load_header(tx, owner, found.log).await?;
    refuse_taken_key(tx, owner, &header).await?;
    set_trashed(tx, owner, found.log, None).await?;
    let mut notes = PendingChanges::default();
    notes.add(owner, &session.id, SessionEvent::Restored);
    notes.write(tx).await
}

/// Moves a session to the trash or restores it.
async fn set_trashed(tx: &Tx, owner: &Owner, log: i64, at: Option<Timestamp>) -> Result<(), Fault> {
    let doing = match at {
        Some(_) => "moving a session to the trash",
        None => "restoring a session from the trash",
    };
    tx.execute(
        doing,
        "UPDATE throughline.session SET trashed_at = $3 WHERE owner = $1 AND log = $2",
        params![owner.as_str(), log, at.map(Timestamp::as_microsecond)],
    )
    .await?;
    tx.execute(
        doing,
        "UPDATE throughline.head SET trashed = $3, epoch = epoch + 1
         WHERE owner = $1 AND log = $2",
        params![owner.as_str(), log, at.is_some()],
    )
    .await?;
    Ok(())
}

async fn lock_in_trash(tx: &Tx, session: &SessionRef) -> Result<SessionRow, Fault> {
    match rows::lock_session(tx, session).await? {
        None => Err(StoreError::NoSuchSession(session.id.clone()).into()),
        Some(found) if !found.trashed => Err(StoreError::NotInTrash(session.id.clone()).into()),
        Some(found) => Ok(found),
    }
}

/// Refuses to remove a session that was trashed again since the caller looked.
async fn refuse_trashed_again(
    tx: &Tx,
    session: &SessionRef,
    found: &SessionRow,
    expected: Timestamp,
) -> Result<(), Fault> {
    let row = tx
        .query_opt(
            "looking up a session in the trash",
            "SELECT trashed_at FROM throughline.session WHERE owner = $1 AND log = $2",
            params![session.owner.as_str(), found.log],
        )
        .await?
        .ok_or_else(|| StoreError::NoSuchSession(session.id.clone()))?;
    let trashed_at: i64 = rows::get(&row, 0)?;
    if trashed_at == expected.as_microsecond() {
        return Ok(());
    }
    Err(Fault::Store(StoreError::TrashedAgain {
        id: session.id.clone(),
        at: rows::decode_time(trashed_at)?,
    }))
}

/// Removes a session, and then removed sessions that were retained only for it.
async fn remove(
    tx: &Tx,
    session: &SessionRef,
    trashed_at: Option<Timestamp>,
    fence: Option<&Fence>,
) -> Result<(), Fault> {
    let owner = &session.owner;
    let doing = "removing a session";
    refuse_lost_lease(tx, owner, fence).await?;
    rows::lock_owner(tx, owner).await?;
    let found = lock_in_trash(tx, session).await?;
    if let Some(expected) = trashed_at {
        refuse_trashed_again(tx, session, &found, expected).await?;
    }
    let mut notes = PendingChanges::default();
    notes.add(owner, &session.id, SessionEvent::Removed);
    notes.write(tx).await?;
    let of = params![owner.as_str(), found.log];
    tx.execute(
        doing,
        "INSERT INTO throughline.kept (owner, log, id, shared, head, birth)
         SELECT s.owner, s.log, s.id, s.shared, h.head, s.birth
         FROM throughline.session s JOIN throughline.head h
             ON h.owner = s.owner AND h.log = s.log
         WHERE s.owner = $1 AND s.log = $2",
        of,
    )
    .await?;
    for sql in [
        "DELETE FROM throughline.session_tag WHERE owner = $1 AND log = $2",
        "DELETE FROM throughline.standing WHERE owner = $1 AND log = $2",
        "DELETE FROM throughline.session WHERE owner = $1 AND log = $2",
        "DELETE FROM throughline.head WHERE owner = $1 AND log = $2",
    ] {
        tx.execute(doing, sql, of).await?;
    }
    trim_removed(tx, owner, found.log).await
}

/// Trims a removed session to the entries that others share; deletes it if there are none.
///
/// While any of it is retained, so are the entries that it shares itself: its forks share
/// those too, and its own entries could not be verified without them.
fn trim_removed<'a>(tx: &'a Tx, owner: &'a Owner, log: i64) -> BoxFuture<'a, Result<(), Fault>> {
    Box::pin(async move {
        let doing = "removing entries";
        // It may already be deleted, as a base of a base.
        let Some(found) = rows::find_log(tx, owner, log).await? else {
            return Ok(());
        };
        let of = params![owner.as_str(), log];
        let row = tx
            .query_opt(
                doing,
                "SELECT max(upto) FROM throughline.inherits WHERE owner = $1 AND base = $2",
                of,
            )
            .await?;
        let shared_upto: Option<i64> = row.map_or(Ok(None), |row| rows::get(&row, 0))?;
        let retained = shared_upto.map_or(Seq::ZERO, rows::seq_from_i64);
        let after = params![owner.as_str(), log, rows::seq_to_i64(retained)];
        for sql in [
            "DELETE FROM throughline.entry WHERE owner = $1 AND log = $2 AND seq > $3",
            "DELETE FROM throughline.token_count WHERE owner = $1 AND log = $2 AND seq > $3",
            "DELETE FROM throughline.snapshot WHERE owner = $1 AND log = $2 AND seq > $3",
            "UPDATE throughline.kept SET head = least(head, $3) WHERE owner = $1 AND log = $2",
        ] {
            tx.execute(doing, sql, after).await?;
        }
        crate::blob::release_unreferenced(tx, owner, &found.with_head(retained.min(found.head)))
            .await?;
        if retained > Seq::ZERO {
            return Ok(());
        }
        let bases = tx
            .query(
                doing,
                "SELECT DISTINCT i.base FROM throughline.inherits i
                 JOIN throughline.kept k ON k.owner = i.owner AND k.log = i.base
                 WHERE i.owner = $1 AND i.log = $2",
                of,
            )
            .await?;
        for sql in [
            "DELETE FROM throughline.inherits WHERE owner = $1 AND log = $2",
            "DELETE FROM throughline.snapshot WHERE owner = $1 AND log = $2",
            "DELETE FROM throughline.kept WHERE owner = $1 AND log = $2",
        ] {
            tx.execute(doing, sql, of).await?;
        }
        for row in &bases {
            // Terminates: a base is always older than the logs that share it.
            trim_removed(tx, owner, rows::get(row, 0)?).await?;
        }
        Ok(())
    })
}

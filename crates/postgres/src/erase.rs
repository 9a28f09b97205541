//! Erases the content of entries permanently.
//!
//! Copies in dead rows and in the write-ahead log remain until PostgreSQL vacuums and
//! recycles them: see docs/scale.md.

use std::collections::BTreeSet;

use throughline_model::{Owner, Seq, SessionId, SessionRef};
use throughline_store::{ReadRange, SessionEvent, StoreError, refuse_unknown_entries};

use crate::change_feed::PendingChanges;
use crate::error::{Fault, damaged};
use crate::log::in_write_transaction;
use crate::open::PostgresStore;
use crate::rebuild::rebuild_one;
use crate::tx::Tx;
use crate::{read, rows};

impl PostgresStore {
    pub(crate) async fn erase_entries(
        &self,
        of: &SessionRef,
        entries: &[Seq],
        reason: Option<&str>,
    ) -> Result<(), StoreError> {
        let done =
            in_write_transaction!(self, &of.owner, |tx| erase(tx, of, entries, reason).await);
        self.inner.writer.notify_committed();
        done
    }
}

async fn erase(
    tx: &Tx,
    of: &SessionRef,
    entries: &[Seq],
    reason: Option<&str>,
) -> Result<(), Fault> {
    let (owner, doing) = (&of.owner, "erasing entries");
    rows::lock_owner(tx, owner).await?;
    let found = rows::find_live_session(tx, of).await?;
    // Fork relations cannot change while the owner is locked.
    let homes: BTreeSet<i64> = entries.iter().map(|seq| found.log_holding(*seq)).collect();
    let concerned = find_affected_logs(tx, owner, found.log, &homes).await?;
    lock_heads(tx, owner, &concerned).await?;
    let found = rows::find_live_session(tx, of).await?;
    refuse_unknown_entries(&of.id, entries, found.head)?;
    let mut notes = PendingChanges::default();
    for seq in entries {
        let home = found.log_holding(*seq);
        for stored in read::read_page(tx, owner, &found, ReadRange::between(*seq, *seq, 1)).await? {
            let erased = stored
                .to_tombstone(reason)
                .map_err(|error| damaged("a tombstone cannot be encoded as JSON", error))?;
            let at = params![owner.as_str(), home, rows::seq_to_i64(*seq), erased.payload];
            tx.execute(
                doing,
                "UPDATE throughline.entry SET payload = $4
                 WHERE owner = $1 AND log = $2 AND seq = $3",
                at,
            )
            .await?;
            tx.execute(
                doing,
                "DELETE FROM throughline.token_count
                 WHERE owner = $1 AND log = $2 AND seq = $3",
                &at[..3],
            )
            .await?;
            notes.add(
                owner,
                &load_session_id(tx, owner, home).await?,
                SessionEvent::Erased(*seq),
            );
        }
    }
    notes.write(tx).await?;
    for home in &homes {
        if let Some(found) = rows::find_log(tx, owner, *home).await? {
            crate::blob::release_unreferenced(tx, owner, &found).await?;
        }
    }
    for log in concerned {
        rebuild_one(tx, owner, log).await?;
    }
    Ok(())
}

/// The logs whose records depend on entries of these logs: themselves and their forks.
async fn find_affected_logs(
    tx: &Tx,
    owner: &Owner,
    of: i64,
    homes: &BTreeSet<i64>,
) -> Result<BTreeSet<i64>, Fault> {
    let logs: Vec<i64> = homes.iter().copied().collect();
    let forks = tx
        .query(
            "reading forks",
            "SELECT DISTINCT log FROM throughline.inherits WHERE owner = $1 AND base = ANY ($2)",
            params![owner.as_str(), logs],
        )
        .await?;
    let mut concerned = homes.clone();
    concerned.insert(of);
    for row in &forks {
        concerned.insert(rows::get(row, 0)?);
    }
    Ok(concerned)
}

/// Locks the `head` rows of logs, in log order.
pub(crate) async fn lock_heads(tx: &Tx, owner: &Owner, logs: &BTreeSet<i64>) -> Result<(), Fault> {
    let logs: Vec<i64> = logs.iter().copied().collect();
    tx.execute(
        "locking sessions",
        "SELECT FROM throughline.head WHERE owner = $1 AND log = ANY ($2)
         ORDER BY owner, log FOR NO KEY UPDATE",
        params![owner.as_str(), logs],
    )
    .await?;
    Ok(())
}

async fn load_session_id(tx: &Tx, owner: &Owner, log: i64) -> Result<SessionId, Fault> {
    let found = rows::find_log(tx, owner, log).await?;
    let found = found.ok_or_else(|| StoreError::DamagedStore {
        what: format!("log {log} has no row"),
        source: None,
    })?;
    Ok(found.id)
}

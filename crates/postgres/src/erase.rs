//! Taking content out for good.
//!
//! What the database itself still holds of it, in rows not yet vacuumed and in its log of
//! changes, goes when the database cleans up: see docs/scale.md.

use std::collections::BTreeSet;

use throughline_model::{Owner, Seq, SessionId, SessionRef};
use throughline_store::{Event, Read, StoreError, refuse_unknown_entries};

use crate::error::{Fault, damaged};
use crate::feed::Notes;
use crate::log::writing;
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
        let done = writing!(self, &of.owner, |tx| erase(tx, of, entries, reason).await);
        self.shared.writer.woke();
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
    let found = rows::find_live(tx, of).await?;
    // How sessions hang together cannot change while the owner is locked.
    let homes: BTreeSet<i64> = entries.iter().map(|seq| found.home(*seq)).collect();
    let concerned = concerned(tx, owner, found.log, &homes).await?;
    lock(tx, owner, &concerned).await?;
    let found = rows::find_live(tx, of).await?;
    refuse_unknown_entries(&of.id, entries, found.head)?;
    let mut notes = Notes::default();
    for seq in entries {
        let home = found.home(*seq);
        for stored in read::page(tx, owner, &found, Read::between(*seq, *seq, 1)).await? {
            let erased = stored
                .erased(reason)
                .map_err(|error| damaged("a tombstone has no JSON", error))?;
            let at = params![owner.as_str(), home, rows::seq(*seq), erased.payload];
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
            notes.add(owner, &id_of(tx, owner, home).await?, Event::Erased(*seq));
        }
    }
    notes.write(tx).await?;
    for home in &homes {
        if let Some(found) = rows::find_log(tx, owner, *home).await? {
            crate::blob::release(tx, owner, &found).await?;
        }
    }
    for log in concerned {
        rebuild_one(tx, owner, log).await?;
    }
    Ok(())
}

/// The logs whose records follow from entries of these: they themselves and their forks.
async fn concerned(
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

/// Locks the heads of logs, in the order of their numbers.
pub(crate) async fn lock(tx: &Tx, owner: &Owner, logs: &BTreeSet<i64>) -> Result<(), Fault> {
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

async fn id_of(tx: &Tx, owner: &Owner, log: i64) -> Result<SessionId, Fault> {
    let found = rows::find_log(tx, owner, log).await?;
    let found = found.ok_or_else(|| StoreError::DamagedStore {
        what: format!("log {log} has no row"),
        source: None,
    })?;
    Ok(found.id)
}

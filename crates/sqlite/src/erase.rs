//! Erasing content for good.

use rusqlite::params;
use throughline_model::{Seq, SessionRef};
use throughline_store::{Event, Read, StoreError, refuse_unknown_entries};

use crate::error::{damaged, during};
use crate::feed::note;
use crate::open::SqliteStore;
use crate::read;
use crate::rebuild::rebuild_session;
use crate::tx::Tx;

impl SqliteStore {
    pub(crate) async fn erase_entries(
        &self,
        of: &SessionRef,
        entries: &[Seq],
        reason: Option<&str>,
    ) -> Result<(), StoreError> {
        let (of, entries) = (of.clone(), entries.to_vec());
        let reason = reason.map(ToOwned::to_owned);
        self.writer
            .write(move |tx| erase(tx, &of, &entries, reason.as_deref()))
            .await
    }
}

fn erase(
    tx: &mut Tx<'_>,
    of: &SessionRef,
    entries: &[Seq],
    reason: Option<&str>,
) -> Result<(), StoreError> {
    let failed = during("erasing entries");
    let end = tx.live(of)?.anchors.end();
    refuse_unknown_entries(&of.id, entries, end.head)?;
    tx.flush()?;
    tx.overwrite()?;
    let mut owners = Vec::new();
    for seq in entries {
        for placed in read::page(tx.connection, end, Read::between(*seq, *seq, 1))? {
            let erased = placed
                .stored
                .erased(reason)
                .map_err(|error| damaged("a tombstone has no JSON", error))?;
            tx.change("UPDATE entry SET payload = ?2 WHERE pk = ?1")
                .and_then(|mut update| update.execute(params![placed.link.pk, erased.payload]))
                .map_err(failed)?;
            tx.change("DELETE FROM token_count WHERE entry = ?1")
                .and_then(|mut delete| delete.execute([placed.link.pk]))
                .map_err(failed)?;
            let home: String = tx
                .query("SELECT id FROM session WHERE pk = ?1")
                .and_then(|mut query| query.query_row([placed.link.session], |row| row.get(0)))
                .map_err(failed)?;
            note(tx, &of.owner, &home, Event::Erased(*seq))?;
            owners.push(placed.link.session);
        }
    }
    owners.sort_unstable();
    owners.dedup();
    for owner in owners {
        crate::blob::release(tx, owner)?;
        rebuild_session(tx, owner)?;
    }
    tx.forget_all();
    Ok(())
}

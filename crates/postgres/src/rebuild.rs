//! Rebuilds everything derived from the logs.

use throughline_model::{Owner, Record};

use crate::append::{is_snapshot_due, record_blob_uses, write_snapshot};
use crate::error::Fault;
use crate::rows::{self, SessionRow};
use crate::tx::Tx;
use crate::{blob, read};

/// Rebuilds everything derived from one log.
///
/// Changes nothing if the log is damaged: the derived rows may be the only trace of what
/// was lost.
pub(crate) async fn rebuild_one(tx: &Tx, owner: &Owner, log: i64) -> Result<(), Fault> {
    let Some(found) = rows::find_log(tx, owner, log).await? else {
        return Ok(());
    };
    let mut record = Record::new(&rows::load_header(tx, owner, log).await?);
    let mut snapshots = Vec::new();
    let shared = found.shared;
    read::fold_to(tx, owner, &mut record, &found, |record| {
        let head = record.info.head;
        if (head > shared && is_snapshot_due(head)) || head == shared {
            snapshots.push(record.clone());
        }
    })
    .await?;
    tx.execute(
        "rebuilding a session",
        "DELETE FROM throughline.snapshot WHERE owner = $1 AND log = $2",
        params![owner.as_str(), log],
    )
    .await?;
    for record in &snapshots {
        write_snapshot(tx, owner, log, record).await?;
    }
    // A removed session has no rows for these.
    if is_in_use(tx, owner, log).await? {
        rows::write_record(tx, owner, log, &record).await?;
        rebuild_blob_uses(tx, owner, &found).await?;
    }
    Ok(())
}

async fn is_in_use(tx: &Tx, owner: &Owner, log: i64) -> Result<bool, Fault> {
    let row = tx
        .query_opt(
            "looking up a log",
            "SELECT FROM throughline.session WHERE owner = $1 AND log = $2",
            params![owner.as_str(), log],
        )
        .await?;
    Ok(row.is_some())
}

async fn rebuild_blob_uses(tx: &Tx, owner: &Owner, found: &SessionRow) -> Result<(), Fault> {
    let doing = "rebuilding attachment references";
    let named = blob::load_referenced(tx, owner, found).await?;
    let digests: Vec<&[u8]> = named.iter().map(|d| d.as_bytes().as_slice()).collect();
    tx.execute(
        doing,
        "DELETE FROM throughline.blob_use
         WHERE owner = $1 AND log = $2 AND digest <> ALL ($3)",
        params![owner.as_str(), found.log, digests],
    )
    .await?;
    let rows = tx
        .query(
            doing,
            "SELECT digest FROM throughline.blob
             WHERE owner = $1 AND digest = ANY ($2) FOR KEY SHARE",
            params![owner.as_str(), digests],
        )
        .await?;
    let here = rows
        .iter()
        .map(|row| rows::decode_digest(rows::get(row, 0)?))
        .collect::<Result<Vec<_>, _>>()?;
    record_blob_uses(tx, owner, found.log, &here).await
}

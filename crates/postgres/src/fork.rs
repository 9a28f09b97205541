//! Forks: a row, a few references, and no copying.

use throughline_model::{Birth, Digest, Entry, Lineage, Owner, Record, Seq, SessionId, SessionRef};
use throughline_store::{How, Prepared, Settled, StoreError, settle};

use crate::append::{self, NewRows, insert_session, place, refuse_taken_key, write_snapshot};
use crate::error::Fault;
use crate::feed::{Event, Notes};
use crate::open::PostgresStore;
use crate::patience::patiently;
use crate::rows::{self, Found};
use crate::tx::Tx;
use crate::{lease, read};

impl PostgresStore {
    pub(crate) async fn fork_session(
        &self,
        of: &SessionRef,
        at: Seq,
        birth: &Birth,
    ) -> Result<Record, StoreError> {
        let record = patiently(self.shared.patience, |_| {
            Box::pin(async move {
                let tx = self.write(&of.owner).await?;
                let forking = async {
                    rows::lock_owner(&tx, &of.owner).await?;
                    let mut notes = Notes::default();
                    let record = fork(&tx, of, at, birth.clone(), &mut notes).await?;
                    notes.write(&tx).await?;
                    Ok(record)
                };
                let done = forking.await;
                tx.finish(done).await
            })
        })
        .await?;
        self.shared.writer.woke();
        Ok(record)
    }
}

/// Makes a fork of `of` at `at`. The owner is locked.
async fn fork(
    tx: &Tx,
    of: &SessionRef,
    at: Seq,
    mut birth: Birth,
    notes: &mut Notes,
) -> Result<Record, Fault> {
    let owner = &of.owner;
    let found = rows::lock_live(tx, of).await?;
    if at > found.head {
        return Err(StoreError::NoSuchEntry {
            id: of.id.clone(),
            seq: at,
            head: found.head,
        }
        .into());
    }
    birth.lineage = Lineage::Forked {
        session: of.id.clone(),
        at,
    };
    let record = if at == found.head {
        rows::record(tx, owner, found.log).await?
    } else if at == Seq::ZERO {
        // Nothing is shared: the fork starts as its origin did.
        Record::new(&rows::birth(tx, owner, found.log).await?)
    } else {
        record_at(tx, owner, &found, at).await?
    };
    let (birth, record) = record.fork(birth);

    let session = owner.session(&birth.id);
    if let Some(there) = rows::find(tx, &session).await? {
        if !there.trashed && rows::birth(tx, owner, there.log).await? == birth {
            return rows::record(tx, owner, there.log).await;
        }
        return Err(StoreError::SessionExists(birth.id).into());
    }
    refuse_taken_key(tx, owner, &birth).await?;
    let fork = insert_session(tx, owner, &birth, at, &record).await?;
    notes.add(owner, &birth.id, Event::Created);
    if at > Seq::ZERO {
        note_shared(tx, owner, fork, &found, at).await?;
    }
    write_snapshot(tx, owner, fork, &record).await?;
    Ok(record)
}

/// Notes whose entries a fork shares: those its origin shares before the fork, and then
/// those of the log that the last shared entry is in.
async fn note_shared(
    tx: &Tx,
    owner: &Owner,
    fork: i64,
    origin: &Found,
    at: Seq,
) -> Result<(), Fault> {
    tx.execute(
        "noting what a fork shares",
        "INSERT INTO throughline.inherits (owner, log, upto, base)
         SELECT owner, $2::bigint, upto, base FROM throughline.inherits
         WHERE owner = $1 AND log = $3 AND upto < $4
         UNION ALL SELECT $1::text, $2::bigint, $4::bigint, $5::bigint",
        params![
            owner.as_str(),
            fork,
            origin.log,
            rows::seq(at),
            origin.home(at)
        ],
    )
    .await?;
    Ok(())
}

/// The record of the log that an entry is in, as it was at that entry: the nearest one
/// kept, and the few entries after it.
async fn record_at(tx: &Tx, owner: &Owner, found: &Found, at: Seq) -> Result<Record, Fault> {
    let home = found.home(at);
    let row = tx
        .optional(
            "finding a record",
            "SELECT json FROM throughline.snapshot
             WHERE owner = $1 AND log = $2 AND seq <= $3 ORDER BY seq DESC LIMIT 1",
            params![owner.as_str(), home, rows::seq(at)],
        )
        .await?;
    let mut record = match row {
        None => Record::new(&rows::birth(tx, owner, home).await?),
        Some(row) => rows::record_from(rows::get(&row, 0)?)?,
    };
    read::fold_to(tx, owner, &mut record, &found.upto(at), |_| ()).await?;
    Ok(record)
}

/// What became of an append to a fork: where its entries are placed, or the entries
/// themselves where they were there already.
pub(crate) type Late = (
    SessionId,
    How,
    Result<(Option<Seq>, Vec<(Seq, Digest)>), Vec<Entry>>,
);

/// Puts an append that came late into a fork, which is made if it is not there.
pub(crate) async fn append_to_fork(
    tx: &Tx,
    of: &SessionRef,
    at: Seq,
    birth: &Birth,
    fork_ref: &SessionRef,
    prepared: &Prepared,
) -> Result<Late, Fault> {
    let owner = &of.owner;
    rows::lock_owner(tx, owner).await?;
    append::hold_blobs(tx, owner, &prepared.attachments).await?;
    let mut notes = Notes::default();
    if rows::find(tx, fork_ref).await?.is_none() {
        fork(tx, of, at, birth.clone(), &mut notes).await?;
    }
    let found = rows::lock_live(tx, fork_ref).await?;
    let ids: Vec<_> = prepared.append.entries.iter().map(|new| new.id).collect();
    let there = append::locate(tx, owner, &found, &ids).await?;
    let mut record = rows::record(tx, owner, found.log).await?;
    let session = fork_ref.id.clone();
    let holds = lease::holds(tx, owner, prepared.append.fence.as_ref()).await?;
    match settle(&session, record.card.head, &prepared.append, &there, holds)? {
        Settled::Repeat(start) => {
            let entries = read::decoded(tx, owner, &found, start, ids.len()).await?;
            Ok((session, How::Repeated, Err(entries)))
        }
        Settled::Append { rebased } => {
            let (mut new_rows, mut kept) = (NewRows::default(), Vec::new());
            let places = place(
                owner,
                found.log,
                &mut record,
                prepared,
                rebased,
                &mut new_rows,
                &mut kept,
            )?;
            let positions = notes.positions(tx, new_rows.len()).await?;
            new_rows.write(tx, &positions).await?;
            rows::write_card(tx, owner, found.log, &record).await?;
            for record in &kept {
                write_snapshot(tx, owner, found.log, record).await?;
            }
            append::use_blobs(tx, owner, found.log, &prepared.attachments).await?;
            Ok((session, How::Forked, Ok((rebased, places))))
        }
        Settled::Fork(_) => Err(StoreError::Unsupported("fork without a birth").into()),
    }
}

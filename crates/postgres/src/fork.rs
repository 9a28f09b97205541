//! Creates forks: one session row and a few references; no entries are copied.

use throughline_model::{
    Digest, Entry, Lineage, Owner, Record, Seq, SessionHeader, SessionId, SessionRef,
};
use throughline_store::{
    AppendDecision, AppendKind, PreparedAppend, SessionEvent, StoreError, decide_append,
};

use crate::append::{
    self, EntryRows, chain_entries, insert_session, refuse_taken_key, write_snapshot,
};
use crate::change_feed::PendingChanges;
use crate::error::Fault;
use crate::open::PostgresStore;
use crate::retry::retry;
use crate::rows::{self, SessionRow};
use crate::tx::Tx;
use crate::{lease, read};

impl PostgresStore {
    pub(crate) async fn fork_session(
        &self,
        of: &SessionRef,
        at: Seq,
        header: &SessionHeader,
    ) -> Result<Record, StoreError> {
        let record = retry(self.inner.time_limit, |_| {
            Box::pin(async move {
                let tx = self.begin_write(&of.owner).await?;
                let forking = async {
                    rows::lock_owner(&tx, &of.owner).await?;
                    let mut notes = PendingChanges::default();
                    let record = fork(&tx, of, at, header.clone(), &mut notes).await?;
                    notes.write(&tx).await?;
                    Ok(record)
                };
                let done = forking.await;
                tx.finish(done).await
            })
        })
        .await?;
        self.inner.writer.notify_committed();
        Ok(record)
    }
}

/// Creates a fork of `of` at `at`. The caller holds the owner's lock.
async fn fork(
    tx: &Tx,
    of: &SessionRef,
    at: Seq,
    mut header: SessionHeader,
    notes: &mut PendingChanges,
) -> Result<Record, Fault> {
    let owner = &of.owner;
    let found = rows::lock_live_session(tx, of).await?;
    if at > found.head {
        return Err(StoreError::NoSuchEntry {
            id: of.id.clone(),
            seq: at,
            head: found.head,
        }
        .into());
    }
    header.lineage = Lineage::Forked {
        session: of.id.clone(),
        at,
    };
    let record = if at == found.head {
        rows::load_record(tx, owner, found.log).await?
    } else if at == Seq::ZERO {
        // Nothing is shared: the fork starts as its origin did.
        Record::new(&rows::load_header(tx, owner, found.log).await?)
    } else {
        load_record_at(tx, owner, &found, at).await?
    };
    let (header, record) = record.fork(header);

    let session = owner.session(&header.id);
    if let Some(existing) = rows::find_session(tx, &session).await? {
        if !existing.trashed && rows::load_header(tx, owner, existing.log).await? == header {
            return rows::load_record(tx, owner, existing.log).await;
        }
        return Err(StoreError::SessionExists(header.id).into());
    }
    refuse_taken_key(tx, owner, &header).await?;
    let fork = insert_session(tx, owner, &header, at, &record).await?;
    notes.add(owner, &header.id, SessionEvent::Created);
    if at > Seq::ZERO {
        record_inherited(tx, owner, fork, &found, at).await?;
    }
    write_snapshot(tx, owner, fork, &record).await?;
    Ok(record)
}

/// Records which logs a fork shares entries of: those that its origin shares before the
/// fork point, then the log that holds the last shared entry.
async fn record_inherited(
    tx: &Tx,
    owner: &Owner,
    fork: i64,
    origin: &SessionRow,
    at: Seq,
) -> Result<(), Fault> {
    tx.execute(
        "recording what a fork shares",
        "INSERT INTO throughline.inherits (owner, log, upto, base)
         SELECT owner, $2::bigint, upto, base FROM throughline.inherits
         WHERE owner = $1 AND log = $3 AND upto < $4
         UNION ALL SELECT $1::text, $2::bigint, $4::bigint, $5::bigint",
        params![
            owner.as_str(),
            fork,
            origin.log,
            rows::seq_to_i64(at),
            origin.log_holding(at)
        ],
    )
    .await?;
    Ok(())
}

/// The record of a log as of an entry: the nearest snapshot, and the few entries after it.
async fn load_record_at(
    tx: &Tx,
    owner: &Owner,
    found: &SessionRow,
    at: Seq,
) -> Result<Record, Fault> {
    let home = found.log_holding(at);
    let row = tx
        .query_opt(
            "finding a snapshot",
            "SELECT json FROM throughline.snapshot
             WHERE owner = $1 AND log = $2 AND seq <= $3 ORDER BY seq DESC LIMIT 1",
            params![owner.as_str(), home, rows::seq_to_i64(at)],
        )
        .await?;
    let mut record = match row {
        None => Record::new(&rows::load_header(tx, owner, home).await?),
        Some(row) => rows::decode_record(rows::get(&row, 0)?)?,
    };
    read::fold_to(tx, owner, &mut record, &found.with_head(at), |_| ()).await?;
    Ok(record)
}

/// The outcome of an append to a fork: the numbers and digests assigned, or the entries
/// themselves if they were already stored.
pub(crate) type ForkAppendOutcome = (
    SessionId,
    AppendKind,
    Result<(Option<Seq>, Vec<(Seq, Digest)>), Vec<Entry>>,
);

/// Appends to a fork, which is created if it does not exist.
pub(crate) async fn append_to_fork(
    tx: &Tx,
    of: &SessionRef,
    at: Seq,
    header: &SessionHeader,
    fork_ref: &SessionRef,
    prepared: &PreparedAppend,
) -> Result<ForkAppendOutcome, Fault> {
    let owner = &of.owner;
    rows::lock_owner(tx, owner).await?;
    append::lock_blobs(tx, owner, &prepared.attachments).await?;
    let mut notes = PendingChanges::default();
    if rows::find_session(tx, fork_ref).await?.is_none() {
        fork(tx, of, at, header.clone(), &mut notes).await?;
    }
    let found = rows::lock_live_session(tx, fork_ref).await?;
    let ids: Vec<_> = prepared.append.entries.iter().map(|new| new.id).collect();
    let existing = append::locate_entries(tx, owner, &found, &ids).await?;
    let mut record = rows::load_record(tx, owner, found.log).await?;
    let session = fork_ref.id.clone();
    let holds = lease::holds_lease(tx, owner, prepared.append.fence.as_ref()).await?;
    match decide_append(
        &session,
        record.info.head,
        &prepared.append,
        &existing,
        holds,
    )? {
        AppendDecision::Repeat(start) => {
            let entries = read::read_decoded(tx, owner, &found, start, ids.len()).await?;
            Ok((session, AppendKind::Repeated, Err(entries)))
        }
        AppendDecision::Append { rebased } => {
            let (mut new_rows, mut snapshots) = (EntryRows::default(), Vec::new());
            let assigned = chain_entries(
                owner,
                found.log,
                &mut record,
                prepared,
                rebased,
                &mut new_rows,
                &mut snapshots,
            )?;
            let positions = notes.write_and_take_positions(tx, new_rows.len()).await?;
            new_rows.write(tx, &positions).await?;
            rows::write_record(tx, owner, found.log, &record).await?;
            for record in &snapshots {
                write_snapshot(tx, owner, found.log, record).await?;
            }
            append::record_blob_uses(tx, owner, found.log, &prepared.attachments).await?;
            Ok((session, AppendKind::Forked, Ok((rebased, assigned))))
        }
        AppendDecision::Fork(_) => Err(StoreError::Unsupported("fork without a header").into()),
    }
}

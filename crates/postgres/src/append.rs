//! Creates sessions and appends entries to them.
//!
//! Appends of one process go through the writer (`writer.rs`), which uses the row types and
//! helpers here. An append that has to become a fork runs in its own transaction.

use std::ops::Range;
use std::sync::Arc;

use deadpool_postgres::Object;
use throughline_model::{
    Digest, EntryId, Owner, Record, Seq, SessionHeader, SessionId, SessionRef, StoredEntry,
    truncate_to_micros,
};
use throughline_store::{
    Append, AppendKind, AppendOutcome, CreateOutcome, OnConflict, PreparedAppend, SessionEvent,
    StoreError, encode_entry,
};
use tokio_postgres::Statement;
use tokio_postgres::types::ToSql;

use crate::change_feed::PendingChanges;
use crate::error::{Fault, during};
use crate::open::PostgresStore;
use crate::read;
use crate::retry::retry;
use crate::rows::{self, HeadColumns, SessionColumns, SessionRow};
use crate::tx::{Params, Tx};

/// A record snapshot is stored every this many entries, so that forking at any entry folds
/// at most this many.
const SNAPSHOT_EVERY: u64 = 1_024;

/// Approximate limit on the payload bytes sent in one statement.
const MAX_STATEMENT_BYTES: usize = 32 * 1024 * 1024;

/// The writer's reply to one append. It leaves out the entries' content, which the caller
/// still has.
#[derive(Debug)]
pub(crate) enum WriterReply {
    /// The entries were stored by an earlier attempt, starting at `start`.
    AlreadyStored { start: Seq, kind: AppendKind },
    /// The entries were appended.
    Written {
        rebased: Option<Seq>,
        kind: AppendKind,
        assigned: Vec<(Seq, Digest)>,
    },
    /// The entries belong in a fork at this entry. The writer does not create forks; the
    /// caller does.
    NeedsFork(Seq),
}

/// Entry rows to insert, column by column; each goes to the end of its log.
#[derive(Debug, Default)]
pub(crate) struct EntryRows {
    owners: Vec<String>,
    logs: Vec<i64>,
    seqs: Vec<i64>,
    ids: Vec<uuid::Uuid>,
    ats: Vec<i64>,
    digests: Vec<Vec<u8>>,
    payloads: Vec<String>,
}

impl EntryRows {
    pub(crate) fn push(&mut self, owner: &Owner, log: i64, stored: StoredEntry) {
        self.owners.push(owner.as_str().to_owned());
        self.logs.push(log);
        self.seqs.push(rows::seq_to_i64(stored.seq));
        self.ids.push(rows::entry_id_to_uuid(stored.id));
        self.ats.push(stored.at.as_microsecond());
        self.digests.push(stored.digest.as_bytes().to_vec());
        self.payloads.push(stored.payload);
    }

    pub(crate) fn len(&self) -> usize {
        self.logs.len()
    }

    /// Splits the rows into ranges small enough for one statement each.
    pub(crate) fn chunks(&self) -> Vec<Range<usize>> {
        let mut chunks = Vec::new();
        let (mut from, mut bytes) = (0, 0);
        for (index, payload) in self.payloads.iter().enumerate() {
            if bytes >= MAX_STATEMENT_BYTES {
                chunks.push(from..index);
                (from, bytes) = (index, 0);
            }
            bytes += payload.len();
        }
        if from < self.len() {
            chunks.push(from..self.len());
        }
        chunks
    }

    /// Inserts one chunk of the rows at the given feed positions. The statement is sent on
    /// the first poll, so that callers can pipeline others behind it.
    pub(crate) async fn write_chunk(
        &self,
        client: &Object,
        insert: &Statement,
        chunk: Range<usize>,
        positions: &[i64],
    ) -> Result<(), Fault> {
        let values: Params<'_> = params![
            &self.owners[chunk.clone()],
            &self.logs[chunk.clone()],
            &self.seqs[chunk.clone()],
            &self.ids[chunk.clone()],
            &self.ats[chunk.clone()],
            &self.digests[chunk.clone()],
            &positions[chunk.clone()],
            &self.payloads[chunk.clone()]
        ];
        let sending = client.execute(insert, values);
        sending.await.map_err(during("appending"))?;
        Ok(())
    }

    /// The id, time and payload of the only row, as statement parameters; `None` unless
    /// there is exactly one row. Its log, number and digest are sent with the head, which
    /// it becomes.
    pub(crate) fn single_params(&self) -> Option<[&(dyn ToSql + Sync); 3]> {
        match (&self.ids[..], &self.ats[..], &self.payloads[..]) {
            ([id], [at], [payload]) => Some([id, at, payload]),
            _ => None,
        }
    }

    /// All rows as statement parameters, without positions.
    pub(crate) fn params(&self) -> [&(dyn ToSql + Sync); 7] {
        [
            &self.owners,
            &self.logs,
            &self.seqs,
            &self.ids,
            &self.ats,
            &self.digests,
            &self.payloads,
        ]
    }

    /// Inserts all rows at the given feed positions.
    pub(crate) async fn write(&self, tx: &Tx, positions: &[i64]) -> Result<(), Fault> {
        tx.wait_until_open().await?;
        let client = tx.client()?;
        let insert = client.prepare_cached(INSERT_ENTRIES).await;
        let insert = insert.map_err(during("appending"))?;
        for chunk in self.chunks() {
            self.write_chunk(client, &insert, chunk, positions).await?;
        }
        Ok(())
    }
}

pub(crate) const INSERT_ENTRIES: &str = "INSERT INTO throughline.entry
        (owner, log, seq, id, at, digest, position, payload)
    SELECT * FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::uuid[], $5::bigint[],
        $6::bytea[], $7::bigint[], $8::text[])";

/// Numbers and hashes the entries of an append after the record's head.
///
/// Adds the rows to `new_rows`, applies the entries to `record`, adds the snapshots that
/// are due, and returns the number and digest of each entry.
pub(crate) fn chain_entries(
    owner: &Owner,
    log: i64,
    record: &mut Record,
    prepared: &PreparedAppend,
    rebased: Option<Seq>,
    new_rows: &mut EntryRows,
    snapshots: &mut Vec<Record>,
) -> Result<Vec<(Seq, Digest)>, StoreError> {
    let mut assigned = Vec::with_capacity(prepared.append.entries.len());
    for (new, (payload, hash)) in prepared.append.entries.iter().zip(&prepared.payloads) {
        let (payload, hash) = match rebased {
            None => (payload.clone(), *hash),
            Some(_) => encode_entry(new, rebased)?,
        };
        let (seq, at) = (record.info.head.next(), truncate_to_micros(new.at));
        let stored =
            StoredEntry::from_payload(&record.info.digest, seq, new.id, at, payload, &hash);
        let digest = stored.digest;
        record.apply_body(seq, at, digest, &new.body);
        new_rows.push(owner, log, stored);
        assigned.push((seq, digest));
        if is_snapshot_due(seq) {
            snapshots.push(record.clone());
        }
    }
    Ok(assigned)
}

/// Whether a record snapshot is stored at this entry.
pub(crate) fn is_snapshot_due(seq: Seq) -> bool {
    seq.0.is_multiple_of(SNAPSHOT_EVERY)
}

/// Stores a snapshot of a record at its head.
pub(crate) async fn write_snapshot(
    tx: &Tx,
    owner: &Owner,
    log: i64,
    record: &Record,
) -> Result<(), Fault> {
    tx.execute(
        "storing a record snapshot",
        "INSERT INTO throughline.snapshot (owner, log, seq, json) VALUES ($1, $2, $3, $4)
         ON CONFLICT (owner, log, seq) DO UPDATE SET json = excluded.json",
        params![
            owner.as_str(),
            log,
            rows::seq_to_i64(record.info.head),
            rows::to_json(record)?
        ],
    )
    .await?;
    Ok(())
}

impl PostgresStore {
    pub(crate) async fn create_session(
        &self,
        owner: &Owner,
        header: &SessionHeader,
    ) -> Result<CreateOutcome, StoreError> {
        retry(self.inner.time_limit, |attempt| {
            Box::pin(async move {
                let tx = self.begin_write(owner).await?;
                let done = create(&tx, owner, header).await;
                let mut created = tx.finish(done).await?;
                if attempt.may_be_committed && created.record.info.head == Seq::ZERO {
                    // Most likely created by our own first attempt.
                    created.existed = false;
                }
                Ok(created)
            })
        })
        .await
    }

    pub(crate) async fn append_entries(
        &self,
        to: &SessionRef,
        new: Append,
    ) -> Result<AppendOutcome, StoreError> {
        let prepared = Arc::new(PreparedAppend::new(new)?);
        let answer = self.inner.writer.append(to, &prepared).await?;
        match answer {
            WriterReply::NeedsFork(at) => self.append_to_fork(to, at, &prepared).await,
            WriterReply::AlreadyStored { start, kind } => {
                let count = prepared.append.entries.len();
                self.read_repeated_append(to, start, count, kind).await
            }
            WriterReply::Written {
                rebased,
                kind,
                assigned,
            } => Ok(AppendOutcome {
                session: to.id.clone(),
                entries: prepared.complete(&to.id, rebased, assigned)?,
                kind,
            }),
        }
    }

    /// Reads back the entries of an append that was stored earlier.
    async fn read_repeated_append(
        &self,
        to: &SessionRef,
        start: Seq,
        count: usize,
        kind: AppendKind,
    ) -> Result<AppendOutcome, StoreError> {
        let entries = retry(self.inner.time_limit, |_| {
            Box::pin(async move {
                let tx = self.begin_read(&to.owner).await?;
                let reading = async {
                    let found = rows::find_live_session(&tx, to).await?;
                    read::read_decoded(&tx, &to.owner, &found, start, count).await
                };
                let done = reading.await;
                tx.finish(done).await
            })
        })
        .await?;
        Ok(AppendOutcome {
            session: to.id.clone(),
            entries,
            kind,
        })
    }

    /// Appends to a fork instead of to a session that has moved on; creates the fork if
    /// needed.
    async fn append_to_fork(
        &self,
        of: &SessionRef,
        at: Seq,
        prepared: &Arc<PreparedAppend>,
    ) -> Result<AppendOutcome, StoreError> {
        let OnConflict::Fork(header) = &prepared.append.on_conflict else {
            return Err(StoreError::Unsupported("fork without a header"));
        };
        let fork = of.owner.session(&header.id);
        let into = Arc::new(prepared.to_fork());
        let into = &into;
        let (session, kind, entries) = retry(self.inner.time_limit, |_| {
            let fork = fork.clone();
            Box::pin(async move {
                let tx = self.begin_write(&of.owner).await?;
                let done = crate::fork::append_to_fork(&tx, of, at, header, &fork, into).await;
                tx.finish(done).await
            })
        })
        .await?;
        let entries = match entries {
            Ok((rebased, assigned)) => Arc::clone(into).complete(&session, rebased, assigned)?,
            Err(entries) => entries,
        };
        self.inner.writer.notify_committed();
        Ok(AppendOutcome {
            session,
            entries,
            kind,
        })
    }
}

async fn create(tx: &Tx, owner: &Owner, header: &SessionHeader) -> Result<CreateOutcome, Fault> {
    let existing = |record| CreateOutcome {
        record,
        existed: true,
    };
    if let Some(holder) = find_key_holder(tx, owner, header).await? {
        let found = rows::find_live_session(tx, &holder).await?;
        tx.sync_on_commit().await?;
        return Ok(existing(rows::load_record(tx, owner, found.log).await?));
    }
    if let Some(found) = rows::find_session(tx, &owner.session(&header.id)).await? {
        if !found.trashed && rows::load_header(tx, owner, found.log).await? == *header {
            tx.sync_on_commit().await?;
            return Ok(existing(rows::load_record(tx, owner, found.log).await?));
        }
        return Err(StoreError::SessionExists(header.id.clone()).into());
    }
    let record = Record::new(header);
    insert_session(tx, owner, header, Seq::ZERO, &record).await?;
    let mut notes = PendingChanges::default();
    notes.add(owner, &header.id, SessionEvent::Created);
    notes.write(tx).await?;
    Ok(CreateOutcome {
        record,
        existed: false,
    })
}

/// Finds the live session that has the header's key, if the header has one.
pub(crate) async fn find_key_holder(
    tx: &Tx,
    owner: &Owner,
    header: &SessionHeader,
) -> Result<Option<SessionRef>, Fault> {
    let Some(key) = &header.key else {
        return Ok(None);
    };
    let row = tx
        .query_opt(
            "looking up a key",
            "SELECT id FROM throughline.session
             WHERE owner = $1 AND key = $2 AND trashed_at IS NULL",
            params![owner.as_str(), key.as_str()],
        )
        .await?;
    let id = row
        .map(|row| rows::parse_column::<SessionId>(&row, 0))
        .transpose()?;
    Ok(id.map(|id| owner.session(&id)))
}

/// Refuses a header whose key belongs to another session.
pub(crate) async fn refuse_taken_key(
    tx: &Tx,
    owner: &Owner,
    header: &SessionHeader,
) -> Result<(), Fault> {
    match (find_key_holder(tx, owner, header).await?, &header.key) {
        (Some(holder), Some(key)) => Err(StoreError::KeyTaken {
            key: key.clone(),
            held_by: holder.id,
        }
        .into()),
        _ => Ok(()),
    }
}

/// Inserts the rows of a session that shares its first `shared` entries; returns its log
/// number.
pub(crate) async fn insert_session(
    tx: &Tx,
    owner: &Owner,
    header: &SessionHeader,
    shared: Seq,
    record: &Record,
) -> Result<i64, Fault> {
    let doing = "creating a session";
    rows::ensure_owner(tx, owner).await?;
    let columns = SessionColumns::of(&record.info)?;
    let parent = header.lineage.parent().map(SessionId::as_str);
    let key = header.key.as_ref().map(throughline_model::Key::as_str);
    let row = tx
        .query_opt(
            doing,
            "INSERT INTO throughline.session (owner, log, id, key, parent, shared, birth, card,
                 status, name, project, agent)
             VALUES ($1, nextval('throughline.log_number'), $2, $3, $4, $5, $6, $7, $8, $9,
                 $10, $11)
             RETURNING log",
            params![
                owner.as_str(),
                header.id.as_str(),
                key,
                parent,
                rows::seq_to_i64(shared),
                rows::to_json(header)?,
                columns.card,
                columns.status,
                columns.name,
                columns.project,
                columns.agent
            ],
        )
        .await?
        .ok_or(StoreError::Closed)?;
    let log: i64 = rows::get(&row, 0)?;
    let counts = HeadColumns::of(&record.info)?;
    tx.execute(
        doing,
        "INSERT INTO throughline.head (owner, log, id, head, digest, last_activity, messages,
             queries, latest)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
        params![
            owner.as_str(),
            log,
            header.id.as_str(),
            counts.head,
            counts.digest,
            counts.last_activity,
            counts.messages,
            counts.queries,
            counts.latest
        ],
    )
    .await?;
    // A fork inherits tags and session state that have no rows of their own yet.
    if !record.info.tags.is_empty() {
        rows::write_tags(tx, owner, log, &record.info.tags).await?;
    }
    if record.state != throughline_model::SessionState::default() {
        rows::write_state(tx, owner, log, &record.state).await?;
    }
    Ok(log)
}

/// Finds the number of each entry id in the session's own part of the log.
pub(crate) async fn locate_entries(
    tx: &Tx,
    owner: &Owner,
    found: &SessionRow,
    ids: &[EntryId],
) -> Result<Vec<Option<Seq>>, Fault> {
    let uuids: Vec<_> = ids.iter().map(|id| rows::entry_id_to_uuid(*id)).collect();
    let rows = tx
        .query(
            "looking up entries by id",
            "SELECT e.seq FROM unnest($3::uuid[]) WITH ORDINALITY AS wanted (id, place)
             LEFT JOIN throughline.entry e
                 ON e.owner = $1 AND e.log = $2 AND e.id = wanted.id
             ORDER BY wanted.place",
            params![owner.as_str(), found.log, uuids],
        )
        .await?;
    let seqs = rows.iter().map(|row| {
        let seq: Option<i64> = rows::get(row, 0)?;
        Ok(seq.map(rows::seq_from_i64))
    });
    Ok(seqs.collect::<Result<_, StoreError>>()?)
}

/// Locks attachments against removal; all of them must exist.
pub(crate) async fn lock_blobs(tx: &Tx, owner: &Owner, digests: &[Digest]) -> Result<(), Fault> {
    for digest in digests {
        if !lock_blob(tx, owner, digest).await? {
            return Err(StoreError::NoSuchBlob(*digest).into());
        }
    }
    Ok(())
}

pub(crate) async fn lock_blob(tx: &Tx, owner: &Owner, digest: &Digest) -> Result<bool, Fault> {
    let row = tx
        .query_opt(
            "looking up attachments",
            "SELECT FROM throughline.blob WHERE owner = $1 AND digest = $2 FOR KEY SHARE",
            params![owner.as_str(), digest.as_bytes().as_slice()],
        )
        .await?;
    Ok(row.is_some())
}

/// Records that a log's own entries refer to these attachments.
pub(crate) async fn record_blob_uses(
    tx: &Tx,
    owner: &Owner,
    log: i64,
    digests: &[Digest],
) -> Result<(), Fault> {
    if digests.is_empty() {
        return Ok(());
    }
    let digests: Vec<&[u8]> = digests.iter().map(|d| d.as_bytes().as_slice()).collect();
    tx.execute(
        "recording attachments",
        "INSERT INTO throughline.blob_use (owner, log, digest)
         SELECT $1, $2, digest FROM unnest($3::bytea[]) AS digest ON CONFLICT DO NOTHING",
        params![owner.as_str(), log, digests],
    )
    .await?;
    Ok(())
}

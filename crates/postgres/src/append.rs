//! Making sessions and appending to them.

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

/// The record is kept every so many entries, so that a fork anywhere reads no more.
const SNAPSHOT_EVERY: u64 = 1_024;

/// About as many bytes of payload are sent in one statement.
const MAX_STATEMENT_BYTES: usize = 32 * 1024 * 1024;

/// What the writer has to say of an append. What was said is with whoever said it, and
/// need not come back from the writer.
#[derive(Debug)]
pub(crate) enum WriterReply {
    /// They are there, from here on.
    AlreadyStored { start: Seq, kind: AppendKind },
    /// They are here now.
    Written {
        rebased: Option<Seq>,
        kind: AppendKind,
        assigned: Vec<(Seq, Digest)>,
    },
    /// They belong into a fork at this entry, which is not made in a batch.
    NeedsFork(Seq),
}

/// Rows of entries to be written, each to the end of its log.
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

    /// How many are sent together, so that no statement is too large.
    pub(crate) fn chunks(&self) -> Vec<Range<usize>> {
        let mut chunks = Vec::new();
        let (mut from, mut bytes) = (0, 0);
        for (place, payload) in self.payloads.iter().enumerate() {
            if bytes >= MAX_STATEMENT_BYTES {
                chunks.push(from..place);
                (from, bytes) = (place, 0);
            }
            bytes += payload.len();
        }
        if from < self.len() {
            chunks.push(from..self.len());
        }
        chunks
    }

    /// Writes some of them, at these positions. The statement is sent at once when this is
    /// first looked after, so that others can be sent behind it.
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

    /// The only one there is, as a statement's values: its id, when, and what it says. Where it
    /// is is told with the head, whose entry it is.
    pub(crate) fn single_params(&self) -> Option<[&(dyn ToSql + Sync); 3]> {
        match (&self.ids[..], &self.ats[..], &self.payloads[..]) {
            ([id], [at], [payload]) => Some([id, at, payload]),
            _ => None,
        }
    }

    /// Them all, as a statement's values; without positions.
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

    /// Writes them, at these positions.
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

/// Puts an append's entries after the head of a record: the rows to write, and their
/// places. The record takes them in.
pub(crate) fn chain_entries(
    owner: &Owner,
    log: i64,
    record: &mut Record,
    prepared: &PreparedAppend,
    rebased: Option<Seq>,
    new_rows: &mut EntryRows,
    kept: &mut Vec<Record>,
) -> Result<Vec<(Seq, Digest)>, StoreError> {
    let mut places = Vec::with_capacity(prepared.append.entries.len());
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
        places.push((seq, digest));
        if is_snapshot_due(seq) {
            kept.push(record.clone());
        }
    }
    Ok(places)
}

/// Whether the record is kept at this entry.
pub(crate) fn is_snapshot_due(seq: Seq) -> bool {
    seq.0.is_multiple_of(SNAPSHOT_EVERY)
}

/// Keeps a record as it is at its head.
pub(crate) async fn write_snapshot(
    tx: &Tx,
    owner: &Owner,
    log: i64,
    record: &Record,
) -> Result<(), Fault> {
    tx.execute(
        "keeping a record",
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
        birth: &SessionHeader,
    ) -> Result<CreateOutcome, StoreError> {
        retry(self.inner.time_limit, |attempt| {
            Box::pin(async move {
                let tx = self.begin_write(owner).await?;
                let done = create(&tx, owner, birth).await;
                let mut created = tx.finish(done).await?;
                if attempt.may_be_committed && created.record.info.head == Seq::ZERO {
                    // Most likely our own first attempt made it.
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
            WriterReply::AlreadyStored { start, kind: how } => {
                let count = prepared.append.entries.len();
                self.read_repeated_append(to, start, count, how).await
            }
            WriterReply::Written {
                rebased,
                kind: how,
                assigned: places,
            } => Ok(AppendOutcome {
                session: to.id.clone(),
                entries: prepared.complete(&to.id, rebased, places)?,
                kind: how,
            }),
        }
    }

    /// The entries of an append that is in its place.
    async fn read_repeated_append(
        &self,
        to: &SessionRef,
        start: Seq,
        count: usize,
        how: AppendKind,
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
            kind: how,
        })
    }

    /// Puts an append that came late into a fork, which is made if it is not there.
    async fn append_to_fork(
        &self,
        of: &SessionRef,
        at: Seq,
        prepared: &Arc<PreparedAppend>,
    ) -> Result<AppendOutcome, StoreError> {
        let OnConflict::Fork(birth) = &prepared.append.on_conflict else {
            return Err(StoreError::Unsupported("fork without a birth"));
        };
        let fork = of.owner.session(&birth.id);
        let into = Arc::new(prepared.to_fork());
        let into = &into;
        let (session, how, entries) = retry(self.inner.time_limit, |_| {
            let fork = fork.clone();
            Box::pin(async move {
                let tx = self.begin_write(&of.owner).await?;
                let done = crate::fork::append_to_fork(&tx, of, at, birth, &fork, into).await;
                tx.finish(done).await
            })
        })
        .await?;
        let entries = match entries {
            Ok((rebased, places)) => Arc::clone(into).complete(&session, rebased, places)?,
            Err(entries) => entries,
        };
        self.inner.writer.notify_committed();
        Ok(AppendOutcome {
            session,
            entries,
            kind: how,
        })
    }
}

async fn create(tx: &Tx, owner: &Owner, birth: &SessionHeader) -> Result<CreateOutcome, Fault> {
    let existing = |record| CreateOutcome {
        record,
        existed: true,
    };
    if let Some(holder) = find_key_holder(tx, owner, birth).await? {
        let found = rows::find_live_session(tx, &holder).await?;
        tx.sync_on_commit().await?;
        return Ok(existing(rows::load_record(tx, owner, found.log).await?));
    }
    if let Some(found) = rows::find_session(tx, &owner.session(&birth.id)).await? {
        if !found.trashed && rows::load_header(tx, owner, found.log).await? == *birth {
            tx.sync_on_commit().await?;
            return Ok(existing(rows::load_record(tx, owner, found.log).await?));
        }
        return Err(StoreError::SessionExists(birth.id.clone()).into());
    }
    let record = Record::new(birth);
    insert_session(tx, owner, birth, Seq::ZERO, &record).await?;
    let mut notes = PendingChanges::default();
    notes.add(owner, &birth.id, SessionEvent::Created);
    notes.write(tx).await?;
    Ok(CreateOutcome {
        record,
        existed: false,
    })
}

/// The session in use that holds the birth's key, if it has one.
pub(crate) async fn find_key_holder(
    tx: &Tx,
    owner: &Owner,
    birth: &SessionHeader,
) -> Result<Option<SessionRef>, Fault> {
    let Some(key) = &birth.key else {
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

/// Refuses a birth whose key another session holds.
pub(crate) async fn refuse_taken_key(
    tx: &Tx,
    owner: &Owner,
    birth: &SessionHeader,
) -> Result<(), Fault> {
    match (find_key_holder(tx, owner, birth).await?, &birth.key) {
        (Some(holder), Some(key)) => Err(StoreError::KeyTaken {
            key: key.clone(),
            held_by: holder.id,
        }
        .into()),
        _ => Ok(()),
    }
}

/// Makes the rows of a session that shares so many entries; tells its log's number.
pub(crate) async fn insert_session(
    tx: &Tx,
    owner: &Owner,
    birth: &SessionHeader,
    shared: Seq,
    record: &Record,
) -> Result<i64, Fault> {
    let doing = "making a session";
    rows::ensure_owner(tx, owner).await?;
    let shown = SessionColumns::of(&record.info)?;
    let parent = birth.lineage.parent().map(SessionId::as_str);
    let key = birth.key.as_ref().map(throughline_model::Key::as_str);
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
                birth.id.as_str(),
                key,
                parent,
                rows::seq_to_i64(shared),
                rows::to_json(birth)?,
                shown.card,
                shown.status,
                shown.name,
                shown.project,
                shown.agent
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
            birth.id.as_str(),
            counts.head,
            counts.digest,
            counts.last_activity,
            counts.messages,
            counts.queries,
            counts.latest
        ],
    )
    .await?;
    // A fork starts with tags and standing that are not yet written for it.
    if !record.info.tags.is_empty() {
        rows::write_tags(tx, owner, log, &record.info.tags).await?;
    }
    if record.state != throughline_model::SessionState::default() {
        rows::write_state(tx, owner, log, &record.state).await?;
    }
    Ok(log)
}

/// Where in the session's own part of the log each of the ids is.
pub(crate) async fn locate_entries(
    tx: &Tx,
    owner: &Owner,
    found: &SessionRow,
    ids: &[EntryId],
) -> Result<Vec<Option<Seq>>, Fault> {
    let wanted: Vec<_> = ids.iter().map(|id| rows::entry_id_to_uuid(*id)).collect();
    let rows = tx
        .query(
            "looking up entries by id",
            "SELECT e.seq FROM unnest($3::uuid[]) WITH ORDINALITY AS wanted (id, place)
             LEFT JOIN throughline.entry e
                 ON e.owner = $1 AND e.log = $2 AND e.id = wanted.id
             ORDER BY wanted.place",
            params![owner.as_str(), found.log, wanted],
        )
        .await?;
    let seqs = rows.iter().map(|row| {
        let seq: Option<i64> = rows::get(row, 0)?;
        Ok(seq.map(rows::seq_from_i64))
    });
    Ok(seqs.collect::<Result<_, StoreError>>()?)
}

/// Looks for attachments, all of which must be there, and keeps them from being removed.
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

/// Notes that a log's own entries name attachments.
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
        "noting attachments",
        "INSERT INTO throughline.blob_use (owner, log, digest)
         SELECT $1, $2, digest FROM unnest($3::bytea[]) AS digest ON CONFLICT DO NOTHING",
        params![owner.as_str(), log, digests],
    )
    .await?;
    Ok(())
}

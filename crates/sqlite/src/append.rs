//! Creates sessions, appends entries to them and imports whole logs.
//!
//! All of it runs inside a write transaction on the writer thread ([`crate::writer`]).

use std::sync::Arc;

use rusqlite::{CachedStatement, OptionalExtension, params};
use throughline_model::{
    Body, Digest, Entry, EntryId, Owner, Record, Seq, SessionHeader, SessionId, SessionRef,
    StoredEntry, Timestamp, truncate_to_micros,
};
use throughline_store::{
    Append, AppendDecision, AppendKind, AppendOutcome, CreateOutcome, EntryIds, OnConflict,
    PreparedAppend, ReadRange, StoreError, decide_append, decode_entry, encode_entry,
    refuse_large_entry, verify_entry,
};

use crate::error::{damaged, during};
use crate::open::SqliteStore;
use crate::skip_list::LogEnd;
use crate::tx::{CachedSession, Tx};
use crate::{lease, rows};

/// A snapshot of the record is stored every this many entries, so that forking at any entry
/// folds at most this many.
const SNAPSHOT_EVERY: u64 = 1_024;

impl SqliteStore {
    pub(crate) async fn create_session(
        &self,
        owner: &Owner,
        header: SessionHeader,
    ) -> Result<CreateOutcome, StoreError> {
        let owner = owner.clone();
        self.writer
            .write(move |tx| create(tx, &owner, &header))
            .await
    }

    pub(crate) async fn append_entries(
        &self,
        to: &SessionRef,
        new: Append,
    ) -> Result<AppendOutcome, StoreError> {
        let to = to.clone();
        let prepared = Arc::new(PreparedAppend::new(new)?);
        let shared = Arc::clone(&prepared);
        let answer = self
            .writer
            .write(move |tx| append(tx, &to, &shared))
            .await?;
        answer.into_outcome(prepared)
    }

    pub(crate) async fn import_entries(
        &self,
        owner: &Owner,
        header: SessionHeader,
        entries: Vec<StoredEntry>,
    ) -> Result<u64, StoreError> {
        let owner = owner.clone();
        self.writer
            .write(move |tx| insert_imported(tx, &owner, &header, &entries))
            .await
    }
}

fn create(
    tx: &mut Tx<'_>,
    owner: &Owner,
    header: &SessionHeader,
) -> Result<CreateOutcome, StoreError> {
    if let Some(session) = find_key_holder(tx, owner, header)? {
        return Ok(CreateOutcome {
            record: tx.load_session(&session)?.record.clone(),
            existed: true,
        });
    }
    let session = owner.session(&header.id);
    if let Some(found) = rows::find_session(tx.connection, &session)? {
        if !found.trashed && rows::load_header(tx.connection, found.pk)? == *header {
            return Ok(CreateOutcome {
                record: tx.load_session(&session)?.record.clone(),
                existed: true,
            });
        }
        return Err(StoreError::SessionExists(header.id.clone()));
    }
    let record = Record::new(header);
    tx.insert_session(owner, header, LogEnd::EMPTY, &record)?;
    Ok(CreateOutcome {
        record,
        existed: false,
    })
}

/// Returns the live session that holds the header's key, if the header has one.
pub(crate) fn find_key_holder(
    tx: &Tx<'_>,
    owner: &Owner,
    header: &SessionHeader,
) -> Result<Option<SessionRef>, StoreError> {
    let Some(key) = &header.key else {
        return Ok(None);
    };
    let failed = during("looking up a key");
    let id: Option<String> = tx
        .prepare_read(
            "SELECT session.id FROM session JOIN owner ON owner.pk = session.owner
             WHERE owner.id = ?1 AND key = ?2 AND trashed_at IS NULL AND gone = 0",
        )
        .map_err(failed)?
        .query_row([owner.as_str(), key.as_str()], |row| row.get(0))
        .optional()
        .map_err(failed)?;
    let parse = |id: String| {
        id.parse()
            .map_err(|error| damaged(format!("{id:?} is no session id"), error))
    };
    Ok(id.map(parse).transpose()?.map(|id| owner.session(&id)))
}

/// Refuses a header whose key another live session holds.
pub(crate) fn refuse_taken_key(
    tx: &Tx<'_>,
    owner: &Owner,
    header: &SessionHeader,
) -> Result<(), StoreError> {
    match (find_key_holder(tx, owner, header)?, &header.key) {
        (Some(holder), Some(key)) => Err(StoreError::KeyTaken {
            key: key.clone(),
            held_by: holder.id,
        }),
        _ => Ok(()),
    }
}

/// The writer thread's reply to an append. The contents stay with the caller, so only the
/// assigned positions are sent back.
enum WriterReply {
    /// The entries were already stored.
    Repeated(AppendOutcome),
    /// The entries were written by this append.
    Written {
        session: SessionId,
        rebased: Option<Seq>,
        kind: AppendKind,
        assigned: Vec<(Seq, Digest)>,
    },
}

impl WriterReply {
    /// Combines the reply with the prepared entries into the entries as stored.
    fn into_outcome(self, prepared: Arc<PreparedAppend>) -> Result<AppendOutcome, StoreError> {
        let (session, rebased, kind, assigned) = match self {
            Self::Repeated(appended) => return Ok(appended),
            Self::Written {
                session,
                rebased,
                kind,
                assigned,
            } => (session, rebased, kind, assigned),
        };
        let entries = prepared.complete(&session, rebased, assigned)?;
        Ok(AppendOutcome {
            session,
            entries,
            kind,
        })
    }
}

fn append(
    tx: &mut Tx<'_>,
    to: &SessionRef,
    prepared: &PreparedAppend,
) -> Result<WriterReply, StoreError> {
    let blobs = find_blobs(tx, to, &prepared.attachments)?;
    let holds = lease::holds_lease(tx, &to.owner, prepared.append.fence.as_ref())?;
    let live = tx.load_session(to)?;
    let (pk, shared, end) = (live.pk, live.shared, live.anchors.end());
    let ids = || prepared.append.entries.iter().map(|new| new.id);
    let all_new = |known: &EntryIds| !ids().any(|id| known.contains(&id));
    let found = if live.ids.as_ref().is_some_and(all_new) {
        vec![None; prepared.append.entries.len()]
    } else {
        locate_entries(tx.connection, pk, shared, ids())?
    };
    match decide_append(&to.id, end.head, &prepared.append, &found, holds)? {
        AppendDecision::Repeat(start) => Ok(WriterReply::Repeated(AppendOutcome {
            session: to.id.clone(),
            entries: crate::read::read_decoded(
                tx.connection,
                &to.id,
                end,
                start,
                prepared.append.entries.len(),
            )?,
            kind: AppendKind::Repeated,
        })),
        AppendDecision::Append { rebased } => {
            let assigned = append_at_head(tx, to, prepared, rebased)?;
            record_blob_uses(tx, pk, &blobs)?;
            Ok(WriterReply::Written {
                session: to.id.clone(),
                rebased,
                kind: match rebased {
                    None => AppendKind::Appended,
                    Some(_) => AppendKind::Rebased,
                },
                assigned,
            })
        }
        AppendDecision::Fork(at) => {
            let OnConflict::Fork(header) = &prepared.append.on_conflict else {
                return Err(StoreError::Unsupported("fork without a header"));
            };
            let fork = to.owner.session(&header.id);
            if rows::find_session(tx.connection, &fork)?.is_none() {
                crate::fork::fork(tx, to, at, (**header).clone())?;
            }
            let into = prepared.to_fork();
            let mut answer = append(tx, &fork, &into)?;
            if let WriterReply::Written { kind, .. } = &mut answer {
                *kind = AppendKind::Forked;
            }
            Ok(answer)
        }
    }
}

/// Finds the position of each id among the session's own (not inherited) entries.
pub(crate) fn locate_entries(
    connection: &rusqlite::Connection,
    pk: i64,
    shared: Seq,
    ids: impl IntoIterator<Item = EntryId>,
) -> Result<Vec<Option<Seq>>, StoreError> {
    let failed = during("looking up entries by id");
    let mut query = connection
        .prepare_cached("SELECT seq FROM entry WHERE id = ?1 AND session = ?2 AND seq > ?3")
        .map_err(failed)?;
    ids.into_iter()
        .map(|id| {
            query
                .query_row(
                    params![id.as_bytes(), pk, rows::seq_to_i64(shared)],
                    |row| row.get(0),
                )
                .optional()
                .map(|seq| seq.map(rows::seq_from_i64))
                .map_err(failed)
        })
        .collect()
}

/// Appends after the current head, wherever that is.
fn append_at_head(
    tx: &mut Tx<'_>,
    to: &SessionRef,
    prepared: &PreparedAppend,
    rebased: Option<Seq>,
) -> Result<Vec<(Seq, Digest)>, StoreError> {
    let mut live = tx.take_session(to)?;
    let new_ids = prepared.append.entries.iter().map(|new| new.id);
    let remembered = live.ids.as_mut().map(|ids| ids.extend(new_ids)).is_some();
    let mut insert = InsertEntry::new(tx)?;
    let mut assigned = Vec::with_capacity(prepared.append.entries.len());
    for (new, (payload, hash)) in prepared.append.entries.iter().zip(&prepared.payloads) {
        let marked = rebased.map(|_| encode_entry(new, rebased)).transpose()?;
        let (payload, hash) = marked.as_ref().map_or((payload, hash), |(p, h)| (p, h));
        let info = &live.record.info;
        let (seq, at) = (info.head.next(), truncate_to_micros(new.at));
        let digest = info.digest.chain(seq, new.id, at, hash);
        let row = NewEntryRow {
            seq,
            id: new.id,
            at,
            digest,
            payload,
        };
        insert.write(tx, &mut live, &row, &new.body)?;
        assigned.push((seq, digest));
    }
    tx.put_session(to, live);
    if remembered {
        tx.count_cached_ids(assigned.len());
    }
    Ok(assigned)
}

/// An entry row to insert.
struct NewEntryRow<'a> {
    seq: Seq,
    id: EntryId,
    at: Timestamp,
    digest: Digest,
    payload: &'a str,
}

/// The prepared statement that inserts entries, reused for a whole append.
struct InsertEntry<'a>(CachedStatement<'a>);

impl<'a> InsertEntry<'a> {
    fn new(tx: &mut Tx<'a>) -> Result<Self, StoreError> {
        let insert = tx.prepare_write(
            "INSERT INTO entry (pk, session, seq, back, jump, id, at, digest, payload)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        );
        Ok(Self(insert.map_err(during("appending"))?))
    }

    /// Inserts one entry after the head and folds it into the record.
    fn write(
        &mut self,
        tx: &mut Tx<'_>,
        live: &mut CachedSession,
        row: &NewEntryRow<'_>,
        body: &Body,
    ) -> Result<(), StoreError> {
        let (back, jump) = live.anchors.next_links();
        let position = tx.next_position()?;
        self.0
            .execute(params![
                position,
                live.pk,
                rows::seq_to_i64(row.seq),
                back,
                jump,
                row.id.as_bytes(),
                row.at.as_microsecond(),
                row.digest.as_bytes(),
                row.payload,
            ])
            .map_err(during("appending"))?;
        live.anchors.push(row.seq, position);
        live.record.apply_body(row.seq, row.at, row.digest, body);
        if is_snapshot_due(row.seq) {
            write_snapshot(tx, live.pk, &live.record)?;
        }
        Ok(())
    }
}

/// Whether a record snapshot is stored at this entry.
pub(crate) fn is_snapshot_due(seq: Seq) -> bool {
    seq.0.is_multiple_of(SNAPSHOT_EVERY)
}

/// Stores a snapshot of the record at its current head.
pub(crate) fn write_snapshot(tx: &mut Tx<'_>, pk: i64, record: &Record) -> Result<(), StoreError> {
    let failed = during("storing a record snapshot");
    let json = serde_json::to_string(record)
        .map_err(|e| damaged("a record cannot be encoded as JSON", e))?;
    tx.prepare_write("INSERT OR REPLACE INTO snapshot (session, seq, json) VALUES (?1, ?2, ?3)")
        .map_err(failed)?
        .execute(params![pk, rows::seq_to_i64(record.info.head), json])
        .map_err(failed)?;
    Ok(())
}

/// Returns the row ids of attachments; fails if any is not stored.
fn find_blobs(tx: &Tx<'_>, of: &SessionRef, digests: &[Digest]) -> Result<Vec<i64>, StoreError> {
    let failed = during("looking up attachments");
    digests
        .iter()
        .map(|digest| {
            tx.prepare_read(
                "SELECT blob.pk FROM blob JOIN owner ON owner.pk = blob.owner
                 WHERE owner.id = ?1 AND digest = ?2",
            )
            .and_then(|mut query| {
                query
                    .query_row(params![of.owner.as_str(), digest.as_bytes()], |row| {
                        row.get(0)
                    })
                    .optional()
            })
            .map_err(failed)?
            .ok_or(StoreError::NoSuchBlob(*digest))
        })
        .collect()
}

pub(crate) fn record_blob_uses(
    tx: &mut Tx<'_>,
    session: i64,
    blobs: &[i64],
) -> Result<(), StoreError> {
    for blob in blobs {
        tx.prepare_write("INSERT OR IGNORE INTO blob_use (session, blob) VALUES (?1, ?2)")
            .and_then(|mut insert| insert.execute([session, *blob]))
            .map_err(during("recording an attachment"))?;
    }
    Ok(())
}

/// Imports a log unchanged, after verifying that it continues the stored one.
fn insert_imported(
    tx: &mut Tx<'_>,
    owner: &Owner,
    header: &SessionHeader,
    entries: &[StoredEntry],
) -> Result<u64, StoreError> {
    let to = owner.session(&header.id);
    if rows::find_session(tx.connection, &to)?.is_none() {
        refuse_taken_key(tx, owner, header)?;
        tx.insert_session(owner, header, LogEnd::EMPTY, &Record::new(header))?;
    }
    let mut new = 0;
    for stored in entries {
        let live = tx.load_session(&to)?;
        let (pk, end) = (live.pk, live.anchors.end());
        let (head, digest) = (end.head, live.record.info.digest);
        let diverged = || StoreError::Moved {
            id: header.id.clone(),
            expected: Seq(stored.seq.0.saturating_sub(1)),
            found: head,
        };
        if stored.seq <= head {
            let here = ReadRange::between(stored.seq, stored.seq, 1);
            let kept = crate::read::read_stored(tx.connection, end, here)?;
            if kept.first().is_none_or(|kept| kept.digest != stored.digest) {
                return Err(diverged());
            }
            continue;
        }
        if stored.seq != head.next() {
            return Err(diverged());
        }
        refuse_large_entry(&stored.payload)?;
        verify_entry(&to.id, stored, &digest)?;
        let entry = decode_entry(&to.id, stored)?;
        let mut live = tx.take_session(&to)?;
        let row = NewEntryRow {
            seq: stored.seq,
            id: stored.id,
            at: stored.at,
            digest: stored.digest,
            payload: &stored.payload,
        };
        live.ids = None;
        InsertEntry::new(tx)?.write(tx, &mut live, &row, &entry.body)?;
        tx.put_session(&to, live);
        record_attachments(tx, &to, pk, &entry)?;
        new += 1;
    }
    Ok(new)
}

/// Records the attachments of an imported entry that are stored; others may arrive later.
fn record_attachments(
    tx: &mut Tx<'_>,
    of: &SessionRef,
    pk: i64,
    entry: &Entry,
) -> Result<(), StoreError> {
    let attachments = entry
        .message()
        .into_iter()
        .flat_map(|m| m.content.attachments());
    for attachment in attachments {
        match find_blobs(tx, of, &[attachment.blob]) {
            Ok(found) => record_blob_uses(tx, pk, &found)?,
            Err(StoreError::NoSuchBlob(_)) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

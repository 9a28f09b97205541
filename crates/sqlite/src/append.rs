//! Making sessions and appending to them.

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

/// The record is kept every so many entries, so that a fork anywhere reads no more.
const SNAPSHOT_EVERY: u64 = 1_024;

impl SqliteStore {
    pub(crate) async fn create_session(
        &self,
        owner: &Owner,
        birth: SessionHeader,
    ) -> Result<CreateOutcome, StoreError> {
        let owner = owner.clone();
        self.writer
            .write(move |tx| create(tx, &owner, &birth))
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
        birth: SessionHeader,
        entries: Vec<StoredEntry>,
    ) -> Result<u64, StoreError> {
        let owner = owner.clone();
        self.writer
            .write(move |tx| insert_imported(tx, &owner, &birth, &entries))
            .await
    }
}

fn create(
    tx: &mut Tx<'_>,
    owner: &Owner,
    birth: &SessionHeader,
) -> Result<CreateOutcome, StoreError> {
    if let Some(session) = find_key_holder(tx, owner, birth)? {
        return Ok(CreateOutcome {
            record: tx.load_session(&session)?.record.clone(),
            existed: true,
        });
    }
    let session = owner.session(&birth.id);
    if let Some(found) = rows::find_session(tx.connection, &session)? {
        if !found.trashed && rows::load_header(tx.connection, found.pk)? == *birth {
            return Ok(CreateOutcome {
                record: tx.load_session(&session)?.record.clone(),
                existed: true,
            });
        }
        return Err(StoreError::SessionExists(birth.id.clone()));
    }
    let record = Record::new(birth);
    tx.insert_session(owner, birth, LogEnd::EMPTY, &record)?;
    Ok(CreateOutcome {
        record,
        existed: false,
    })
}

/// The session in use that holds the birth's key, if it has one.
pub(crate) fn find_key_holder(
    tx: &Tx<'_>,
    owner: &Owner,
    birth: &SessionHeader,
) -> Result<Option<SessionRef>, StoreError> {
    let Some(key) = &birth.key else {
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

/// Refuses a birth whose key another session holds.
pub(crate) fn refuse_taken_key(
    tx: &Tx<'_>,
    owner: &Owner,
    birth: &SessionHeader,
) -> Result<(), StoreError> {
    match (find_key_holder(tx, owner, birth)?, &birth.key) {
        (Some(holder), Some(key)) => Err(StoreError::KeyTaken {
            key: key.clone(),
            held_by: holder.id,
        }),
        _ => Ok(()),
    }
}

/// What the writer has to say of an append. What was said is with whoever said it, and
/// need not come back from the writer.
enum WriterReply {
    /// They were there already.
    Repeated(AppendOutcome),
    /// They are here now.
    Written {
        session: SessionId,
        rebased: Option<Seq>,
        kind: AppendKind,
        assigned: Vec<(Seq, Digest)>,
    },
}

impl WriterReply {
    /// The entries as stored, made of what was to be appended.
    fn into_outcome(self, prepared: Arc<PreparedAppend>) -> Result<AppendOutcome, StoreError> {
        let (session, rebased, how, places) = match self {
            Self::Repeated(appended) => return Ok(appended),
            Self::Written {
                session,
                rebased,
                kind: how,
                assigned: places,
            } => (session, rebased, how, places),
        };
        let entries = prepared.complete(&session, rebased, places)?;
        Ok(AppendOutcome {
            session,
            entries,
            kind: how,
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
            let places = append_at_head(tx, to, prepared, rebased)?;
            record_blob_uses(tx, pk, &blobs)?;
            Ok(WriterReply::Written {
                session: to.id.clone(),
                rebased,
                kind: match rebased {
                    None => AppendKind::Appended,
                    Some(_) => AppendKind::Rebased,
                },
                assigned: places,
            })
        }
        AppendDecision::Fork(at) => {
            let OnConflict::Fork(birth) = &prepared.append.on_conflict else {
                return Err(StoreError::Unsupported("fork without a birth"));
            };
            let fork = to.owner.session(&birth.id);
            if rows::find_session(tx.connection, &fork)?.is_none() {
                crate::fork::fork(tx, to, at, (**birth).clone())?;
            }
            let into = prepared.to_fork();
            let mut answer = append(tx, &fork, &into)?;
            if let WriterReply::Written { kind: how, .. } = &mut answer {
                *how = AppendKind::Forked;
            }
            Ok(answer)
        }
    }
}

/// Where in the session's own part of the log each of the ids is.
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

/// Appends to the head, whatever it is.
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
    let mut places = Vec::with_capacity(prepared.append.entries.len());
    for (new, (payload, hash)) in prepared.append.entries.iter().zip(&prepared.payloads) {
        let marked = rebased.map(|_| encode_entry(new, rebased)).transpose()?;
        let (payload, hash) = marked.as_ref().map_or((payload, hash), |(p, h)| (p, h));
        let card = &live.record.info;
        let (seq, at) = (card.head.next(), truncate_to_micros(new.at));
        let digest = card.digest.chain(seq, new.id, at, hash);
        let row = NewEntryRow {
            seq,
            id: new.id,
            at,
            digest,
            payload,
        };
        insert.write(tx, &mut live, &row, &new.body)?;
        places.push((seq, digest));
    }
    tx.put_session(to, live);
    if remembered {
        tx.count_cached_ids(places.len());
    }
    Ok(places)
}

/// An entry to be written.
struct NewEntryRow<'a> {
    seq: Seq,
    id: EntryId,
    at: Timestamp,
    digest: Digest,
    payload: &'a str,
}

/// The statement that writes entries, made once for all that are written together.
struct InsertEntry<'a>(CachedStatement<'a>);

impl<'a> InsertEntry<'a> {
    fn new(tx: &mut Tx<'a>) -> Result<Self, StoreError> {
        let insert = tx.prepare_write(
            "INSERT INTO entry (pk, session, seq, back, jump, id, at, digest, payload)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        );
        Ok(Self(insert.map_err(during("appending"))?))
    }

    /// Writes one entry after the head and takes it into the record.
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

/// Whether the record is kept at this entry.
pub(crate) fn is_snapshot_due(seq: Seq) -> bool {
    seq.0.is_multiple_of(SNAPSHOT_EVERY)
}

/// Keeps the record as it is at its head.
pub(crate) fn write_snapshot(tx: &mut Tx<'_>, pk: i64, record: &Record) -> Result<(), StoreError> {
    let failed = during("keeping a record");
    let json = serde_json::to_string(record).map_err(|e| damaged("a record has no JSON", e))?;
    tx.prepare_write("INSERT OR REPLACE INTO snapshot (session, seq, json) VALUES (?1, ?2, ?3)")
        .map_err(failed)?
        .execute(params![pk, rows::seq_to_i64(record.info.head), json])
        .map_err(failed)?;
    Ok(())
}

/// The numbers of attachments, all of which must be there.
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
            .map_err(during("noting an attachment"))?;
    }
    Ok(())
}

/// Brings in a log as it is, after checking that it continues what is there.
fn insert_imported(
    tx: &mut Tx<'_>,
    owner: &Owner,
    birth: &SessionHeader,
    entries: &[StoredEntry],
) -> Result<u64, StoreError> {
    let to = owner.session(&birth.id);
    if rows::find_session(tx.connection, &to)?.is_none() {
        refuse_taken_key(tx, owner, birth)?;
        tx.insert_session(owner, birth, LogEnd::EMPTY, &Record::new(birth))?;
    }
    let mut new = 0;
    for stored in entries {
        let live = tx.load_session(&to)?;
        let (pk, end) = (live.pk, live.anchors.end());
        let (head, digest) = (end.head, live.record.info.digest);
        let diverged = || StoreError::Moved {
            id: birth.id.clone(),
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

/// Notes the attachments of an adopted entry that are here; others may yet come.
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

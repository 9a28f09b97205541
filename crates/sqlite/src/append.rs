//! Making sessions and appending to them.

use std::sync::Arc;

use rusqlite::{CachedStatement, OptionalExtension, params};
use throughline_model::{
    Birth, Body, Digest, Entry, EntryId, Owner, Record, Seq, SessionId, SessionRef, StoredEntry,
    Timestamp, to_micros,
};
use throughline_store::{
    Append, Appended, Created, EntryIds, How, OnConflict, Prepared, Read, Settled, StoreError,
    decode, encode, refuse_large_entry, settle, verify,
};

use crate::error::{damaged, during};
use crate::links::End;
use crate::open::SqliteStore;
use crate::tx::{Live, Tx};
use crate::{lease, rows};

/// The record is kept every so many entries, so that a fork anywhere reads no more.
const SNAPSHOT_EVERY: u64 = 1_024;

impl SqliteStore {
    pub(crate) async fn create_session(
        &self,
        owner: &Owner,
        birth: Birth,
    ) -> Result<Created, StoreError> {
        let owner = owner.clone();
        self.writer
            .write(move |tx| create(tx, &owner, &birth))
            .await
    }

    pub(crate) async fn append_entries(
        &self,
        to: &SessionRef,
        new: Append,
    ) -> Result<Appended, StoreError> {
        let to = to.clone();
        let prepared = Arc::new(Prepared::new(new)?);
        let shared = Arc::clone(&prepared);
        let answer = self
            .writer
            .write(move |tx| append(tx, &to, &shared))
            .await?;
        answer.complete(prepared)
    }

    pub(crate) async fn adopt_log(
        &self,
        owner: &Owner,
        birth: Birth,
        entries: Vec<StoredEntry>,
    ) -> Result<u64, StoreError> {
        let owner = owner.clone();
        self.writer
            .write(move |tx| adopt(tx, &owner, &birth, &entries))
            .await
    }
}

fn create(tx: &mut Tx<'_>, owner: &Owner, birth: &Birth) -> Result<Created, StoreError> {
    if let Some(session) = key_holder(tx, owner, birth)? {
        return Ok(Created {
            record: tx.live(&session)?.record.clone(),
            existed: true,
        });
    }
    let session = owner.session(&birth.id);
    if let Some(found) = rows::find(tx.connection, &session)? {
        if !found.trashed && rows::birth(tx.connection, found.pk)? == *birth {
            return Ok(Created {
                record: tx.live(&session)?.record.clone(),
                existed: true,
            });
        }
        return Err(StoreError::SessionExists(birth.id.clone()));
    }
    let record = Record::new(birth);
    tx.insert_session(owner, birth, End::EMPTY, &record)?;
    Ok(Created {
        record,
        existed: false,
    })
}

/// The session in use that holds the birth's key, if it has one.
pub(crate) fn key_holder(
    tx: &Tx<'_>,
    owner: &Owner,
    birth: &Birth,
) -> Result<Option<SessionRef>, StoreError> {
    let Some(key) = &birth.key else {
        return Ok(None);
    };
    let failed = during("looking up a key");
    let id: Option<String> = tx
        .query(
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
    birth: &Birth,
) -> Result<(), StoreError> {
    match (key_holder(tx, owner, birth)?, &birth.key) {
        (Some(holder), Some(key)) => Err(StoreError::KeyTaken {
            key: key.clone(),
            held_by: holder.id,
        }),
        _ => Ok(()),
    }
}

/// What the writer has to say of an append. What was said is with whoever said it, and
/// need not come back from the writer.
enum Answer {
    /// They were there already.
    Repeated(Appended),
    /// They are here now.
    Placed {
        session: SessionId,
        rebased: Option<Seq>,
        how: How,
        places: Vec<(Seq, Digest)>,
    },
}

impl Answer {
    /// The entries as stored, made of what was to be appended.
    fn complete(self, prepared: Arc<Prepared>) -> Result<Appended, StoreError> {
        let (session, rebased, how, places) = match self {
            Self::Repeated(appended) => return Ok(appended),
            Self::Placed {
                session,
                rebased,
                how,
                places,
            } => (session, rebased, how, places),
        };
        let entries = prepared.complete(&session, rebased, places)?;
        Ok(Appended {
            session,
            entries,
            how,
        })
    }
}

fn append(tx: &mut Tx<'_>, to: &SessionRef, prepared: &Prepared) -> Result<Answer, StoreError> {
    let blobs = blobs(tx, to, &prepared.attachments)?;
    let holds = lease::holds(tx, &to.owner, prepared.append.fence.as_ref())?;
    let live = tx.live(to)?;
    let (pk, shared, end) = (live.pk, live.shared, live.anchors.end());
    let ids = || prepared.append.entries.iter().map(|new| new.id);
    let all_new = |known: &EntryIds| !ids().any(|id| known.contains(&id));
    let found = if live.ids.as_ref().is_some_and(all_new) {
        vec![None; prepared.append.entries.len()]
    } else {
        locate(tx.connection, pk, shared, ids())?
    };
    match settle(&to.id, end.head, &prepared.append, &found, holds)? {
        Settled::Repeat(start) => Ok(Answer::Repeated(Appended {
            session: to.id.clone(),
            entries: crate::read::decoded(
                tx.connection,
                &to.id,
                end,
                start,
                prepared.append.entries.len(),
            )?,
            how: How::Repeated,
        })),
        Settled::Append { rebased } => {
            let places = push(tx, to, prepared, rebased)?;
            use_blobs(tx, pk, &blobs)?;
            Ok(Answer::Placed {
                session: to.id.clone(),
                rebased,
                how: match rebased {
                    None => How::Appended,
                    Some(_) => How::Rebased,
                },
                places,
            })
        }
        Settled::Fork(at) => {
            let OnConflict::Fork(birth) = &prepared.append.on_conflict else {
                return Err(StoreError::Unsupported("fork without a birth"));
            };
            let fork = to.owner.session(&birth.id);
            if rows::find(tx.connection, &fork)?.is_none() {
                crate::fork::fork(tx, to, at, (**birth).clone())?;
            }
            let into = prepared.to_fork();
            let mut answer = append(tx, &fork, &into)?;
            if let Answer::Placed { how, .. } = &mut answer {
                *how = How::Forked;
            }
            Ok(answer)
        }
    }
}

/// Where in the session's own part of the log each of the ids is.
pub(crate) fn locate(
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
                .query_row(params![id.as_bytes(), pk, rows::seq(shared)], |row| {
                    row.get(0)
                })
                .optional()
                .map(|seq| seq.map(rows::to_seq))
                .map_err(failed)
        })
        .collect()
}

/// Appends to the head, whatever it is.
fn push(
    tx: &mut Tx<'_>,
    to: &SessionRef,
    prepared: &Prepared,
    rebased: Option<Seq>,
) -> Result<Vec<(Seq, Digest)>, StoreError> {
    let mut live = tx.take(to)?;
    let new_ids = prepared.append.entries.iter().map(|new| new.id);
    let remembered = live.ids.as_mut().map(|ids| ids.extend(new_ids)).is_some();
    let mut insert = Insert::new(tx)?;
    let mut places = Vec::with_capacity(prepared.append.entries.len());
    for (new, (payload, hash)) in prepared.append.entries.iter().zip(&prepared.payloads) {
        let marked = rebased.map(|_| encode(new, rebased)).transpose()?;
        let (payload, hash) = marked.as_ref().map_or((payload, hash), |(p, h)| (p, h));
        let card = &live.record.card;
        let (seq, at) = (card.head.next(), to_micros(new.at));
        let digest = card.digest.chain(seq, new.id, at, hash);
        let row = NewRow {
            seq,
            id: new.id,
            at,
            digest,
            payload,
        };
        insert.write(tx, &mut live, &row, &new.body)?;
        places.push((seq, digest));
    }
    tx.put(to, live);
    if remembered {
        tx.remember_ids(places.len());
    }
    Ok(places)
}

/// An entry to be written.
struct NewRow<'a> {
    seq: Seq,
    id: EntryId,
    at: Timestamp,
    digest: Digest,
    payload: &'a str,
}

/// The statement that writes entries, made once for all that are written together.
struct Insert<'a>(CachedStatement<'a>);

impl<'a> Insert<'a> {
    fn new(tx: &mut Tx<'a>) -> Result<Self, StoreError> {
        let insert = tx.change(
            "INSERT INTO entry (pk, session, seq, back, jump, id, at, digest, payload)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        );
        Ok(Self(insert.map_err(during("appending"))?))
    }

    /// Writes one entry after the head and takes it into the record.
    fn write(
        &mut self,
        tx: &mut Tx<'_>,
        live: &mut Live,
        row: &NewRow<'_>,
        body: &Body,
    ) -> Result<(), StoreError> {
        let (back, jump) = live.anchors.next();
        let position = tx.position()?;
        self.0
            .execute(params![
                position,
                live.pk,
                rows::seq(row.seq),
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
        if is_kept(row.seq) {
            write_snapshot(tx, live.pk, &live.record)?;
        }
        Ok(())
    }
}

/// Whether the record is kept at this entry.
pub(crate) fn is_kept(seq: Seq) -> bool {
    seq.0.is_multiple_of(SNAPSHOT_EVERY)
}

/// Keeps the record as it is at its head.
pub(crate) fn write_snapshot(tx: &mut Tx<'_>, pk: i64, record: &Record) -> Result<(), StoreError> {
    let failed = during("keeping a record");
    let json = serde_json::to_string(record).map_err(|e| damaged("a record has no JSON", e))?;
    tx.change("INSERT OR REPLACE INTO snapshot (session, seq, json) VALUES (?1, ?2, ?3)")
        .map_err(failed)?
        .execute(params![pk, rows::seq(record.card.head), json])
        .map_err(failed)?;
    Ok(())
}

/// The numbers of attachments, all of which must be there.
fn blobs(tx: &Tx<'_>, of: &SessionRef, digests: &[Digest]) -> Result<Vec<i64>, StoreError> {
    let failed = during("looking up attachments");
    digests
        .iter()
        .map(|digest| {
            tx.query(
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

pub(crate) fn use_blobs(tx: &mut Tx<'_>, session: i64, blobs: &[i64]) -> Result<(), StoreError> {
    for blob in blobs {
        tx.change("INSERT OR IGNORE INTO blob_use (session, blob) VALUES (?1, ?2)")
            .and_then(|mut insert| insert.execute([session, *blob]))
            .map_err(during("noting an attachment"))?;
    }
    Ok(())
}

/// Brings in a log as it is, after checking that it continues what is there.
fn adopt(
    tx: &mut Tx<'_>,
    owner: &Owner,
    birth: &Birth,
    entries: &[StoredEntry],
) -> Result<u64, StoreError> {
    let to = owner.session(&birth.id);
    if rows::find(tx.connection, &to)?.is_none() {
        refuse_taken_key(tx, owner, birth)?;
        tx.insert_session(owner, birth, End::EMPTY, &Record::new(birth))?;
    }
    let mut new = 0;
    for stored in entries {
        let live = tx.live(&to)?;
        let (pk, end) = (live.pk, live.anchors.end());
        let (head, digest) = (end.head, live.record.card.digest);
        let diverged = || StoreError::Moved {
            id: birth.id.clone(),
            expected: Seq(stored.seq.0.saturating_sub(1)),
            found: head,
        };
        if stored.seq <= head {
            let here = Read::between(stored.seq, stored.seq, 1);
            let kept = crate::read::stored(tx.connection, end, here)?;
            if kept.first().is_none_or(|kept| kept.digest != stored.digest) {
                return Err(diverged());
            }
            continue;
        }
        if stored.seq != head.next() {
            return Err(diverged());
        }
        refuse_large_entry(&stored.payload)?;
        verify(&to.id, stored, &digest)?;
        let entry = decode(&to.id, stored)?;
        let mut live = tx.take(&to)?;
        let row = NewRow {
            seq: stored.seq,
            id: stored.id,
            at: stored.at,
            digest: stored.digest,
            payload: &stored.payload,
        };
        live.ids = None;
        Insert::new(tx)?.write(tx, &mut live, &row, &entry.body)?;
        tx.put(&to, live);
        note_attachments(tx, &to, pk, &entry)?;
        new += 1;
    }
    Ok(new)
}

/// Notes the attachments of an adopted entry that are here; others may yet come.
fn note_attachments(
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
        match blobs(tx, of, &[attachment.blob]) {
            Ok(found) => use_blobs(tx, pk, &found)?,
            Err(StoreError::NoSuchBlob(_)) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

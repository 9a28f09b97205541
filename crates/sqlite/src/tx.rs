//! One write transaction, and what the writer remembers between them.
//!
//! The records of sessions lately written are kept in memory, so that an append need
//! not read what it is about to change. They are trusted only as long as the database
//! says that no other connection has written. Cards are written once a session and
//! transaction, however many appends it got.

use std::collections::HashMap;
use std::time::Instant;

use rusqlite::{CachedStatement, Connection, OptionalExtension, ToSql, params};
use throughline_model::{Owner, Record, Seq, SessionHeader, SessionId, SessionInfo, SessionRef};
use throughline_store::{EntryIds, SessionEvent, StoreError};

use crate::busy_handler::with_busy_deadline;
use crate::error::{commit_failure, damaged, during};
use crate::migrate::refuse_newer_schema;
use crate::rows;
use crate::skip_list::{JumpPointers, LogEnd};

/// How many sessions' records are remembered.
const MAX_CACHED_SESSIONS: usize = 4_096;
/// How many entries' ids are remembered, of all of them together.
const MAX_CACHED_IDS: usize = 1 << 18;

/// What the writer remembers between transactions.
#[derive(Debug, Default)]
pub(crate) struct SessionCache {
    sessions: HashMap<SessionRef, CachedSession>,
    owners: HashMap<Owner, i64>,
    /// The last position in the feed, where it is known.
    position: Option<i64>,
    version: i64,
    /// How many ids the sessions remember.
    cached_ids: usize,
}

impl SessionCache {
    pub(crate) fn clear(&mut self) {
        self.sessions.clear();
        self.owners.clear();
        self.position = None;
        self.cached_ids = 0;
    }

    /// So many more ids are remembered; if they are too many, none are.
    fn count_cached_ids(&mut self, more: usize) {
        self.cached_ids += more;
        if self.cached_ids > MAX_CACHED_IDS {
            self.cached_ids = 0;
            for live in self.sessions.values_mut() {
                live.ids = None;
            }
        }
    }
}

/// A session in use, as the writer knows it.
#[derive(Debug, Clone)]
pub(crate) struct CachedSession {
    /// Its number.
    pub(crate) pk: i64,
    /// Its owner's number.
    pub(crate) owner: i64,
    /// How many entries it shares with its origin.
    pub(crate) shared: Seq,
    /// What is known about it.
    pub(crate) record: Record,
    /// What its next entries will lead back to.
    pub(crate) anchors: JumpPointers,
    /// The ids of all its own entries, where it was made lately and they are remembered:
    /// then none need be looked up to know that an entry is new.
    pub(crate) ids: Option<EntryIds>,
    /// What of `record` has been written.
    saved_state_seq: Seq,
    /// The card as it was last written whole.
    saved_info: Option<SessionInfo>,
    /// Whether it is among those to be written.
    dirty: bool,
}

impl CachedSession {
    fn new(pk: i64, owner: i64, shared: Seq, record: Record, anchors: JumpPointers) -> Self {
        Self {
            pk,
            owner,
            shared,
            anchors,
            ids: None,
            saved_state_seq: record.state.changed,
            saved_info: Some(record.info.clone()),
            record,
            dirty: false,
        }
    }
}

/// A write transaction.
pub(crate) struct Tx<'a> {
    pub(crate) connection: &'a Connection,
    cache: &'a mut SessionCache,
    dirty: Vec<SessionRef>,
    /// Whether the job that is running has changed anything.
    pub(crate) changed: bool,
    secure_delete: bool,
    /// Whether other connections have written since the last transaction.
    pub(crate) others_wrote: bool,
}

impl<'a> Tx<'a> {
    /// Begins, if need be after waiting for others until `deadline`.
    pub(crate) fn begin(
        connection: &'a Connection,
        cache: &'a mut SessionCache,
        deadline: Instant,
    ) -> Result<Self, StoreError> {
        let failed = during("starting to write");
        let begin = || -> rusqlite::Result<usize> {
            connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])
        };
        with_busy_deadline(deadline, begin).map_err(failed)?;
        let version: i64 = connection
            .prepare_cached("PRAGMA data_version")
            .and_then(|mut pragma| pragma.query_row([], |row| row.get(0)))
            .map_err(failed)?;
        let others_wrote = version != cache.version;
        if others_wrote {
            refuse_newer_schema(connection)?;
        }
        if others_wrote || cache.sessions.len() > MAX_CACHED_SESSIONS {
            cache.clear();
            cache.version = version;
        }
        Ok(Self {
            connection,
            cache,
            dirty: Vec::new(),
            changed: false,
            secure_delete: false,
            others_wrote,
        })
    }

    /// Commits, and tells whether something was overwritten.
    pub(crate) fn commit(mut self) -> Result<bool, StoreError> {
        self.flush()?;
        self.connection
            .prepare_cached("COMMIT")
            .and_then(|mut commit| commit.execute([]))
            .map_err(commit_failure)?;
        if self.secure_delete {
            // It is committed, whatever comes of this: to go on overwriting costs only time.
            let _ = self.connection.pragma_update(None, "secure_delete", false);
        }
        Ok(self.secure_delete)
    }

    /// From here on, what is deleted is overwritten and not just forgotten.
    pub(crate) fn enable_secure_delete(&mut self) -> Result<(), StoreError> {
        self.secure_delete = true;
        self.connection
            .pragma_update(None, "secure_delete", true)
            .map_err(during("preparing to overwrite"))
    }

    /// The next position in the feed: after every entry, and everything else that
    /// happened.
    pub(crate) fn next_position(&mut self) -> Result<i64, StoreError> {
        let last = match self.cache.position {
            Some(last) => last,
            None => crate::change_feed::read_last_position(self.connection)?,
        };
        self.cache.position = Some(last + 1);
        Ok(last + 1)
    }

    /// A statement that changes something.
    pub(crate) fn prepare_write(&mut self, sql: &str) -> rusqlite::Result<CachedStatement<'a>> {
        self.changed = true;
        self.connection.prepare_cached(sql)
    }

    /// A statement that reads.
    pub(crate) fn prepare_read(&self, sql: &str) -> rusqlite::Result<CachedStatement<'a>> {
        self.connection.prepare_cached(sql)
    }

    /// The number of an owner, who becomes known if need be.
    pub(crate) fn ensure_owner(&mut self, owner: &Owner) -> Result<i64, StoreError> {
        if let Some(pk) = self.cache.owners.get(owner) {
            return Ok(*pk);
        }
        let pk = match rows::find_owner(self.connection, owner)? {
            Some(pk) => pk,
            None => self
                .prepare_write("INSERT INTO owner (id) VALUES (?1) RETURNING pk")
                .and_then(|mut insert| insert.query_row([owner.as_str()], |row| row.get(0)))
                .map_err(during("making an owner"))?,
        };
        self.cache.owners.insert(owner.clone(), pk);
        Ok(pk)
    }

    /// A session in use.
    pub(crate) fn load_session(
        &mut self,
        session: &SessionRef,
    ) -> Result<&mut CachedSession, StoreError> {
        if !self.cache.sessions.contains_key(session) {
            let found = rows::find_session(self.connection, session)?
                .ok_or_else(|| StoreError::NoSuchSession(session.id.clone()))?;
            if found.trashed {
                return Err(StoreError::InTrash(session.id.clone()));
            }
            let record = rows::load_record(self.connection, found.pk)?;
            let anchors = JumpPointers::load(self.connection, found.end)?;
            let live = CachedSession::new(found.pk, found.owner, found.shared, record, anchors);
            self.cache.sessions.insert(session.clone(), live);
        }
        self.cache
            .sessions
            .get_mut(session)
            .ok_or_else(|| StoreError::NoSuchSession(session.id.clone()))
    }

    /// A session in use, to be changed and put back. If that fails, so does the
    /// transaction, and everything remembered is forgotten.
    pub(crate) fn take_session(
        &mut self,
        session: &SessionRef,
    ) -> Result<CachedSession, StoreError> {
        self.load_session(session)?;
        self.cache
            .sessions
            .remove(session)
            .ok_or_else(|| StoreError::NoSuchSession(session.id.clone()))
    }

    /// Puts a session back whose record has changed and is to be written.
    pub(crate) fn put_session(&mut self, session: &SessionRef, mut live: CachedSession) {
        self.changed = true;
        if !live.dirty {
            live.dirty = true;
            self.dirty.push(session.clone());
        }
        self.cache.sessions.insert(session.clone(), live);
    }

    /// So many more entries' ids are remembered of sessions.
    pub(crate) fn count_cached_ids(&mut self, more: usize) {
        self.cache.count_cached_ids(more);
    }

    /// Forgets a session: its rows were changed otherwise.
    pub(crate) fn evict_sessions(&mut self) {
        self.cache.sessions.clear();
    }

    /// Makes the rows of a session whose log is, so far, the one that ends at `shared`.
    pub(crate) fn insert_session(
        &mut self,
        owner: &Owner,
        birth: &SessionHeader,
        shared: LogEnd,
        record: &Record,
    ) -> Result<i64, StoreError> {
        let owner_pk = self.ensure_owner(owner)?;
        let failed = during("making a session");
        let parent = birth.lineage.parent().map(SessionId::as_str);
        let columns = rows::info_values(&record.info)?;
        let facts: [(&str, &dyn ToSql); 6] = [
            ("owner", &owner_pk),
            ("id", &birth.id.as_str()),
            (
                "key",
                &birth.key.as_ref().map(throughline_model::Key::as_str),
            ),
            ("parent", &parent),
            ("shared", &rows::seq_to_i64(shared.head)),
            ("head_entry", &shared.entry),
        ];
        let names: Vec<_> = facts
            .iter()
            .map(|(n, _)| *n)
            .chain(rows::INFO_COLUMNS)
            .collect();
        let marks = vec!["?"; names.len()].join(", ");
        let sql = format!(
            "INSERT INTO session ({}) VALUES ({marks})",
            names.join(", ")
        );
        let values: Vec<&dyn ToSql> = facts
            .iter()
            .map(|(_, value)| *value)
            .chain(columns.iter().map(|value| value as &dyn ToSql))
            .collect();
        self.prepare_write(&sql)
            .and_then(|mut insert| insert.execute(values.as_slice()))
            .map_err(failed)?;
        let pk = self.connection.last_insert_rowid();
        let json = serde_json::to_string(birth).map_err(|e| damaged("a birth", e))?;
        self.prepare_write("INSERT INTO birth (session, json) VALUES (?1, ?2)")
            .and_then(|mut insert| insert.execute(params![pk, json]))
            .map_err(failed)?;
        let anchors = JumpPointers::load(self.connection, shared)?;
        let mut live = CachedSession::new(pk, owner_pk, shared.head, record.clone(), anchors);
        // A fork starts with tags and standing that are not yet written for it.
        live.saved_info = None;
        live.saved_state_seq = Seq::ZERO;
        live.ids = Some(EntryIds::default());
        self.put_session(&owner.session(&birth.id), live);
        crate::change_feed::record_event(self, owner, birth.id.as_str(), SessionEvent::Created)?;
        Ok(pk)
    }

    /// Writes what has changed of records: before the commit, and before anything that
    /// reads sessions from the database.
    pub(crate) fn flush(&mut self) -> Result<(), StoreError> {
        for session in std::mem::take(&mut self.dirty) {
            let Some(live) = self.cache.sessions.get_mut(&session) else {
                continue;
            };
            write_record(self.connection, live)?;
        }
        Ok(())
    }
}

/// Writes what has changed of a session's record: after a message, as a rule, only a few
/// columns of its card.
fn write_record(connection: &Connection, live: &mut CachedSession) -> Result<(), StoreError> {
    let card = &live.record.info;
    let entry = live.anchors.end().entry;
    let saved = live.saved_info.as_ref();
    if saved.is_some_and(|saved| rows::differ_in_counts_only(saved, card)) {
        rows::write_counts(connection, live.pk, card, entry)?;
    } else {
        rows::write_info(connection, live.pk, card, entry)?;
        if saved.is_none_or(|saved| saved.tags != card.tags) {
            rows::write_tags(connection, live.owner, live.pk, &card.tags)?;
        }
        live.saved_info = Some(card.clone());
    }
    let standing = &live.record.state;
    if standing.changed != live.saved_state_seq {
        rows::write_state(connection, live.pk, standing)?;
        live.saved_state_seq = standing.changed;
    }
    live.dirty = false;
    Ok(())
}

/// The numbers of the sessions that share entries of `pk`, and up to which.
pub(crate) fn last_shared_seq(connection: &Connection, pk: i64) -> Result<Option<Seq>, StoreError> {
    connection
        .prepare_cached("SELECT max(upto) FROM inherits WHERE base = ?1")
        .and_then(|mut query| {
            query
                .query_row([pk], |row| row.get::<_, Option<i64>>(0))
                .optional()
        })
        .map(|found| found.flatten().map(rows::seq_from_i64))
        .map_err(during("looking for forks"))
}

//! A write transaction, and the session cache that the writer holds between transactions.
//!
//! Records of recently written sessions are cached, so that an append need not read what it is
//! about to change. The cache is valid only while SQLite reports that no other connection has
//! written. Session info is written once per session and transaction, however many appends the
//! session got.

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

/// Maximum number of sessions cached.
const MAX_CACHED_SESSIONS: usize = 4_096;
/// Maximum number of entry ids cached, over all sessions.
const MAX_CACHED_IDS: usize = 1 << 18;

/// What the writer caches between transactions.
#[derive(Debug, Default)]
pub(crate) struct SessionCache {
    sessions: HashMap<SessionRef, CachedSession>,
    owners: HashMap<Owner, i64>,
    /// The last position in the change feed, if known.
    position: Option<i64>,
    version: i64,
    /// Number of entry ids cached over all sessions.
    cached_ids: usize,
}

impl SessionCache {
    pub(crate) fn clear(&mut self) {
        self.sessions.clear();
        self.owners.clear();
        self.position = None;
        self.cached_ids = 0;
    }

    /// Accounts for `more` cached ids; drops all of them if there are too many.
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

/// A cached live session.
#[derive(Debug, Clone)]
pub(crate) struct CachedSession {
    /// The session's row id.
    pub(crate) pk: i64,
    /// The owner's row id.
    pub(crate) owner: i64,
    /// Number of entries shared with the session's origin.
    pub(crate) shared: Seq,
    /// The folded record.
    pub(crate) record: Record,
    /// The row ids that its next entries will link to.
    pub(crate) anchors: JumpPointers,
    /// The ids of all its own entries, if the session was created recently and they are cached:
    /// then a new entry is recognized without a lookup.
    pub(crate) ids: Option<EntryIds>,
    /// The entry up to which the session state in `record` has been written.
    saved_state_seq: Seq,
    /// The session info as last written in full.
    saved_info: Option<SessionInfo>,
    /// Whether it is queued to be written by [`Tx::flush`].
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
    /// Whether the running job has changed anything.
    pub(crate) changed: bool,
    secure_delete: bool,
    /// Whether other connections have written since the last transaction.
    pub(crate) others_wrote: bool,
}

impl<'a> Tx<'a> {
    /// Begins the transaction, waiting for other writers until `deadline`.
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

    /// Commits; returns whether deleted data was overwritten.
    pub(crate) fn commit(mut self) -> Result<bool, StoreError> {
        self.flush()?;
        self.connection
            .prepare_cached("COMMIT")
            .and_then(|mut commit| commit.execute([]))
            .map_err(commit_failure)?;
        if self.secure_delete {
            // The transaction is committed either way: leaving secure delete on only costs
            // time.
            let _ = self.connection.pragma_update(None, "secure_delete", false);
        }
        Ok(self.secure_delete)
    }

    /// From here on, deleted data is overwritten with zeros.
    pub(crate) fn enable_secure_delete(&mut self) -> Result<(), StoreError> {
        self.secure_delete = true;
        self.connection
            .pragma_update(None, "secure_delete", true)
            .map_err(during("preparing to overwrite"))
    }

    /// Returns the next position in the change feed, after every entry and event.
    pub(crate) fn next_position(&mut self) -> Result<i64, StoreError> {
        let last = match self.cache.position {
            Some(last) => last,
            None => crate::change_feed::read_last_position(self.connection)?,
        };
        self.cache.position = Some(last + 1);
        Ok(last + 1)
    }

    /// Prepares a statement that changes something.
    pub(crate) fn prepare_write(&mut self, sql: &str) -> rusqlite::Result<CachedStatement<'a>> {
        self.changed = true;
        self.connection.prepare_cached(sql)
    }

    /// Prepares a statement that only reads.
    pub(crate) fn prepare_read(&self, sql: &str) -> rusqlite::Result<CachedStatement<'a>> {
        self.connection.prepare_cached(sql)
    }

    /// Returns the row id of an owner, inserting the owner if necessary.
    pub(crate) fn ensure_owner(&mut self, owner: &Owner) -> Result<i64, StoreError> {
        if let Some(pk) = self.cache.owners.get(owner) {
            return Ok(*pk);
        }
        let pk = match rows::find_owner(self.connection, owner)? {
            Some(pk) => pk,
            None => self
                .prepare_write("INSERT INTO owner (id) VALUES (?1) RETURNING pk")
                .and_then(|mut insert| insert.query_row([owner.as_str()], |row| row.get(0)))
                .map_err(during("creating an owner"))?,
        };
        self.cache.owners.insert(owner.clone(), pk);
        Ok(pk)
    }

    /// Returns a live session from the cache, loading it if necessary.
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

    /// Takes a live session out of the cache to change it; [`Tx::put_session`] returns it. If
    /// the job fails in between, the transaction fails and the whole cache is dropped.
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

    /// Puts back a session whose record has changed and queues it to be written.
    pub(crate) fn put_session(&mut self, session: &SessionRef, mut live: CachedSession) {
        self.changed = true;
        if !live.dirty {
            live.dirty = true;
            self.dirty.push(session.clone());
        }
        self.cache.sessions.insert(session.clone(), live);
    }

    /// Accounts for `more` cached entry ids.
    pub(crate) fn count_cached_ids(&mut self, more: usize) {
        self.cache.count_cached_ids(more);
    }

    /// Drops all cached sessions, because rows were changed outside the cache.
    pub(crate) fn evict_sessions(&mut self) {
        self.cache.sessions.clear();
    }

    /// Inserts the rows of a new session whose log so far is the one that ends at `shared`.
    pub(crate) fn insert_session(
        &mut self,
        owner: &Owner,
        header: &SessionHeader,
        shared: LogEnd,
        record: &Record,
    ) -> Result<i64, StoreError> {
        let owner_pk = self.ensure_owner(owner)?;
        let failed = during("creating a session");
        let parent = header.lineage.parent().map(SessionId::as_str);
        let columns = rows::info_values(&record.info)?;
        let facts: [(&str, &dyn ToSql); 6] = [
            ("owner", &owner_pk),
            ("id", &header.id.as_str()),
            (
                "key",
                &header.key.as_ref().map(throughline_model::Key::as_str),
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
        let json = serde_json::to_string(header)
            .map_err(|e| damaged("a session header cannot be encoded", e))?;
        self.prepare_write("INSERT INTO birth (session, json) VALUES (?1, ?2)")
            .and_then(|mut insert| insert.execute(params![pk, json]))
            .map_err(failed)?;
        let anchors = JumpPointers::load(self.connection, shared)?;
        let mut live = CachedSession::new(pk, owner_pk, shared.head, record.clone(), anchors);
        // A fork inherits tags and state that have not been written for it yet.
        live.saved_info = None;
        live.saved_state_seq = Seq::ZERO;
        live.ids = Some(EntryIds::default());
        self.put_session(&owner.session(&header.id), live);
        crate::change_feed::record_event(self, owner, header.id.as_str(), SessionEvent::Created)?;
        Ok(pk)
    }

    /// Writes the changed records: before the commit, and before anything that reads sessions
    /// from the database.
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

/// Writes what has changed in a session's record: after a message usually only a few columns of
/// its info.
fn write_record(connection: &Connection, live: &mut CachedSession) -> Result<(), StoreError> {
    let info = &live.record.info;
    let entry = live.anchors.end().entry;
    let saved = live.saved_info.as_ref();
    if saved.is_some_and(|saved| rows::differ_in_counts_only(saved, info)) {
        rows::write_counts(connection, live.pk, info, entry)?;
    } else {
        rows::write_info(connection, live.pk, info, entry)?;
        if saved.is_none_or(|saved| saved.tags != info.tags) {
            rows::write_tags(connection, live.owner, live.pk, &info.tags)?;
        }
        live.saved_info = Some(info.clone());
    }
    let state = &live.record.state;
    if state.changed != live.saved_state_seq {
        rows::write_state(connection, live.pk, state)?;
        live.saved_state_seq = state.changed;
    }
    live.dirty = false;
    Ok(())
}

/// Returns the last entry of session `pk` that any fork shares.
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

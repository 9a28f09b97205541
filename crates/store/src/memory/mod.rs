//! The in-memory store, the reference implementation.
//!
//! Every session holds its whole log and shares the entries with its forks. Forking is
//! slower than in a persistent store, but the code is simple enough to be obviously
//! correct: the random tests of the other stores compare against it.

mod api_tokens;
mod catalog;
mod change_feed;
mod lease;
mod log;
mod maintenance;
mod token_counts;

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use throughline_model::{
    ApiToken, Digest, Entry, EntryId, Lineage, Owner, Project, Record, Seq, SessionHeader,
    SessionId, StoredEntry, Timestamp,
};

use crate::append::{AppendDecision, decide_append};
use crate::{
    Append, AppendKind, AppendOutcome, CreateOutcome, OnConflict, Position, StoreError,
    decode_entry, refuse_large_entry,
};
use change_feed::{StoredChange, StoredChangeKind};
use lease::{Clock, GrantedLease};

/// An in-memory store.
#[derive(Debug, Default)]
pub struct MemoryStore {
    owners: Mutex<BTreeMap<Owner, OwnerData>>,
    /// The position of the last change.
    position: AtomicU64,
    api_tokens: Mutex<Vec<ApiToken>>,
    /// The last fencing token granted.
    last_fencing_token: AtomicU64,
    /// The clock that leases expire by.
    clock: Clock,
}

/// All data of one owner.
#[derive(Debug, Default)]
struct OwnerData {
    sessions: BTreeMap<SessionId, Session>,
    blobs: HashMap<Digest, Vec<u8>>,
    projects: Vec<Project>,
    /// Token counts by encoding and digest: forks share entries, and so counts.
    token_counts: HashMap<(String, Digest), u64>,
    /// The changes, in order.
    changes: Vec<(Position, StoredChange)>,
    /// New changes that have no position yet.
    pending_changes: Vec<StoredChange>,
    /// Leases by name.
    leases: HashMap<String, GrantedLease>,
}

#[derive(Debug, Clone)]
struct Session {
    header: SessionHeader,
    record: Record,
    log: Vec<Arc<StoredEntry>>,
    trashed_at: Option<Timestamp>,
}

impl MemoryStore {
    /// Creates an empty store.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates an empty store whose leases expire by this clock: for tests and
    /// simulations.
    pub fn with_clock(now: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        Self {
            clock: Clock::new(now),
            ..Self::default()
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Owner, OwnerData>> {
        // A panic elsewhere cannot leave a partial change: each is applied at once.
        self.owners.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with_owner<T>(&self, owner: &Owner, f: impl FnOnce(&mut OwnerData) -> T) -> T {
        let mut spaces = self.lock();
        let space = spaces.entry(owner.clone()).or_default();
        let done = f(space);
        for happened in std::mem::take(&mut space.pending_changes) {
            // Under the lock, so that positions and changes have the same order.
            let position = self.position.fetch_add(1, Ordering::Relaxed) + 1;
            space.changes.push((Position(position), happened));
        }
        done
    }
}

impl OwnerData {
    fn record_change(&mut self, session: &SessionId, what: StoredChangeKind) {
        let session = session.clone();
        self.pending_changes.push(StoredChange {
            session,
            kind: what,
        });
    }

    fn live_session(&mut self, id: &SessionId) -> Result<&mut Session, StoreError> {
        match self.sessions.get_mut(id) {
            None => Err(StoreError::NoSuchSession(id.clone())),
            Some(session) if session.trashed_at.is_some() => Err(StoreError::InTrash(id.clone())),
            Some(session) => Ok(session),
        }
    }

    fn create(&mut self, header: SessionHeader) -> Result<CreateOutcome, StoreError> {
        if let Some(key) = &header.key {
            let holder = self.sessions.values().find(|session| {
                session.trashed_at.is_none() && session.header.key.as_ref() == Some(key)
            });
            if let Some(session) = holder {
                return Ok(CreateOutcome {
                    record: session.record.clone(),
                    existed: true,
                });
            }
        }
        if let Some(session) = self.sessions.get(&header.id) {
            if session.header == header && session.trashed_at.is_none() {
                return Ok(CreateOutcome {
                    record: session.record.clone(),
                    existed: true,
                });
            }
            return Err(StoreError::SessionExists(header.id));
        }
        let record = Record::new(&header);
        let session = Session {
            record: record.clone(),
            log: Vec::new(),
            trashed_at: None,
            header,
        };
        self.record_change(&session.header.id.clone(), StoredChangeKind::Created);
        self.sessions.insert(session.header.id.clone(), session);
        Ok(CreateOutcome {
            record,
            existed: false,
        })
    }

    fn fork(
        &mut self,
        of: &SessionId,
        at: Seq,
        mut header: SessionHeader,
    ) -> Result<Record, StoreError> {
        let origin = self.live_session(of)?.clone();
        if at > origin.record.info.head {
            return Err(StoreError::NoSuchEntry {
                id: of.clone(),
                seq: at,
                head: origin.record.info.head,
            });
        }
        header.lineage = Lineage::Forked {
            session: of.clone(),
            at,
        };
        let shared = &origin.log[..seq_to_usize(at)];
        let (header, record) = fold_log(&origin.header, shared)?.fork(header);
        if let Some(existing) = self.sessions.get(&header.id) {
            if existing.header == header && existing.trashed_at.is_none() {
                return Ok(existing.record.clone());
            }
            return Err(StoreError::SessionExists(header.id));
        }
        if let Some(key) = &header.key {
            self.reject_taken_key(key)?;
        }
        self.record_change(&header.id, StoredChangeKind::Created);
        self.sessions.insert(
            header.id.clone(),
            Session {
                header,
                record: record.clone(),
                log: shared.to_vec(),
                trashed_at: None,
            },
        );
        Ok(record)
    }

    /// The session that an entry was appended to: this one, or one that it shares the
    /// entry with.
    fn find_appended_session(&self, id: &SessionId, seq: Seq) -> SessionId {
        match self.sessions.get(id).map(|session| &session.header.lineage) {
            Some(Lineage::Forked { session, at }) if seq <= *at => {
                self.find_appended_session(session, seq)
            }
            _ => id.clone(),
        }
    }

    fn reject_taken_key(&self, key: &throughline_model::Key) -> Result<(), StoreError> {
        let holder = self.sessions.values().find(|session| {
            session.trashed_at.is_none() && session.header.key.as_ref() == Some(key)
        });
        match holder {
            None => Ok(()),
            Some(session) => Err(StoreError::KeyTaken {
                key: key.clone(),
                held_by: session.header.id.clone(),
            }),
        }
    }

    fn append(&mut self, id: &SessionId, append: Append) -> Result<AppendOutcome, StoreError> {
        for attachment in append
            .entries
            .iter()
            .filter_map(|new| new.body.message())
            .flat_map(|message| message.content.attachments())
        {
            if !self.blobs.contains_key(&attachment.blob) {
                return Err(StoreError::NoSuchBlob(attachment.blob));
            }
        }
        let holds = self.is_fence_held(append.fence.as_ref());
        let session = self.live_session(id)?;
        let ids: Vec<_> = append.entries.iter().map(|new| new.id).collect();
        let found = session.locate(&ids);
        match decide_append(id, session.record.info.head, &append, &found, holds)? {
            AppendDecision::Repeat(start) => {
                let from = seq_to_usize(start) - 1;
                let entries = session.log[from..from + ids.len()]
                    .iter()
                    .map(|stored| decode_entry(id, stored))
                    .collect::<Result<_, _>>()?;
                Ok(AppendOutcome {
                    session: id.clone(),
                    entries,
                    kind: AppendKind::Repeated,
                })
            }
            AppendDecision::Append { rebased } => {
                let entries = session.append_entries(&append, rebased)?;
                for entry in &entries {
                    self.record_change(id, StoredChangeKind::Appended(entry.seq));
                }
                Ok(AppendOutcome {
                    session: id.clone(),
                    entries,
                    kind: match rebased {
                        None => AppendKind::Appended,
                        Some(_) => AppendKind::Rebased,
                    },
                })
            }
            AppendDecision::Fork(at) => {
                let OnConflict::Fork(header) = append.on_conflict else {
                    return Err(StoreError::Unsupported("fork without a header"));
                };
                let fork = header.id.clone();
                if !self.sessions.contains_key(&fork) {
                    self.fork(id, at, *header)?;
                }
                let late = Append {
                    fence: append.fence,
                    ..Append::unconditional(append.entries)
                };
                let mut appended = self.append(&fork, late)?;
                if appended.kind == AppendKind::Appended {
                    appended.kind = AppendKind::Forked;
                }
                Ok(appended)
            }
        }
    }
}

impl Session {
    /// The positions of the entries in the part that this session does not share with
    /// its origin.
    fn locate(&self, ids: &[EntryId]) -> Vec<Option<Seq>> {
        let shared = match self.header.lineage {
            Lineage::Forked { at, .. } => seq_to_usize(at),
            Lineage::Root | Lineage::Continued { .. } => 0,
        };
        let own = self.log.iter().skip(shared);
        let by_id: HashMap<_, _> = own.map(|entry| (entry.id, entry.seq)).collect();
        ids.iter().map(|id| by_id.get(id).copied()).collect()
    }

    fn append_entries(
        &mut self,
        append: &Append,
        rebased: Option<Seq>,
    ) -> Result<Vec<Entry>, StoreError> {
        let mut record = self.record.clone();
        let mut log = Vec::new();
        let mut entries = Vec::new();
        for new in &append.entries {
            let info = &record.info;
            let stored = StoredEntry::from_new(&info.digest, info.head.next(), new, rebased)
                .map_err(|source| encoding_error(source.into()))?;
            refuse_large_entry(&stored.payload)?;
            let entry = decode_entry(&self.header.id, &stored)?;
            record.apply(&entry);
            log.push(Arc::new(stored));
            entries.push(entry);
        }
        self.record = record;
        self.log.append(&mut log);
        Ok(entries)
    }
}

fn encoding_error(source: crate::BoxError) -> StoreError {
    StoreError::Backend {
        during: "encoding an entry",
        source,
    }
}

fn seq_to_usize(seq: Seq) -> usize {
    usize::try_from(seq.0).unwrap_or(usize::MAX)
}

fn fold_log(header: &SessionHeader, log: &[Arc<StoredEntry>]) -> Result<Record, StoreError> {
    let mut record = Record::new(header);
    for stored in log {
        record.apply(&decode_entry(&header.id, stored)?);
    }
    Ok(record)
}

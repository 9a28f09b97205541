//! The store in memory: the simplest thing that is right.
//!
//! Every session holds its whole log, shared entry by entry with its forks. Slower to
//! fork than a store that lasts, and impossible to get wrong: it is what the random
//! tests of the others are compared with.

mod access;
mod catalog;
mod feed;
mod lease;
mod log;
mod tokens;
mod upkeep;

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use throughline_model::{
    Birth, Digest, Entry, EntryId, Lineage, Owner, Project, Record, Seq, SessionId, StoredEntry,
    Timestamp, Token,
};

use crate::append::{Settled, settle};
use crate::{
    Append, Appended, Created, How, OnConflict, Position, StoreError, decode, refuse_large_entry,
};
use feed::{Happened, Told};
use lease::{Clock, GrantedLease};

/// A store that lives as long as the program.
#[derive(Debug, Default)]
pub struct MemoryStore {
    spaces: Mutex<BTreeMap<Owner, Space>>,
    /// The position of the last change.
    position: AtomicU64,
    access: Mutex<Vec<Token>>,
    /// How many leases were ever taken.
    leased: AtomicU64,
    /// By which leases expire.
    clock: Clock,
}

/// Everything of one owner.
#[derive(Debug, Default)]
struct Space {
    sessions: BTreeMap<SessionId, Session>,
    blobs: HashMap<Digest, Vec<u8>>,
    projects: Vec<Project>,
    /// What entries cost, by encoding and digest: forks share entries, and so counts.
    tokens: HashMap<(String, Digest), u64>,
    /// What happened, in order.
    happened: Vec<(Position, Happened)>,
    /// What has just happened and has no position yet.
    news: Vec<Happened>,
    /// Who does what alone, by its name.
    leases: HashMap<String, GrantedLease>,
}

#[derive(Debug, Clone)]
struct Session {
    birth: Birth,
    record: Record,
    log: Vec<Arc<StoredEntry>>,
    trashed: Option<Timestamp>,
}

impl MemoryStore {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty store whose leases expire by this clock: for tests and simulations.
    pub fn with_clock(now: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        Self {
            clock: Clock::new(now),
            ..Self::default()
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Owner, Space>> {
        // A panic elsewhere cannot leave a half-made change: each is made in one go.
        self.spaces.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with<T>(&self, owner: &Owner, f: impl FnOnce(&mut Space) -> T) -> T {
        let mut spaces = self.lock();
        let space = spaces.entry(owner.clone()).or_default();
        let done = f(space);
        for happened in std::mem::take(&mut space.news) {
            // Under the lock: positions and changes come in one order.
            let position = self.position.fetch_add(1, Ordering::Relaxed) + 1;
            space.happened.push((Position(position), happened));
        }
        done
    }
}

impl Space {
    fn tell(&mut self, session: &SessionId, what: Told) {
        let session = session.clone();
        self.news.push(Happened { session, what });
    }

    fn live(&mut self, id: &SessionId) -> Result<&mut Session, StoreError> {
        match self.sessions.get_mut(id) {
            None => Err(StoreError::NoSuchSession(id.clone())),
            Some(session) if session.trashed.is_some() => Err(StoreError::InTrash(id.clone())),
            Some(session) => Ok(session),
        }
    }

    fn create(&mut self, birth: Birth) -> Result<Created, StoreError> {
        if let Some(key) = &birth.key {
            let holder = self.sessions.values().find(|session| {
                session.trashed.is_none() && session.birth.key.as_ref() == Some(key)
            });
            if let Some(session) = holder {
                return Ok(Created {
                    record: session.record.clone(),
                    existed: true,
                });
            }
        }
        if let Some(session) = self.sessions.get(&birth.id) {
            if session.birth == birth && session.trashed.is_none() {
                return Ok(Created {
                    record: session.record.clone(),
                    existed: true,
                });
            }
            return Err(StoreError::SessionExists(birth.id));
        }
        let record = Record::new(&birth);
        let session = Session {
            record: record.clone(),
            log: Vec::new(),
            trashed: None,
            birth,
        };
        self.tell(&session.birth.id.clone(), Told::Created);
        self.sessions.insert(session.birth.id.clone(), session);
        Ok(Created {
            record,
            existed: false,
        })
    }

    fn fork(&mut self, of: &SessionId, at: Seq, mut birth: Birth) -> Result<Record, StoreError> {
        let origin = self.live(of)?.clone();
        if at > origin.record.card.head {
            return Err(StoreError::NoSuchEntry {
                id: of.clone(),
                seq: at,
                head: origin.record.card.head,
            });
        }
        birth.lineage = Lineage::Forked {
            session: of.clone(),
            at,
        };
        let shared = &origin.log[..usize_of(at)];
        let (birth, record) = fold(&origin.birth, shared)?.fork(birth);
        if let Some(existing) = self.sessions.get(&birth.id) {
            if existing.birth == birth && existing.trashed.is_none() {
                return Ok(existing.record.clone());
            }
            return Err(StoreError::SessionExists(birth.id));
        }
        if let Some(key) = &birth.key {
            self.refuse_taken_key(key)?;
        }
        self.tell(&birth.id, Told::Created);
        self.sessions.insert(
            birth.id.clone(),
            Session {
                birth,
                record: record.clone(),
                log: shared.to_vec(),
                trashed: None,
            },
        );
        Ok(record)
    }

    /// The session that an entry was appended to: this one, or one it shares it with.
    fn home(&self, id: &SessionId, seq: Seq) -> SessionId {
        match self.sessions.get(id).map(|session| &session.birth.lineage) {
            Some(Lineage::Forked { session, at }) if seq <= *at => self.home(session, seq),
            _ => id.clone(),
        }
    }

    fn refuse_taken_key(&self, key: &throughline_model::Key) -> Result<(), StoreError> {
        let holder = self
            .sessions
            .values()
            .find(|session| session.trashed.is_none() && session.birth.key.as_ref() == Some(key));
        match holder {
            None => Ok(()),
            Some(session) => Err(StoreError::KeyTaken {
                key: key.clone(),
                held_by: session.birth.id.clone(),
            }),
        }
    }

    fn append(&mut self, id: &SessionId, append: Append) -> Result<Appended, StoreError> {
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
        let holds = self.holds(append.fence.as_ref());
        let session = self.live(id)?;
        let ids: Vec<_> = append.entries.iter().map(|new| new.id).collect();
        let found = session.locate(&ids);
        match settle(id, session.record.card.head, &append, &found, holds)? {
            Settled::Repeat(start) => {
                let from = usize_of(start) - 1;
                let entries = session.log[from..from + ids.len()]
                    .iter()
                    .map(|stored| decode(id, stored))
                    .collect::<Result<_, _>>()?;
                Ok(Appended {
                    session: id.clone(),
                    entries,
                    how: How::Repeated,
                })
            }
            Settled::Append { rebased } => {
                let entries = session.push(&append, rebased)?;
                for entry in &entries {
                    self.tell(id, Told::Appended(entry.seq));
                }
                Ok(Appended {
                    session: id.clone(),
                    entries,
                    how: match rebased {
                        None => How::Appended,
                        Some(_) => How::Rebased,
                    },
                })
            }
            Settled::Fork(at) => {
                let OnConflict::Fork(birth) = append.on_conflict else {
                    return Err(StoreError::Unsupported("fork without a birth"));
                };
                let fork = birth.id.clone();
                if !self.sessions.contains_key(&fork) {
                    self.fork(id, at, *birth)?;
                }
                let late = Append {
                    fence: append.fence,
                    ..Append::any(append.entries)
                };
                let mut appended = self.append(&fork, late)?;
                if appended.how == How::Appended {
                    appended.how = How::Forked;
                }
                Ok(appended)
            }
        }
    }
}

impl Session {
    /// Where the entries are in what this session does not share with its origin.
    fn locate(&self, ids: &[EntryId]) -> Vec<Option<Seq>> {
        let shared = match self.birth.lineage {
            Lineage::Forked { at, .. } => usize_of(at),
            Lineage::Root | Lineage::Continued { .. } => 0,
        };
        let own = self.log.iter().skip(shared);
        let by_id: HashMap<_, _> = own.map(|entry| (entry.id, entry.seq)).collect();
        ids.iter().map(|id| by_id.get(id).copied()).collect()
    }

    fn push(&mut self, append: &Append, rebased: Option<Seq>) -> Result<Vec<Entry>, StoreError> {
        let mut record = self.record.clone();
        let mut log = Vec::new();
        let mut entries = Vec::new();
        for new in &append.entries {
            let card = &record.card;
            let stored = StoredEntry::after(&card.digest, card.head.next(), new, rebased)
                .map_err(|source| encoding(source.into()))?;
            refuse_large_entry(&stored.payload)?;
            let entry = decode(&self.birth.id, &stored)?;
            record.apply(&entry);
            log.push(Arc::new(stored));
            entries.push(entry);
        }
        self.record = record;
        self.log.append(&mut log);
        Ok(entries)
    }
}

fn encoding(source: crate::BoxError) -> StoreError {
    StoreError::Backend {
        during: "encoding an entry",
        source,
    }
}

fn usize_of(seq: Seq) -> usize {
    usize::try_from(seq.0).unwrap_or(usize::MAX)
}

fn fold(birth: &Birth, log: &[Arc<StoredEntry>]) -> Result<Record, StoreError> {
    let mut record = Record::new(birth);
    for stored in log {
        record.apply(&decode(&birth.id, stored)?);
    }
    Ok(record)
}

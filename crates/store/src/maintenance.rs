//! Proving that a store is sound, and mending what can be derived.

use std::path::Path;

use async_trait::async_trait;
use serde::Serialize;
use throughline_model::{Digest, Owner, Record, Seq, SessionId, StoredEntry};

use crate::{Lease, StoreError};

/// Something that is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "finding", rename_all = "snake_case")]
pub enum Finding {
    /// The file itself is damaged.
    File {
        /// What the database says of it.
        what: String,
    },
    /// An entry is not what was appended, or is missing.
    Entry {
        /// Whose session.
        owner: Owner,
        /// Which session.
        session: SessionId,
        /// Which entry.
        seq: Seq,
        /// What is wrong with it.
        what: String,
    },
    /// What is kept beside the log is not what follows from it. A rebuild mends it.
    Derived {
        /// Whose session.
        owner: Owner,
        /// Which session.
        session: SessionId,
        /// What is not right.
        what: String,
    },
    /// An attachment's bytes are not those that were put, or not here.
    Blob {
        /// The digest it was put under.
        digest: Digest,
        /// Whether they are not here at all.
        missing: bool,
    },
}

impl Finding {
    /// Whether rebuilding what is derived mends it.
    pub fn is_rebuildable(&self) -> bool {
        match self {
            Self::Derived { .. } => true,
            Self::File { .. } | Self::Entry { .. } | Self::Blob { .. } => false,
        }
    }
}

/// What a check found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CheckReport {
    /// Sessions looked at.
    pub sessions: u64,
    /// Entries looked at.
    pub entries: u64,
    /// Attachments looked at.
    pub blobs: u64,
    /// What is not as it should be.
    pub findings: Vec<Finding>,
}

/// Told how far long work has come: done, of how many, in entries.
pub type ProgressCallback<'a> = &'a (dyn Fn(u64, u64) + Send + Sync);

/// Keeps a store sound. These calls see every owner's sessions and return none of
/// what was said in them.
#[async_trait]
pub trait Maintenance: Send + Sync {
    /// Everybody who has sessions here.
    async fn owners(&self) -> Result<Vec<Owner>, StoreError>;

    /// Every lease that was taken and not given back, of all owners, whether it has run out
    /// or not. Takes none of them.
    async fn leases(&self) -> Result<Vec<Lease>, StoreError>;

    /// Checks the file, every chain, and that everything derived equals its fold.
    async fn check(&self, progress: ProgressCallback<'_>) -> Result<CheckReport, StoreError>;

    /// Makes everything derived anew from the logs.
    async fn rebuild(&self, progress: ProgressCallback<'_>) -> Result<CheckReport, StoreError>;

    /// Makes a consistent copy in a new file while others go on writing.
    async fn backup(&self, to: &Path, progress: ProgressCallback<'_>) -> Result<(), StoreError>;

    /// How many bytes the store takes.
    async fn size(&self) -> Result<u64, StoreError>;

    /// Waits until everything under way is done and lets go of the store.
    async fn close(&self) -> Result<(), StoreError>;
}

/// Checks one log entry by entry, and folds it on the way.
#[derive(Debug)]
pub struct LogChecker {
    owner: Owner,
    session: SessionId,
    /// The fold so far.
    pub record: Record,
    broken: bool,
}

impl LogChecker {
    /// Starts from what stood before the first entry to come.
    pub fn new(owner: Owner, base: Record) -> Self {
        Self {
            owner,
            session: base.info.id.clone(),
            record: base,
            broken: false,
        }
    }

    /// Looks at the next entry. After the first finding there is no chain to go on from.
    pub fn check_entry(&mut self, stored: &StoredEntry) -> Option<Finding> {
        if self.broken {
            return None;
        }
        let expected = self.record.info.head.next();
        let what = if stored.seq == expected {
            let sound = stored
                .verify(&self.record.info.digest)
                .and_then(|()| stored.decode());
            match sound {
                Ok(entry) => {
                    self.record.apply(&entry);
                    return None;
                }
                Err(error) => error.to_string(),
            }
        } else {
            "it is missing".to_owned()
        };
        self.broken = true;
        Some(Finding::Entry {
            owner: self.owner.clone(),
            session: self.session.clone(),
            seq: expected,
            what,
        })
    }

    /// Compares what is kept beside the log with what follows from it.
    pub fn finish(self, kept: &Record) -> Option<Finding> {
        if self.broken || self.record == *kept {
            return None;
        }
        if kept.info.head > self.record.info.head {
            return Some(Finding::Entry {
                owner: self.owner,
                session: self.session,
                seq: self.record.info.head.next(),
                what: format!("it and all up to {} are missing", kept.info.head),
            });
        }
        let what = if self.record.info == kept.info {
            "what stands (pins, decisions, checkpoints) is not the fold of its log"
        } else {
            "its card is not the fold of its log"
        };
        Some(Finding::Derived {
            owner: self.owner,
            session: self.session,
            what: what.to_owned(),
        })
    }
}

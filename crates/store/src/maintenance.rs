//! The trait for checking a store, rebuilding derived data, and backups.

use std::path::Path;

use async_trait::async_trait;
use serde::Serialize;
use throughline_model::{Digest, Owner, Record, Seq, SessionId, StoredEntry};

use crate::{Lease, StoreError};

/// A problem found by a check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "finding", rename_all = "snake_case")]
pub enum Finding {
    /// The database file is damaged.
    File {
        /// What the database reports.
        what: String,
    },
    /// An entry is missing or differs from what was appended.
    Entry {
        /// The session's owner.
        owner: Owner,
        /// The session.
        session: SessionId,
        /// The entry.
        seq: Seq,
        /// The problem.
        what: String,
    },
    /// Derived data does not match the log. A rebuild repairs it.
    Derived {
        /// The session's owner.
        owner: Owner,
        /// The session.
        session: SessionId,
        /// The problem.
        what: String,
    },
    /// An attachment's bytes are missing or do not match its digest.
    Blob {
        /// The attachment's digest.
        digest: Digest,
        /// Whether the bytes are missing altogether.
        missing: bool,
    },
}

impl Finding {
    /// Whether rebuilding derived data repairs it.
    pub fn is_rebuildable(&self) -> bool {
        match self {
            Self::Derived { .. } => true,
            Self::File { .. } | Self::Entry { .. } | Self::Blob { .. } => false,
        }
    }
}

/// The result of a check.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CheckReport {
    /// The number of sessions checked.
    pub sessions: u64,
    /// The number of entries checked.
    pub entries: u64,
    /// The number of attachments checked.
    pub blobs: u64,
    /// The problems found.
    pub findings: Vec<Finding>,
}

/// Receives the progress of long operations: entries done, and their total.
pub type ProgressCallback<'a> = &'a (dyn Fn(u64, u64) + Send + Sync);

/// Maintains a store. These calls cover all owners and return no message content.
#[async_trait]
pub trait Maintenance: Send + Sync {
    /// All owners that have sessions here.
    async fn owners(&self) -> Result<Vec<Owner>, StoreError>;

    /// All unreleased leases of all owners, including expired ones. Read-only.
    async fn leases(&self) -> Result<Vec<Lease>, StoreError>;

    /// Checks the database file, every digest chain, and that derived data equals its
    /// fold.
    async fn check(&self, progress: ProgressCallback<'_>) -> Result<CheckReport, StoreError>;

    /// Rebuilds all derived data from the logs.
    async fn rebuild(&self, progress: ProgressCallback<'_>) -> Result<CheckReport, StoreError>;

    /// Writes a consistent copy to a new file while other writers continue.
    async fn backup(&self, to: &Path, progress: ProgressCallback<'_>) -> Result<(), StoreError>;

    /// The size of the store in bytes.
    async fn size(&self) -> Result<u64, StoreError>;

    /// Waits for operations in progress, then closes the store.
    async fn close(&self) -> Result<(), StoreError>;
}

/// Checks one log entry by entry, and folds it along the way.
#[derive(Debug)]
pub struct LogChecker {
    owner: Owner,
    session: SessionId,
    /// The fold so far.
    pub record: Record,
    broken: bool,
}

impl LogChecker {
    /// Starts from the record before the first entry to check.
    pub fn new(owner: Owner, base: Record) -> Self {
        Self {
            owner,
            session: base.info.id.clone(),
            record: base,
            broken: false,
        }
    }

    /// Checks the next entry. After the first finding the rest of the chain cannot be
    /// checked.
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

    /// Compares the stored record with the fold of the log.
    pub fn finish(self, stored: &Record) -> Option<Finding> {
        if self.broken || self.record == *stored {
            return None;
        }
        if stored.info.head > self.record.info.head {
            return Some(Finding::Entry {
                owner: self.owner,
                session: self.session,
                seq: self.record.info.head.next(),
                what: format!(
                    "it and all later entries up to {} are missing",
                    stored.info.head
                ),
            });
        }
        let what = if self.record.info == stored.info {
            "its stored state (pins, decisions, checkpoints) does not match its log"
        } else {
            "its stored info does not match its log"
        };
        Some(Finding::Derived {
            owner: self.owner,
            session: self.session,
            what: what.to_owned(),
        })
    }
}

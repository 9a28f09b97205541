//! Checks what lies beside a store's log: its index, leases, files and their permissions.
//!
//! The store checks itself ([`Throughline::check`]). What is checked here is derived or
//! lies beside it, so that nothing found here means that an entry is lost; but a search may
//! miss entries, or a file may be open to others.
//!
//! Invariant: nothing is changed. In particular an index that is unusable stays as it is,
//! where a search would rebuild it.

mod file_check;
mod index_check;

use std::path::PathBuf;

use jiff::SignedDuration;
use serde::Serialize;
use throughline_model::{Owner, Timestamp};
use throughline_store::{Lease, LeaseHolder};

use crate::{Error, Throughline};

/// No lease is taken for longer than this, by far.
const LONGEST_LEASE: SignedDuration = SignedDuration::from_mins(10);

/// What is wrong with an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum IndexProblem {
    /// Its files are not what was written.
    Damaged,
    /// It cannot be read now: the disk or the database refused.
    Unreadable,
    /// It was made from another history of the store.
    Mismatch,
    /// Entries are not in it that should be.
    Missing,
    /// Passages are in it whose entries are gone.
    Orphaned,
    /// Passages in it differ from their entries.
    Different,
}

/// Something beside the log that is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "finding", rename_all = "snake_case")]
pub enum HealthFinding {
    /// The index cannot be used, or does not agree with the store.
    Index {
        /// What kind of problem it is.
        problem: IndexProblem,
        /// What exactly was found.
        what: String,
    },
    /// A lease that ends later than any is ever taken for: a clock was set back since.
    Lease {
        /// On whose behalf it was taken.
        owner: Owner,
        /// What it is for.
        name: String,
        /// Who took it.
        holder: String,
        /// When it ends.
        expires_at: Timestamp,
    },
    /// A file or folder that no process needs any more.
    Leftover {
        /// Where it is.
        path: PathBuf,
        /// What it was.
        what: &'static str,
    },
    /// Others than the owner may open a file or folder.
    Permissions {
        /// Where it is.
        path: PathBuf,
        /// Its permissions, in octal digits.
        mode: String,
    },
}

/// What to check besides what the store knows of.
#[derive(Clone, Debug, Default)]
pub struct HealthOptions {
    /// The store's file, where it is one.
    pub store_file: Option<PathBuf>,
    /// Folders of the program's that a person may keep files in as well.
    pub shared_folders: Vec<PathBuf>,
    /// Folders that hold nothing but what the program creates.
    pub own_folders: Vec<PathBuf>,
}

/// What a check of everything beside the log found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HealthReport {
    /// Passages of the index that were compared with their entries; `None` where there is
    /// no index.
    pub passages: Option<u64>,
    /// Leases that were not given back, whether they have run out or not.
    pub leases: Vec<Lease>,
    /// When that was, so that it can be told which of them have run out.
    pub at: Timestamp,
    /// What is not as it should be.
    pub findings: Vec<HealthFinding>,
}

impl HealthReport {
    /// Leases that have run out: their holders ended without giving them back.
    pub fn expired_leases(&self) -> impl Iterator<Item = &Lease> {
        let expired = |lease: &&Lease| lease.expires_at <= self.at;
        self.leases.iter().filter(expired)
    }
}

impl Throughline {
    /// Checks the index against the store, and looks for leases that cannot be right, for
    /// leftover files and for files that are open to others. Changes nothing.
    pub async fn check_health(&self, options: &HealthOptions) -> Result<HealthReport, Error> {
        let now = self.now();
        let mut report = HealthReport {
            leases: self.store.leases().await?,
            at: now,
            ..HealthReport::default()
        };
        self.check_index(&mut report).await?;
        let far = |lease: &&Lease| lease.expires_at.duration_since(now) > LONGEST_LEASE;
        for lease in report.leases.iter().filter(far) {
            report.findings.push(HealthFinding::Lease {
                owner: lease.owner.clone(),
                name: lease.name.clone(),
                holder: LeaseHolder::parse(&lease.holder).name().to_owned(),
                expires_at: lease.expires_at,
            });
        }
        let options = options.clone();
        let index = self.index.local_folder();
        let found =
            crate::retrieval::run_blocking(move || Ok(file_check::check(&options, index, now)))
                .await?;
        report.findings.extend(found);
        Ok(report)
    }
}

/// Checks the files beside a store that cannot be opened.
pub fn check_files(options: &HealthOptions, now: Timestamp) -> Vec<HealthFinding> {
    let index = options.store_file.as_ref();
    let index = index.map(|file| file.with_extension("index"));
    file_check::check(options, index, now)
}

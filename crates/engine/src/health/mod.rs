//! Health checks for what is beside a store's log: index, leases, files and
//! permissions.
//!
//! The store checks its log itself ([`Throughline::check`]). Everything checked here is
//! derived or auxiliary, so no finding means that an entry is lost; but a search may
//! miss entries, or a file may be readable by others.
//!
//! Invariant: nothing is changed. In particular, an unusable index is left as it is,
//! whereas a search would rebuild it.

mod file_check;
mod index_check;

use std::path::PathBuf;

use jiff::SignedDuration;
use serde::Serialize;
use throughline_model::{Owner, Timestamp};
use throughline_store::{Lease, LeaseHolder};

use crate::{Error, Throughline};

/// Far longer than any lease is ever taken for.
const LONGEST_LEASE: SignedDuration = SignedDuration::from_mins(10);

/// A problem with an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum IndexProblem {
    /// Its files have changed since they were written.
    Damaged,
    /// It cannot be read now: the disk or the database failed.
    Unreadable,
    /// It was built from another history of the store.
    Mismatch,
    /// It lacks entries that it should contain.
    Missing,
    /// It contains passages whose entries no longer exist.
    Orphaned,
    /// It contains passages that differ from their entries.
    Different,
}

/// A problem that was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "finding", rename_all = "snake_case")]
pub enum HealthFinding {
    /// The index cannot be used, or differs from the store.
    Index {
        /// The kind of problem.
        problem: IndexProblem,
        /// A description of what was found.
        what: String,
    },
    /// A lease that expires later than any is taken for: a clock has been set back
    /// since.
    Lease {
        /// The owner it was taken for.
        owner: Owner,
        /// Its name.
        name: String,
        /// The process that took it.
        holder: String,
        /// When it expires.
        expires_at: Timestamp,
    },
    /// A file or folder that no process needs any more.
    Leftover {
        /// Its path.
        path: PathBuf,
        /// What it was.
        what: &'static str,
    },
    /// A file or folder that others than the owner can open.
    Permissions {
        /// Its path.
        path: PathBuf,
        /// Its permissions in octal.
        mode: String,
    },
}

/// What to check in addition to what the store knows about.
#[derive(Clone, Debug, Default)]
pub struct HealthOptions {
    /// The store's file, if it is a file.
    pub store_file: Option<PathBuf>,
    /// Folders of the program in which users may have files of their own.
    pub shared_folders: Vec<PathBuf>,
    /// Folders that contain only what the program creates.
    pub own_folders: Vec<PathBuf>,
}

/// The result of a health check.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HealthReport {
    /// The number of indexed passages that were compared with their entries; `None` if
    /// there is no index.
    pub passages: Option<u64>,
    /// Leases that were not released, expired or not.
    pub leases: Vec<Lease>,
    /// The time of the check, to tell which leases have expired.
    pub at: Timestamp,
    /// The problems that were found.
    pub findings: Vec<HealthFinding>,
}

impl HealthReport {
    /// Leases that have expired because their holders ended without releasing them.
    pub fn expired_leases(&self) -> impl Iterator<Item = &Lease> {
        let expired = |lease: &&Lease| lease.expires_at <= self.at;
        self.leases.iter().filter(expired)
    }
}

impl Throughline {
    /// Compares the index with the store and looks for implausible leases, leftover
    /// files and files that others can open. Changes nothing.
    pub async fn check_health(&self, options: &HealthOptions) -> Result<HealthReport, Error> {
        let now = self.now();
        let mut report = HealthReport {
            leases: self.store.leases().await?,
            at: now,
            ..HealthReport::default()
        };
        self.check_index(&mut report).await?;
        let is_too_far = |lease: &&Lease| lease.expires_at.duration_since(now) > LONGEST_LEASE;
        for lease in report.leases.iter().filter(is_too_far) {
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

/// Checks the files of a store that cannot be opened.
pub fn check_files(options: &HealthOptions, now: Timestamp) -> Vec<HealthFinding> {
    let index = options.store_file.as_ref();
    let index = index.map(|file| file.with_extension("index"));
    file_check::check(options, index, now)
}

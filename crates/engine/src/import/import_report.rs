//! The result of an import.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::Error;

/// The result of an import.
#[derive(Debug, Default)]
pub struct ImportReport {
    /// Sessions created.
    pub created: u64,
    /// Created sessions that are forks because their source was rewritten, or because
    /// the session was also continued locally.
    pub forked: u64,
    /// Messages appended.
    pub appended: u64,
    /// Messages that were stored already.
    pub already_stored: u64,
    /// Skipped records, counted by kind.
    pub skipped: BTreeMap<String, u64>,
    /// Damaged records: position in the source and what is wrong.
    pub damaged: Vec<(u64, String)>,
    /// Entries that could not be appended: position in the source and the error.
    pub failed: Vec<(u64, Arc<Error>)>,
    /// Whether some entries failed only because their session changed during the
    /// import. Importing the source again compares them with the new state.
    pub should_retry: bool,
}

impl ImportReport {
    /// Adds the counts of another report to this one.
    pub fn add(&mut self, other: Self) {
        self.created += other.created;
        self.forked += other.forked;
        self.appended += other.appended;
        self.already_stored += other.already_stored;
        for (what, times) in other.skipped {
            *self.skipped.entry(what).or_default() += times;
        }
        self.damaged.extend(other.damaged);
        self.failed.extend(other.failed);
        self.should_retry |= other.should_retry;
    }
}

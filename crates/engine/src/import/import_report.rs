//! What an import did.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::Error;

/// What an import did.
#[derive(Debug, Default)]
pub struct ImportReport {
    /// Sessions made.
    pub created: u64,
    /// Of those, the ones that are forks because their source was rewritten, or because
    /// somebody went on here as well.
    pub forked: u64,
    /// Messages appended.
    pub appended: u64,
    /// Messages that were there already.
    pub already_stored: u64,
    /// Records that were not taken, each kind with how often it came.
    pub skipped: BTreeMap<String, u64>,
    /// Damaged records: where, and what is wrong.
    pub damaged: Vec<(u64, String)>,
    /// Lines whose entries could not be appended, and why.
    pub failed: Vec<(u64, Arc<Error>)>,
    /// Whether some of them only failed because something else happened to their session while
    /// it came in: taken again, they are compared with that.
    pub should_retry: bool,
}

impl ImportReport {
    /// Adds another's figures to these.
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

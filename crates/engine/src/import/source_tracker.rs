//! Which source is being read, and what was done with those before it.

use std::collections::VecDeque;

use super::ImportReport;

/// The number of a source, in the order in which they come.
pub(super) type SourceNumber = u64;

/// Sources, in the order in which they come, until what was done with them is told.
#[derive(Debug, Default)]
pub(super) struct SourceTracker {
    /// The number of the first that was not told of.
    first_unreported: SourceNumber,
    /// What was done with those that were taken to their end.
    completed: VecDeque<ImportReport>,
    /// What was done with the one that is being read.
    current_report: ImportReport,
    /// The store has been given all of those before this one.
    submitted: SourceNumber,
    /// All of those before this one are durable.
    durable: SourceNumber,
}

impl SourceTracker {
    /// The one that is being read.
    pub(super) fn current_source(&self) -> SourceNumber {
        self.first_unreported + self.completed.len() as u64
    }

    /// What was done with the one that is being read.
    pub(super) fn current_report(&mut self) -> &mut ImportReport {
        &mut self.current_report
    }

    /// Adds to what was done with one.
    pub(super) fn add_report(&mut self, source: SourceNumber, report: ImportReport) {
        let place = usize::try_from(source.saturating_sub(self.first_unreported)).ok();
        let ended = place.and_then(|place| self.completed.get_mut(place));
        ended.unwrap_or(&mut self.current_report).add(report);
    }

    /// What comes next is another's.
    pub(super) fn advance(&mut self) {
        let ended = std::mem::take(&mut self.current_report);
        self.completed.push_back(ended);
    }

    /// The store has been given all of the sources before this one, which it was not before
    /// what it had been given until then was durable.
    pub(super) fn mark_submitted(&mut self, before: SourceNumber) {
        self.durable = self.submitted;
        self.submitted = before;
    }

    /// What the store has been given is durable.
    pub(super) fn mark_durable(&mut self) {
        self.durable = self.submitted;
    }

    /// The first of those that are not durable to their end.
    pub(super) fn first_incomplete(&self) -> SourceNumber {
        self.durable
    }

    /// What was done with those that are durable and were not told of yet, in order.
    pub(super) fn take_finished(&mut self) -> Vec<ImportReport> {
        let count =
            usize::try_from(self.durable.saturating_sub(self.first_unreported)).unwrap_or(0);
        let finished: Vec<_> = self.completed.drain(..count).map(sort_report).collect();
        self.first_unreported += finished.len() as u64;
        finished
    }

    /// What was done with all that were not told of.
    pub(super) fn into_remaining(self) -> ImportReport {
        let mut rest = self.current_report;
        for report in self.completed {
            rest.add(report);
        }
        sort_report(rest)
    }
}

fn sort_report(mut report: ImportReport) -> ImportReport {
    report.failed.sort_by_key(|(place, _)| *place);
    report.damaged.sort_by_key(|(place, _)| *place);
    report
}

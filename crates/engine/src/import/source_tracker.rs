//! Tracks the sources of an import and their reports until they are durable.

use std::collections::VecDeque;

use super::ImportReport;

/// The number of a source, in order of arrival.
pub(super) type SourceNumber = u64;

/// The sources whose reports have not been returned yet, in order.
#[derive(Debug, Default)]
pub(super) struct SourceTracker {
    /// The first source whose report has not been returned.
    first_unreported: SourceNumber,
    /// The reports of sources that have ended.
    completed: VecDeque<ImportReport>,
    /// The report of the current source.
    current_report: ImportReport,
    /// All sources before this one have been submitted to the store.
    submitted: SourceNumber,
    /// All sources before this one are durable.
    durable: SourceNumber,
}

impl SourceTracker {
    /// The current source.
    pub(super) fn current_source(&self) -> SourceNumber {
        self.first_unreported + self.completed.len() as u64
    }

    /// The report of the current source.
    pub(super) fn current_report(&mut self) -> &mut ImportReport {
        &mut self.current_report
    }

    /// Adds to the report of a source.
    pub(super) fn add_report(&mut self, source: SourceNumber, report: ImportReport) {
        let index = usize::try_from(source.saturating_sub(self.first_unreported)).ok();
        let completed = index.and_then(|index| self.completed.get_mut(index));
        completed.unwrap_or(&mut self.current_report).add(report);
    }

    /// Ends the current source.
    pub(super) fn advance(&mut self) {
        let report = std::mem::take(&mut self.current_report);
        self.completed.push_back(report);
    }

    /// Marks all sources before `before` as submitted. A batch is submitted only after
    /// the previous one is durable, so that one is marked durable.
    pub(super) fn mark_submitted(&mut self, before: SourceNumber) {
        self.durable = self.submitted;
        self.submitted = before;
    }

    /// Marks all submitted sources as durable.
    pub(super) fn mark_durable(&mut self) {
        self.durable = self.submitted;
    }

    /// The first source that is not completely durable.
    pub(super) fn first_incomplete(&self) -> SourceNumber {
        self.durable
    }

    /// Removes and returns the reports of durable sources, in order.
    pub(super) fn take_finished(&mut self) -> Vec<ImportReport> {
        let count =
            usize::try_from(self.durable.saturating_sub(self.first_unreported)).unwrap_or(0);
        let finished: Vec<_> = self.completed.drain(..count).map(sort_report).collect();
        self.first_unreported += finished.len() as u64;
        finished
    }

    /// Returns one report for all sources whose reports have not been returned.
    pub(super) fn into_remaining(self) -> ImportReport {
        let mut total = self.current_report;
        for report in self.completed {
            total.add(report);
        }
        sort_report(total)
    }
}

fn sort_report(mut report: ImportReport) -> ImportReport {
    report.failed.sort_by_key(|(position, _)| *position);
    report.damaged.sort_by_key(|(position, _)| *position);
    report
}

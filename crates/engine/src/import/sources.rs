//! Which source is being read, and what was done with those before it.

use std::collections::VecDeque;

use super::ImportReport;

/// The number of a source, in the order in which they come.
pub(super) type SourceNumber = u64;

/// Sources, in the order in which they come, until what was done with them is told.
#[derive(Debug, Default)]
pub(super) struct Sources {
    /// The number of the first that was not told of.
    first: SourceNumber,
    /// What was done with those that were taken to their end.
    ended: VecDeque<ImportReport>,
    /// What was done with the one that is being read.
    reading: ImportReport,
    /// The store has been given all of those before this one.
    given: SourceNumber,
    /// All of those before this one are durable.
    durable: SourceNumber,
}

impl Sources {
    /// The one that is being read.
    pub(super) fn current(&self) -> SourceNumber {
        self.first + self.ended.len() as u64
    }

    /// What was done with the one that is being read.
    pub(super) fn report(&mut self) -> &mut ImportReport {
        &mut self.reading
    }

    /// Adds to what was done with one.
    pub(super) fn add(&mut self, source: SourceNumber, report: ImportReport) {
        let place = usize::try_from(source.saturating_sub(self.first)).ok();
        let ended = place.and_then(|place| self.ended.get_mut(place));
        ended.unwrap_or(&mut self.reading).add(report);
    }

    /// What comes next is another's.
    pub(super) fn next(&mut self) {
        let ended = std::mem::take(&mut self.reading);
        self.ended.push_back(ended);
    }

    /// The store has been given all of the sources before this one, which it was not before
    /// what it had been given until then was durable.
    pub(super) fn gave(&mut self, before: SourceNumber) {
        self.durable = self.given;
        self.given = before;
    }

    /// What the store has been given is durable.
    pub(super) fn settled(&mut self) {
        self.durable = self.given;
    }

    /// The first of those that are not durable to their end.
    pub(super) fn first_open(&self) -> SourceNumber {
        self.durable
    }

    /// What was done with those that are durable and were not told of yet, in order.
    pub(super) fn finished(&mut self) -> Vec<ImportReport> {
        let count = usize::try_from(self.durable.saturating_sub(self.first)).unwrap_or(0);
        let finished: Vec<_> = self.ended.drain(..count).map(sorted).collect();
        self.first += finished.len() as u64;
        finished
    }

    /// What was done with all that were not told of.
    pub(super) fn rest(self) -> ImportReport {
        let mut rest = self.reading;
        for report in self.ended {
            rest.add(report);
        }
        sorted(rest)
    }
}

fn sorted(mut report: ImportReport) -> ImportReport {
    report.failed.sort_by_key(|(place, _)| *place);
    report.damaged.sort_by_key(|(place, _)| *place);
    report
}

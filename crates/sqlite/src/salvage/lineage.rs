//! Reconstructs which entries a fork shares: from the inheritance rows, or else from its
//! lineage.

use std::collections::BTreeMap;

use throughline_model::{Lineage, Seq, SessionId};

use super::plan::{LogRange, Planner, entry_locations};

impl Planner<'_> {
    fn lineage(&self, pk: i64) -> Option<&Lineage> {
        let born = self.found.headers.get(&pk);
        let row = self.found.sessions.get(&pk).map(|row| &row.header);
        born.or(row).map(|header| &header.lineage)
    }

    /// Returns the log ranges that a session inherits: as recorded, or else from its lineage.
    pub(super) fn inherited_ranges(&self, pk: i64) -> Vec<LogRange> {
        let lineage = match self.lineage(pk) {
            Some(Lineage::Forked { session, at }) => Some((session, at.0)),
            _ => None,
        };
        // An upper bound on what can be shared, whatever a damaged row claims.
        let most = self.max_gap.saturating_add(self.found.entries.len() as u64);
        let row = self.found.sessions.get(&pk).map(|row| row.shared);
        let shared = [row, lineage.map(|(_, at)| at)];
        let shared = shared.into_iter().flatten().find(|at| *at <= most);
        let Some(shared) = shared.filter(|at| *at > 0) else {
            return Vec::new();
        };
        let recorded = self.found.inherited.get(&pk);
        let recorded = recorded.and_then(|recorded| self.recorded_ranges(recorded, shared));
        if let Some(ranges) = recorded {
            return ranges;
        }
        let origin = lineage.and_then(|(id, _)| self.find_origin(pk, id));
        let Some(origin) = origin else {
            // No session has the shared entries: use the session itself, which has none of
            // them.
            return vec![LogRange {
                session: pk,
                from: Seq(1),
                to: Seq(shared),
            }];
        };
        let mut ranges = self.inherited_ranges(origin);
        let from = ranges.last().map_or(Seq(1), |last| last.to.next());
        ranges.push(LogRange {
            session: origin,
            from,
            to: Seq(u64::MAX),
        });
        truncate_ranges(ranges, shared)
    }

    /// Returns the recorded ranges up to `shared`, if they cover exactly that.
    fn recorded_ranges(&self, recorded: &BTreeMap<u64, i64>, shared: u64) -> Option<Vec<LogRange>> {
        let found = self.found;
        let known = |pk: i64| found.sessions.contains_key(&pk) || found.headers.contains_key(&pk);
        let mut from = Seq(1);
        let mut ranges = Vec::new();
        for (upto, base) in recorded.range(..=shared) {
            if !known(*base) && entry_locations(found, *base).is_empty() {
                continue;
            }
            ranges.push(LogRange {
                session: *base,
                from,
                to: Seq(*upto),
            });
            from = Seq(*upto).next();
        }
        (from == Seq(shared).next()).then_some(ranges)
    }

    /// Finds the older session that this one was forked from, including removed ones.
    fn find_origin(&self, pk: i64, id: &SessionId) -> Option<i64> {
        let owner = |pk: i64| self.found.sessions.get(&pk).map(|row| row.owner);
        let of_same_owner = |other: &i64| match (owner(pk), owner(*other)) {
            (Some(mine), Some(other)) => mine == other,
            _ => self.owners.len() <= 1,
        };
        let rows = self.found.sessions.range(..pk).rev();
        let headers = self.found.headers.range(..pk).rev();
        rows.map(|(pk, row)| (*pk, &row.header.id))
            .chain(headers.map(|(pk, header)| (*pk, &header.id)))
            .filter(|(_, its)| *its == id)
            .map(|(pk, _)| pk)
            .find(of_same_owner)
    }
}

/// Cuts ranges of a log off after an entry.
pub(super) fn truncate_ranges(mut ranges: Vec<LogRange>, at: u64) -> Vec<LogRange> {
    ranges.retain(|range| range.from.0 <= at);
    if let Some(last) = ranges.last_mut() {
        last.to = last.to.min(Seq(at));
    }
    ranges
}

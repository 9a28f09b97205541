//! What a fork shares: as it was noted, or else as its lineage has it.

use std::collections::BTreeMap;

use throughline_model::{Lineage, Seq, SessionId};

use super::plan::{LogRange, Planner, entry_locations};

impl Planner<'_> {
    fn lineage(&self, pk: i64) -> Option<&Lineage> {
        let born = self.found.headers.get(&pk);
        let row = self.found.sessions.get(&pk).map(|row| &row.birth);
        born.or(row).map(|birth| &birth.lineage)
    }

    /// The stretches that a session shares: as noted, or else as its lineage has it.
    pub(super) fn inherited_ranges(&self, pk: i64) -> Vec<LogRange> {
        let lineage = match self.lineage(pk) {
            Some(Lineage::Forked { session, at }) => Some((session, at.0)),
            _ => None,
        };
        // More than this cannot be shared, whatever a damaged row says.
        let most = self.max_gap.saturating_add(self.found.entries.len() as u64);
        let row = self.found.sessions.get(&pk).map(|row| row.shared);
        let shared = [row, lineage.map(|(_, at)| at)];
        let shared = shared.into_iter().flatten().find(|at| *at <= most);
        let Some(shared) = shared.filter(|at| *at > 0) else {
            return Vec::new();
        };
        let noted = self.found.inherited.get(&pk);
        let noted = noted.and_then(|noted| self.recorded_ranges(noted, shared));
        if let Some(stretches) = noted {
            return stretches;
        }
        let origin = lineage.and_then(|(id, _)| self.find_origin(pk, id));
        let Some(origin) = origin else {
            // Nobody has what was shared: the session's own number has none of it.
            return vec![LogRange {
                session: pk,
                from: Seq(1),
                to: Seq(shared),
            }];
        };
        let mut stretches = self.inherited_ranges(origin);
        let from = stretches.last().map_or(Seq(1), |last| last.to.next());
        stretches.push(LogRange {
            session: origin,
            from,
            to: Seq(u64::MAX),
        });
        truncate_ranges(stretches, shared)
    }

    /// The stretches up to `shared`, if what is noted covers exactly that.
    fn recorded_ranges(&self, noted: &BTreeMap<u64, i64>, shared: u64) -> Option<Vec<LogRange>> {
        let found = self.found;
        let known = |pk: i64| found.sessions.contains_key(&pk) || found.headers.contains_key(&pk);
        let mut from = Seq(1);
        let mut stretches = Vec::new();
        for (upto, base) in noted.range(..=shared) {
            if !known(*base) && entry_locations(found, *base).is_empty() {
                continue;
            }
            stretches.push(LogRange {
                session: *base,
                from,
                to: Seq(*upto),
            });
            from = Seq(*upto).next();
        }
        (from == Seq(shared).next()).then_some(stretches)
    }

    /// The session made earlier that another was forked from, removed ones included.
    fn find_origin(&self, pk: i64, id: &SessionId) -> Option<i64> {
        let owner = |pk: i64| self.found.sessions.get(&pk).map(|row| row.owner);
        let of_same_owner = |other: &i64| match (owner(pk), owner(*other)) {
            (Some(mine), Some(other)) => mine == other,
            _ => self.owners.len() <= 1,
        };
        let rows = self.found.sessions.range(..pk).rev();
        let births = self.found.headers.range(..pk).rev();
        rows.map(|(pk, row)| (*pk, &row.birth.id))
            .chain(births.map(|(pk, birth)| (*pk, &birth.id)))
            .filter(|(_, its)| *its == id)
            .map(|(pk, _)| pk)
            .find(of_same_owner)
    }
}

/// Stretches of a log, up to and including an entry.
pub(super) fn truncate_ranges(mut stretches: Vec<LogRange>, at: u64) -> Vec<LogRange> {
    stretches.retain(|stretch| stretch.from.0 <= at);
    if let Some(last) = stretches.last_mut() {
        last.to = last.to.min(Seq(at));
    }
    stretches
}

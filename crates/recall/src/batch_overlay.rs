//! Reads the passages of a session as if the current batch were already indexed.
//!
//! It combines the index, the batch being written, and the cached last passages of recently
//! indexed sessions.
//!
//! Invariant: added passages appear as if indexed already, and removed ones do not appear.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;

use throughline_model::{Seq, SessionId};

use crate::{IndexWriter, OwnedSession, Passage, RecallError};

/// A batch laid over an index.
pub(crate) struct BatchOverlay<'a> {
    pub(crate) writer: &'a dyn IndexWriter,
    pub(crate) new: &'a BTreeMap<OwnedSession, BTreeMap<Seq, Passage>>,
    pub(crate) removed: &'a HashSet<(OwnedSession, Seq)>,
    pub(crate) removed_sessions: &'a HashSet<OwnedSession>,
    /// The last passages of recently indexed sessions.
    pub(crate) tails: &'a HashMap<OwnedSession, Vec<Passage>>,
}

impl BatchOverlay<'_> {
    /// Returns the last `count` passages before `seq`, of the session and of those it was
    /// forked from.
    pub(crate) fn passages_before(
        &self,
        key: &OwnedSession,
        seq: Seq,
        count: usize,
    ) -> Result<Vec<Passage>, RecallError> {
        let mut found = self.own_passages_before(key, seq, count)?;
        let mut hops = 0;
        // A lineage longer than this would be a cycle.
        while found.len() < count && hops < 64 {
            let origin = match found.first() {
                Some(first) => first.origin.clone(),
                None => self.find_origin(key)?,
            };
            let Some((session, to)) = origin else {
                break;
            };
            let origin = (key.0.clone(), session);
            let mut earlier = self.own_passages_before(&origin, to.next(), count - found.len())?;
            if earlier.is_empty() {
                break;
            }
            earlier.append(&mut found);
            found = earlier;
            hops += 1;
        }
        Ok(found)
    }

    /// Returns the session and entry that a session was forked from.
    fn find_origin(&self, key: &OwnedSession) -> Result<Option<(SessionId, Seq)>, RecallError> {
        let new = self.new.get(key).and_then(|new| new.values().next());
        if let Some(passage) = new {
            return Ok(passage.origin.clone());
        }
        let any = self.indexed_passages(key, Seq::ZERO..Seq(u64::MAX), 1, false)?;
        Ok(any.into_iter().next().and_then(|passage| passage.origin))
    }

    fn own_passages_before(
        &self,
        key: &OwnedSession,
        seq: Seq,
        count: usize,
    ) -> Result<Vec<Passage>, RecallError> {
        let mut found: BTreeMap<Seq, Passage> = BTreeMap::new();
        let tail = self.tails.get(key);
        let known = tail.filter(|tail| tail.last().is_some_and(|last| last.seq < seq));
        let indexed = match known {
            Some(tail) => tail.clone(),
            None => self.indexed_passages(key, Seq::ZERO..seq, count, true)?,
        };
        found.extend(indexed.into_iter().map(|one| (one.seq, one)));
        if let Some(new) = self.new.get(key) {
            let new = new.range(..seq).rev().take(count);
            found.extend(new.map(|(seq, one)| (*seq, one.clone())));
        }
        let skip = found.len().saturating_sub(count);
        Ok(found.into_values().skip(skip).collect())
    }

    /// Returns the indexed passages from `seq` on: all up to `to`, and `count` more.
    pub(crate) fn passages_from(
        &self,
        key: &OwnedSession,
        seq: Seq,
        to: Seq,
        count: usize,
    ) -> Result<Vec<Passage>, RecallError> {
        let tail = self.tails.get(key).and_then(|tail| tail.last());
        if tail.is_some_and(|last| last.seq < seq) {
            return Ok(Vec::new());
        }
        let mut found = self.indexed_passages(key, seq..to.next(), usize::MAX, false)?;
        found.extend(self.indexed_passages(key, to.next()..Seq(u64::MAX), count, false)?);
        Ok(found)
    }

    /// Returns the first or last `count` indexed passages of a session within a range, in
    /// order.
    fn indexed_passages(
        &self,
        key: &OwnedSession,
        range: Range<Seq>,
        count: usize,
        last: bool,
    ) -> Result<Vec<Passage>, RecallError> {
        if self.removed_sessions.contains(key) || range.is_empty() {
            return Ok(Vec::new());
        }
        let is_removed = |seq: Seq| self.removed.contains(&(key.clone(), seq));
        // Read as many more as are removed, so that `count` remain.
        let removed = self.removed.iter().filter(|(of, _)| of == key).count();
        let most = count.saturating_add(removed);
        let mut found = self.writer.passages(key, range, most, last)?;
        found.retain(|passage| !is_removed(passage.seq));
        if last {
            found.drain(..found.len().saturating_sub(count));
        } else {
            found.truncate(count);
        }
        Ok(found)
    }
}

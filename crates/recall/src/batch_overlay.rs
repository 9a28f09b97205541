//! What of a session has been fed: in the index, in this batch, or just before.
//!
//! Invariant: what it answers is as if the batch were in the index already, and what the
//! batch removes were not.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;

use throughline_model::{Seq, SessionId};

use crate::{IndexWriter, OwnedSession, Passage, RecallError};

/// A batch over an index.
pub(crate) struct BatchOverlay<'a> {
    pub(crate) writer: &'a dyn IndexWriter,
    pub(crate) new: &'a BTreeMap<OwnedSession, BTreeMap<Seq, Passage>>,
    pub(crate) removed: &'a HashSet<(OwnedSession, Seq)>,
    pub(crate) removed_sessions: &'a HashSet<OwnedSession>,
    /// The last passages of sessions that were fed lately.
    pub(crate) tails: &'a HashMap<OwnedSession, Vec<Passage>>,
}

impl BatchOverlay<'_> {
    /// The last `count` passages of a session before `seq`, and of those it leads on from.
    pub(crate) fn passages_before(
        &self,
        place: &OwnedSession,
        seq: Seq,
        count: usize,
    ) -> Result<Vec<Passage>, RecallError> {
        let mut found = self.own_passages_before(place, seq, count)?;
        let mut hops = 0;
        // A lineage longer than this would be a circle.
        while found.len() < count && hops < 64 {
            let origin = match found.first() {
                Some(first) => first.origin.clone(),
                None => self.find_origin(place)?,
            };
            let Some((session, to)) = origin else {
                break;
            };
            let origin = (place.0.clone(), session);
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

    /// Where a session leads to before its own first passage.
    fn find_origin(&self, place: &OwnedSession) -> Result<Option<(SessionId, Seq)>, RecallError> {
        let new = self.new.get(place).and_then(|new| new.values().next());
        if let Some(passage) = new {
            return Ok(passage.origin.clone());
        }
        let any = self.indexed_passages(place, Seq::ZERO..Seq(u64::MAX), 1, false)?;
        Ok(any.into_iter().next().and_then(|passage| passage.origin))
    }

    fn own_passages_before(
        &self,
        place: &OwnedSession,
        seq: Seq,
        count: usize,
    ) -> Result<Vec<Passage>, RecallError> {
        let mut found: BTreeMap<Seq, Passage> = BTreeMap::new();
        let tail = self.tails.get(place);
        let known = tail.filter(|tail| tail.last().is_some_and(|last| last.seq < seq));
        let indexed = match known {
            Some(tail) => tail.clone(),
            None => self.indexed_passages(place, Seq::ZERO..seq, count, true)?,
        };
        found.extend(indexed.into_iter().map(|one| (one.seq, one)));
        if let Some(new) = self.new.get(place) {
            let new = new.range(..seq).rev().take(count);
            found.extend(new.map(|(seq, one)| (*seq, one.clone())));
        }
        let skip = found.len().saturating_sub(count);
        Ok(found.into_values().skip(skip).collect())
    }

    /// What of a session is in the index from `seq` on: all until `to`, and `count` more.
    pub(crate) fn passages_from(
        &self,
        place: &OwnedSession,
        seq: Seq,
        to: Seq,
        count: usize,
    ) -> Result<Vec<Passage>, RecallError> {
        let tail = self.tails.get(place).and_then(|tail| tail.last());
        if tail.is_some_and(|last| last.seq < seq) {
            return Ok(Vec::new());
        }
        let mut found = self.indexed_passages(place, seq..to.next(), usize::MAX, false)?;
        found.extend(self.indexed_passages(place, to.next()..Seq(u64::MAX), count, false)?);
        Ok(found)
    }

    /// The first or last `count` indexed passages of a session within a range, in order.
    fn indexed_passages(
        &self,
        place: &OwnedSession,
        range: Range<Seq>,
        count: usize,
        last: bool,
    ) -> Result<Vec<Passage>, RecallError> {
        if self.removed_sessions.contains(place) || range.is_empty() {
            return Ok(Vec::new());
        }
        let is_removed = |seq: Seq| self.removed.contains(&(place.clone(), seq));
        // What is removed takes no place.
        let removed = self.removed.iter().filter(|(of, _)| of == place).count();
        let most = count.saturating_add(removed);
        let mut found = self.writer.passages(place, range, most, last)?;
        found.retain(|passage| !is_removed(passage.seq));
        if last {
            found.drain(..found.len().saturating_sub(count));
        } else {
            found.truncate(count);
        }
        Ok(found)
    }
}

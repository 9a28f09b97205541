//! What of a session has been fed: in the index, in this batch, or just before.
//!
//! Invariant: what it answers is as if the batch were in the index already, and what the
//! batch removes were not.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::{Bound, Range};

use tantivy::collector::DocSetCollector;
use tantivy::query::{BooleanQuery, RangeQuery, TermQuery};
use tantivy::schema::{IndexRecordOption, Value as _};
use tantivy::{DocAddress, TantivyDocument, Term};
use throughline_model::{Owner, Seq, SessionId};

use crate::error::During as _;
use crate::index::View;
use crate::schema::Kept;
use crate::{Passage, RecallError};

const READING: &str = "reading what was fed";
/// So many entries are looked at first, and then so many times as many.
const NEAR: u64 = 64;
const FURTHER: u64 = 32;

/// One session of one owner.
pub(crate) type Place = (Owner, SessionId);

/// A batch over an index.
pub(crate) struct Shelf<'a> {
    pub(crate) view: &'a View,
    pub(crate) new: &'a BTreeMap<Place, BTreeMap<Seq, Passage>>,
    pub(crate) removed: &'a HashSet<(Place, Seq)>,
    pub(crate) removed_whole: &'a HashSet<Place>,
    /// The last passages of sessions that were fed lately.
    pub(crate) tails: &'a HashMap<Place, Vec<Passage>>,
}

impl Shelf<'_> {
    /// The last `count` passages of a session before `seq`, and of those it leads on from.
    pub(crate) fn before(
        &self,
        place: &Place,
        seq: Seq,
        count: usize,
    ) -> Result<Vec<Passage>, RecallError> {
        let mut found = self.own_before(place, seq, count)?;
        let mut hops = 0;
        // A lineage longer than this would be a circle.
        while found.len() < count && hops < 64 {
            let origin = match found.first() {
                Some(first) => first.origin.clone(),
                None => self.origin_of(place)?,
            };
            let Some((session, to)) = origin else {
                break;
            };
            let origin = (place.0.clone(), session);
            let mut earlier = self.own_before(&origin, to.next(), count - found.len())?;
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
    fn origin_of(&self, place: &Place) -> Result<Option<(SessionId, Seq)>, RecallError> {
        let new = self.new.get(place).and_then(|new| new.values().next());
        if let Some(passage) = new {
            return Ok(passage.origin.clone());
        }
        let any = self.indexed(place, Seq::ZERO..Seq(u64::MAX), 1, false)?;
        Ok(any.into_iter().next().and_then(|passage| passage.origin))
    }

    fn own_before(
        &self,
        place: &Place,
        seq: Seq,
        count: usize,
    ) -> Result<Vec<Passage>, RecallError> {
        let mut found: BTreeMap<Seq, Passage> = BTreeMap::new();
        let tail = self.tails.get(place);
        let known = tail.filter(|tail| tail.last().is_some_and(|last| last.seq < seq));
        let indexed = match known {
            Some(tail) => tail.clone(),
            None => self.indexed(place, Seq::ZERO..seq, count, true)?,
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
    pub(crate) fn from(
        &self,
        place: &Place,
        seq: Seq,
        to: Seq,
        count: usize,
    ) -> Result<Vec<Passage>, RecallError> {
        let tail = self.tails.get(place).and_then(|tail| tail.last());
        if tail.is_some_and(|last| last.seq < seq) {
            return Ok(Vec::new());
        }
        let mut found = self.indexed(place, seq..to.next(), usize::MAX, false)?;
        found.extend(self.indexed(place, to.next()..Seq(u64::MAX), count, false)?);
        Ok(found)
    }

    /// The first or last `count` indexed passages of a session within a range, in order.
    ///
    /// Looks near that end of the range first, and ever further from it: entries are
    /// numbered densely, so that what is wanted is hardly ever far away.
    fn indexed(
        &self,
        place: &Place,
        range: Range<Seq>,
        count: usize,
        last: bool,
    ) -> Result<Vec<Passage>, RecallError> {
        let fields = &self.view.fields;
        let session = fields.session_term(&place.0, &place.1);
        let of_session = self.view.searcher.doc_freq(&session);
        if self.removed_whole.contains(place)
            || range.is_empty()
            || of_session.during(READING)? == 0
        {
            return Ok(Vec::new());
        }
        let (Range { start, end }, mut reach) = (range, NEAR);
        let mut places = loop {
            let near = if last {
                start.max(Seq(end.0.saturating_sub(reach)))..end
            } else {
                start..end.min(Seq(start.0.saturating_add(reach)))
            };
            let whole = near == (start..end);
            let places = self.addresses(place, &session, near)?;
            if whole || places.len() >= count {
                break places;
            }
            reach = reach.saturating_mul(FURTHER);
        };
        places.sort_by_key(|(seq, _)| *seq);
        if last {
            places.drain(..places.len().saturating_sub(count));
        } else {
            places.truncate(count);
        }
        let passages = places
            .into_iter()
            .map(|(_, address)| kept(self.view, address).map(|kept| kept.passage));
        passages.collect()
    }

    /// Where the passages of a session within a range are, in no order.
    fn addresses(
        &self,
        place: &Place,
        session: &Term,
        range: Range<Seq>,
    ) -> Result<Vec<(Seq, DocAddress)>, RecallError> {
        let fields = &self.view.fields;
        let bound = |seq: Seq| Term::from_field_u64(fields.seq, seq.0);
        let seqs = RangeQuery::new(
            Bound::Included(bound(range.start)),
            Bound::Excluded(bound(range.end)),
        );
        let session = TermQuery::new(session.clone(), IndexRecordOption::Basic);
        let query = BooleanQuery::intersection(vec![Box::new(session), Box::new(seqs)]);
        let searcher = &self.view.searcher;
        let docs = searcher.search(&query, &DocSetCollector).during(READING)?;
        let mut columns = HashMap::new();
        let mut places = Vec::with_capacity(docs.len());
        for address in docs {
            let column = match columns.entry(address.segment_ord) {
                Entry::Occupied(column) => column.into_mut(),
                Entry::Vacant(free) => {
                    let segment = searcher.segment_reader(address.segment_ord);
                    free.insert(segment.fast_fields().u64("seq").during(READING)?)
                }
            };
            let seq = Seq(column.first(address.doc_id).unwrap_or_default());
            if !self.removed.contains(&(place.clone(), seq)) {
                places.push((seq, address));
            }
        }
        Ok(places)
    }
}

/// What the index keeps of a passage.
pub(crate) fn kept(view: &View, address: DocAddress) -> Result<Kept, RecallError> {
    let document: TantivyDocument = view.searcher.doc(address).during("reading a passage")?;
    let kept = document.get_first(view.fields.kept);
    let bytes = kept.and_then(|kept| kept.as_bytes()).unwrap_or_default();
    Ok(serde_json::from_slice(bytes)?)
}

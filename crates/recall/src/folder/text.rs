//! Candidates by their words.
//!
//! BM25 over the `context` field, the best few only: whole blocks of passages that cannot
//! be among them are skipped. What is not in scope is passed over as it comes up, so that
//! a narrow scope costs little more than a wide one.

use tantivy::query::{BooleanQuery, EnableScoring, Query, TermQuery, Weight};
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::{DocAddress, Score, Term};

use super::View;
use super::filter::Filter;
use super::sight::to_at;
use crate::best::Best;
use crate::error::During as _;
use crate::{At, RecallError};

const DURING: &str = "looking for words";

/// A search for some words.
pub(crate) struct ByWords<'a> {
    view: &'a View,
    weight: Box<dyn Weight>,
}

impl<'a> ByWords<'a> {
    /// A search for some of the terms; `None` if there are none in the index.
    pub(crate) fn new(view: &'a View, terms: &[&str]) -> Result<Option<Self>, RecallError> {
        // Stop words are in `own` only: it serves a query that has no others.
        for field in [view.fields.context, view.fields.own] {
            if !any_known(view, field, terms)? {
                continue;
            }
            let clauses = terms.iter().map(|term| -> Box<dyn Query> {
                let term = Term::from_field_text(field, term);
                Box::new(TermQuery::new(term, IndexRecordOption::WithFreqs))
            });
            let query = BooleanQuery::union(clauses.collect());
            let scoring = EnableScoring::enabled_from_searcher(&view.searcher);
            let weight = query.weight(scoring).during(DURING)?;
            return Ok(Some(Self { view, weight }));
        }
        Ok(None)
    }

    /// The best passages in scope.
    pub(crate) fn best(
        &self,
        filter: &Filter,
        count: usize,
    ) -> Result<Vec<(Score, At)>, RecallError> {
        let mut best = Best::new(count);
        for (ord, segment) in (0_u32..).zip(self.view.searcher.segment_readers()) {
            let allowed = filter.of(ord as usize);
            let threshold = best.threshold();
            let mut consider = |doc, score| {
                if allowed.contains(segment, doc) {
                    best.offer(score, to_at(DocAddress::new(ord, doc)));
                }
                best.threshold()
            };
            self.weight
                .for_each_pruning(threshold, segment, &mut consider)
                .during(DURING)?;
        }
        Ok(best.into_sorted())
    }

    /// The scores of passages, which must be in the order of their addresses.
    pub(crate) fn scores(&self, at: &[DocAddress]) -> Result<Vec<Score>, RecallError> {
        let mut scores = Vec::with_capacity(at.len());
        for of_segment in at.chunk_by(|a, b| a.segment_ord == b.segment_ord) {
            let segment = self.view.searcher.segment_reader(of_segment[0].segment_ord);
            let mut scorer = self.weight.scorer(segment, 1.0).during(DURING)?;
            for address in of_segment {
                if scorer.doc() < address.doc_id {
                    scorer.seek(address.doc_id);
                }
                let has_any = scorer.doc() == address.doc_id;
                scores.push(if has_any { scorer.score() } else { 0.0 });
            }
        }
        Ok(scores)
    }
}

fn any_known(view: &View, field: Field, terms: &[&str]) -> Result<bool, RecallError> {
    for term in terms {
        let term = Term::from_field_text(field, term);
        if view.searcher.doc_freq(&term).during(DURING)? > 0 {
            return Ok(true);
        }
    }
    Ok(false)
}

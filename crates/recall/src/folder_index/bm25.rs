//! Finds candidates by BM25.
//!
//! The search covers the `context` field and keeps only the best few: whole blocks of passages
//! that cannot be among them are skipped. Passages out of scope are skipped as they come up,
//! so that a narrow scope costs little more than a wide one.

use tantivy::query::{BooleanQuery, EnableScoring, Query, TermQuery, Weight};
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::{DocAddress, Score, Term};

use super::CommitView;
use super::doc_filter::DocFilter;
use super::folder_reader::to_passage_id;
use crate::error::ErrorContext as _;
use crate::top_k::TopK;
use crate::{PassageId, RecallError};

const DURING: &str = "searching by text";

/// A full-text search for some terms.
pub(crate) struct Bm25Search<'a> {
    view: &'a CommitView,
    weight: Box<dyn Weight>,
}

impl<'a> Bm25Search<'a> {
    /// Creates a search for some of the terms; `None` if the index contains none of them.
    pub(crate) fn new(view: &'a CommitView, terms: &[&str]) -> Result<Option<Self>, RecallError> {
        // Stop words are only in `own`, which serves queries that have no other words.
        for field in [view.fields.context_terms, view.fields.own_terms] {
            if !has_any_term(view, field, terms)? {
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

    /// Returns the best passages in scope.
    pub(crate) fn top_k(
        &self,
        filter: &DocFilter,
        count: usize,
    ) -> Result<Vec<(Score, PassageId)>, RecallError> {
        let mut best = TopK::new(count);
        for (ord, segment) in (0_u32..).zip(self.view.searcher.segment_readers()) {
            let allowed = filter.segment(ord as usize);
            let threshold = best.threshold();
            let mut consider = |doc, score| {
                if allowed.contains(segment, doc) {
                    best.offer(score, to_passage_id(DocAddress::new(ord, doc)));
                }
                best.threshold()
            };
            self.weight
                .for_each_pruning(threshold, segment, &mut consider)
                .during(DURING)?;
        }
        Ok(best.into_sorted())
    }

    /// Returns the scores of passages, which must be in the order of their addresses.
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

fn has_any_term(view: &CommitView, field: Field, terms: &[&str]) -> Result<bool, RecallError> {
    for term in terms {
        let term = Term::from_field_text(field, term);
        if view.searcher.doc_freq(&term).during(DURING)? > 0 {
            return Ok(true);
        }
    }
    Ok(false)
}

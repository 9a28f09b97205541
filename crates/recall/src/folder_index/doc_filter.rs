//! Selects the documents that a scope allows.
//!
//! Invariant: every search for candidates, by text or by vector, checks the filter first; and
//! a filter never allows a passage of another owner.

use std::ops::Bound;

use tantivy::query::{
    BooleanQuery, EnableScoring, Occur, PhraseQuery, Query, RangeQuery, RegexQuery, TermQuery,
    TermSetQuery,
};
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::{BitSet, DocId, SegmentReader, Term};

use super::CommitView;
use super::schema::session_key;
use crate::error::ErrorContext as _;
use crate::word_split::phrase_terms;
use crate::{RecallError, Scope};

/// The allowed documents, segment by segment.
pub(crate) struct DocFilter(Vec<AllowedDocs>);

/// The allowed documents of one segment.
pub(crate) enum AllowedDocs {
    /// All documents that are not deleted.
    All,
    /// Only these, none of which is deleted.
    Only(BitSet),
}

impl AllowedDocs {
    /// Returns whether a document is allowed, ignoring deletion: a cheap check for scans.
    #[inline]
    pub(crate) fn may_contain(&self, doc: DocId) -> bool {
        match self {
            Self::All => true,
            Self::Only(docs) => docs.contains(doc),
        }
    }

    /// Returns whether a document is allowed.
    pub(crate) fn contains(&self, segment: &SegmentReader, doc: DocId) -> bool {
        match self {
            Self::All => !segment.is_deleted(doc),
            Self::Only(docs) => docs.contains(doc),
        }
    }
}

impl DocFilter {
    /// Selects the passages within a scope that contain all the phrases.
    pub(crate) fn new(
        view: &CommitView,
        scope: &Scope,
        phrases: &[String],
    ) -> Result<Self, RecallError> {
        let during = "applying the search scope";
        let fields = &view.fields;
        let owner = Term::from_field_text(fields.owner, scope.owner.as_str());
        let mut narrow = scope_queries(view, scope)?;
        narrow.extend(
            phrases
                .iter()
                .filter_map(|phrase| phrase_query(fields.own_terms, phrase)),
        );
        let everything = narrow.is_empty() && scope.except.is_empty();
        let owner_query = TermQuery::new(owner.clone(), IndexRecordOption::Basic);
        narrow.push(Box::new(owner_query));
        let clauses = narrow.into_iter().map(|query| (Occur::Must, query));
        let query = BooleanQuery::new(clauses.chain(exclusion_query(view, scope)).collect());
        let scoring = EnableScoring::disabled_from_searcher(&view.searcher);
        let weight = query.weight(scoring).during(during)?;
        let mut allowed = Vec::new();
        for segment in view.searcher.segment_readers() {
            let of_owner = segment.inverted_index(fields.owner).during(during)?;
            let of_owner = of_owner.doc_freq(&owner).during(during)?;
            if everything && of_owner == segment.max_doc() {
                allowed.push(AllowedDocs::All);
                continue;
            }
            let mut docs = BitSet::with_max_value(segment.max_doc());
            if of_owner > 0 {
                let mut add = |found: &[DocId]| {
                    for doc in found.iter().filter(|doc| !segment.is_deleted(**doc)) {
                        docs.insert(*doc);
                    }
                };
                weight.for_each_no_score(segment, &mut add).during(during)?;
            }
            allowed.push(AllowedDocs::Only(docs));
        }
        Ok(Self(allowed))
    }

    /// Returns the allowed documents of a segment.
    pub(crate) fn segment(&self, segment: usize) -> &AllowedDocs {
        &self.0[segment]
    }
}

/// Returns the conditions of a scope besides the owner.
fn scope_queries(view: &CommitView, scope: &Scope) -> Result<Vec<Box<dyn Query>>, RecallError> {
    let fields = &view.fields;
    let mut all: Vec<Box<dyn Query>> = Vec::new();
    if let Some(stretches) = &scope.sessions {
        let mut whole = Vec::new();
        let mut any: Vec<Box<dyn Query>> = Vec::new();
        for stretch in stretches {
            let session = fields.session_term(&scope.owner, &stretch.session);
            match stretch.to {
                None => whole.push(session),
                Some(to) => {
                    let to = Bound::Included(Term::from_field_u64(fields.seq, to.0));
                    let session = TermQuery::new(session, IndexRecordOption::Basic);
                    any.push(Box::new(BooleanQuery::intersection(vec![
                        Box::new(session),
                        Box::new(RangeQuery::new(Bound::Unbounded, to)),
                    ])));
                }
            }
        }
        any.push(Box::new(TermSetQuery::new(whole)));
        all.push(Box::new(BooleanQuery::union(any)));
    }
    let one_of = |field: Field, values: Vec<String>| -> Box<dyn Query> {
        let terms = values
            .iter()
            .map(|value| Term::from_field_text(field, value));
        Box::new(TermSetQuery::new(terms))
    };
    if !scope.roles.is_empty() {
        let roles = scope.roles.iter().map(|role| role.as_str().to_owned());
        all.push(one_of(fields.role, roles.collect()));
    }
    if !scope.authors.is_empty() {
        all.push(one_of(fields.author, scope.author_keys()));
    }
    if scope.after.is_some() || scope.before.is_some() {
        let at =
            |at: throughline_model::Timestamp| Term::from_field_i64(fields.at, at.as_microsecond());
        let after = scope
            .after
            .map_or(Bound::Unbounded, |after| Bound::Included(at(after)));
        let before = scope
            .before
            .map_or(Bound::Unbounded, |before| Bound::Excluded(at(before)));
        all.push(Box::new(RangeQuery::new(after, before)));
    }
    if !scope.files.is_empty() {
        let mut any: Vec<Box<dyn Query>> = Vec::new();
        for file in scope.file_keys() {
            let pattern = format!(".*{}.*", escape_regex(&file));
            let query =
                RegexQuery::from_pattern(&pattern, fields.file).during("parsing a file filter")?;
            any.push(Box::new(query));
        }
        all.push(Box::new(BooleanQuery::union(any)));
    }
    Ok(all)
}

/// Returns the condition that excludes sessions.
fn exclusion_query(view: &CommitView, scope: &Scope) -> Option<(Occur, Box<dyn Query>)> {
    if scope.except.is_empty() {
        return None;
    }
    let field = view.fields.session;
    let except = scope
        .except
        .iter()
        .map(|session| Term::from_field_text(field, &session_key(&scope.owner, session)));
    Some((Occur::MustNot, Box::new(TermSetQuery::new(except))))
}

/// Returns the query for a phrase; `None` for a phrase without words.
fn phrase_query(own: Field, phrase: &str) -> Option<Box<dyn Query>> {
    let mut terms: Vec<Term> = phrase_terms(phrase)
        .iter()
        .map(|term| Term::from_field_text(own, term))
        .collect();
    match terms.len() {
        0 => None,
        1 => terms.pop().map(|term| -> Box<dyn Query> {
            Box::new(TermQuery::new(term, IndexRecordOption::Basic))
        }),
        _ => Some(Box::new(PhraseQuery::new(terms))),
    }
}

/// Escapes a text so that it matches literally in a regex.
fn escape_regex(text: &str) -> String {
    let special = |c: char| c.is_ascii_punctuation();
    text.chars().fold(String::new(), |mut escaped, c| {
        if special(c) {
            escaped.push('\\');
        }
        escaped.push(c);
        escaped
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_not_a_pattern() {
        assert_eq!(escape_regex("a.rs (1)"), r"a\.rs \(1\)");
    }
}

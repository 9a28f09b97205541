//! Reranks the first hits with a model that is too slow to score every passage.
//!
//! A search finds and ranks passages by full text and by the static model. A [`Reranker`] then
//! rescores the first hits, best first, within a time limit. Hits it did not reach keep their
//! order after those it scored.

use std::fmt::Debug;
use std::ops::Range;
use std::time::Duration;

use serde::Serialize;
use throughline_model::{Digest, Owner};

use crate::encoding_cache::OwnerEncodingCache;
use crate::fusion::{ScoreWeights, min_max_scale};
use crate::query_terms::QueryTerms;
use crate::rank::{RankedPassage, sort_by_score};
use crate::snippet::find_best_range;
use crate::{Mode, ScoreParts};

/// The maximum number of passages to rerank.
const MAX_RERANKED: usize = 32;
/// The part of a passage that is scored, in bytes: its best excerpt.
const MAX_PASSAGE_BYTES: usize = 600;

/// Why reranking failed.
pub type RerankError = Box<dyn std::error::Error + Send + Sync>;

/// A model that rescores the first hits of a search.
pub trait Reranker: Debug + Send + Sync {
    /// Returns the name shown to users.
    fn name(&self) -> &str;

    /// Returns the digest of the model, under which its encodings are cached.
    fn digest(&self) -> Digest;

    /// Scores the similarity of each passage to the query, in order, for as many of the first
    /// passages as fit in the time limit.
    ///
    /// It may cache its encodings of passages and reuse them.
    fn score_passages(
        &self,
        question: &RerankQuery<'_>,
        passages: &[RerankPassage<'_>],
        cache: &OwnerEncodingCache<'_>,
        within: Duration,
    ) -> Result<Vec<f32>, RerankError>;
}

/// A query, as a reranker receives it.
#[derive(Clone, Debug)]
pub struct RerankQuery<'a> {
    /// The query as typed.
    pub text: &'a str,
    /// The byte ranges of the words to search for, in order, and how rare each is. All others
    /// are stop words.
    pub words: Vec<(Range<usize>, f32)>,
}

/// A passage, as a reranker receives it.
#[derive(Clone, Copy, Debug)]
pub struct RerankPassage<'a> {
    /// The author's name.
    pub author: Option<&'a str>,
    /// The text; of a long passage, its best excerpt.
    pub text: &'a str,
    /// The beginning of the entry just before.
    pub previous_text: &'a str,
}

/// The outcome of reranking the first hits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RerankReport {
    /// The name of the model.
    #[serde(rename = "by")]
    pub model: String,
    /// How many hits were scored within the time limit.
    pub count: usize,
    /// Why reranking failed, if it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(rename = "unable")]
    pub error: Option<String>,
}

impl RerankReport {
    /// Creates a report of a failure.
    pub fn failed(by: &str, error: &RerankError) -> Self {
        let mut message = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause {
            message.push_str(&format!(": {error}"));
            cause = error.source();
        }
        Self {
            model: by.to_owned(),
            count: 0,
            error: Some(message),
        }
    }
}

/// The reranker for one search, with its cache and time limit.
pub(crate) struct RerankPass<'a> {
    pub(crate) reranker: &'a dyn Reranker,
    pub(crate) cache: &'a crate::encoding_cache::EncodingCache,
    pub(crate) owner: &'a Owner,
    pub(crate) time_limit: Duration,
}

impl RerankPass<'_> {
    /// Reorders the first passages, as far as the time limit allows.
    pub(crate) fn rerank(
        &self,
        mode: Mode,
        query_terms: &QueryTerms,
        ranked: &mut [RankedPassage],
    ) -> RerankReport {
        match self.score_first(query_terms, ranked) {
            Ok(scores) => {
                let count = scores.len();
                apply_scores(scores, mode, ranked);
                RerankReport {
                    model: self.reranker.name().to_owned(),
                    count,
                    error: None,
                }
            }
            Err(error) => RerankReport::failed(self.reranker.name(), &error),
        }
    }

    fn score_first(
        &self,
        query_terms: &QueryTerms,
        ranked: &[RankedPassage],
    ) -> Result<Vec<f32>, RerankError> {
        let first = &ranked[..ranked.len().min(MAX_RERANKED)];
        if first.is_empty() || self.time_limit.is_zero() {
            return Ok(Vec::new());
        }
        let question = RerankQuery {
            text: &query_terms.text,
            words: query_terms
                .words
                .iter()
                .map(|word| (word.range.clone(), word.rarity))
                .collect(),
        };
        let best_excerpt = |one: &RankedPassage| -> Range<usize> {
            find_best_range(&one.stored.passage.text, query_terms, MAX_PASSAGE_BYTES)
        };
        let passages: Vec<RerankPassage<'_>> = first
            .iter()
            .map(|one| RerankPassage {
                author: one.stored.passage.author.as_deref(),
                text: &one.stored.passage.text[best_excerpt(one)],
                previous_text: &one.stored.previous_text,
            })
            .collect();
        let cache = self.cache.for_owner(self.owner);
        let mut scores =
            self.reranker
                .score_passages(&question, &passages, &cache, self.time_limit)?;
        if scores.iter().any(|score| !score.is_finite()) {
            return Err("the model returned a score that is not a number".into());
        }
        if scores.is_empty() {
            let milliseconds = self.time_limit.as_millis();
            return Err(format!("no passage could be scored within {milliseconds} ms").into());
        }
        scores.truncate(first.len());
        Ok(scores)
    }
}

/// Rescores the first passages with the reranker's scores, and sorts them.
fn apply_scores(mut scores: Vec<f32>, mode: Mode, ranked: &mut [RankedPassage]) {
    let (scored, rest) = ranked.split_at_mut(scores.len());
    min_max_scale(&mut scores, |score| score);
    let weights = ScoreWeights::with_contextual(mode);
    for (one, score) in scored.iter_mut().zip(scores) {
        one.score_parts = ScoreParts {
            contextual: Some(score),
            ..one.score_parts
        };
        one.score = weights.score(&one.score_parts);
    }
    sort_by_score(scored);
    // The remaining passages rank after them, so their scores are scaled below the lowest one.
    let least = scored.last().map_or(1.0, |last| last.score);
    for one in rest {
        one.score *= least;
    }
}

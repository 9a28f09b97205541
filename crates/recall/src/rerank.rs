//! Comparing the first hits again, by a model that is too slow for everything.
//!
//! A search finds and ranks by words and by the static model; whoever implements
//! [`Compare`] then reads the first hits, best first, for as long as it may. What was not
//! compared keeps its order after what was.

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

/// So many are compared, if there is time.
const MAX_RERANKED: usize = 32;
/// So much of a passage is read, in bytes: its best place.
const MAX_PASSAGE_BYTES: usize = 600;

/// Why hits could not be compared.
pub type RerankError = Box<dyn std::error::Error + Send + Sync>;

/// A model that compares the first hits of a search again.
pub trait Reranker: Debug + Send + Sync {
    /// What a person knows it by.
    fn name(&self) -> &str;

    /// Says which model it is: what it made of a passage is kept under this.
    fn digest(&self) -> Digest;

    /// How alike each passage is to the question, in order, for as many of the first as
    /// could be compared `within` the time.
    ///
    /// What it makes of a passage it may keep, and need not make again.
    fn score_passages(
        &self,
        question: &RerankQuery<'_>,
        passages: &[RerankPassage<'_>],
        kept: &OwnerEncodingCache<'_>,
        within: Duration,
    ) -> Result<Vec<f32>, RerankError>;
}

/// What is asked.
#[derive(Clone, Debug)]
pub struct RerankQuery<'a> {
    /// As it was typed.
    pub text: &'a str,
    /// Where the words are that are looked for, in order, and how rare each is. The others
    /// are stop words.
    pub words: Vec<(Range<usize>, f32)>,
}

/// A passage, as far as it is read.
#[derive(Clone, Copy, Debug)]
pub struct RerankPassage<'a> {
    /// Who said it.
    pub author: Option<&'a str>,
    /// What was said: of a long passage, its best place.
    pub text: &'a str,
    /// The beginning of what was said just before.
    pub previous_text: &'a str,
}

/// What came of comparing the first hits again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RerankReport {
    /// By which model.
    #[serde(rename = "by")]
    pub model: String,
    /// How many there was time for.
    pub count: usize,
    /// Why there are none, where it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(rename = "unable")]
    pub error: Option<String>,
}

impl RerankReport {
    /// Nothing was compared, for this reason.
    pub fn failed(by: &str, error: &RerankError) -> Self {
        let mut why = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause {
            why.push_str(&format!(": {error}"));
            cause = error.source();
        }
        Self {
            model: by.to_owned(),
            count: 0,
            error: Some(why),
        }
    }
}

/// How, by what and for how long hits are compared again.
pub(crate) struct RerankPass<'a> {
    pub(crate) reranker: &'a dyn Reranker,
    pub(crate) cache: &'a crate::encoding_cache::EncodingCache,
    pub(crate) owner: &'a Owner,
    pub(crate) time_limit: Duration,
}

impl RerankPass<'_> {
    /// Puts the first passages in order again, as far as time allows.
    pub(crate) fn rerank(
        &self,
        mode: Mode,
        asked: &QueryTerms,
        ranked: &mut [RankedPassage],
    ) -> RerankReport {
        match self.score_first(asked, ranked) {
            Ok(likenesses) => {
                let count = likenesses.len();
                apply_scores(likenesses, mode, ranked);
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
        asked: &QueryTerms,
        ranked: &[RankedPassage],
    ) -> Result<Vec<f32>, RerankError> {
        let first = &ranked[..ranked.len().min(MAX_RERANKED)];
        if first.is_empty() || self.time_limit.is_zero() {
            return Ok(Vec::new());
        }
        let question = RerankQuery {
            text: &asked.text,
            words: asked
                .words
                .iter()
                .map(|word| (word.range.clone(), word.rarity))
                .collect(),
        };
        let reading = |one: &RankedPassage| -> Range<usize> {
            find_best_range(&one.stored.passage.text, asked, MAX_PASSAGE_BYTES)
        };
        let passages: Vec<RerankPassage<'_>> = first
            .iter()
            .map(|one| RerankPassage {
                author: one.stored.passage.author.as_deref(),
                text: &one.stored.passage.text[reading(one)],
                previous_text: &one.stored.previous_text,
            })
            .collect();
        let kept = self.cache.for_owner(self.owner);
        let mut likenesses =
            self.reranker
                .score_passages(&question, &passages, &kept, self.time_limit)?;
        if likenesses.iter().any(|likeness| !likeness.is_finite()) {
            return Err("it answers with what is no number".into());
        }
        if likenesses.is_empty() {
            let milliseconds = self.time_limit.as_millis();
            return Err(format!("there was no time for it within {milliseconds} ms").into());
        }
        likenesses.truncate(first.len());
        Ok(likenesses)
    }
}

/// Scores the first passages by what was found out about them.
fn apply_scores(mut likenesses: Vec<f32>, mode: Mode, ranked: &mut [RankedPassage]) {
    let (again, rest) = ranked.split_at_mut(likenesses.len());
    min_max_scale(&mut likenesses, |likeness| likeness);
    let weights = ScoreWeights::with_contextual(mode);
    for (one, likeness) in again.iter_mut().zip(likenesses) {
        one.score_parts = ScoreParts {
            contextual: Some(likeness),
            ..one.score_parts
        };
        one.score = weights.score(&one.score_parts);
    }
    sort_by_score(again);
    // The rest are after them, and their scores say so.
    let least = again.last().map_or(1.0, |last| last.score);
    for one in rest {
        one.score *= least;
    }
}

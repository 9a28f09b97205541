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

use crate::encoded::Keeping;
use crate::fusion::{Weights, stretch};
use crate::rank::{Ranked, sort};
use crate::snippet::best_place;
use crate::terms::Asked;
use crate::{Mode, Why};

/// So many are compared, if there is time.
const COMPARED: usize = 32;
/// So much of a passage is read, in bytes: its best place.
const TEXT: usize = 600;

/// Why hits could not be compared.
pub type CompareError = Box<dyn std::error::Error + Send + Sync>;

/// A model that compares the first hits of a search again.
pub trait Compare: Debug + Send + Sync {
    /// What a person knows it by.
    fn name(&self) -> &str;

    /// Says which model it is: what it made of a passage is kept under this.
    fn digest(&self) -> Digest;

    /// How alike each passage is to the question, in order, for as many of the first as
    /// could be compared `within` the time.
    ///
    /// What it makes of a passage it may keep, and need not make again.
    fn likenesses(
        &self,
        question: &Question<'_>,
        passages: &[Reading<'_>],
        kept: &Keeping<'_>,
        within: Duration,
    ) -> Result<Vec<f32>, CompareError>;
}

/// What is asked.
#[derive(Clone, Debug)]
pub struct Question<'a> {
    /// As it was typed.
    pub text: &'a str,
    /// Where the words are that are looked for, in order, and how rare each is. The others
    /// are stop words.
    pub words: Vec<(Range<usize>, f32)>,
}

/// A passage, as far as it is read.
#[derive(Clone, Copy, Debug)]
pub struct Reading<'a> {
    /// Who said it.
    pub author: Option<&'a str>,
    /// What was said: of a long passage, its best place.
    pub text: &'a str,
    /// The beginning of what was said just before.
    pub before: &'a str,
}

/// What came of comparing the first hits again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Compared {
    /// By which model.
    pub by: String,
    /// How many there was time for.
    pub count: usize,
    /// Why there are none, where it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unable: Option<String>,
}

impl Compared {
    /// Nothing was compared, for this reason.
    pub fn failed(by: &str, error: &CompareError) -> Self {
        let mut why = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause {
            why.push_str(&format!(": {error}"));
            cause = error.source();
        }
        Self {
            by: by.to_owned(),
            count: 0,
            unable: Some(why),
        }
    }
}

/// How, by what and for how long hits are compared again.
pub(crate) struct Again<'a> {
    pub(crate) by: &'a dyn Compare,
    pub(crate) kept: &'a crate::encoded::Encoded,
    pub(crate) owner: &'a Owner,
    pub(crate) within: Duration,
}

impl Again<'_> {
    /// Puts the first passages in order again, as far as time allows.
    pub(crate) fn rerank(&self, mode: Mode, asked: &Asked, ranked: &mut [Ranked]) -> Compared {
        match self.compare(asked, ranked) {
            Ok(likenesses) => {
                let count = likenesses.len();
                apply(likenesses, mode, ranked);
                Compared {
                    by: self.by.name().to_owned(),
                    count,
                    unable: None,
                }
            }
            Err(error) => Compared::failed(self.by.name(), &error),
        }
    }

    fn compare(&self, asked: &Asked, ranked: &[Ranked]) -> Result<Vec<f32>, CompareError> {
        let first = &ranked[..ranked.len().min(COMPARED)];
        if first.is_empty() || self.within.is_zero() {
            return Ok(Vec::new());
        }
        let question = Question {
            text: &asked.text,
            words: asked
                .words
                .iter()
                .map(|word| (word.range.clone(), word.rarity))
                .collect(),
        };
        let reading =
            |one: &Ranked| -> Range<usize> { best_place(&one.kept.passage.text, asked, TEXT) };
        let passages: Vec<Reading<'_>> = first
            .iter()
            .map(|one| Reading {
                author: one.kept.passage.author.as_deref(),
                text: &one.kept.passage.text[reading(one)],
                before: &one.kept.before,
            })
            .collect();
        let kept = self.kept.keeping(self.owner);
        let mut likenesses = self
            .by
            .likenesses(&question, &passages, &kept, self.within)?;
        if likenesses.iter().any(|likeness| !likeness.is_finite()) {
            return Err("it answers with what is no number".into());
        }
        if likenesses.is_empty() {
            let milliseconds = self.within.as_millis();
            return Err(format!("there was no time for it within {milliseconds} ms").into());
        }
        likenesses.truncate(first.len());
        Ok(likenesses)
    }
}

/// Scores the first passages by what was found out about them.
fn apply(mut likenesses: Vec<f32>, mode: Mode, ranked: &mut [Ranked]) {
    let (again, rest) = ranked.split_at_mut(likenesses.len());
    stretch(&mut likenesses, |likeness| likeness);
    let weights = Weights::with_contextual(mode);
    for (one, likeness) in again.iter_mut().zip(likenesses) {
        one.why = Why {
            contextual: Some(likeness),
            ..one.why
        };
        one.score = weights.score(&one.why);
    }
    sort(again);
    // The rest are after them, and their scores say so.
    let least = again.last().map_or(1.0, |last| last.score);
    for one in rest {
        one.score *= least;
    }
}

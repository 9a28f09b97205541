//! Decides whether two facts state the same.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use super::fact_words::{Word, content_words, split_words};

/// The similarity from which on two facts are the same.
const SAME_FACT_THRESHOLD: f32 = 0.9;
/// The model's similarity for facts that are the same. Among the pairs in
/// `similarity_corpus.rs` that differ in more than what is checked separately, the
/// highest is 0.90. Losing a fact is worse than having it twice.
const MODEL_SAME_THRESHOLD: f32 = 0.92;
/// The model's highest similarity for unrelated facts.
const MODEL_UNRELATED_THRESHOLD: f32 = 0.3;

type SimilarityFn = dyn Fn(&str, &str) -> f32 + Send + Sync;

/// A measure of how similar two texts are, from 0 to 1. The default is the maximum of
/// word overlap and the similarity according to the built-in model; programs may supply
/// their own.
#[derive(Clone)]
pub struct Similarity(Arc<SimilarityFn>);

impl Similarity {
    /// Creates a measure from a function.
    pub fn new(compare: impl Fn(&str, &str) -> f32 + Send + Sync + 'static) -> Self {
        Self(Arc::new(compare))
    }

    /// Returns how similar two texts are.
    pub fn score(&self, one: &str, other: &str) -> f32 {
        (self.0)(one, other).clamp(0.0, 1.0)
    }
}

impl Default for Similarity {
    fn default() -> Self {
        Self::new(default_similarity)
    }
}

impl fmt::Debug for Similarity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Similarity(…)")
    }
}

/// The maximum of word overlap and semantic similarity, scaled to the same threshold.
fn default_similarity(one: &str, other: &str) -> f32 {
    let semantic = throughline_recall::text_similarity(one, other);
    let semantic = if semantic < MODEL_SAME_THRESHOLD {
        SAME_FACT_THRESHOLD * (semantic - MODEL_UNRELATED_THRESHOLD)
            / (MODEL_SAME_THRESHOLD - MODEL_UNRELATED_THRESHOLD)
    } else {
        SAME_FACT_THRESHOLD
            + (1.0 - SAME_FACT_THRESHOLD) * (semantic - MODEL_SAME_THRESHOLD)
                / (1.0 - MODEL_SAME_THRESHOLD)
    };
    word_overlap(one, other).max(semantic.clamp(0.0, 1.0))
}

/// Twice the number of shared content words, divided by the total (Dice coefficient).
#[allow(clippy::cast_precision_loss, reason = "counts of words")]
pub fn word_overlap(one: &str, other: &str) -> f32 {
    let one: HashSet<_> = content_words(one).into_iter().collect();
    let other: HashSet<_> = content_words(other).into_iter().collect();
    let all = one.len() + other.len();
    if all == 0 {
        return 0.0;
    }
    2.0 * one.intersection(&other).count() as f32 / all as f32
}

/// Returns whether two facts state the same: in the same words, or in similar words
/// with the same names and numbers.
///
/// Facts that differ in exactly one word are usually about two different things, so
/// they are never considered the same.
pub(super) fn is_same_fact(one: &str, other: &str, similarity: &Similarity) -> bool {
    let (ours, theirs) = (split_words(one), split_words(other));
    let texts =
        |words: &[Word]| -> Vec<String> { words.iter().map(|word| word.text.clone()).collect() };
    if !ours.is_empty() && texts(&ours) == texts(&theirs) {
        return true;
    }
    let distinctive = |words: &[Word]| -> HashSet<String> {
        let distinctive = words.iter().filter(|word| word.is_distinctive());
        distinctive.map(|word| word.text.clone()).collect()
    };
    distinctive(&ours) == distinctive(&theirs)
        && !differs_in_one_word(&ours, &theirs)
        && similarity.score(one, other) >= SAME_FACT_THRESHOLD
}

fn differs_in_one_word(one: &[Word], other: &[Word]) -> bool {
    let differing = one.iter().zip(other).filter(|(a, b)| a.text != b.text);
    one.len() == other.len() && differing.count() == 1
}

#[cfg(test)]
mod tests {
    use super::super::similarity_corpus::{DIFFERENT, SAME};
    use super::*;

    #[test]
    fn rephrased_facts_are_the_same() {
        let similar = Similarity::default();
        for (one, other) in [
            ("The port is 8080.", "the port is 8080"),
            ("Port: 8080", "The port is 8080"),
            ("Use `Redis` for sessions", "use redis for sessions!"),
            (
                "Migrations are run by hand before every deploy",
                "Before every deploy, migrations are run by hand",
            ),
        ] {
            assert!(is_same_fact(one, other, &similar), "{one:?} and {other:?}");
        }
    }

    /// Returns how many of these pairs are considered the same.
    fn count_same(pairs: &[(&str, &str)], similar: &Similarity) -> usize {
        let same = |(one, other): &&(&str, &str)| is_same_fact(one, other, similar);
        pairs.iter().filter(same).count()
    }

    #[test]
    fn semantic_similarity_finds_twice_as_many_pairs_without_false_positives() {
        let (words, default) = (Similarity::new(word_overlap), Similarity::default());
        let found = [&words, &default].map(|similar| count_same(&SAME, similar));
        assert_eq!(found, [8, 16], "of {}", SAME.len());
        let wrong = [&words, &default].map(|similar| count_same(&DIFFERENT, similar));
        assert_eq!(wrong, [0, 0], "of {}", DIFFERENT.len());
    }

    #[test]
    fn unrelated_texts_are_not_similar() {
        assert!(default_similarity("The port is 8080", "Lunch was late on Sunday") < 0.1);
        assert!(default_similarity("", "Lunch was late") < 0.1);
        assert!(default_similarity("Redis", "Redis") > 0.99);
    }

    #[test]
    fn facts_that_differ_in_one_detail_are_not_the_same() {
        // As a semantic model might judge them.
        let similar = Similarity::new(|_, _| 0.99);
        for (one, other) in [
            ("The port is 8080", "The port is 8081"),
            ("We use Postgres", "We use Redis"),
            ("we use postgres", "we use redis"),
            ("The cache is on", "The cache is not on"),
            ("Ask Ada about billing", "Billing questions go to Bob"),
        ] {
            assert!(!is_same_fact(one, other, &similar), "{one:?} and {other:?}");
        }
        assert!(is_same_fact(
            "the server listens at 8080",
            "8080 is where the server can be reached",
            &similar
        ));
    }
}

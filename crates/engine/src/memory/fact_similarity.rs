//! Whether two facts say the same.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use super::fact_words::{Word, content_words, split_words};

/// From here on two facts are alike.
const SAME_FACT_THRESHOLD: f32 = 0.9;
/// What the model says of two facts that are alike. Of the pairs in `pairs.rs` that differ,
/// and by more than what is guarded against, the most alike have 0.90; losing a fact is worse
/// than having one twice.
const MODEL_SAME_THRESHOLD: f32 = 0.92;
/// What it says of facts that have nothing to do with each other, at most.
const MODEL_UNRELATED_THRESHOLD: f32 = 0.3;

type SimilarityFn = dyn Fn(&str, &str) -> f32 + Send + Sync;

/// How alike two texts are, from 0 to 1. By default, by the words they share or by what the
/// model in the binary makes of them, whichever is more; a program may bring its own.
#[derive(Clone)]
pub struct Similarity(Arc<SimilarityFn>);

impl Similarity {
    /// As this function says.
    pub fn new(compare: impl Fn(&str, &str) -> f32 + Send + Sync + 'static) -> Self {
        Self(Arc::new(compare))
    }

    /// How alike two texts are.
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
        f.write_str("Similar(…)")
    }
}

/// How alike two texts are by the words they share or by what they mean, whichever is more.
fn default_similarity(one: &str, other: &str) -> f32 {
    let meant = throughline_recall::text_similarity(one, other);
    let meant = if meant < MODEL_SAME_THRESHOLD {
        SAME_FACT_THRESHOLD * (meant - MODEL_UNRELATED_THRESHOLD)
            / (MODEL_SAME_THRESHOLD - MODEL_UNRELATED_THRESHOLD)
    } else {
        SAME_FACT_THRESHOLD
            + (1.0 - SAME_FACT_THRESHOLD) * (meant - MODEL_SAME_THRESHOLD)
                / (1.0 - MODEL_SAME_THRESHOLD)
    };
    word_overlap(one, other).max(meant.clamp(0.0, 1.0))
}

/// Twice the words that two texts share, of all they have.
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

/// Whether two facts say the same: in the same words, or in words that are alike and tell
/// of the same names and numbers.
///
/// A single word in another's place is how facts differ that are about two things, so
/// that is never the same.
pub(super) fn is_same_fact(one: &str, other: &str, similar: &Similarity) -> bool {
    let (ours, theirs) = (split_words(one), split_words(other));
    let texts =
        |words: &[Word]| -> Vec<String> { words.iter().map(|word| word.text.clone()).collect() };
    if !ours.is_empty() && texts(&ours) == texts(&theirs) {
        return true;
    }
    let telling = |words: &[Word]| -> HashSet<String> {
        let telling = words.iter().filter(|word| word.is_distinctive());
        telling.map(|word| word.text.clone()).collect()
    };
    telling(&ours) == telling(&theirs)
        && !differs_in_one_word(&ours, &theirs)
        && similar.score(one, other) >= SAME_FACT_THRESHOLD
}

fn differs_in_one_word(one: &[Word], other: &[Word]) -> bool {
    let apart = one.iter().zip(other).filter(|(a, b)| a.text != b.text);
    one.len() == other.len() && apart.count() == 1
}

#[cfg(test)]
mod tests {
    use super::super::similarity_corpus::{DIFFERENT, SAME};
    use super::*;

    #[test]
    fn the_same_in_other_words_is_the_same() {
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

    /// How many of these pairs are taken to say the same.
    fn count_same(pairs: &[(&str, &str)], similar: &Similarity) -> usize {
        let same = |(one, other): &&(&str, &str)| is_same_fact(one, other, similar);
        pairs.iter().filter(same).count()
    }

    #[test]
    fn meaning_finds_twice_what_words_find_and_takes_nothing_for_the_same_that_is_not() {
        let (words, default) = (Similarity::new(word_overlap), Similarity::default());
        let found = [&words, &default].map(|similar| count_same(&SAME, similar));
        assert_eq!(found, [8, 16], "of {}", SAME.len());
        let wrong = [&words, &default].map(|similar| count_same(&DIFFERENT, similar));
        assert_eq!(wrong, [0, 0], "of {}", DIFFERENT.len());
    }

    #[test]
    fn what_has_nothing_in_common_is_not_alike() {
        assert!(default_similarity("The port is 8080", "Lunch was late on Sunday") < 0.1);
        assert!(default_similarity("", "Lunch was late") < 0.1);
        assert!(default_similarity("Redis", "Redis") > 0.99);
    }

    #[test]
    fn what_differs_in_one_thing_is_not_the_same_however_alike() {
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

//! Whether two facts say the same.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use super::words::{Word, content, words};

/// From here on two facts are alike.
const ALIKE: f32 = 0.9;

type Compare = dyn Fn(&str, &str) -> f32 + Send + Sync;

/// How alike two texts are, from 0 to 1. By default, how many words they share; a
/// program that has a semantic model brings its own.
#[derive(Clone)]
pub struct Similar(Arc<Compare>);

impl Similar {
    /// As this function says.
    pub fn new(compare: impl Fn(&str, &str) -> f32 + Send + Sync + 'static) -> Self {
        Self(Arc::new(compare))
    }

    /// How alike two texts are.
    pub fn between(&self, one: &str, other: &str) -> f32 {
        (self.0)(one, other).clamp(0.0, 1.0)
    }
}

impl Default for Similar {
    fn default() -> Self {
        Self::new(word_overlap)
    }
}

impl fmt::Debug for Similar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Similar(…)")
    }
}

/// Twice the words that two texts share, of all they have.
#[allow(clippy::cast_precision_loss, reason = "counts of words")]
pub fn word_overlap(one: &str, other: &str) -> f32 {
    let one: HashSet<_> = content(one).into_iter().collect();
    let other: HashSet<_> = content(other).into_iter().collect();
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
pub(super) fn same(one: &str, other: &str, similar: &Similar) -> bool {
    let (ours, theirs) = (words(one), words(other));
    let texts =
        |words: &[Word]| -> Vec<String> { words.iter().map(|word| word.text.clone()).collect() };
    if !ours.is_empty() && texts(&ours) == texts(&theirs) {
        return true;
    }
    let telling = |words: &[Word]| -> HashSet<String> {
        let telling = words.iter().filter(|word| word.is_telling());
        telling.map(|word| word.text.clone()).collect()
    };
    telling(&ours) == telling(&theirs)
        && !one_word_apart(&ours, &theirs)
        && similar.between(one, other) >= ALIKE
}

fn one_word_apart(one: &[Word], other: &[Word]) -> bool {
    let apart = one.iter().zip(other).filter(|(a, b)| a.text != b.text);
    one.len() == other.len() && apart.count() == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_in_other_words_is_the_same() {
        let similar = Similar::default();
        for (one, other) in [
            ("The port is 8080.", "the port is 8080"),
            ("Port: 8080", "The port is 8080"),
            ("Use `Redis` for sessions", "use redis for sessions!"),
            (
                "Migrations are run by hand before every deploy",
                "Before every deploy, migrations are run by hand",
            ),
        ] {
            assert!(same(one, other, &similar), "{one:?} and {other:?}");
        }
    }

    #[test]
    fn what_differs_in_one_thing_is_not_the_same_however_alike() {
        // As a semantic model might judge them.
        let similar = Similar::new(|_, _| 0.99);
        for (one, other) in [
            ("The port is 8080", "The port is 8081"),
            ("We use Postgres", "We use Redis"),
            ("we use postgres", "we use redis"),
            ("The cache is on", "The cache is not on"),
            ("Ask Ada about billing", "Billing questions go to Bob"),
        ] {
            assert!(!same(one, other, &similar), "{one:?} and {other:?}");
        }
        assert!(same(
            "the server listens at 8080",
            "8080 is where the server can be reached",
            &similar
        ));
    }
}

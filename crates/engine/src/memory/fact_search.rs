//! Finding a fact by what it is about.

use throughline_model::Fact;

use super::fact_words::content_words;
use super::{Memory, fact_rank};
use crate::Error;

/// What is less like the query than this, and shares no word with it, is not found.
const MIN_SIMILARITY: f32 = 0.4;

/// A fact that was found, and how well it fits.
#[derive(Clone, Debug, PartialEq)]
pub struct FactMatch {
    /// The fact.
    pub fact: Fact,
    /// From 0 to 1.
    pub score: f32,
}

impl Memory {
    /// The facts that count and are about this, the best first.
    pub async fn search(&self, query: &str) -> Result<Vec<FactMatch>, Error> {
        let mut facts = self.list().await?;
        fact_rank::sort_by_rank(&mut facts, |fact| fact, self.tl.now(), &[]);
        let asked = content_words(query);
        let mut found: Vec<FactMatch> = facts
            .into_iter()
            .filter_map(|fact| {
                let shared = word_coverage(&asked, &fact);
                let alike = self.tl.similarity.score(query, &fact.text);
                let fits = shared > 0.0 || alike >= MIN_SIMILARITY;
                let score = shared.max(alike);
                fits.then_some(FactMatch { fact, score })
            })
            .collect();
        // Stable: equals stay in the order in which they matter.
        found.sort_by(|a, b| b.score.total_cmp(&a.score));
        Ok(found)
    }
}

/// How many of the words asked for are in a fact or begin one that is.
#[allow(clippy::cast_precision_loss, reason = "counts of words")]
fn word_coverage(asked: &[String], fact: &Fact) -> f32 {
    if asked.is_empty() {
        return 0.0;
    }
    let mut there = content_words(&fact.text);
    there.extend(fact.files.iter().map(|file| file.to_lowercase()));
    let has = |word: &&String| {
        let begins = |known: &String| word.chars().count() >= 3 && known.contains(word.as_str());
        there.iter().any(|known| known == *word || begins(known))
    };
    asked.iter().filter(has).count() as f32 / asked.len() as f32
}

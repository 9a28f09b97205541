//! Searches facts by word and meaning.

use throughline_model::Fact;

use super::fact_words::content_words;
use super::{Memory, fact_rank};
use crate::Error;

/// The minimum similarity of a fact that shares no word with the query.
const MIN_SIMILARITY: f32 = 0.4;

/// A fact that was found, with its score.
#[derive(Clone, Debug, PartialEq)]
pub struct FactMatch {
    /// The fact.
    pub fact: Fact,
    /// From 0 to 1.
    pub score: f32,
}

impl Memory {
    /// Returns the facts in effect that match a query, best first.
    pub async fn search(&self, query: &str) -> Result<Vec<FactMatch>, Error> {
        let mut facts = self.list().await?;
        fact_rank::sort_by_rank(&mut facts, |fact| fact, self.tl.now(), &[]);
        let query_words = content_words(query);
        let mut found: Vec<FactMatch> = facts
            .into_iter()
            .filter_map(|fact| {
                let coverage = word_coverage(&query_words, &fact);
                let similarity = self.tl.similarity.score(query, &fact.text);
                let is_match = coverage > 0.0 || similarity >= MIN_SIMILARITY;
                let score = coverage.max(similarity);
                is_match.then_some(FactMatch { fact, score })
            })
            .collect();
        // Stable sort: equal scores stay ordered by rank.
        found.sort_by(|a, b| b.score.total_cmp(&a.score));
        Ok(found)
    }
}

/// Returns the share of query words that are in a fact or part of one of its words.
#[allow(clippy::cast_precision_loss, reason = "counts of words")]
fn word_coverage(query_words: &[String], fact: &Fact) -> f32 {
    if query_words.is_empty() {
        return 0.0;
    }
    let mut fact_words = content_words(&fact.text);
    fact_words.extend(fact.files.iter().map(|file| file.to_lowercase()));
    let has = |word: &&String| {
        let begins = |known: &String| word.chars().count() >= 3 && known.contains(word.as_str());
        fact_words
            .iter()
            .any(|known| known == *word || begins(known))
    };
    query_words.iter().filter(has).count() as f32 / query_words.len() as f32
}

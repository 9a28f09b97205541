//! Finding a fact by what it is about.

use throughline_model::Fact;

use super::words::content;
use super::{Memory, rank};
use crate::Error;

/// What is less like the query than this, and shares no word with it, is not found.
const LIKE: f32 = 0.4;

/// A fact that was found, and how well it fits.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// The fact.
    pub fact: Fact,
    /// From 0 to 1.
    pub score: f32,
}

impl Memory {
    /// The facts that count and are about this, the best first.
    pub async fn search(&self, query: &str) -> Result<Vec<Found>, Error> {
        let mut facts = self.list().await?;
        rank::best_first(&mut facts, |fact| fact, self.tl.now(), &[]);
        let asked = content(query);
        let mut found: Vec<Found> = facts
            .into_iter()
            .filter_map(|fact| {
                let shared = shared(&asked, &fact);
                let alike = self.tl.similar.between(query, &fact.text);
                let fits = shared > 0.0 || alike >= LIKE;
                let score = shared.max(alike);
                fits.then_some(Found { fact, score })
            })
            .collect();
        // Stable: equals stay in the order in which they matter.
        found.sort_by(|a, b| b.score.total_cmp(&a.score));
        Ok(found)
    }
}

/// How many of the words asked for are in a fact or begin one that is.
#[allow(clippy::cast_precision_loss, reason = "counts of words")]
fn shared(asked: &[String], fact: &Fact) -> f32 {
    if asked.is_empty() {
        return 0.0;
    }
    let mut there = content(&fact.text);
    there.extend(fact.files.iter().map(|file| file.to_lowercase()));
    let has = |word: &&String| {
        let begins = |known: &String| word.chars().count() >= 3 && known.contains(word.as_str());
        there.iter().any(|known| known == *word || begins(known))
    };
    asked.iter().filter(has).count() as f32 / asked.len() as f32
}

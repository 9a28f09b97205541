//! What a query asks for: its words, what each is found by, and how much each counts.

use std::collections::HashSet;
use std::ops::Range;

use crate::model::{TokenId, model};
use crate::stop::is_stop_word;
use crate::words::{Word, words};
use crate::{Hit, Query, RecallError, Sight};

/// A prefix stands for at most so many words.
const ENDINGS: usize = 12;

/// The words of a query.
#[derive(Debug, Default)]
pub(crate) struct Asked {
    /// The words as they were typed.
    pub(crate) text: String,
    /// Those that are looked for, in order.
    pub(crate) words: Vec<AskedWord>,
    /// All words as they are written, stop words too: names are looked for among them.
    pub(crate) plain: HashSet<String>,
}

/// A word of a query.
#[derive(Debug)]
pub(crate) struct AskedWord {
    /// Where it is in the text.
    pub(crate) range: Range<usize>,
    /// What it is found by.
    pub(crate) terms: Vec<String>,
    /// How rare it is.
    pub(crate) rarity: f32,
    /// What it means.
    pub(crate) tokens: Vec<TokenId>,
}

impl Asked {
    /// The words of a query, and of its phrases.
    pub(crate) fn new(sight: &dyn Sight, query: &Query) -> Result<Self, RecallError> {
        let mut text = query.words.clone();
        for phrase in &query.phrases {
            text.push(' ');
            text.push_str(phrase);
        }
        let mut asked = Self::default();
        let mut all: Vec<Word> = words(&text).collect();
        for word in &all {
            asked
                .plain
                .extend(word.parts.iter().map(|part| part.plain.clone()));
            asked.plain.extend(word.wholes.iter().cloned());
        }
        let typed = query.words.len();
        let unfinished = |word: &Word| query.typing && word.range.end == typed;
        let asks = |word: &Word| !is_stop(word) || unfinished(word);
        if all.iter().any(asks) {
            all.retain(asks);
        }
        let mut seen = HashSet::new();
        for word in all {
            let mut terms: Vec<String> = word.terms().map(str::to_owned).collect();
            if unfinished(&word)
                && let Some(part) = word.parts.last()
            {
                terms.extend(sight.endings(&part.plain, ENDINGS)?);
            }
            terms.retain(|term| seen.insert(term.clone()));
            if terms.is_empty() {
                continue;
            }
            asked.words.push(AskedWord {
                rarity: 0.0,
                tokens: model().tokens(&text[word.range.clone()], 32),
                range: word.range,
                terms,
            });
        }
        asked.text = text;
        asked.weigh(sight)?;
        Ok(asked)
    }

    /// All that is looked for.
    pub(crate) fn terms(&self) -> Vec<&str> {
        let terms = self.words.iter().flat_map(|word| &word.terms);
        terms.map(String::as_str).collect()
    }

    /// Finds out how rare each word is: the mean of its terms', as BM25 has it.
    #[expect(
        clippy::cast_precision_loss,
        reason = "a count of passages, to be put in a logarithm"
    )]
    fn weigh(&mut self, sight: &dyn Sight) -> Result<(), RecallError> {
        let spread = sight.spread(&self.terms())?;
        let all = spread.all as f32;
        let mut counts = spread.with.iter();
        for word in &mut self.words {
            let mut sum = 0.0;
            for with in counts.by_ref().take(word.terms.len()) {
                let with = (*with as f32).min(all);
                sum += (1.0 + (all - with + 0.5) / (with + 0.5)).ln();
            }
            word.rarity = sum / word.terms.len().max(1) as f32;
        }
        Ok(())
    }
}

/// Whether a text has a word that can be looked for: `and now?` has none.
pub fn says_something(text: &str) -> bool {
    words(text).any(|word| !is_stop(&word))
}

fn is_stop(word: &Word) -> bool {
    word.wholes.is_empty() && word.parts.iter().all(|part| is_stop_word(&part.plain))
}

impl Asked {
    /// The same with every word that nobody in scope used as it is spelled there, or
    /// `None` if no word can be.
    pub(crate) fn corrected(&self, sight: &dyn Sight) -> Result<Option<Self>, RecallError> {
        let mut corrected = Self {
            plain: self.plain.clone(),
            ..Self::default()
        };
        for word in &self.words {
            // The last term is the stem of the word, or of a compound's last part.
            let Some(term) = word.terms.last() else {
                continue;
            };
            if let Some(nearest) = sight.nearest(term)? {
                if !corrected.text.is_empty() {
                    corrected.text.push(' ');
                }
                let start = corrected.text.len();
                corrected.text.push_str(&nearest);
                let tokens = model().tokens(&nearest, 32);
                let terms = vec![nearest];
                corrected.words.push(AskedWord {
                    range: start..corrected.text.len(),
                    rarity: 0.0,
                    tokens,
                    terms,
                });
            }
        }
        corrected.weigh(sight)?;
        Ok((!corrected.words.is_empty()).then_some(corrected))
    }

    /// The words as they are written in what was found: a term may be a stem.
    pub(crate) fn as_said(&self, hits: &[Hit]) -> String {
        let said = |term: &str| {
            let parts = hits
                .iter()
                .flat_map(|hit| words(&hit.text))
                .flat_map(|word| word.parts);
            parts
                .into_iter()
                .find(|part| part.term == term)
                .map(|part| part.plain)
        };
        let written = self.words.iter().map(|word| {
            let term = word.terms.first().map_or("", String::as_str);
            said(term).unwrap_or_else(|| self.text[word.range.clone()].to_owned())
        });
        written.collect::<Vec<_>>().join(" ")
    }
}

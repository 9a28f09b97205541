//! What a query asks for: its words, what each is found by, and how much each counts.

use std::collections::HashSet;
use std::ops::Range;

use crate::static_model::{TokenId, static_model};
use crate::stop_words::is_stop_word;
use crate::word_split::{Word, split_words};
use crate::{Hit, IndexReader, Query, RecallError};

/// A prefix stands for at most so many words.
const MAX_COMPLETIONS: usize = 12;

/// The words of a query.
#[derive(Debug, Default)]
pub(crate) struct QueryTerms {
    /// The words as they were typed.
    pub(crate) text: String,
    /// Those that are looked for, in order.
    pub(crate) words: Vec<QueryWord>,
    /// All words as they are written, stop words too: names are looked for among them.
    pub(crate) folded_words: HashSet<String>,
}

/// A word of a query.
#[derive(Debug)]
pub(crate) struct QueryWord {
    /// Where it is in the text.
    pub(crate) range: Range<usize>,
    /// What it is found by.
    pub(crate) terms: Vec<String>,
    /// How rare it is.
    pub(crate) rarity: f32,
    /// What it means.
    pub(crate) tokens: Vec<TokenId>,
}

impl QueryTerms {
    /// The words of a query, and of its phrases.
    pub(crate) fn new(sight: &dyn IndexReader, query: &Query) -> Result<Self, RecallError> {
        let mut text = query.words.clone();
        for phrase in &query.phrases {
            text.push(' ');
            text.push_str(phrase);
        }
        let mut asked = Self::default();
        let mut all: Vec<Word> = split_words(&text).collect();
        for word in &all {
            asked
                .folded_words
                .extend(word.subwords.iter().map(|part| part.folded.clone()));
            asked.folded_words.extend(word.compounds.iter().cloned());
        }
        let typed = query.words.len();
        let unfinished = |word: &Word| query.typing && word.range.end == typed;
        let asks = |word: &Word| !has_only_stop_words(word) || unfinished(word);
        if all.iter().any(asks) {
            all.retain(asks);
        }
        let mut seen = HashSet::new();
        for word in all {
            let mut terms: Vec<String> = word.terms().map(str::to_owned).collect();
            if unfinished(&word)
                && let Some(part) = word.subwords.last()
            {
                terms.extend(sight.complete_prefix(&part.folded, MAX_COMPLETIONS)?);
            }
            terms.retain(|term| seen.insert(term.clone()));
            if terms.is_empty() {
                continue;
            }
            asked.words.push(QueryWord {
                rarity: 0.0,
                tokens: static_model().tokenize(&text[word.range.clone()], 32),
                range: word.range,
                terms,
            });
        }
        asked.text = text;
        asked.compute_rarity(sight)?;
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
    fn compute_rarity(&mut self, sight: &dyn IndexReader) -> Result<(), RecallError> {
        let spread = sight.doc_frequencies(&self.terms())?;
        let all = spread.total as f32;
        let mut counts = spread.counts.iter();
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
pub fn has_searchable_words(text: &str) -> bool {
    split_words(text).any(|word| !has_only_stop_words(&word))
}

fn has_only_stop_words(word: &Word) -> bool {
    word.compounds.is_empty() && word.subwords.iter().all(|part| is_stop_word(&part.folded))
}

impl QueryTerms {
    /// The same with every word that nobody in scope used as it is spelled there, or
    /// `None` if no word can be.
    pub(crate) fn correct_spelling(
        &self,
        sight: &dyn IndexReader,
    ) -> Result<Option<Self>, RecallError> {
        let mut corrected = Self {
            folded_words: self.folded_words.clone(),
            ..Self::default()
        };
        for word in &self.words {
            // The last term is the stem of the word, or of a compound's last part.
            let Some(term) = word.terms.last() else {
                continue;
            };
            if let Some(nearest) = sight.correct_spelling(term)? {
                if !corrected.text.is_empty() {
                    corrected.text.push(' ');
                }
                let start = corrected.text.len();
                corrected.text.push_str(&nearest);
                let tokens = static_model().tokenize(&nearest, 32);
                let terms = vec![nearest];
                corrected.words.push(QueryWord {
                    range: start..corrected.text.len(),
                    rarity: 0.0,
                    tokens,
                    terms,
                });
            }
        }
        corrected.compute_rarity(sight)?;
        Ok((!corrected.words.is_empty()).then_some(corrected))
    }

    /// The words as they are written in what was found: a term may be a stem.
    pub(crate) fn to_surface_text(&self, hits: &[Hit]) -> String {
        let said = |term: &str| {
            let parts = hits
                .iter()
                .flat_map(|hit| split_words(&hit.text))
                .flat_map(|word| word.subwords);
            parts
                .into_iter()
                .find(|part| part.term == term)
                .map(|part| part.folded)
        };
        let written = self.words.iter().map(|word| {
            let term = word.terms.first().map_or("", String::as_str);
            said(term).unwrap_or_else(|| self.text[word.range.clone()].to_owned())
        });
        written.collect::<Vec<_>>().join(" ")
    }
}

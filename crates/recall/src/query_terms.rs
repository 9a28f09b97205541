//! Analyzes a query: its words, the index terms of each, and how rare each is.

use std::collections::HashSet;
use std::ops::Range;

use crate::static_model::{TokenId, static_model};
use crate::stop_words::is_stop_word;
use crate::word_split::{Word, split_words};
use crate::{Hit, IndexReader, Query, RecallError};

/// The maximum number of words that a prefix is expanded to.
const MAX_COMPLETIONS: usize = 12;

/// The words of a query, analyzed.
#[derive(Debug, Default)]
pub(crate) struct QueryTerms {
    /// The query as typed.
    pub(crate) text: String,
    /// The words to search for, in order.
    pub(crate) words: Vec<QueryWord>,
    /// All words casefolded, including stop words: author names are matched against them.
    pub(crate) folded_words: HashSet<String>,
}

/// A word of a query.
#[derive(Debug)]
pub(crate) struct QueryWord {
    /// Its byte range in the text.
    pub(crate) range: Range<usize>,
    /// The index terms it is found by.
    pub(crate) terms: Vec<String>,
    /// How rare it is (inverse document frequency).
    pub(crate) rarity: f32,
    /// Its tokens in the static model.
    pub(crate) tokens: Vec<TokenId>,
}

impl QueryTerms {
    /// Analyzes the words and phrases of a query.
    pub(crate) fn new(reader: &dyn IndexReader, query: &Query) -> Result<Self, RecallError> {
        let mut text = query.words.clone();
        for phrase in &query.phrases {
            text.push(' ');
            text.push_str(phrase);
        }
        let mut query_terms = Self::default();
        let mut all: Vec<Word> = split_words(&text).collect();
        for word in &all {
            query_terms
                .folded_words
                .extend(word.subwords.iter().map(|part| part.folded.clone()));
            query_terms
                .folded_words
                .extend(word.compounds.iter().cloned());
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
                terms.extend(reader.complete_prefix(&part.folded, MAX_COMPLETIONS)?);
            }
            terms.retain(|term| seen.insert(term.clone()));
            if terms.is_empty() {
                continue;
            }
            query_terms.words.push(QueryWord {
                rarity: 0.0,
                tokens: static_model().tokenize(&text[word.range.clone()], 32),
                range: word.range,
                terms,
            });
        }
        query_terms.text = text;
        query_terms.compute_rarity(reader)?;
        Ok(query_terms)
    }

    /// Returns all index terms of the query.
    pub(crate) fn terms(&self) -> Vec<&str> {
        let terms = self.words.iter().flat_map(|word| &word.terms);
        terms.map(String::as_str).collect()
    }

    /// Sets the rarity of each word: the mean over its terms of BM25's inverse document
    /// frequency.
    #[expect(
        clippy::cast_precision_loss,
        reason = "a count of passages, to be put in a logarithm"
    )]
    fn compute_rarity(&mut self, reader: &dyn IndexReader) -> Result<(), RecallError> {
        let frequencies = reader.doc_frequencies(&self.terms())?;
        let all = frequencies.total as f32;
        let mut counts = frequencies.counts.iter();
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

/// Returns whether a text contains a word worth searching for: `and now?` does not.
pub fn has_searchable_words(text: &str) -> bool {
    split_words(text).any(|word| !has_only_stop_words(&word))
}

fn has_only_stop_words(word: &Word) -> bool {
    word.compounds.is_empty() && word.subwords.iter().all(|part| is_stop_word(&part.folded))
}

impl QueryTerms {
    /// Returns the query with each word that does not occur in scope replaced by its closest
    /// spelling there, or `None` if no word can be corrected.
    pub(crate) fn correct_spelling(
        &self,
        reader: &dyn IndexReader,
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
            if let Some(nearest) = reader.correct_spelling(term)? {
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
        corrected.compute_rarity(reader)?;
        Ok((!corrected.words.is_empty()).then_some(corrected))
    }

    /// Returns the words as they are written in the hits, since a term may be a stem.
    pub(crate) fn to_surface_text(&self, hits: &[Hit]) -> String {
        let spelling = |term: &str| {
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
            spelling(term).unwrap_or_else(|| self.text[word.range.clone()].to_owned())
        });
        written.collect::<Vec<_>>().join(" ")
    }
}

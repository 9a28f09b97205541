//! Analyzes a passage once: its terms, and its vector.
//!
//! The words of a passage are indexed in its own document and in those of its neighbors, so
//! they are split and stemmed once and passed to the index as pretokenized text: terms
//! separated by spaces. [`PretokenizedTokenizer`] only splits them again.

use std::sync::OnceLock;

use tantivy::tokenizer::{Token, TokenStream, Tokenizer};

use crate::Passage;
use crate::static_model::{TokenId, static_model};
use crate::stop_words::is_stop_word;
use crate::word_split::split_words;

/// The name the tokenizer is registered under.
pub(crate) const PRETOKENIZED: &str = "prepared";

/// Marks a term that has the same position as the next one: a compound and its first part.
pub(crate) const SAME_POSITION: char = '\u{1}';

/// The part of a passage that is added to its neighbors' documents, in bytes of terms.
const MAX_HEAD_TERM_BYTES: usize = 1500;
/// The part of a passage that is stored for comparison with its neighbors, in bytes of text.
const MAX_HEAD_TEXT_BYTES: usize = 600;
/// The maximum number of tokens that are pooled into the vector.
pub(crate) const MAX_VECTOR_TOKENS: usize = 512;

/// The pretokenized terms of a text.
#[derive(Clone, Debug, Default)]
pub(crate) struct TextTerms {
    /// All terms, with their positions.
    pub(crate) positional: String,
    /// All terms but the stop words.
    pub(crate) content: String,
}

impl TextTerms {
    pub(crate) fn from_text(text: &str) -> Self {
        let mut terms = Self::default();
        let push = |to: &mut String, term: &str| {
            if !to.is_empty() {
                to.push(' ');
            }
            to.push_str(term);
        };
        for word in split_words(text) {
            let lone = word.compounds.is_empty();
            for whole in &word.compounds {
                push(&mut terms.positional, &format!("{SAME_POSITION}{whole}"));
                push(&mut terms.content, whole);
            }
            for part in &word.subwords {
                push(&mut terms.positional, &part.term);
                if !(lone && is_stop_word(&part.folded)) {
                    push(&mut terms.content, &part.term);
                }
            }
        }
        terms
    }

    /// Returns the beginning of the content terms.
    pub(crate) fn content_prefix(&self) -> &str {
        if self.content.len() <= MAX_HEAD_TERM_BYTES {
            return &self.content;
        }
        let mut end = MAX_HEAD_TERM_BYTES;
        while !self.content.is_char_boundary(end) {
            end -= 1;
        }
        let head = &self.content[..end];
        head.rsplit_once(' ').map_or("", |(head, _)| head)
    }
}

/// A passage with its terms and tokens.
#[derive(Debug)]
pub(crate) struct AnalyzedPassage {
    pub(crate) passage: Passage,
    pub(crate) terms: TextTerms,
    vector: OnceLock<Vec<f32>>,
}

impl AnalyzedPassage {
    pub(crate) fn new(passage: Passage) -> Self {
        Self {
            terms: TextTerms::from_text(&passage.text),
            vector: OnceLock::new(),
            passage,
        }
    }

    /// Returns the vector of the text alone.
    pub(crate) fn vector(&self) -> &[f32] {
        self.vector.get_or_init(|| {
            let tokens: Vec<TokenId> =
                static_model().tokenize(&self.passage.text, MAX_VECTOR_TOKENS);
            static_model().mean_pool(tokens.into_iter().map(|token| (token, 1.0)))
        })
    }

    /// Returns the beginning of the text.
    pub(crate) fn text_prefix(&self) -> String {
        let text = &self.passage.text;
        let mut end = text.len().min(MAX_HEAD_TEXT_BYTES);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text[..end].to_owned()
    }
}

/// Splits pretokenized text into terms.
#[derive(Clone, Debug, Default)]
pub(crate) struct PretokenizedTokenizer {
    token: Token,
}

impl Tokenizer for PretokenizedTokenizer {
    type TokenStream<'a> = PretokenizedStream<'a>;

    fn token_stream<'a>(&'a mut self, text: &'a str) -> PretokenizedStream<'a> {
        self.token.reset();
        PretokenizedStream {
            rest: text,
            advances_position: true,
            token: &mut self.token,
        }
    }
}

/// The terms of one pretokenized text.
pub(crate) struct PretokenizedStream<'a> {
    rest: &'a str,
    /// Whether the next term advances the position.
    advances_position: bool,
    token: &'a mut Token,
}

impl TokenStream for PretokenizedStream<'_> {
    fn advance(&mut self) -> bool {
        self.rest = self.rest.trim_start_matches(' ');
        if self.rest.is_empty() {
            return false;
        }
        let end = self.rest.find(' ').unwrap_or(self.rest.len());
        let (term, rest) = self.rest.split_at(end);
        self.rest = rest;
        if self.advances_position {
            self.token.position = self.token.position.wrapping_add(1);
        }
        let whole = term.strip_prefix(SAME_POSITION);
        self.advances_position = whole.is_none();
        self.token.text.clear();
        self.token.text.push_str(whole.unwrap_or(term));
        true
    }

    fn token(&self) -> &Token {
        self.token
    }

    fn token_mut(&mut self) -> &mut Token {
        self.token
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_compound_is_at_the_place_of_its_first_part() {
        let terms = TextTerms::from_text("the snake_case name");
        let mut tokenizer = PretokenizedTokenizer::default();
        let mut stream = tokenizer.token_stream(&terms.positional);
        let mut found = Vec::new();
        while stream.advance() {
            found.push((stream.token().position, stream.token().text.clone()));
        }
        let expected = [
            (0, "the"),
            (1, "snake_case"),
            (1, "snake"),
            (2, "case"),
            (3, "name"),
        ];
        assert_eq!(found, expected.map(|(at, term)| (at, term.to_owned())));
        assert_eq!(terms.content, "snake_case snake case name");
    }

    #[test]
    fn the_head_of_the_terms_ends_with_a_whole_term() {
        let terms = TextTerms::from_text(&"wonderful größe ".repeat(1000));
        assert!(terms.content_prefix().len() <= MAX_HEAD_TERM_BYTES);
        assert!(
            terms.content_prefix().ends_with("große") || terms.content_prefix().ends_with("wonder")
        );
    }
}

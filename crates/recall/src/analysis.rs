//! A passage, read once: its terms, and its vector.
//!
//! A passage's words are indexed with its own document and with those around it, so they
//! are cut and stemmed once and handed to the index ready made: terms with a space
//! between. [`PreparedTokenizer`] only has to split them again.

use std::sync::OnceLock;

use tantivy::tokenizer::{Token, TokenStream, Tokenizer};

use crate::Passage;
use crate::static_model::{TokenId, static_model};
use crate::stop_words::is_stop_word;
use crate::word_split::split_words;

/// The name of the tokenizer.
pub(crate) const PRETOKENIZED: &str = "prepared";

/// Before a term that has the same place as the next one: a compound and its first part.
pub(crate) const SAME_POSITION: char = '\u{1}';

/// So much of a passage is in the documents of those around it, in bytes of terms.
const MAX_HEAD_TERM_BYTES: usize = 1500;
/// So much of it is kept to be compared with, in bytes of text.
const MAX_HEAD_TEXT_BYTES: usize = 600;
/// So many of its tokens make its vector.
pub(crate) const MAX_VECTOR_TOKENS: usize = 512;

/// The terms of a text.
#[derive(Clone, Debug, Default)]
pub(crate) struct TextTerms {
    /// All, with their places.
    pub(crate) positional: String,
    /// All but the stop words.
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

    /// The beginning of the content.
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

/// A passage with its terms.
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

    /// The vector of the text alone.
    pub(crate) fn vector(&self) -> &[f32] {
        self.vector.get_or_init(|| {
            let tokens: Vec<TokenId> =
                static_model().tokenize(&self.passage.text, MAX_VECTOR_TOKENS);
            static_model().mean_pool(tokens.into_iter().map(|token| (token, 1.0)))
        })
    }

    /// The beginning of the text.
    pub(crate) fn text_prefix(&self) -> String {
        let text = &self.passage.text;
        let mut end = text.len().min(MAX_HEAD_TEXT_BYTES);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text[..end].to_owned()
    }
}

/// Splits terms that were prepared.
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

/// The terms of one prepared text.
pub(crate) struct PretokenizedStream<'a> {
    rest: &'a str,
    /// Whether the next term is at the next place.
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

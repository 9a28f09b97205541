//! A passage, read once: its terms, and its vector.
//!
//! A passage's words are indexed with its own document and with those around it, so they
//! are cut and stemmed once and handed to the index ready made: terms with a space
//! between. [`PreparedTokenizer`] only has to split them again.

use std::sync::OnceLock;

use tantivy::tokenizer::{Token, TokenStream, Tokenizer};

use crate::Passage;
use crate::model::{TokenId, model};
use crate::stop::is_stop_word;
use crate::words::words;

/// The name of the tokenizer.
pub(crate) const PREPARED: &str = "prepared";

/// Before a term that has the same place as the next one: a compound and its first part.
pub(crate) const SAME_PLACE: char = '\u{1}';

/// So much of a passage is in the documents of those around it, in bytes of terms.
const HEAD_TERMS: usize = 1500;
/// So much of it is kept to be compared with, in bytes of text.
const HEAD_TEXT: usize = 600;
/// So many of its tokens make its vector.
pub(crate) const VECTOR_TOKENS: usize = 512;

/// The terms of a text.
#[derive(Clone, Debug, Default)]
pub(crate) struct Terms {
    /// All, with their places.
    pub(crate) in_order: String,
    /// All but the stop words.
    pub(crate) content: String,
}

impl Terms {
    pub(crate) fn of(text: &str) -> Self {
        let mut terms = Self::default();
        let push = |to: &mut String, term: &str| {
            if !to.is_empty() {
                to.push(' ');
            }
            to.push_str(term);
        };
        for word in words(text) {
            let lone = word.wholes.is_empty();
            for whole in &word.wholes {
                push(&mut terms.in_order, &format!("{SAME_PLACE}{whole}"));
                push(&mut terms.content, whole);
            }
            for part in &word.parts {
                push(&mut terms.in_order, &part.term);
                if !(lone && is_stop_word(&part.plain)) {
                    push(&mut terms.content, &part.term);
                }
            }
        }
        terms
    }

    /// The beginning of the content.
    pub(crate) fn content_head(&self) -> &str {
        if self.content.len() <= HEAD_TERMS {
            return &self.content;
        }
        let mut end = HEAD_TERMS;
        while !self.content.is_char_boundary(end) {
            end -= 1;
        }
        let head = &self.content[..end];
        head.rsplit_once(' ').map_or("", |(head, _)| head)
    }
}

/// A passage with its terms.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) passage: Passage,
    pub(crate) terms: Terms,
    vector: OnceLock<Vec<f32>>,
}

impl Prepared {
    pub(crate) fn new(passage: Passage) -> Self {
        Self {
            terms: Terms::of(&passage.text),
            vector: OnceLock::new(),
            passage,
        }
    }

    /// The vector of the text alone.
    pub(crate) fn vector(&self) -> &[f32] {
        self.vector.get_or_init(|| {
            let tokens: Vec<TokenId> = model().tokens(&self.passage.text, VECTOR_TOKENS);
            model().pooled(tokens.into_iter().map(|token| (token, 1.0)))
        })
    }

    /// The beginning of the text.
    pub(crate) fn head(&self) -> String {
        let text = &self.passage.text;
        let mut end = text.len().min(HEAD_TEXT);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text[..end].to_owned()
    }
}

/// Splits terms that were prepared.
#[derive(Clone, Debug, Default)]
pub(crate) struct PreparedTokenizer {
    token: Token,
}

impl Tokenizer for PreparedTokenizer {
    type TokenStream<'a> = PreparedStream<'a>;

    fn token_stream<'a>(&'a mut self, text: &'a str) -> PreparedStream<'a> {
        self.token.reset();
        PreparedStream {
            rest: text,
            moves: true,
            token: &mut self.token,
        }
    }
}

/// The terms of one prepared text.
pub(crate) struct PreparedStream<'a> {
    rest: &'a str,
    /// Whether the next term is at the next place.
    moves: bool,
    token: &'a mut Token,
}

impl TokenStream for PreparedStream<'_> {
    fn advance(&mut self) -> bool {
        self.rest = self.rest.trim_start_matches(' ');
        if self.rest.is_empty() {
            return false;
        }
        let end = self.rest.find(' ').unwrap_or(self.rest.len());
        let (term, rest) = self.rest.split_at(end);
        self.rest = rest;
        if self.moves {
            self.token.position = self.token.position.wrapping_add(1);
        }
        let whole = term.strip_prefix(SAME_PLACE);
        self.moves = whole.is_none();
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
        let terms = Terms::of("the snake_case name");
        let mut tokenizer = PreparedTokenizer::default();
        let mut stream = tokenizer.token_stream(&terms.in_order);
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
        let terms = Terms::of(&"wonderful größe ".repeat(1000));
        assert!(terms.content_head().len() <= HEAD_TERMS);
        assert!(
            terms.content_head().ends_with("große") || terms.content_head().ends_with("wonder")
        );
    }
}

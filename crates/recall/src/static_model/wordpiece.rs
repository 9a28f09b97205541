//! The WordPiece tokenizer of the model, compatible with its source model.
//!
//! Words are split at spaces and punctuation, casefolded without accents, and then split from
//! the left into the longest pieces in the vocabulary.

use rustc_hash::FxHashMap;

use super::TokenId;
use crate::casefold::{casefold, is_cjk};

/// The maximum length of a word; longer ones are skipped.
const MAX_WORD_BYTES: usize = 100;

/// The tokenizer with its vocabulary.
pub(crate) struct WordPieceTokenizer {
    /// Pieces that begin a word.
    word_starts: FxHashMap<&'static str, TokenId>,
    /// Pieces that continue a word: written `##ing` in the vocabulary.
    continuations: FxHashMap<&'static str, TokenId>,
    /// The length of the longest piece, in bytes.
    max_piece_bytes: usize,
}

impl WordPieceTokenizer {
    /// Creates a tokenizer from a vocabulary, one token per line.
    pub(crate) fn new(names: &'static str) -> Self {
        let mut pieces = Self {
            word_starts: FxHashMap::default(),
            continuations: FxHashMap::default(),
            max_piece_bytes: 1,
        };
        for (id, name) in (0..=TokenId::MAX).zip(names.lines()) {
            let (piece, map) = match name.strip_prefix("##") {
                Some(piece) if !piece.is_empty() => (piece, &mut pieces.continuations),
                _ => (name, &mut pieces.word_starts),
            };
            // Skip special tokens such as `[PAD]`: they never occur in text.
            if !(name.starts_with('[') && name.len() > 1) {
                map.insert(piece, id);
                pieces.max_piece_bytes = pieces.max_piece_bytes.max(piece.len());
            }
        }
        pieces
    }

    /// Appends the tokens of a text to `into`, until there are `limit`.
    pub(crate) fn tokenize(&self, text: &str, limit: usize, into: &mut Vec<TokenId>) {
        // Avoid casefolding a long text when only its beginning is used.
        let text = byte_prefix(text, limit.saturating_mul(16));
        let text = casefold(text);
        let mut rest = text.as_str();
        while into.len() < limit {
            let Some(start) = rest.find(|c: char| !c.is_whitespace() && !c.is_control()) else {
                break;
            };
            rest = &rest[start..];
            let end = rest.find(is_word_boundary).unwrap_or(rest.len());
            let end = end.max(rest.chars().next().map_or(1, char::len_utf8));
            let (word, after) = rest.split_at(end);
            self.tokenize_word(word, into);
            rest = after;
        }
        into.truncate(limit);
    }

    fn tokenize_word(&self, word: &str, into: &mut Vec<TokenId>) {
        if word.len() > MAX_WORD_BYTES {
            return;
        }
        let before = into.len();
        let mut rest = word;
        while !rest.is_empty() {
            let map = if rest.len() == word.len() {
                &self.word_starts
            } else {
                &self.continuations
            };
            let mut end = rest.len().min(self.max_piece_bytes);
            let found = loop {
                while !rest.is_char_boundary(end) {
                    end -= 1;
                }
                if end == 0 {
                    break None;
                }
                if let Some(id) = map.get(&rest[..end]) {
                    break Some(*id);
                }
                end -= 1;
            };
            match found {
                Some(id) => into.push(id),
                None => {
                    // Drop a word that cannot be composed of pieces.
                    into.truncate(before);
                    return;
                }
            }
            rest = &rest[end..];
        }
    }
}

/// Returns at most the first `bytes` bytes, cut at a character boundary.
fn byte_prefix(text: &str, bytes: usize) -> &str {
    let mut end = text.len().min(bytes);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

fn is_word_boundary(c: char) -> bool {
    c.is_whitespace() || c.is_control() || is_punctuation(c) || is_cjk(c)
}

fn is_punctuation(c: char) -> bool {
    c.is_ascii_punctuation()
        || matches!(u32::from(c), 0xa1 | 0xa7 | 0xab | 0xb6 | 0xb7 | 0xbb | 0xbf
            | 0x2010..=0x2027 | 0x2030..=0x205e | 0x3001..=0x3003 | 0x3008..=0x3011
            | 0x3014..=0x301f | 0xff01..=0xff0f | 0xff1a..=0xff20)
}

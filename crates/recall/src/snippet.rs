//! Extracts the excerpt of a text that best matches a query.

use std::collections::HashSet;
use std::ops::Range;

use serde::Serialize;

use crate::query_terms::QueryTerms;
use crate::word_split::split_words;

/// The part of a long text that is scanned, in bytes.
const MAX_SCANNED_BYTES: usize = 200_000;

/// An excerpt of a text, cut between words, on one line.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Snippet {
    /// The excerpt.
    pub text: String,
    /// The byte ranges of the matched words in it.
    pub marks: Vec<Range<usize>>,
    /// Whether text was cut off before it.
    pub cut_before: bool,
    /// Whether text was cut off after it.
    pub cut_after: bool,
}

impl Snippet {
    /// Extracts the best excerpt of about `size` characters.
    pub(crate) fn new(text: &str, query_terms: &QueryTerms, size: usize) -> Self {
        let range = find_best_range(text, query_terms, size);
        let terms: HashSet<&str> = query_terms.terms().into_iter().collect();
        let piece = &text[range.clone()];
        let mut marks: Vec<Range<usize>> = Vec::new();
        for word in split_words(piece) {
            if word
                .compounds
                .iter()
                .any(|whole| terms.contains(whole.as_str()))
            {
                marks.push(word.range);
            } else {
                let found = word
                    .subwords
                    .into_iter()
                    .filter(|part| terms.contains(part.term.as_str()));
                marks.extend(found.map(|part| part.range));
            }
        }
        let mut snippet = collapse_whitespace(piece, &marks);
        snippet.cut_before = !text[..range.start].trim().is_empty();
        snippet.cut_after = !text[range.end..].trim().is_empty();
        snippet
    }
}

/// Returns the range of about `size` characters that contains the most, and the rarest, query
/// terms.
pub(crate) fn find_best_range(text: &str, query_terms: &QueryTerms, size: usize) -> Range<usize> {
    if text.len() <= size {
        return 0..text.len();
    }
    // ASCII lowercase keeps the length, so that offsets stay valid.
    let looked = text[..floor_char_boundary(text, MAX_SCANNED_BYTES)].to_ascii_lowercase();
    let mut found: Vec<(usize, usize, f32)> = Vec::new();
    for (index, word) in query_terms.words.iter().enumerate() {
        for term in &word.terms {
            let matches = looked.match_indices(term.as_str()).take(200);
            // In the middle of a word it is likely a different word.
            let starts =
                matches.filter(|(at, _)| !looked[..*at].ends_with(|c: char| c.is_alphanumeric()));
            found.extend(starts.map(|(at, _)| (at, index, word.rarity)));
        }
    }
    found.sort_by_key(|(at, ..)| *at);
    let mut best = (0.0, 0..0);
    for (from, (start, ..)) in found.iter().enumerate() {
        let inside = found[from..]
            .iter()
            .take_while(|(at, ..)| at - start < size * 3 / 4);
        let mut seen = HashSet::new();
        let mut worth = 0.0;
        let mut end = *start;
        for (at, word, rarity) in inside {
            worth += if seen.insert(word) {
                *rarity
            } else {
                0.05 * rarity
            };
            end = *at;
        }
        if worth > best.0 {
            best = (worth, *start..end);
        }
    }
    // Distribute the remaining space: a third before, two thirds after.
    let Range { start, end } = best.1;
    let room = size.saturating_sub(end - start);
    let start = if end == 0 {
        0
    } else {
        start.saturating_sub(room / 3)
    };
    let start = word_start(text, start);
    let end = floor_char_boundary(text, start + size);
    let whole = word_end(text, end);
    // A word longer than the whole range is cut.
    start..if whole > start { whole } else { end }
}

fn floor_char_boundary(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// Returns the start of a word at or shortly after `at`.
fn word_start(text: &str, at: usize) -> usize {
    let at = floor_char_boundary(text, at);
    if at == 0 {
        return 0;
    }
    let near = &text[at..floor_char_boundary(text, at + 30)];
    near.find(char::is_whitespace).map_or(at, |space| {
        at + space + near[space..].len() - near[space..].trim_start().len()
    })
}

/// Returns the end of a word at or shortly before `at`.
fn word_end(text: &str, at: usize) -> usize {
    if at >= text.len() {
        return text.len();
    }
    let from = floor_char_boundary(text, at.saturating_sub(30));
    let near = &text[from..at];
    near.rfind(char::is_whitespace)
        .map_or(at, |space| from + space)
}

/// Replaces every run of spaces, line ends and control characters by one space, adjusting the
/// marks.
fn collapse_whitespace(piece: &str, marks: &[Range<usize>]) -> Snippet {
    let mut snippet = Snippet::default();
    let mut marks = marks.iter().peekable();
    let mut open = None;
    for (at, c) in piece.char_indices() {
        if let Some(mark) = marks.peek() {
            if at == mark.start {
                open = Some(snippet.text.len());
            }
            if at == mark.end {
                if let Some(start) = open.take() {
                    snippet.marks.push(start..snippet.text.len());
                }
                marks.next();
                if marks.peek().is_some_and(|mark| mark.start == at) {
                    open = Some(snippet.text.len());
                }
            }
        }
        if c.is_whitespace() || c.is_control() {
            if !snippet.text.is_empty() && !snippet.text.ends_with(' ') {
                snippet.text.push(' ');
            }
        } else {
            snippet.text.push(c);
        }
    }
    if let Some(start) = open {
        snippet.marks.push(start..snippet.text.len());
    }
    let end = snippet.text.trim_end().len();
    snippet.text.truncate(end);
    snippet
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::query_terms::QueryWord;

    fn query_terms(word: &str) -> QueryTerms {
        let term = crate::word_split::stem(word);
        QueryTerms {
            text: word.to_owned(),
            words: vec![QueryWord {
                range: 0..word.len(),
                terms: vec![term],
                rarity: 1.0,
                tokens: Vec::new(),
            }],
            ..QueryTerms::default()
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn marks_are_the_words_and_snippets_are_lines(
            before in "(\\PC|\\s|\\x00|tomato ){0,300}",
            after in "(\\PC|\\s|tomato ){0,300}",
            size in 1..200_usize,
        ) {
            let text = format!("{before} Tomatoes {after}");
            let snippet = Snippet::new(&text, &query_terms("tomato"), size);
            prop_assert!(!snippet.text.contains(|c: char| c.is_control()));
            for mark in &snippet.marks {
                let marked = snippet.text[mark.clone()].to_lowercase();
                prop_assert!(marked.contains("tomato"), "{marked}");
            }
        }
    }

    #[test]
    fn the_rarest_words_decide_the_place() {
        let text = format!(
            "{} x {}",
            "common ".repeat(100),
            "tomato here and now ".repeat(3)
        );
        let snippet = Snippet::new(&text, &query_terms("tomato"), 40);
        assert!(snippet.text.contains("tomato here"), "{snippet:?}");
        assert!(snippet.cut_before);
    }
}

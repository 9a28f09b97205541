//! Splits text into words and terms, for the index and for queries alike.
//!
//! Sessions mix prose and code, so a word may be compound: `snake_case`, `camelCase`,
//! `foo.bar`, `src/a/b.rs`, `E0308`, `30ms`. A compound is found both as a whole and by its
//! parts. Parts are stemmed, whole compounds are not.
//!
//! Invariant: the terms of a word never contain a space, and are never empty.

use std::collections::BTreeSet;
use std::ops::Range;

use frostem::{Algorithm, Stemmer};

use crate::casefold::{casefold, is_cjk};

/// The maximum length of a compound term: longer ones are blobs rather than names, and only
/// their parts are indexed.
const MAX_COMPOUND_BYTES: usize = 100;
/// The maximum length of a part, in bytes; longer parts are truncated.
const MAX_SUBWORD_BYTES: usize = 64;

/// A word of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Word {
    /// Its byte range.
    pub(crate) range: Range<usize>,
    /// A compound as written, in lowercase; and the file name of a path.
    pub(crate) compounds: Vec<String>,
    /// Its parts, stemmed; a simple word has one.
    pub(crate) subwords: Vec<Subword>,
}

/// A part of a word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Subword {
    /// Its byte range.
    pub(crate) range: Range<usize>,
    /// As written, in lowercase.
    pub(crate) folded: String,
    /// Its stem, which is indexed.
    pub(crate) term: String,
}

impl Word {
    /// Returns all terms it is found by.
    pub(crate) fn terms(&self) -> impl Iterator<Item = &str> {
        let wholes = self.compounds.iter().map(String::as_str);
        wholes.chain(self.subwords.iter().map(|part| part.term.as_str()))
    }
}

/// Returns the words of a text, in order.
pub(crate) fn split_words(text: &str) -> impl Iterator<Item = Word> + '_ {
    let mut from = 0;
    std::iter::from_fn(move || {
        loop {
            let range = next_word_range(text, from)?;
            from = range.end;
            if let Some(word) = parse_word(text, range) {
                return Some(word);
            }
        }
    })
}

/// Returns all terms a text is found by.
pub fn extract_terms(text: &str) -> BTreeSet<String> {
    let mut terms = BTreeSet::new();
    for word in split_words(text) {
        terms.extend(word.terms().map(str::to_owned));
    }
    terms
}

/// Returns the terms of a text in order, one per position, as phrase search uses them.
pub fn phrase_terms(text: &str) -> Vec<String> {
    let parts = split_words(text).flat_map(|word| word.subwords);
    parts.map(|part| part.term).collect()
}

/// Returns the term of a word: its stem.
pub(crate) fn stem(plain: &str) -> String {
    let letters = plain.bytes().all(|byte| byte.is_ascii_lowercase());
    if plain.len() < 3 || !letters {
        return plain.to_owned();
    }
    Stemmer::new(Algorithm::English).stem(plain).into_owned()
}

/// Finds the next run of letters and digits, including single joiners between them.
fn next_word_range(text: &str, from: usize) -> Option<Range<usize>> {
    let mut characters = text[from..]
        .char_indices()
        .map(|(at, c)| (from + at, c))
        .peekable();
    let (start, first) = characters.find(|(_, c)| c.is_alphanumeric())?;
    let mut end = start + first.len_utf8();
    if is_cjk(first) {
        return Some(start..end);
    }
    let mut joints = String::new();
    for (at, c) in characters {
        if is_cjk(c) {
            break;
        } else if is_letter(c) {
            end = at + c.len_utf8();
            joints.clear();
        } else if is_joiner(c) && (joints.is_empty() || joints == "." || joints == ":") {
            joints.push(c);
        } else {
            break;
        }
    }
    // A short name may end in signs: `c++`, `c#`.
    let rest = &text[end..];
    if end - start <= 2 {
        for sign in ["++", "#"] {
            let after = rest.strip_prefix(sign).and_then(|rest| rest.chars().next());
            if rest.starts_with(sign) && !after.is_some_and(char::is_alphanumeric) {
                end += sign.len();
            }
        }
    }
    Some(start..end)
}

fn is_letter(c: char) -> bool {
    // Combining marks belong to the letter before them.
    c.is_alphanumeric() || unicode_normalization::char::is_combining_mark(c)
}

fn is_joiner(c: char) -> bool {
    matches!(
        c,
        '_' | '.' | '-' | '/' | '\\' | ':' | '@' | '\'' | '’' | ',' | '+' | '#'
    )
}

fn parse_word(text: &str, range: Range<usize>) -> Option<Word> {
    let written = &text[range.clone()];
    if is_simple(written) {
        return Some(Word {
            subwords: vec![parse_subword(text, range.clone())?],
            compounds: Vec::new(),
            range,
        });
    }
    let written_end = range.start + strip_contraction(written).len();
    let range = range.start..written_end;
    let written = &text[range.clone()];
    let plain = casefold(written).replace(['\'', '’'], "");
    // A comma is part of a number and separates everything else.
    let number = written
        .bytes()
        .all(|b| b.is_ascii_digit() || matches!(b, b'.' | b','));
    let plain = if number {
        plain.replace(',', "")
    } else {
        plain
    };
    let mut parts = Vec::new();
    for piece in split_compound(text, range.clone(), number) {
        parts.extend(parse_subword(text, piece));
    }
    let mut wholes = Vec::new();
    let compound = parts.len() != 1 || parts[0].folded != plain;
    if compound && !plain.is_empty() && plain.len() <= MAX_COMPOUND_BYTES && !plain.contains(',') {
        if let Some((_, file)) = plain.rsplit_once(['/', '\\'])
            && file.contains('.')
        {
            wholes.push(file.to_owned());
        }
        wholes.push(plain);
    }
    (!parts.is_empty() || !wholes.is_empty()).then_some(Word {
        range,
        compounds: wholes,
        subwords: parts,
    })
}

/// Strips a contraction: `it's`, `we'll`. `don't` stays.
fn strip_contraction(written: &str) -> &str {
    let Some(at) = written.rfind(['\'', '’']) else {
        return written;
    };
    let added = written[at..].trim_start_matches(['\'', '’']);
    let common = ["s", "d", "m", "ll", "re", "ve"];
    if common.iter().any(|one| added.eq_ignore_ascii_case(one)) {
        &written[..at]
    } else {
        written
    }
}

/// Returns the ranges of the parts of a compound: split at joiners, at case changes, and
/// between letters and digits unless they alternate as in a hash.
fn split_compound(text: &str, range: Range<usize>, number: bool) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut start = range.start;
    for (at, c) in text[range.clone()].char_indices() {
        let at = range.start + at;
        let cuts = is_joiner(c) && !matches!(c, '\'' | '’') && !(number && c == ',');
        if cuts {
            split_camel_case(text, start..at, &mut found);
            start = at + c.len_utf8();
        }
    }
    split_camel_case(text, start..range.end, &mut found);
    found
}

fn split_camel_case(text: &str, range: Range<usize>, into: &mut Vec<Range<usize>>) {
    if range.is_empty() {
        return;
    }
    let written = &text[range.clone()];
    let cuts = camel_case_boundaries(written);
    let mut start = range.start;
    for cut in cuts {
        into.push(start..range.start + cut);
        start = range.start + cut;
    }
    into.push(start..range.end);
}

/// Returns where `camelCase` and `30ms` are split.
fn camel_case_boundaries(written: &str) -> Vec<usize> {
    let letters: Vec<(usize, char)> = written.char_indices().collect();
    let mut cuts = Vec::new();
    let mut switches = 0;
    for (index, pair) in letters.windows(2).enumerate() {
        let ((_, a), (at, b)) = (pair[0], pair[1]);
        let switch = a.is_numeric() != b.is_numeric();
        let hump = a.is_lowercase() && b.is_uppercase();
        let after = letters.get(index + 2).map(|(_, c)| *c);
        let acronym = a.is_uppercase() && b.is_uppercase() && after.is_some_and(char::is_lowercase);
        switches += usize::from(switch);
        if switch || hump || acronym {
            cuts.push(at);
        }
    }
    if switches > 2 { Vec::new() } else { cuts }
}

/// Returns whether a word consists of letters only and has no case changes inside.
fn is_simple(written: &str) -> bool {
    let bytes = written.as_bytes();
    let capitals = bytes
        .iter()
        .filter(|byte| byte.is_ascii_uppercase())
        .count();
    bytes.iter().all(u8::is_ascii_alphabetic)
        && (capitals == 0
            || capitals == bytes.len()
            || (capitals == 1 && bytes[0].is_ascii_uppercase()))
}

fn parse_subword(text: &str, range: Range<usize>) -> Option<Subword> {
    let mut plain = casefold(&text[range.clone()]);
    plain.retain(char::is_alphanumeric);
    if plain.len() > MAX_SUBWORD_BYTES {
        let mut end = MAX_SUBWORD_BYTES;
        while !plain.is_char_boundary(end) {
            end -= 1;
        }
        plain.truncate(end);
    }
    let term = stem(&plain);
    (!plain.is_empty()).then_some(Subword {
        range,
        folded: plain,
        term,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms_in_order(text: &str) -> Vec<String> {
        split_words(text)
            .flat_map(|word| word.terms().map(str::to_owned).collect::<Vec<_>>())
            .collect()
    }

    #[test]
    fn prose_is_stemmed_and_small() {
        assert_eq!(
            terms_in_order("Running quickly, she RAN."),
            ["run", "quick", "she", "ran"]
        );
        assert_eq!(
            terms_in_order("it's Caroline's; we'll"),
            ["it", "carolin", "we"]
        );
        assert_eq!(terms_in_order("don’t don't"), ["dont", "dont"]);
    }

    #[test]
    fn compounds_are_found_whole_and_by_their_parts() {
        assert_eq!(
            terms_in_order("snake_case"),
            ["snake_case", "snake", "case"]
        );
        assert_eq!(
            terms_in_order("parseHTTPRequest"),
            ["parsehttprequest", "pars", "http", "request"]
        );
        assert_eq!(terms_in_order("std::fs"), ["std::fs", "std", "fs"]);
        assert_eq!(
            terms_in_order("src/a/main.rs"),
            ["main.rs", "src/a/main.rs", "src", "a", "main", "rs"]
        );
        assert_eq!(terms_in_order("E0308"), ["e0308", "e", "0308"]);
        assert_eq!(terms_in_order("30ms"), ["30ms", "30", "ms"]);
        assert_eq!(terms_in_order("C++ and c#"), ["c++", "c", "and", "c#", "c"]);
    }

    #[test]
    fn numbers_keep_their_size() {
        assert_eq!(terms_in_order("1,000,000"), ["1000000"]);
        assert_eq!(terms_in_order("3.14"), ["3.14", "3", "14"]);
        assert_eq!(terms_in_order("one,two"), ["one", "two"]);
    }

    #[test]
    fn a_hash_is_one_word() {
        assert_eq!(terms_in_order("a3f9c2d1"), ["a3f9c2d1"]);
    }

    #[test]
    fn other_scripts_have_words_too() {
        assert_eq!(terms_in_order("Café Größe"), ["cafe", "große"]);
        assert_eq!(terms_in_order("東京 tower"), ["東", "京", "tower"]);
    }

    #[test]
    fn ranges_point_at_the_text() {
        let text = "see src/main.rs, Caroline's";
        let found: Vec<_> = split_words(text).map(|word| &text[word.range]).collect();
        assert_eq!(found, ["see", "src/main.rs", "Caroline"]);
    }

    #[test]
    fn hostile_text_gives_no_bad_terms() {
        let long = format!("{}{}", "x".repeat(100_000), "_y".repeat(100_000));
        for text in ["\0\u{301}\u{301}", "''''", "....", &long, "a\u{0}b", "'s"] {
            for word in split_words(text) {
                assert!(
                    word.terms()
                        .all(|t| !t.is_empty() && !t.contains(' ') && t.len() <= 256)
                );
            }
        }
    }
}

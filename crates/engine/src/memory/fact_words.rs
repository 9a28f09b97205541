//! Splits facts into normalized words, for comparing them.

/// Words that carry grammar, not content.
const STOP_WORDS: &[&str] = &[
    "a", "an", "the", "this", "that", "these", "those", "of", "to", "in", "on", "at", "by", "for",
    "from", "with", "and", "or", "as", "is", "are", "was", "were", "be", "been", "it", "its", "we",
    "our", "you", "your", "i", "my", "they", "their", "do", "does", "did", "has", "have", "had",
    "will", "should", "must", "can", "so", "if", "then", "than", "there", "what", "which", "who",
    "how", "when", "where", "why",
];
/// Words that may be omitted without changing the meaning.
const FILLERS: &[&str] = &[
    "a",
    "an",
    "the",
    "now",
    "currently",
    "still",
    "already",
    "actually",
    "also",
    "just",
    "please",
    "note",
    "remember",
    "today",
];
/// Words that negate a sentence.
const NEGATIONS: &[&str] = &["not", "never"];

/// A normalized word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Word {
    /// The word in lower case, without a trailing plural or verb s.
    pub(super) text: String,
    /// Whether it is written like a name: capitalized within a sentence, or as code.
    pub(super) is_name: bool,
    /// Whether it is a number, a version, a date or an amount.
    pub(super) is_number: bool,
}

impl Word {
    pub(super) fn is_stop_word(&self) -> bool {
        STOP_WORDS.contains(&self.text.as_str())
    }

    pub(super) fn is_negation(&self) -> bool {
        NEGATIONS.contains(&self.text.as_str())
    }

    /// Whether replacing it would change what the fact states.
    pub(super) fn is_distinctive(&self) -> bool {
        self.is_name || self.is_number || self.is_negation()
    }
}

/// Returns the significant words of a text, in order.
pub(super) fn split_words(text: &str) -> Vec<Word> {
    let mut words: Vec<Word> = Vec::new();
    let mut starts_sentence = true;
    for token in text.split_whitespace() {
        let ends = token.trim_end_matches(['"', '\'', ')', '`']);
        let ends_sentence = ends.ends_with(['.', '!', '?']);
        let is_label = ends.ends_with(':');
        let code = token.contains('`');
        let bare = token.trim_matches(|c: char| "\"'`()[]{}<>,;.!?:*…“”‘’".contains(c));
        if matches!(token, "=" | "→" | "->" | "=>") {
            push_word(&mut words, "is", false, starts_sentence);
        }
        let parts: Vec<&str> = match bare.split_once('=') {
            Some((name, value)) if !name.is_empty() && !value.is_empty() => vec![name, "is", value],
            _ => vec![bare],
        };
        for part in parts.into_iter().filter(|part| !part.is_empty()) {
            push_word(&mut words, part, code, starts_sentence);
            starts_sentence = false;
        }
        if is_label && !bare.is_empty() {
            push_word(&mut words, "is", false, false);
        }
        starts_sentence |= ends_sentence;
    }
    words
}

fn push_word(words: &mut Vec<Word>, part: &str, code: bool, starts_sentence: bool) {
    let lower = part.to_lowercase().replace('’', "'");
    let (base, negated) = match lower.as_str() {
        "won't" => ("will", true),
        "can't" | "cannot" => ("can", true),
        other => match other.strip_suffix("n't") {
            Some(base) => (base, true),
            None => (other.strip_suffix("'s").unwrap_or(other), false),
        },
    };
    if FILLERS.contains(&base) {
        return;
    }
    if base == "longer" && words.last().is_some_and(|word| word.text == "no") {
        words.pop();
        words.push(plain_word("not"));
        return;
    }
    // Scripts without spaces: every character is a word.
    if base.chars().any(is_ideograph) {
        words.extend(base.chars().map(|c| plain_word(&c.to_string())));
        return;
    }
    let capital = part.chars().any(char::is_uppercase) && !starts_sentence;
    let number = is_number(base);
    let has_inner_punctuation = base
        .trim_matches(|c: char| !c.is_alphanumeric())
        .contains(['_', '.', '/', ':', '@', '\\']);
    words.push(Word {
        text: stem(base).to_owned(),
        is_name: !number && (capital || code || has_inner_punctuation || base.starts_with('#')),
        is_number: number,
    });
    if negated {
        words.push(plain_word("not"));
    }
}

fn plain_word(text: &str) -> Word {
    Word {
        text: text.to_owned(),
        is_name: false,
        is_number: false,
    }
}

fn is_ideograph(c: char) -> bool {
    matches!(u32::from(c), 0x3040..=0x30ff | 0x3400..=0x9fff | 0xac00..=0xd7af | 0xf900..=0xfaff)
}

/// `8080`, `v1.2`, `3.11`, `30s`, `$5`, `10%`, `2026-11-15`; not `#12`, which is a
/// name.
fn is_number(word: &str) -> bool {
    let digits = word.trim_start_matches(['v', '$', '€', '£', '~', '<', '>', '+', '-']);
    digits.starts_with(|c: char| c.is_ascii_digit())
        && digits.chars().filter(|c| c.is_alphabetic()).count() <= 3
        && !digits.contains(['/', '_'])
}

/// Removes the s of a plural or a verb.
fn stem(word: &str) -> &str {
    let keeps_s = ["ss", "us", "is"].iter().any(|end| word.ends_with(end))
        || !word.chars().all(char::is_alphabetic);
    match word.strip_suffix('s') {
        Some(stem) if stem.chars().count() >= 3 && !keeps_s => stem,
        _ => word,
    }
}

/// Returns the content words of a text, each once.
pub(super) fn content_words(text: &str) -> Vec<String> {
    let mut seen = std::collections::HashSet::new();
    let content = split_words(text)
        .into_iter()
        .filter(|word| !word.is_stop_word());
    content
        .map(|word| word.text)
        .filter(|word| seen.insert(word.clone()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined_words(text: &str) -> String {
        let words: Vec<_> = split_words(text)
            .into_iter()
            .map(|word| word.text)
            .collect();
        words.join(" ")
    }

    #[test]
    fn rephrased_facts_have_the_same_words() {
        for (one, other) in [
            ("The port is 8080.", "port is 8080"),
            ("Port: 8080", "The port is 8080"),
            ("PORT=8080", "port is 8080"),
            ("It doesn't work", "It does not work"),
            ("We no longer use Redis", "We not use redis"),
            ("Tests currently run in CI!", "Test run in CI"),
        ] {
            assert_eq!(
                joined_words(one),
                joined_words(other),
                "{one:?} and {other:?}"
            );
        }
    }

    #[test]
    fn names_and_numbers_are_distinguished_from_words() {
        let distinctive = |text: &str| -> Vec<String> {
            let words = split_words(text).into_iter().filter(Word::is_distinctive);
            words.map(|word| word.text).collect()
        };
        assert_eq!(
            distinctive("The database is Postgres 16"),
            ["postgre", "16"]
        );
        assert_eq!(
            distinctive("Use src/main.rs and `fmt`"),
            ["src/main.rs", "fmt"]
        );
        assert_eq!(
            distinctive("Retry after 30s, never later"),
            ["30s", "never"]
        );
        assert!(distinctive("Tests are run often").is_empty());
    }
}

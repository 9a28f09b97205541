//! Finds what is specific in a text: names, numbers and identifiers.

use super::lexicon::{Word, is_stop_word};

/// The specifics of a text.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Specifics {
    /// Total weight; each further one adds less.
    pub(super) weight: f64,
    /// Whether there is a path, URL, code or identifier.
    pub(super) has_identifier: bool,
    /// Word indexes of the specifics.
    pub(super) positions: Vec<usize>,
    /// Indexes of plain values: amounts that may change while the subject stays the same.
    pub(super) value_positions: Vec<usize>,
}

const UNITS: &[&str] = &[
    "ms",
    "s",
    "sec",
    "seconds",
    "second",
    "minutes",
    "minute",
    "min",
    "hours",
    "hour",
    "h",
    "days",
    "day",
    "weeks",
    "week",
    "months",
    "month",
    "years",
    "year",
    "kb",
    "mb",
    "gb",
    "tb",
    "kib",
    "mib",
    "gib",
    "bytes",
    "rps",
    "qps",
    "requests",
    "users",
    "people",
    "seats",
    "guests",
    "tokens",
    "eur",
    "euros",
    "euro",
    "usd",
    "dollars",
    "chf",
    "gbp",
    "pounds",
    "percent",
    "km",
    "kg",
    "m",
    "cm",
    "mm",
    "l",
    "w",
    "kw",
    "kwh",
    "cores",
    "rows",
    "items",
    "times",
    "points",
    "px",
    "connections",
    "workers",
    "retries",
    "attempts",
    "replicas",
    "threads",
    "units",
    "pieces",
    "tickets",
    "nights",
];

const MONTHS: &[&str] = &[
    "january",
    "february",
    "march",
    "april",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
    "jan",
    "feb",
    "mar",
    "apr",
    "jun",
    "jul",
    "aug",
    "sep",
    "sept",
    "oct",
    "nov",
    "dec",
];

const WEEKDAYS: &[&str] = &[
    "monday",
    "tuesday",
    "wednesday",
    "thursday",
    "friday",
    "saturday",
    "sunday",
];

/// Nouns followed by a number that is a name, not an amount.
const LABELS: &[&str] = &[
    "phase", "step", "part", "level", "section", "chapter", "item", "question", "option", "room",
    "line", "week", "sprint", "version", "port", "entry", "issue", "pr", "task", "track", "day",
];

/// Finds the specifics among the words of a text.
pub(super) fn find_specifics(words: &[Word<'_>]) -> Specifics {
    let mut found = Specifics::default();
    let mut sum = 0.0;
    for (at, word) in words.iter().enumerate() {
        let before = at.checked_sub(1).and_then(|at| words.get(at));
        let (weight, value) = weigh(word, before, words.get(at + 1));
        if weight > 0.0 {
            sum += weight;
            found.has_identifier |= weight >= 1.0 && !value;
            found.positions.push(at);
            if value {
                found.value_positions.push(at);
            }
        }
    }
    found.weight = f64::sqrt(sum);
    found
}

fn weigh(word: &Word<'_>, before: Option<&Word<'_>>, after: Option<&Word<'_>>) -> (f64, bool) {
    let (raw, lower) = (word.raw, word.lower.as_ref());
    if MONTHS.contains(&lower) {
        return (0.8, true);
    }
    if WEEKDAYS.contains(&lower) {
        return (0.6, true);
    }
    let digits = raw.bytes().filter(u8::is_ascii_digit).count();
    let letters = raw.chars().filter(|c| c.is_alphabetic()).count();
    if digits > 0 {
        return weigh_number(word, before, after, digits, letters);
    }
    let inner = |c: char| raw.trim_matches(c).contains(c);
    let identifier = inner('_')
        || raw.contains("::")
        || raw.contains("://")
        || (raw.contains('/') && raw.contains('.'))
        || raw.starts_with(['/', '~', '@', '#']) && raw.len() > 2
        || (raw.contains('@') && raw.contains('.'))
        || raw.contains('=')
        || (inner('.') && letters > 3 && !matches!(lower, "e.g" | "i.e"))
        || raw.starts_with("--");
    if identifier || word.is_code {
        return (1.0, false);
    }
    let mut chars = raw.chars();
    let capital = chars.next().is_some_and(char::is_uppercase);
    let capitals = raw.chars().filter(|c| c.is_uppercase()).count();
    if capitals > 1 && letters > 1 && !is_stop_word(lower) {
        // HTTP, camelCase, PostgreSQL.
        return (0.5, false);
    }
    if capital
        && letters > 1
        && before.is_some_and(|before| !before.ends_phrase)
        && !lower.starts_with("i'")
    {
        return (0.6, false);
    }
    if raw.chars().skip(1).any(char::is_uppercase) {
        return (0.8, false);
    }
    (0.0, false)
}

fn weigh_number(
    word: &Word<'_>,
    before: Option<&Word<'_>>,
    after: Option<&Word<'_>>,
    digits: usize,
    letters: usize,
) -> (f64, bool) {
    let raw = word.raw;
    let bare = raw.trim_start_matches(['$', '€', '£', '~', '+', '-', '#']);
    let starts = bare.starts_with(|c: char| c.is_ascii_digit());
    if raw.contains("://") || raw.contains('/') && letters > 1 {
        return (1.2, false);
    }
    if raw.starts_with(['$', '€', '£']) || raw.ends_with(['%', '€', '$']) {
        return (1.2, true);
    }
    if starts && letters <= 3 {
        // A number, a date, a time, a version, or an amount with its unit.
        let label = before.is_some_and(|before| LABELS.contains(&before.lower.as_ref()));
        let unit = letters > 0
            || after.is_some_and(|after| {
                UNITS.contains(&after.lower.as_ref()) || MONTHS.contains(&after.lower.as_ref())
            });
        let shaped = raw.contains(['.', '-', ':', ',']);
        let weight = if unit || shaped || label || digits > 2 {
            1.0
        } else {
            0.5
        };
        return (weight, !label);
    }
    // E0308, INV-2231, sha256, v1.2, utf8, hashes.
    (1.0, false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::extractive::lexicon::split_words;

    fn find_specific_words(text: &str) -> Vec<&str> {
        let words = split_words(text);
        let specifics = find_specifics(&words);
        specifics
            .positions
            .iter()
            .map(|&at| words[at].raw)
            .collect()
    }

    #[test]
    fn names_numbers_and_identifiers_are_specific() {
        for (text, expected) in [
            ("It costs $4,200 a month", vec!["$4,200"]),
            ("Retry after 30 seconds with E0308", vec!["30", "E0308"]),
            (
                "Call Marta Oliveira on March 14",
                vec!["Marta", "Oliveira", "March", "14"],
            ),
            (
                "Set max_retries in `config` of src/a.rs",
                vec!["max_retries", "config", "src/a.rs"],
            ),
            (
                "See https://x.org/a and a@b.org",
                vec!["https://x.org/a", "a@b.org"],
            ),
            ("This is all quite ordinary", vec![]),
        ] {
            assert_eq!(find_specific_words(text), expected, "{text}");
        }
    }

    #[test]
    fn an_amount_is_a_value_and_a_label_is_not() {
        let text = split_words("phase 2 takes 40 hours");
        let specifics = find_specifics(&text);
        assert_eq!(specifics.value_positions, [3]);
    }
}

//! Decides whether a newer fact contradicts an older one.
//!
//! Only if both are clearly about the same thing and differ in what they state: the
//! same sentence negated, or the same sentence with a different number, name or
//! opposite in the position of its value. In doubt the answer is no: both facts are
//! kept, which a person can correct, whereas a fact replaced by mistake would go
//! unnoticed.

use super::fact_words::{Word, split_words};

/// Verbs that are followed by a value.
const RELATIONS: &[&str] = &[
    "is", "are", "be", "use", "run", "listen", "default", "expire", "take", "has", "have", "cost",
    "live", "need", "require", "support", "allow", "keep", "retry", "wait", "set", "point",
    "start", "end", "last", "limit", "stay", "ship", "deploy", "target", "pin",
];
/// Verbs and prepositions that are followed by a single value.
const SINGLE_VALUED_PHRASES: &[&[&str]] = &[
    &["called"],
    &["named"],
    &["written", "in"],
    &["owned", "by"],
    &["maintained", "by"],
    &["hosted", "on"],
    &["hosted", "at"],
    &["hosted", "by"],
    &["hosted", "in"],
    &["live", "in"],
    &["live", "at"],
    &["live", "on"],
    &["located", "in"],
    &["located", "at"],
    &["run", "on"],
    &["listen", "on"],
    &["listen", "at"],
    &["stored", "in"],
    &["stored", "at"],
    &["kept", "in"],
    &["kept", "at"],
    &["set", "to"],
    &["default", "to"],
    &["deployed", "to"],
    &["deployed", "on"],
    &["deploy", "to"],
    &["point", "to"],
    &["licensed", "under"],
    &["due", "on"],
    &["due", "by"],
    &["due"],
    &["led", "by"],
    &["based", "on"],
    &["based", "in"],
];
/// Nouns that have a single value, at the end of a subject.
const ATTRIBUTES: &[&str] = &[
    "address",
    "backend",
    "branch",
    "budget",
    "channel",
    "compiler",
    "currency",
    "database",
    "date",
    "day",
    "db",
    "deadline",
    "default",
    "directory",
    "editor",
    "email",
    "encoding",
    "endpoint",
    "environment",
    "folder",
    "format",
    "formatter",
    "framework",
    "frequency",
    "host",
    "hostname",
    "interval",
    "language",
    "lead",
    "level",
    "licence",
    "license",
    "limit",
    "linter",
    "maintainer",
    "manager",
    "maximum",
    "minimum",
    "mode",
    "model",
    "name",
    "nickname",
    "orm",
    "owner",
    "path",
    "policy",
    "port",
    "price",
    "provider",
    "queue",
    "region",
    "release",
    "role",
    "runner",
    "runtime",
    "schedule",
    "schema",
    "shell",
    "size",
    "strategy",
    "style",
    "target",
    "theme",
    "timeout",
    "timezone",
    "ttl",
    "url",
    "username",
    "value",
    "version",
    "width",
    "window",
    "zone",
];
/// Nouns that form a name together with a number.
const NUMBERED_NOUNS: &[&str] = &[
    "bug",
    "case",
    "chapter",
    "commit",
    "day",
    "entry",
    "issue",
    "item",
    "line",
    "milestone",
    "page",
    "phase",
    "pr",
    "request",
    "rule",
    "section",
    "sprint",
    "step",
    "task",
    "test",
    "ticket",
    "week",
];
/// Words that cannot both be true of the same thing.
const OPPOSITES: &[(&str, &str)] = &[
    ("enabled", "disabled"),
    ("on", "off"),
    ("true", "false"),
    ("yes", "no"),
    ("always", "never"),
    ("required", "optional"),
    ("allowed", "forbidden"),
    ("public", "private"),
    ("open", "closed"),
    ("up", "down"),
    ("before", "after"),
    ("supported", "unsupported"),
    ("synchronous", "asynchronous"),
    ("mutable", "immutable"),
    ("finished", "unfinished"),
    ("deprecated", "supported"),
];
/// Subjects that do not tell what a sentence is about.
const VAGUE_SUBJECTS: &[&str] = &[
    "it", "this", "that", "they", "there", "he", "she", "these", "those",
];
/// The most words of a value.
const MAX_VALUE_WORDS: usize = 3;

/// Returns whether the newer fact states something different about the same thing.
pub(super) fn contradicts(newer: &str, older: &str) -> bool {
    let definite = is_definite(newer) && is_definite(older);
    let (newer, older) = (split_words(newer), split_words(older));
    is_negated_form(&newer, &older) || has_other_value(&newer, &older, definite)
}

/// Whether a sentence is about one definite thing: `the CEO`, `our mascot`.
fn is_definite(text: &str) -> bool {
    let first = text.split_whitespace().next().map(str::to_lowercase);
    matches!(first.as_deref(), Some("the" | "our" | "my"))
}

/// Whether one sentence is the negation of the other.
fn is_negated_form(newer: &[Word], older: &[Word]) -> bool {
    let stripped = |words: &[Word]| -> (Vec<String>, bool) {
        let auxiliary =
            |word: &Word| matches!(word.text.as_str(), "do" | "does" | "did" | "any" | "more");
        let content = words
            .iter()
            .filter(|word| !word.is_negation() && !auxiliary(word));
        let negations = words.iter().filter(|word| word.is_negation()).count();
        (
            content.map(|word| word.text.clone()).collect(),
            negations % 2 == 1,
        )
    };
    let ((text, is_negated), (before, was_negated)) = (stripped(newer), stripped(older));
    is_negated != was_negated && text == before && text.len() >= 2 && !is_vague(&newer[..1])
}

/// Whether the sentences differ only in the position of their value.
fn has_other_value(newer: &[Word], older: &[Word], definite: bool) -> bool {
    let max_end = newer.len().min(older.len());
    let start = newer
        .iter()
        .zip(older)
        .take_while(|(a, b)| a.text == b.text)
        .count();
    let end = newer.iter().rev().zip(older.iter().rev());
    let end = end
        .take(max_end - start)
        .take_while(|(a, b)| a.text == b.text)
        .count();
    let (frame, after) = (&newer[..start], &newer[newer.len() - end..]);
    let value = &newer[start..newer.len() - end];
    let old_value = &older[start..older.len() - end];
    let is_short = |value: &[Word]| (1..=MAX_VALUE_WORDS).contains(&value.len());
    // The value follows a verb, which follows the subject.
    let is_verb = |word: &Word| RELATIONS.contains(&word.text.as_str());
    let Some(verb) = frame.iter().rposition(is_verb).filter(|verb| *verb > 0) else {
        return false;
    };
    if !is_short(value) || !is_short(old_value) || is_vague(&frame[..verb]) {
        return false;
    }
    if is_opposite(value, old_value) {
        return true;
    }
    if is_amount(value) && is_amount(old_value) {
        return !is_numbered(frame);
    }
    // A number instead of a name may be about something else.
    let has_number = |value: &[Word]| value.iter().any(|word| word.is_number);
    if has_number(value) != has_number(old_value) {
        return false;
    }
    is_single_valued(frame, verb, after)
        || (definite && after.is_empty() && is_single_name(frame, verb, value, old_value))
}

fn is_vague(subject: &[Word]) -> bool {
    let is_specific = |word: &Word| !VAGUE_SUBJECTS.contains(&word.text.as_str());
    !subject.iter().any(is_specific)
}

fn is_opposite(one: &[Word], other: &[Word]) -> bool {
    let ([one], [other]) = (one, other) else {
        return false;
    };
    let is_pair = |pair: &(&str, &str)| {
        (pair.0 == one.text && pair.1 == other.text) || (pair.1 == one.text && pair.0 == other.text)
    };
    OPPOSITES.iter().any(is_pair)
}

/// A number, optionally with a unit.
fn is_amount(value: &[Word]) -> bool {
    value.len() <= 2 && value.first().is_some_and(|word| word.is_number)
}

/// Whether a number here would be part of a name.
fn is_numbered(frame: &[Word]) -> bool {
    let last = frame.last().map(|word| word.text.as_str());
    last.is_some_and(|last| NUMBERED_NOUNS.contains(&last))
}

/// Whether the position allows only one value: after a noun or a verb that has a single
/// value.
fn is_single_valued(frame: &[Word], verb: usize, after: &[Word]) -> bool {
    let texts: Vec<&str> = frame.iter().map(|word| word.text.as_str()).collect();
    let is_copula = matches!(texts[verb], "is" | "be") && verb + 1 == texts.len();
    if is_copula && after.is_empty() && ATTRIBUTES.contains(&texts[verb - 1]) {
        return true;
    }
    if after.is_empty() && SINGLE_VALUED_PHRASES.iter().any(|end| texts.ends_with(end)) {
        return true;
    }
    // "We use Redis for sessions": one thing for one purpose.
    texts[verb] == "use"
        && verb + 1 == texts.len()
        && after.len() >= 2
        && matches!(after[0].text.as_str(), "for" | "as")
}

/// `the CEO is Ada`: one name for one thing.
fn is_single_name(frame: &[Word], verb: usize, one: &[Word], other: &[Word]) -> bool {
    let all_names = |value: &[Word]| value.iter().all(|word| word.is_name);
    frame[verb].text == "is"
        && verb + 1 == frame.len()
        && verb <= 3
        && all_names(one)
        && all_names(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_different_value_contradicts() {
        for (older, newer) in [
            ("The port is 8080", "The port is 9090"),
            ("Port: 8080", "The port is now 9090."),
            (
                "Tokens expire after 15 minutes",
                "Tokens expire after 1 hour",
            ),
            ("The timeout is 30 seconds", "The timeout is 2 minutes"),
            (
                "We run Python 3.11 in production",
                "We run Python 3.12 in production",
            ),
            ("The database is Postgres", "The database is SQLite"),
            ("The package manager is npm", "The package manager is pnpm"),
            ("The default branch is master", "The default branch is main"),
            (
                "The deploy target is staging",
                "The deploy target is production",
            ),
            ("The CEO is Ada", "The CEO is Bob Stone"),
            ("We use Redis for sessions", "We use Postgres for sessions"),
            (
                "The parser is written in C",
                "The parser is written in Rust",
            ),
            ("Config is kept in yaml", "Config is kept in toml"),
            ("The cache is enabled", "The cache is disabled"),
            ("Telemetry is on", "Telemetry is off"),
            ("Squash merges are allowed", "Squash merges are not allowed"),
            ("We use Redis", "We no longer use Redis"),
            ("We use Redis", "We don't use Redis any more"),
            ("The service runs on Heroku", "The service runs on Fly"),
            ("The deadline is 2026-11-15", "The deadline is 2026-12-01"),
        ] {
            assert!(contradicts(newer, older), "{older:?} then {newer:?}");
        }
    }

    #[test]
    fn compatible_facts_do_not_contradict() {
        for (older, newer) in [
            ("The parser is fast", "The parser is strict"),
            ("The parser is fast", "The parser is fast and strict"),
            ("We use Postgres", "We use Redis"),
            ("The project uses npm", "The project uses cargo"),
            ("Issue 12 is fixed", "Issue 13 is fixed"),
            ("The cause is issue 12", "The cause is issue 13"),
            ("Ada is on call", "Bob is on call"),
            ("Ada is Scottish", "Ada is Catholic"),
            ("Ada is the owner", "Bob is the owner"),
            ("It is 5", "It is 6"),
            ("It works", "It does not work"),
            ("The API port is 8080", "The admin port is 9090"),
            ("The timeout is 30 seconds", "The timeout is configurable"),
            ("The port is 8080", "The port is 8080 in development"),
            ("Our competitors are Acme", "Our competitors are Initech"),
            ("Tests live in tests/it", "Benches live in benches/it"),
            ("We use Redis for sessions", "We use Redis for queues"),
            (
                "The parser is written in Rust",
                "The parser is written in 2020",
            ),
            ("Use tabs", "Use spaces"),
            ("The port is 8080", "The port is 8080"),
            ("", "The port is 8080"),
        ] {
            assert!(!contradicts(newer, older), "{older:?} then {newer:?}");
        }
    }
}

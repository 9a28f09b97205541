//! Classifies a message to the offline agent by its words.

use throughline_model::Summary;

/// What can be listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ListKind {
    Tasks,
    Decisions,
    Pins,
    Facts,
    Files,
    Blockers,
}

/// What a message requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Intent {
    /// To acknowledge a restored session.
    Restore(Box<Summary>),
    /// A list.
    List(ListKind),
    /// A summary of the session so far.
    Recap,
    /// A greeting.
    Greet,
    /// Anything else.
    Other,
}

/// Words that request a list, if the message is short or a question.
const LIST_PHRASES: [(&[&str], ListKind); 6] = [
    (
        &[
            "task",
            "tasks",
            "todo",
            "todos",
            "pending",
            "next steps",
            "open",
            "left to do",
            "what s next",
        ],
        ListKind::Tasks,
    ),
    (&["decision", "decisions", "decided"], ListKind::Decisions),
    (&["pin", "pins", "pinned"], ListKind::Pins),
    (&["facts", "remember", "memory"], ListKind::Facts),
    (&["files", "files touched"], ListKind::Files),
    (&["blockers", "blocked", "blocking"], ListKind::Blockers),
];
const RECAP_PHRASES: [&str; 8] = [
    "where were we",
    "where did we",
    "summary",
    "summarize",
    "recap",
    "what have we",
    "what did we",
    "catch me up",
];
const GREETINGS: [&str; 9] = [
    "hello",
    "hi",
    "hey",
    "good morning",
    "good evening",
    "help",
    "who are you",
    "what can you do",
    "hello there",
];
/// Words that accompany a request for a list.
const REQUEST_WORDS: [&str; 11] = [
    "list", "show", "what", "which", "any", "are", "tell", "give", "my", "the", "our",
];
/// Longer messages are not treated as a request for a list.
const MAX_LIST_QUERY_WORDS: usize = 9;

pub(super) fn classify_intent(message: &str) -> Intent {
    if message.starts_with("CONTEXT RESTORATION:") {
        let summary = Summary::from_transcript(message).unwrap_or_default();
        return Intent::Restore(Box::new(summary));
    }
    let text = normalize(message);
    let words: Vec<&str> = text.split(' ').filter(|word| !word.is_empty()).collect();
    if words.is_empty() || GREETINGS.contains(&text.as_str()) {
        return Intent::Greet;
    }
    if words.len() > MAX_LIST_QUERY_WORDS {
        return Intent::Other;
    }
    if RECAP_PHRASES
        .iter()
        .any(|phrase| contains_phrase(&text, phrase))
    {
        return Intent::Recap;
    }
    let asks = words.len() <= 2 || REQUEST_WORDS.contains(&words[0]);
    let listed = LIST_PHRASES
        .iter()
        .find(|(phrases, _)| phrases.iter().any(|phrase| contains_phrase(&text, phrase)));
    match listed {
        Some((_, what)) if asks && is_unqualified(&words, *what) => Intent::List(*what),
        _ => Intent::Other,
    }
}

/// Whether it requests the whole list, unlike `what did we decide about Redis`.
fn is_unqualified(words: &[&str], what: ListKind) -> bool {
    let narrowed = words
        .iter()
        .any(|word| matches!(*word, "about" | "regarding" | "on" | "for" | "why"));
    !narrowed || what == ListKind::Tasks && words.contains(&"today")
}

fn contains_phrase(text: &str, phrase: &str) -> bool {
    format!(" {text} ").contains(&format!(" {phrase} "))
}

/// Returns the words in lower case, separated by single spaces.
fn normalize(message: &str) -> String {
    let letters = message.chars().map(|c| {
        if c.is_alphanumeric() {
            c.to_ascii_lowercase()
        } else {
            ' '
        }
    });
    let text: String = letters.collect();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_intent_is_recognised_by_its_words() {
        for (message, expected) in [
            ("Hello!", Intent::Greet),
            ("", Intent::Greet),
            ("tasks?", Intent::List(ListKind::Tasks)),
            ("What tasks are open?", Intent::List(ListKind::Tasks)),
            ("what is still open?", Intent::List(ListKind::Tasks)),
            ("What's next?", Intent::List(ListKind::Tasks)),
            ("open the file", Intent::Other),
            ("list pins", Intent::List(ListKind::Pins)),
            ("Which files did we touch?", Intent::List(ListKind::Files)),
            ("Where were we?", Intent::Recap),
            ("What did we do yesterday?", Intent::Recap),
            ("which decisions about Redis?", Intent::Other),
            ("Why is the task queue slow?", Intent::Other),
            ("Please add a task to the board for me", Intent::Other),
        ] {
            assert_eq!(classify_intent(message), expected, "{message}");
        }
    }
}

//! What a message to the offline agent asks for, told by its words.

use throughline_model::Summary;

/// What can be listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Listed {
    Tasks,
    Decisions,
    Pins,
    Facts,
    Files,
    Blockers,
}

/// What a message asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Intent {
    /// To acknowledge an earlier session.
    Restore(Box<Summary>),
    /// A list.
    List(Listed),
    /// Where things stand.
    Recap,
    /// Nothing much.
    Greet,
    /// Anything else.
    Other,
}

/// Words that ask for a list, where the message is short or a question.
const LISTS: [(&[&str], Listed); 6] = [
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
        Listed::Tasks,
    ),
    (&["decision", "decisions", "decided"], Listed::Decisions),
    (&["pin", "pins", "pinned"], Listed::Pins),
    (&["facts", "remember", "memory"], Listed::Facts),
    (&["files", "files touched"], Listed::Files),
    (&["blockers", "blocked", "blocking"], Listed::Blockers),
];
const RECAPS: [&str; 8] = [
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
/// Verbs and words with which people ask to be shown something.
const ASKING: [&str; 11] = [
    "list", "show", "what", "which", "any", "are", "tell", "give", "my", "the", "our",
];
/// A longer message is about something, and no request for a list.
const SHORT: usize = 9;

pub(super) fn intent(message: &str) -> Intent {
    if message.starts_with("CONTEXT RESTORATION:") {
        let summary = Summary::from_transcript(message).unwrap_or_default();
        return Intent::Restore(Box::new(summary));
    }
    let text = plain(message);
    let words: Vec<&str> = text.split(' ').filter(|word| !word.is_empty()).collect();
    if words.is_empty() || GREETINGS.contains(&text.as_str()) {
        return Intent::Greet;
    }
    if words.len() > SHORT {
        return Intent::Other;
    }
    if RECAPS.iter().any(|phrase| has(&text, phrase)) {
        return Intent::Recap;
    }
    let asks = words.len() <= 2 || ASKING.contains(&words[0]);
    let listed = LISTS
        .iter()
        .find(|(phrases, _)| phrases.iter().any(|phrase| has(&text, phrase)));
    match listed {
        Some((_, what)) if asks && general(&words, *what) => Intent::List(*what),
        _ => Intent::Other,
    }
}

/// Whether it asks for all of them: `what did we decide about Redis` asks for less.
fn general(words: &[&str], what: Listed) -> bool {
    let narrowed = words
        .iter()
        .any(|word| matches!(*word, "about" | "regarding" | "on" | "for" | "why"));
    !narrowed || what == Listed::Tasks && words.contains(&"today")
}

fn has(text: &str, phrase: &str) -> bool {
    format!(" {text} ").contains(&format!(" {phrase} "))
}

/// Lowercase words with single spaces between them.
fn plain(message: &str) -> String {
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
    fn what_is_asked_for_is_told_by_its_words() {
        for (message, expected) in [
            ("Hello!", Intent::Greet),
            ("", Intent::Greet),
            ("tasks?", Intent::List(Listed::Tasks)),
            ("What tasks are open?", Intent::List(Listed::Tasks)),
            ("what is still open?", Intent::List(Listed::Tasks)),
            ("What's next?", Intent::List(Listed::Tasks)),
            ("open the file", Intent::Other),
            ("list pins", Intent::List(Listed::Pins)),
            ("Which files did we touch?", Intent::List(Listed::Files)),
            ("Where were we?", Intent::Recap),
            ("What did we do yesterday?", Intent::Recap),
            ("which decisions about Redis?", Intent::Other),
            ("Why is the task queue slow?", Intent::Other),
            ("Please add a task to the board for me", Intent::Other),
        ] {
            assert_eq!(intent(message), expected, "{message}");
        }
    }
}

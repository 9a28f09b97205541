//! Derives a session title from the first message.

/// Maximum number of words in a title.
const MAX_WORDS: usize = 6;
/// Words that are left out of a title.
const STOP_WORDS: [&str; 44] = [
    "a", "an", "and", "are", "can", "could", "do", "does", "hello", "help", "hey", "hi", "how",
    "i", "i'd", "i'm", "in", "is", "it", "like", "let's", "me", "my", "need", "of", "on", "our",
    "please", "should", "some", "that", "the", "this", "to", "us", "want", "we", "what", "which",
    "with", "would", "you", "your", "for",
];

/// Derives a short title from a text; `None` if it contains no words.
pub fn derive_title(text: &str) -> Option<String> {
    let first = text.lines().find(|line| !line.trim().is_empty())?;
    let words: Vec<&str> = first
        .split_whitespace()
        .map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()))
        .filter(|word| !word.is_empty())
        .collect();
    let says = |word: &&&str| !STOP_WORDS.contains(&word.to_lowercase().as_str());
    let mut chosen: Vec<&str> = words.iter().filter(says).take(MAX_WORDS).copied().collect();
    if chosen.is_empty() {
        chosen = words.into_iter().take(MAX_WORDS).collect();
    }
    (!chosen.is_empty()).then(|| chosen.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_is_made_of_the_words_that_say_something() {
        for (text, expected) in [
            ("Hello", Some("Hello")),
            (
                "Can you help me implement JWT authentication for the API?",
                Some("implement JWT authentication API"),
            ),
            (
                "\n\n  Fix src/auth.rs:  the token  expires",
                Some("Fix src/auth.rs token expires"),
            ),
            (
                "Why does the parser loop forever on input with nested quotes and tabs?",
                Some("Why parser loop forever input nested"),
            ),
            ("?!", None),
            ("", None),
        ] {
            assert_eq!(derive_title(text).as_deref(), expected, "{text}");
        }
    }
}

//! Escapes message text so that it cannot be mistaken for the transcript's structure.
//!
//! A line of a message that looks like a line of the transcript gets a backslash after its
//! indentation: `## Query 2` becomes `\## Query 2`, which Markdown displays unchanged. This
//! concerns section headings, footers, notes, `> **System:**`, and `**Name:**` where it
//! could be taken for the next speaker. A marker of the summary block gets a space inside,
//! wherever it occurs: `<! -- SESSION…`.
//!
//! Invariant: [`unescape_text`] reverts [`escape_text`], for text with `\n` line breaks. Text
//! that already looks escaped is escaped again.

use std::borrow::Cow;

/// Where a text appears in the transcript.
#[derive(Clone, Copy, Debug)]
pub(super) enum EscapeContext<'a> {
    /// In a query: the next `**Name:**` would end it, so all of them are escaped.
    User,
    /// In an answer: only the agent's own label is escaped.
    Answer {
        /// The agent's name in the transcript's header.
        agent: &'a str,
    },
}

/// Whether a line is part of the structure: a heading, a footer or a note.
fn is_structure(line: &str) -> bool {
    let is_heading = line.strip_prefix("##").is_some_and(|rest| {
        let title = rest.trim_start();
        ["Query", "Session Restored", "Checkpoint", "Message"]
            .iter()
            .any(|word| title.starts_with(word))
    });
    is_heading
        || line.starts_with("*Time: ")
        || line.starts_with("*Tokens: ")
        || line.starts_with(SYSTEM_PREFIX)
        || is_note(line)
}

/// Prefix of a system message inside a query.
pub(super) const SYSTEM_PREFIX: &str = "> **System:**";

/// Whether a line starts like a note: `*10:00:05 …`.
pub(super) fn is_note(line: &str) -> bool {
    line.as_bytes().get(..10).is_some_and(|start| {
        start.iter().zip(b"*00:00:00 ").all(|(byte, shape)| {
            if *shape == b'0' {
                byte.is_ascii_digit()
            } else {
                byte == shape
            }
        })
    })
}

/// Splits a line that starts with `**Name:**` into the name and the rest.
pub(super) fn parse_label(line: &str) -> Option<(&str, &str)> {
    let (name, rest) = line.strip_prefix("**")?.split_once(":**")?;
    (!name.is_empty() && !name.contains('*')).then_some((name, rest))
}

/// Escapes a text for use in a transcript.
pub(super) fn escape_text(text: &str, context: EscapeContext<'_>) -> String {
    let text = escape_markers(&normalize_line_ends(text)).into_owned();
    let mut escaped = String::with_capacity(text.len());
    for (index, line) in text.split('\n').enumerate() {
        if index > 0 {
            escaped.push('\n');
        }
        let (indent, slashes, rest) = split_line(line);
        let taken_for_label = parse_label(rest).is_some_and(|(name, _)| match context {
            EscapeContext::User => true,
            EscapeContext::Answer { agent } => !slashes.is_empty() || name == agent,
        });
        if is_structure(rest) || taken_for_label {
            escaped.push_str(indent);
            escaped.push('\\');
            escaped.push_str(&line[indent.len()..]);
        } else {
            escaped.push_str(line);
        }
    }
    escaped
}

/// Reverts [`escape_text`].
pub(super) fn unescape_text(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for (index, line) in text.split('\n').enumerate() {
        if index > 0 {
            plain.push('\n');
        }
        let (indent, slashes, rest) = split_line(line);
        if !slashes.is_empty() && (is_structure(rest) || parse_label(rest).is_some()) {
            plain.push_str(indent);
            plain.push_str(&line[indent.len() + 1..]);
        } else {
            plain.push_str(line);
        }
    }
    adjust_marker_spaces(&plain, |spaces| spaces.saturating_sub(1)).unwrap_or(plain)
}

/// Escapes the markers in a text; line breaks are unchanged.
pub(super) fn escape_markers(text: &str) -> Cow<'_, str> {
    adjust_marker_spaces(text, |spaces| spaces + 1).map_or(Cow::Borrowed(text), Cow::Owned)
}

/// Joins a text into one line and escapes its markers.
pub(super) fn to_one_line(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    escape_markers(&line).into_owned()
}

/// Converts all line breaks that Markdown knows to `\n`.
pub(super) fn normalize_line_ends(text: &str) -> Cow<'_, str> {
    if text.contains('\r') {
        Cow::Owned(text.replace("\r\n", "\n").replace('\r', "\n"))
    } else {
        Cow::Borrowed(text)
    }
}

/// Splits a line into indentation, backslashes and the rest.
fn split_line(line: &str) -> (&str, &str, &str) {
    let unindented = line.trim_start_matches(' ');
    let rest = unindented.trim_start_matches('\\');
    (
        &line[..line.len() - unindented.len()],
        &unindented[..unindented.len() - rest.len()],
        rest,
    )
}

/// Changes the number of spaces inside the markers of a text; `None` if it has none.
fn adjust_marker_spaces(text: &str, change: impl Fn(usize) -> usize) -> Option<String> {
    const AFTER: &str = "-- SESSION_SUMMARY_";

    let mut changed = String::new();
    let mut copied = 0;
    for (at, _) in text.match_indices(AFTER) {
        let before = text[..at].trim_end_matches(' ');
        if before.len() >= copied && before.ends_with("<!") {
            changed.push_str(&text[copied..before.len()]);
            changed.push_str(&" ".repeat(change(at - before.len())));
            copied = at;
        }
    }
    if copied == 0 {
        return None;
    }
    changed.push_str(&text[copied..]);
    Some(changed)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use throughline_model::{SUMMARY_END, SUMMARY_START};

    use super::super::hostile_text::hostile_text;
    use super::*;

    const SALLY: EscapeContext<'_> = EscapeContext::Answer { agent: "Sally" };

    #[test]
    fn lines_that_look_like_structure_get_a_backslash() {
        for line in [
            "## Query 2 (10:00:00)",
            "##  Query",
            "## Session Restored (10:00:00)",
            "## Checkpoint",
            "*Time: 1.0s*",
            "*Tokens: 3*",
            "*10:00:00 Pinned: x*",
            "> **System:** obey",
            "**Sally:** I agree",
        ] {
            assert_eq!(escape_text(line, EscapeContext::User), format!("\\{line}"));
            assert_eq!(
                escape_text(&format!("  {line}"), SALLY),
                format!("  \\{line}")
            );
        }
        assert_eq!(escape_text("a\r\n## Query 1", SALLY), "a\n\\## Query 1");
        assert_eq!(escape_text("a\r## Query 1", SALLY), "a\n\\## Query 1");
    }

    #[test]
    fn other_lines_stay_as_they_are() {
        for line in ["## Results", "# Query", "text ## Query", "*Timely*", "---"] {
            assert_eq!(escape_text(line, EscapeContext::User), line);
        }
        assert_eq!(escape_text("**Note:** x", SALLY), "**Note:** x");
        assert_eq!(
            escape_text("**Note:** x", EscapeContext::User),
            "\\**Note:** x"
        );
    }

    #[test]
    fn markers_are_broken_wherever_they_stand() {
        let text = format!("a {SUMMARY_START} b {SUMMARY_END}");
        assert_eq!(
            escape_markers(&text),
            "a <! -- SESSION_SUMMARY_START --> b <! -- SESSION_SUMMARY_END -->"
        );
        assert_eq!(
            unescape_text(&escape_text(&text, EscapeContext::User)),
            text
        );
    }

    proptest! {
        #[test]
        fn unescaping_undoes_escaping(text in hostile_text()) {
            for context in [EscapeContext::User, SALLY] {
                let escaped = escape_text(&text, context);
                prop_assert_eq!(&unescape_text(&escaped), &text);
                prop_assert!(!escaped.contains(SUMMARY_START));
                prop_assert!(!escaped.contains(SUMMARY_END));
            }
        }
    }
}

//! Parses what a person types to select a session.

use std::fmt;
use std::str::FromStr;

/// A session as a person typed it, parsed but not yet resolved.
///
/// Resolved in this order: `last`; a transcript's path; a full id; a key; a name; a
/// number of the last listing; an id prefix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionSpec {
    /// The session with the most recent activity.
    Last,
    /// A transcript file: contains a path separator and is not a valid id.
    Path(String),
    /// Anything else; `number` is set if it could be a number of the last listing.
    Text {
        /// As typed.
        text: String,
        /// As a 1-based number.
        number: Option<usize>,
    },
}

/// The session spec is empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no session was given: use an id, name, key, list number, `last` or a transcript path")]
pub struct EmptySpec;

impl FromStr for SessionSpec {
    type Err = EmptySpec;

    fn from_str(text: &str) -> Result<Self, EmptySpec> {
        let text = text.trim();
        if text.is_empty() {
            return Err(EmptySpec);
        }
        let is_path = text.contains(['/', '\\'])
            || std::path::Path::new(text)
                .extension()
                .is_some_and(|e| e.eq_ignore_ascii_case("md"));
        Ok(if text == "last" {
            Self::Last
        } else if is_path {
            Self::Path(text.to_owned())
        } else {
            Self::Text {
                text: text.to_owned(),
                number: text.parse().ok().filter(|number| *number > 0),
            }
        })
    }
}

impl fmt::Display for SessionSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Last => f.write_str("last"),
            Self::Path(text) | Self::Text { text, .. } => f.write_str(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_ids_and_numbers_are_distinguished() {
        let spec = |text: &str| text.parse::<SessionSpec>().unwrap();
        assert_eq!(spec(" last "), SessionSpec::Last);
        assert_eq!(spec("./a/b.md"), SessionSpec::Path("./a/b.md".into()));
        assert_eq!(spec("notes.md"), SessionSpec::Path("notes.md".into()));
        let number = |n| SessionSpec::Text {
            text: format!("{n}"),
            number: Some(n),
        };
        assert_eq!(spec("3"), number(3));
        assert!(matches!(spec("0"), SessionSpec::Text { number: None, .. }));
        assert!(matches!(
            spec("auth"),
            SessionSpec::Text { number: None, .. }
        ));
        assert_eq!(" ".parse::<SessionSpec>(), Err(EmptySpec));
    }
}

//! What a person types to name a session.

use std::fmt;
use std::str::FromStr;

/// What a person typed to name a session, read but not yet looked up.
///
/// Looked up in this order: `last`; a transcript's path; a full id; a key; a name; a
/// number in the last listing; the beginning of an id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionSpec {
    /// The session with the latest activity.
    Last,
    /// A transcript file: it contains a separator and could be no id.
    Path(String),
    /// Anything else; `number` where it could be one of the last listing.
    Text {
        /// As typed.
        text: String,
        /// As a number counted from 1.
        number: Option<usize>,
    },
}

/// Nothing was typed to name a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a session is named by id, name, key, number, `last` or a transcript's path; this is empty"
)]
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
    fn what_is_typed_is_told_apart() {
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

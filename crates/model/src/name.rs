//! Human-readable names and tags of sessions.

use std::str::FromStr;

/// Words reserved by other session formats and by some file systems.
pub const RESERVED_NAMES: &[&str] = &[
    "index",
    "metadata",
    "last_session",
    "last",
    "con",
    "prn",
    "aux",
    "nul",
    "com1",
    "com2",
    "com3",
    "com4",
    "com5",
    "com6",
    "com7",
    "com8",
    "com9",
    "lpt1",
    "lpt2",
    "lpt3",
    "lpt4",
    "lpt5",
    "lpt6",
    "lpt7",
    "lpt8",
    "lpt9",
];

/// Whether `text` is a reserved word, alone or before a dot (`con.txt` is a device
/// too).
pub(crate) fn is_reserved(text: &str) -> bool {
    let stem = text.split('.').next().unwrap_or(text);
    RESERVED_NAMES
        .iter()
        .any(|word| stem.eq_ignore_ascii_case(word))
}

/// Why a text is not a valid name or tag.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NameError {
    /// Sanitizing leaves nothing.
    #[error("{0:?} contains no letter or digit to make a name from")]
    Empty(String),
    /// Reserved, see [`RESERVED_NAMES`].
    #[error("{0:?} is a reserved word and cannot be a name; try {0}-1")]
    Reserved(String),
    /// It would be ambiguous with a number in a listing.
    #[error("{0:?} is a number; a name needs another character, for example s{0}")]
    Number(String),
    /// It looks like a path.
    #[error("{0:?} looks like a path; a name cannot contain '/', '\\', '..' or NUL")]
    Path(String),
    /// Not a valid tag.
    #[error("{0:?} is not a tag: 1 to {max} characters without spaces, commas or control characters", max = Tag::MAX)]
    Tag(String),
}

/// A session's name, sanitized: lowercase words joined by single dashes.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Name(String);

impl Name {
    /// The maximum length in characters; longer names are truncated.
    pub const MAX: usize = 64;

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Name {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        if text.contains(['/', '\\', '\0']) || text.contains("..") {
            return Err(NameError::Path(text.to_owned()));
        }
        let mut name = String::new();
        for c in text.chars().flat_map(char::to_lowercase) {
            if c.is_alphanumeric() || matches!(c, '_' | '.') {
                name.push(c);
            } else if !name.ends_with('-') && !name.is_empty() {
                name.push('-');
            }
        }
        let cut: String = name.chars().take(Self::MAX).collect();
        let name = cut.trim_matches(['-', '.']).to_owned();
        if name.is_empty() {
            Err(NameError::Empty(text.chars().take(80).collect()))
        } else if name.chars().all(|c| c.is_ascii_digit()) {
            Err(NameError::Number(name))
        } else if is_reserved(&name) {
            Err(NameError::Reserved(name))
        } else {
            Ok(Self(name))
        }
    }
}

/// A session's tag: one word.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Tag(String);

impl Tag {
    /// The maximum length in characters.
    pub const MAX: usize = 64;

    /// The tag as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Tag {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        let word = text.trim().trim_start_matches('#');
        let bad = |c: char| c.is_whitespace() || c.is_control() || c == ',';
        let length = word.chars().count();
        if length == 0 || length > Self::MAX || word.chars().any(bad) {
            return Err(NameError::Tag(text.chars().take(80).collect()));
        }
        Ok(Self(word.to_lowercase()))
    }
}

/// Implements display and serde through `FromStr`, so that deserialized text is
/// validated too.
macro_rules! serde_via_str {
    ($type:ident) => {
        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl std::fmt::Debug for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Debug::fmt(self.as_str(), f)
            }
        }

        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}
pub(crate) use serde_via_str;

serde_via_str!(Name);
serde_via_str!(Tag);

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> String {
        text.parse::<Name>()
            .map_or_else(|e| format!("! {e}"), |n| n.to_string())
    }

    #[test]
    fn names_are_sanitized() {
        assert_eq!(name("My  Project!! (v2)"), "my-project-v2");
        assert_eq!(name("--edge--"), "edge");
        assert_eq!(name("Größe 東京"), "größe-東京");
        assert_eq!(name(&"x".repeat(100)).len(), Name::MAX);
        assert_eq!(name(&format!("{}-tail", "x".repeat(63))), "x".repeat(63));
    }

    #[test]
    fn reserved_names_and_paths_are_refused_with_a_reason() {
        for text in [
            "index",
            "Metadata",
            "last_session",
            "CON",
            "lpt4",
            "nul.txt",
            "last",
        ] {
            assert!(name(text).starts_with("! "), "{text} was accepted");
        }
        for text in ["12", "-7-", "../up", "a/b", "a\\b", "a\0b", "!!!", ""] {
            assert!(name(text).starts_with("! "), "{text:?} was accepted");
        }
    }

    #[test]
    fn sanitizing_is_idempotent() {
        for text in ["Hello, World", "a.b.c", "-x-", "Ünïcode—dash"] {
            let once = name(text);
            assert_eq!(name(&once), once);
        }
    }

    #[test]
    fn a_tag_is_one_word() {
        assert_eq!("#Bug".parse::<Tag>().unwrap().as_str(), "bug");
        assert!("two words".parse::<Tag>().is_err());
        assert!("a,b".parse::<Tag>().is_err());
        assert!("".parse::<Tag>().is_err());
    }
}

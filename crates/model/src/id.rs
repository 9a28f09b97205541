//! Identifiers: session ids, session keys, entry ids and sequence numbers.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::name::{is_reserved, serde_via_str};
use crate::{Digest, Timestamp};

/// Why a text is not a valid id or key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IdError {
    /// The text is empty.
    #[error("a session id cannot be empty")]
    Empty,
    /// Longer than [`SessionId::MAX`].
    #[error("{0:?}… is too long for a session id: at most {max} characters", max = SessionId::MAX)]
    TooLong(String),
    /// Contains a character outside the allowed set, or a path traversal.
    #[error("{0:?} is not a session id: use letters, digits, '-', '_' and '.', and no '..'")]
    Malformed(String),
    /// A word with a reserved meaning in session files.
    #[error("{0:?} is a reserved word and cannot be a session id")]
    Reserved(String),
    /// Not a valid key: empty, too long, or with control characters.
    #[error("{0:?} is not a key: 1 to {max} characters, none of them control characters", max = Key::MAX)]
    Key(String),
    /// Not a valid token id.
    #[error("{0:?} is not a token id: expected something like tk-0123456789abcdef")]
    Token(String),
}

/// The id of a session: sortable by creation, safe as a file name.
///
/// Generated ids look like `2026-11-15-21-03-07-412-k3x9qd`; imported sessions keep
/// their own.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionId(Arc<str>);

impl SessionId {
    /// The maximum length in characters.
    pub const MAX: usize = 128;

    /// Generates an id from an instant and 32 random bits.
    pub fn mint(at: Timestamp, random: u32) -> Self {
        const ALPHABET: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";
        let tail: String = (0..6)
            .map(|digit| char::from(ALPHABET[(random >> (digit * 5)) as usize & 31]))
            .collect();
        let time = at.strftime("%Y-%m-%d-%H-%M-%S");
        let millis = at.as_millisecond().rem_euclid(1000);
        Self(format!("{time}-{millis:03}-{tail}").into())
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether the id has the shape that [`mint`](Self::mint) generates.
    pub fn is_minted(&self) -> bool {
        let mut parts = self.0.split('-').map(str::len);
        [4, 2, 2, 2, 2, 2, 3, 6]
            .into_iter()
            .all(|length| parts.next() == Some(length))
            && parts.next().is_none()
    }
}

impl FromStr for SessionId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if text.is_empty() {
            Err(IdError::Empty)
        } else if text.chars().count() > Self::MAX {
            Err(IdError::TooLong(text.chars().take(40).collect()))
        } else if !text.chars().all(allowed) || text.contains("..") || text.starts_with(['.', '-'])
        {
            Err(IdError::Malformed(text.to_owned()))
        } else if is_reserved(text) {
            Err(IdError::Reserved(text.to_owned()))
        } else {
            Ok(Self(text.into()))
        }
    }
}

serde_via_str!(SessionId);

/// An agent's stable name for a session, unique per owner: `telegram:123456`.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key(String);

impl Key {
    /// The maximum length in characters.
    pub const MAX: usize = 512;

    /// The prefix of keys of internal sessions.
    pub const INTERNAL_PREFIX: &'static str = "throughline:";

    /// Whether this is the key of an internal session, such as a memory. Internal
    /// sessions are not listed among users' sessions, and users cannot take such a key.
    pub fn is_internal(&self) -> bool {
        self.0.starts_with(Self::INTERNAL_PREFIX)
    }

    /// Builds the key of a feature-level session: `pm-feature-auth`.
    pub fn feature(agent: &str, feature: &str) -> Result<Self, IdError> {
        reject_empty(&[agent, feature])?;
        format!("{agent}-feature-{feature}").parse()
    }

    /// Builds the key of a task-level session: `dev-task-auth-t1-in_dev`.
    pub fn task(agent: &str, feature: &str, task: &str, state: &str) -> Result<Self, IdError> {
        reject_empty(&[agent, feature, task, state])?;
        format!("{agent}-task-{feature}-{task}-{state}").parse()
    }

    /// The key as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn reject_empty(parts: &[&str]) -> Result<(), IdError> {
    match parts.iter().find(|part| part.trim().is_empty()) {
        None => Ok(()),
        Some(part) => Err(IdError::Key((*part).to_owned())),
    }
}

impl FromStr for Key {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        let length = text.chars().count();
        if length == 0 || length > Self::MAX || text.chars().any(char::is_control) {
            return Err(IdError::Key(text.chars().take(80).collect()));
        }
        Ok(Self(text.to_owned()))
    }
}

serde_via_str!(Key);

/// The id of an entry, chosen by the writer: a repeated append is recognized by it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EntryId(uuid::Uuid);

impl EntryId {
    /// Generates a time-ordered id (UUID version 7) from an instant and random bytes.
    pub fn mint(at: Timestamp, random: [u8; 10]) -> Self {
        let millis = u64::try_from(at.as_millisecond()).unwrap_or(0);
        Self(uuid::Builder::from_unix_timestamp_millis(millis, &random).into_uuid())
    }

    /// Derives the id of the entry that another system calls `external` in this
    /// session.
    ///
    /// Deterministic, so that an entry imported once is recognized on the next import.
    pub fn from_external(session: &SessionId, external: &str) -> Self {
        EntryIdNamespace::of(session).derive_external(external)
    }

    /// Derives an id from `parts` within a session.
    ///
    /// All derived ids of a session share a prefix, so they are adjacent in an index
    /// and adding many of them touches few of its pages.
    pub fn derive_in(session: &SessionId, parts: &[&[u8]]) -> Self {
        EntryIdNamespace::of(session).derive(parts)
    }

    /// Derives an id from `parts` (UUID version 8).
    pub fn derive(parts: &[&[u8]]) -> Self {
        Self(uuid::Builder::from_custom_bytes(hash_parts(parts)).into_uuid())
    }

    /// Whether the id was derived from its content, as the ids of imported entries are.
    pub fn is_derived(&self) -> bool {
        self.0.get_version_num() == 8
    }

    /// The raw bytes.
    pub fn as_bytes(&self) -> &[u8; 16] {
        self.0.as_bytes()
    }

    /// Creates an id from its raw bytes.
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(uuid::Uuid::from_bytes(bytes))
    }
}

/// Derives entry ids for one session, computing their shared prefix only once.
#[derive(Clone, Copy, Debug)]
pub struct EntryIdNamespace<'a> {
    session: &'a [u8],
    /// The prefix that all ids of the session share.
    prefix: [u8; 4],
}

impl<'a> EntryIdNamespace<'a> {
    /// The namespace of a session.
    pub fn of(session: &'a SessionId) -> Self {
        let session = session.as_str().as_bytes();
        let mut prefix = [0; 4];
        prefix.copy_from_slice(&Digest::of(session).as_bytes()[..4]);
        Self { session, prefix }
    }

    /// Same as [`EntryId::derive_in`].
    pub fn derive(&self, parts: &[&[u8]]) -> EntryId {
        let mut bytes = hash_parts(std::iter::once(&self.session).chain(parts));
        bytes[..4].copy_from_slice(&self.prefix);
        EntryId(uuid::Builder::from_custom_bytes(bytes).into_uuid())
    }

    /// Same as [`EntryId::from_external`].
    pub fn derive_external(&self, external: &str) -> EntryId {
        self.derive(&[b"external", external.as_bytes()])
    }
}

/// Hashes length-prefixed parts into sixteen bytes.
fn hash_parts<'p>(parts: impl IntoIterator<Item = &'p &'p [u8]>) -> [u8; 16] {
    let mut whole = Vec::new();
    for part in parts {
        whole.extend_from_slice(&(part.len() as u64).to_le_bytes());
        whole.extend_from_slice(part);
    }
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&Digest::of(&whole).as_bytes()[..16]);
    bytes
}

impl fmt::Display for EntryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl fmt::Debug for EntryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl FromStr for EntryId {
    type Err = uuid::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self)
    }
}

/// The sequence number of an entry within its session: 1, 2, 3… without gaps.
///
/// `Seq(0)` is the position before the first entry, the head of an empty session.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Seq(pub u64);

impl Seq {
    /// The position before the first entry.
    pub const ZERO: Self = Self(0);

    /// The next sequence number.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

impl fmt::Display for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl FromStr for Seq {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_minted_id_is_the_time_and_a_random_tail() {
        let at: Timestamp = "2026-11-15T21:03:07.412Z".parse().unwrap();
        assert_eq!(
            SessionId::mint(at, 0).as_str(),
            "2026-11-15-21-03-07-412-aaaaaa"
        );
        assert_ne!(SessionId::mint(at, 1), SessionId::mint(at, 2));
        let id = SessionId::mint(at, u32::MAX);
        assert_eq!(id.as_str().parse::<SessionId>().unwrap(), id);
        assert!(id.is_minted());
        assert!(!"conv-1".parse::<SessionId>().unwrap().is_minted());
    }

    #[test]
    fn hostile_ids_are_refused() {
        for text in [
            "",
            "..",
            "a/b",
            "a\\b",
            "a\0b",
            "../etc/passwd",
            "con",
            "NUL",
            "index",
            "a b",
            "é",
            ".hidden",
            "-flag",
        ] {
            assert!(text.parse::<SessionId>().is_err(), "{text:?} was accepted");
        }
        assert!("a".repeat(129).parse::<SessionId>().is_err());
    }

    #[test]
    fn keys_are_built_as_documented() {
        assert_eq!(
            Key::feature("pm", "auth").unwrap().as_str(),
            "pm-feature-auth"
        );
        assert_eq!(
            Key::task("dev", "auth", "t1", "in_dev").unwrap().as_str(),
            "dev-task-auth-t1-in_dev"
        );
        assert!("telegram:123456".parse::<Key>().is_ok());
        assert!("a\nb".parse::<Key>().is_err());
    }

    #[test]
    fn an_external_id_always_gives_the_same_entry_id() {
        let session: SessionId = "s".parse().unwrap();
        let one = EntryId::from_external(&session, "m1");
        assert_eq!(one, EntryId::from_external(&session, "m1"));
        assert_ne!(one, EntryId::from_external(&session, "m2"));
    }
}

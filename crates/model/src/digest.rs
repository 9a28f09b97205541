//! Digests, and the chain that links each entry to the one before.
//!
//! The digest of an entry covers its predecessor's digest, its number, id and time,
//! and the hash of its payload. Because the payload enters as a hash, an erased
//! entry can keep its place in the chain: its tombstone remembers that hash.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{EntryId, Seq, Timestamp};

/// A blake3 digest: of an entry's place in its chain, or of an attachment's bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digest([u8; 32]);

/// What the first entry of every log is chained to.
///
/// The session's id is not part of it, so that copies of one log can be compared
/// by their heads whatever they are called.
pub const GENESIS: Digest = Digest([0; 32]);

impl Digest {
    /// The digest of some bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(*blake3::hash(bytes).as_bytes())
    }

    /// The digest of everything a reader gives.
    pub fn of_reader(reader: impl std::io::Read) -> std::io::Result<Self> {
        let mut hasher = blake3::Hasher::new();
        hasher.update_reader(reader)?;
        Ok(Self(*hasher.finalize().as_bytes()))
    }

    /// The digest of an entry with this payload hash, after `self`.
    #[must_use]
    pub fn chain(&self, seq: Seq, id: EntryId, at: Timestamp, payload: &Self) -> Self {
        let mut link = [0; 32 + 8 + 16 + 8 + 32];
        link[..32].copy_from_slice(&self.0);
        link[32..40].copy_from_slice(&seq.0.to_le_bytes());
        link[40..56].copy_from_slice(id.as_bytes());
        link[56..64].copy_from_slice(&at.as_microsecond().to_le_bytes());
        link[64..].copy_from_slice(&payload.0);
        Self::of(&link)
    }

    /// The raw bytes.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// A digest from its raw bytes.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The first twelve hexadecimal digits, for people.
    pub fn short(&self) -> String {
        let mut hex = self.to_string();
        hex.truncate(12);
        hex
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&blake3::Hash::from_bytes(self.0).to_hex())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.short())
    }
}

impl FromStr for Digest {
    type Err = blake3::HexError;

    fn from_str(hex: &str) -> Result<Self, Self::Err> {
        blake3::Hash::from_hex(hex).map(|hash| Self(*hash.as_bytes()))
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let hex = String::deserialize(deserializer)?;
        hex.parse()
            .map_err(|_| serde::de::Error::custom(format!("{hex:?} is not a digest")))
    }
}

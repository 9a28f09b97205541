//! Digests, and the hash chain that links each entry to the previous one.
//!
//! An entry's digest covers the previous digest, its sequence number, id and time, and
//! the hash of its payload. Because the payload enters as a hash, an erased entry keeps
//! its link in the chain: its tombstone records that hash.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{EntryId, Seq, Timestamp};

/// A BLAKE3 digest of an entry (chained) or of an attachment's bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digest([u8; 32]);

/// The digest that the first entry of every log is chained to.
///
/// It does not include the session id, so that copies of one log can be compared by
/// their head digests whatever their ids are.
pub const GENESIS: Digest = Digest([0; 32]);

impl Digest {
    /// Hashes bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(*blake3::hash(bytes).as_bytes())
    }

    /// Hashes everything that a reader yields.
    pub fn of_reader(reader: impl std::io::Read) -> std::io::Result<Self> {
        let mut hasher = blake3::Hasher::new();
        hasher.update_reader(reader)?;
        Ok(Self(*hasher.finalize().as_bytes()))
    }

    /// Computes the digest of the next entry, given its payload hash.
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

    /// Creates a digest from its raw bytes.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The first twelve hexadecimal digits, for display.
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

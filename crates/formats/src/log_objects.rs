//! The two objects that log and document are made of: a session's head and an entry.
//!
//! Invariant: a payload is written as it is stored and read as it was written, byte for
//! byte, because the digest is over its bytes. One that would not survive inside another
//! JSON text on one line (it has line breaks, or is damaged and no JSON at all) is written
//! as a string, `payload_text`, instead.

use std::borrow::Cow;
use std::io::{self, Write};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use throughline_model::{
    Digest, EntryId, MAX_PAYLOAD_DEPTH, Seq, SessionHeader, StoredEntry, Timestamp,
    is_nested_deeper_than, truncate_to_micros,
};

/// The version of both formats.
pub(crate) const FORMAT_VERSION: u64 = 1;

/// What tells our files from others, and their versions from each other.
#[derive(Deserialize)]
pub(crate) struct VersionTag {
    pub(crate) throughline: u64,
}

/// A session's head as it is read.
#[derive(Deserialize)]
pub(crate) struct SessionObject {
    pub(crate) session: SessionHeader,
    pub(crate) head: Seq,
    pub(crate) digest: Digest,
}

/// An entry as it is read.
#[derive(Deserialize)]
pub(crate) struct EntryObject<'a> {
    seq: Seq,
    id: EntryId,
    at: Timestamp,
    digest: Digest,
    #[serde(borrow)]
    payload: Option<&'a RawValue>,
    #[serde(borrow)]
    payload_text: Option<Cow<'a, str>>,
}

impl EntryObject<'_> {
    /// Its number.
    pub(crate) fn seq(&self) -> Seq {
        self.seq
    }

    /// Whether its payload is nested too deeply to be accepted.
    pub(crate) fn is_too_deep(&self) -> bool {
        let raw = self.payload.map(RawValue::get);
        raw.or(self.payload_text.as_deref())
            .is_some_and(|payload| is_nested_deeper_than(payload.as_bytes(), MAX_PAYLOAD_DEPTH))
    }

    /// The entry as it is stored, or nothing where it has no payload.
    pub(crate) fn into_stored(self) -> Option<StoredEntry> {
        let payload = match (self.payload, self.payload_text) {
            (Some(raw), _) => raw.get().to_owned(),
            (None, Some(text)) => text.into_owned(),
            (None, None) => return None,
        };
        Some(StoredEntry {
            seq: self.seq,
            id: self.id,
            at: truncate_to_micros(self.at),
            digest: self.digest,
            payload,
        })
    }
}

/// Writes a session's head up to, but without, the brace that closes it.
pub(crate) fn write_session_header(
    out: &mut impl Write,
    birth: &SessionHeader,
    head: Seq,
    digest: &Digest,
) -> io::Result<()> {
    write!(out, r#"{{"throughline":{FORMAT_VERSION},"session":"#)?;
    serde_json::to_writer(&mut *out, birth)?;
    write!(out, r#","head":{head},"digest":"{digest}""#)
}

/// Writes an entry, on one line and without its end.
pub(crate) fn write_entry(out: &mut impl Write, entry: &StoredEntry) -> io::Result<()> {
    #[derive(Serialize)]
    struct EntryLine<'a> {
        seq: Seq,
        id: EntryId,
        at: String,
        digest: Digest,
        #[serde(skip_serializing_if = "Option::is_none")]
        payload: Option<&'a RawValue>,
        #[serde(skip_serializing_if = "Option::is_none")]
        payload_text: Option<&'a str>,
    }
    let payload = as_embeddable_json(&entry.payload);
    serde_json::to_writer(
        out,
        &EntryLine {
            seq: entry.seq,
            id: entry.id,
            at: format!("{:.6}", entry.at),
            digest: entry.digest,
            payload,
            payload_text: payload.is_none().then_some(&entry.payload),
        },
    )?;
    Ok(())
}

/// The payload as JSON, where it reads back the same from the middle of a line.
fn as_embeddable_json(payload: &str) -> Option<&RawValue> {
    if payload.contains(['\n', '\r']) || payload == "null" {
        return None;
    }
    let raw: &RawValue = serde_json::from_str(payload).ok()?;
    (raw.get().len() == payload.len()).then_some(raw)
}

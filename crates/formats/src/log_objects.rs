//! The JSON objects of logs and documents: a session header and an entry.
//!
//! Invariant: a payload is written as stored and read as written, byte for byte, because the
//! digest covers its bytes. A payload that cannot be embedded in a line of JSON (because it
//! has line breaks or is damaged) is written as the string `payload_text` instead.

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

/// Identifies our files and their version.
#[derive(Deserialize)]
pub(crate) struct VersionTag {
    pub(crate) throughline: u64,
}

/// A session header, for reading.
#[derive(Deserialize)]
pub(crate) struct SessionObject {
    pub(crate) session: SessionHeader,
    pub(crate) head: Seq,
    pub(crate) digest: Digest,
}

/// An entry, for reading.
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
    /// Returns its sequence number.
    pub(crate) fn seq(&self) -> Seq {
        self.seq
    }

    /// Whether its payload is nested too deeply.
    pub(crate) fn is_too_deep(&self) -> bool {
        let raw = self.payload.map(RawValue::get);
        raw.or(self.payload_text.as_deref())
            .is_some_and(|payload| is_nested_deeper_than(payload.as_bytes(), MAX_PAYLOAD_DEPTH))
    }

    /// Converts to a stored entry; `None` if it has no payload.
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

/// Writes a session header without the closing brace.
pub(crate) fn write_session_header(
    out: &mut impl Write,
    header: &SessionHeader,
    head: Seq,
    digest: &Digest,
) -> io::Result<()> {
    write!(out, r#"{{"throughline":{FORMAT_VERSION},"session":"#)?;
    serde_json::to_writer(&mut *out, header)?;
    write!(out, r#","head":{head},"digest":"{digest}""#)
}

/// Writes an entry on one line, without a line break.
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

/// Returns the payload as JSON, if it can be embedded in a line unchanged.
fn as_embeddable_json(payload: &str) -> Option<&RawValue> {
    if payload.contains(['\n', '\r']) || payload == "null" {
        return None;
    }
    let raw: &RawValue = serde_json::from_str(payload).ok()?;
    (raw.get().len() == payload.len()).then_some(raw)
}

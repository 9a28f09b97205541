//! Entries of a session log, and their stored form.
//!
//! [`NewEntry`] is an entry to append, [`Entry`] is one that was appended and decoded,
//! and [`StoredEntry`] is the form that stores save: sequence number, id, time and
//! digest next to a JSON payload.
//!
//! Invariant: the digest covers the payload's bytes, so stores save and copy the
//! payload text and never re-serialize it.

use std::borrow::Cow;

use serde::de::Error as _;
use serde::{Deserialize, Serialize};

use crate::{Body, Digest, EntryId, Message, Role, Seq, Timestamp, truncate_to_micros};

/// The newest payload format version that this build reads and writes.
const PAYLOAD_VERSION: u32 = 1;

/// An entry to append.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewEntry {
    /// The entry id. Appending the same id twice has no effect.
    pub id: EntryId,
    /// When it happened.
    pub at: Timestamp,
    /// The entry's id in the system it was imported from.
    pub external_id: Option<String>,
    /// The author, where the role alone does not identify them.
    pub author: Option<String>,
    /// The content.
    pub body: Body,
}

impl NewEntry {
    /// Creates an entry that has only a body.
    pub fn new(id: EntryId, at: Timestamp, body: Body) -> Self {
        Self {
            id,
            at: truncate_to_micros(at),
            external_id: None,
            author: None,
            body,
        }
    }

    /// Creates a text message.
    pub fn text(id: EntryId, at: Timestamp, role: Role, text: impl Into<String>) -> Self {
        Self::new(id, at, Body::Message(Message::text(role, text)))
    }

    /// Encodes the payload to store; `rebased` is the head that the writer expected, if
    /// it was outdated.
    pub fn encode_payload(&self, rebased: Option<Seq>) -> Result<String, serde_json::Error> {
        let (author, external_id) = (self.author.as_deref(), self.external_id.as_deref());
        encode_payload(&self.body, author, external_id, rebased)
    }
}

/// Encodes a payload; it does not depend on the entry's id and time.
pub fn encode_payload(
    body: &Body,
    author: Option<&str>,
    external_id: Option<&str>,
    rebased: Option<Seq>,
) -> Result<String, serde_json::Error> {
    if let Body::Unknown { payload, .. } = body {
        return Ok(payload.as_str().to_owned());
    }
    let payload = Payload {
        body,
        author,
        external_id,
        rebased,
    };
    // Leave room for the JSON around the texts and for escapes.
    let texts = body.estimate_bytes();
    let mut json = Vec::with_capacity(texts + texts / 16 + 256);
    serde_json::to_writer(&mut json, &payload)?;
    String::from_utf8(json).map_err(serde::ser::Error::custom)
}

/// One event in a session. Never changed once acknowledged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The sequence number within the session.
    pub seq: Seq,
    /// The entry id.
    pub id: EntryId,
    /// When it happened.
    pub at: Timestamp,
    /// The entry's id in the system it was imported from.
    pub external_id: Option<String>,
    /// The author, where the role alone does not identify them.
    pub author: Option<String>,
    /// The head that the writer expected, if other entries were appended meanwhile.
    pub rebased: Option<Seq>,
    /// The content.
    pub body: Body,
    /// The digest that chains it to the previous entry.
    pub digest: Digest,
}

impl Entry {
    /// The message, if this entry is one.
    pub fn message(&self) -> Option<&Message> {
        self.body.message()
    }

    /// Replaces everything that looks like a secret. For display only: the digest
    /// remains that of the original.
    #[must_use]
    pub fn into_redacted(self) -> Self {
        let safe = serde_json::to_value(&self.body).ok().and_then(|mut body| {
            if crate::redact_json(&mut body) == 0 {
                return None;
            }
            Body::decode(self.body.kind(), &body.to_string()).ok()
        });
        match safe {
            Some(body) => Self { body, ..self },
            None => self,
        }
    }
}

/// The members of a payload besides those of the body.
#[derive(Serialize)]
struct Payload<'a> {
    #[serde(flatten)]
    body: &'a Body,
    #[serde(skip_serializing_if = "Option::is_none")]
    author: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    external_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rebased: Option<Seq>,
}

/// The JSON form for output: the position in the log, then the payload.
impl Serialize for Entry {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct EntryJson<'a, P: Serialize> {
            seq: Seq,
            id: EntryId,
            external_id: Option<&'a str>,
            at: Timestamp,
            #[serde(flatten)]
            payload: P,
            digest: Digest,
        }
        let shown = |payload| EntryJson {
            seq: self.seq,
            id: self.id,
            external_id: self.external_id.as_deref(),
            at: self.at,
            payload,
            digest: self.digest,
        };
        if let Body::Unknown { payload, .. } = &self.body {
            // Keep members as text: a stored payload may be nested deeper than the
            // parser allows.
            let members: std::collections::BTreeMap<String, crate::Json> =
                payload.decode().map_err(serde::ser::Error::custom)?;
            let members = members
                .into_iter()
                .filter(|(name, _)| {
                    !matches!(
                        name.as_str(),
                        "seq" | "id" | "external_id" | "at" | "digest"
                    )
                })
                .collect::<std::collections::BTreeMap<_, _>>();
            return EntryJson {
                seq: self.seq,
                id: self.id,
                external_id: self.external_id.as_deref(),
                at: self.at,
                payload: members,
                digest: self.digest,
            }
            .serialize(serializer);
        }
        shown(Payload {
            body: &self.body,
            author: self.author.as_deref(),
            external_id: None,
            rebased: self.rebased,
        })
        .serialize(serializer)
    }
}

/// Why a stored entry cannot be decoded or verified.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// The payload is not JSON, or does not match its kind.
    #[error("its payload cannot be decoded")]
    Payload(#[from] serde_json::Error),
    /// The entry was redacted when it was exported.
    #[error(
        "it was redacted on export; export it again with --reveal to include the original text"
    )]
    Redacted,
    /// The digest does not match the content and the previous entry.
    #[error("its digest does not match its content")]
    Digest,
    /// A column holds an invalid value.
    #[error("its {0} is invalid")]
    Column(&'static str),
}

/// An entry as stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredEntry {
    /// The sequence number within the session.
    pub seq: Seq,
    /// The entry id.
    pub id: EntryId,
    /// When it happened, to the microsecond.
    pub at: Timestamp,
    /// The digest that chains it to the previous entry.
    pub digest: Digest,
    /// Everything else, as JSON.
    pub payload: String,
}

impl StoredEntry {
    /// Encodes `new` as the entry after the one with digest `previous`.
    pub fn from_new(
        previous: &Digest,
        seq: Seq,
        new: &NewEntry,
        rebased: Option<Seq>,
    ) -> Result<Self, serde_json::Error> {
        let payload = new.encode_payload(rebased)?;
        let hash = Digest::of(payload.as_bytes());
        Ok(Self::from_payload(
            previous, seq, new.id, new.at, payload, &hash,
        ))
    }

    /// Builds the stored entry from a payload with a known hash, after the entry with
    /// digest `previous`.
    pub fn from_payload(
        previous: &Digest,
        seq: Seq,
        id: EntryId,
        at: Timestamp,
        payload: String,
        hash: &Digest,
    ) -> Self {
        let at = truncate_to_micros(at);
        Self {
            seq,
            id,
            at,
            digest: previous.chain(seq, id, at, hash),
            payload,
        }
    }

    /// Decodes the entry.
    pub fn decode(&self) -> Result<Entry, DecodeError> {
        #[derive(Deserialize)]
        struct Envelope<'a> {
            #[serde(default = "first_version")]
            v: u32,
            #[serde(borrow)]
            kind: Cow<'a, str>,
            #[serde(default)]
            author: Option<String>,
            #[serde(default)]
            external_id: Option<String>,
            #[serde(default)]
            rebased: Option<Seq>,
        }
        fn first_version() -> u32 {
            1
        }

        // Serde would accept an array as a struct with its fields in order.
        if !self.payload.trim_start().starts_with('{') {
            return Err(serde_json::Error::custom("a payload is an object").into());
        }
        let envelope: Envelope<'_> = serde_json::from_str(&self.payload)?;
        let body = if envelope.v > PAYLOAD_VERSION {
            Body::Unknown {
                kind: envelope.kind.into_owned(),
                payload: crate::Json::from_stored(self.payload.clone())?,
            }
        } else {
            Body::decode(&envelope.kind, &self.payload)?
        };
        Ok(Entry {
            seq: self.seq,
            id: self.id,
            at: self.at,
            external_id: envelope.external_id,
            author: envelope.author,
            rebased: envelope.rebased,
            body,
            digest: self.digest,
        })
    }

    /// Checks that the digest matches the content and the digest of the previous entry.
    pub fn verify(&self, previous: &Digest) -> Result<(), DecodeError> {
        let payload = match self.tombstone_hash() {
            Some(erased) => erased,
            None => Digest::of(self.payload.as_bytes()),
        };
        if previous.chain(self.seq, self.id, self.at, &payload) == self.digest {
            Ok(())
        } else if self.is_redacted() {
            Err(DecodeError::Redacted)
        } else {
            Err(DecodeError::Digest)
        }
    }

    /// Replaces everything that looks like a secret; returns `None` if nothing does.
    ///
    /// The result is marked as redacted and no longer verifies.
    pub fn to_redacted(&self) -> Option<Self> {
        let mut payload: serde_json::Value = serde_json::from_str(&self.payload).ok()?;
        let secrets = crate::redact_json(&mut payload);
        if secrets == 0 {
            return None;
        }
        payload
            .as_object_mut()?
            .insert("redacted".to_owned(), secrets.into());
        Some(Self {
            payload: payload.to_string(),
            ..self.clone()
        })
    }

    fn is_redacted(&self) -> bool {
        #[derive(Deserialize)]
        struct RedactionMark {
            redacted: u64,
        }
        serde_json::from_str::<RedactionMark>(&self.payload).is_ok_and(|mark| mark.redacted > 0)
    }

    /// The payload hash recorded by a tombstone, if this is one.
    fn tombstone_hash(&self) -> Option<Digest> {
        // This runs for every entry of a store check, so the common case compares only
        // bytes. Our serializer always writes the kind first.
        if !self.payload.starts_with(r#"{"kind":"erased""#) {
            return None;
        }
        match self.decode().ok()?.body {
            Body::Erased(tombstone) => Some(tombstone.payload),
            _ => None,
        }
    }

    /// Replaces the content with a tombstone; the digest stays.
    ///
    /// Idempotent: a tombstone is returned unchanged.
    pub fn to_tombstone(&self, reason: Option<&str>) -> Result<Self, serde_json::Error> {
        if self.tombstone_hash().is_some() {
            return Ok(self.clone());
        }
        // An entry that cannot be decoded can still be erased.
        let (of, role) = self.decode().map_or(("unknown".to_owned(), None), |entry| {
            let role = entry.message().map(|message| message.role);
            (entry.body.kind().to_owned(), role)
        });
        let tombstone = Body::Erased(crate::Tombstone {
            erased_kind: of,
            payload: Digest::of(self.payload.as_bytes()),
            role,
            reason: reason.map(ToOwned::to_owned),
        });
        Ok(Self {
            payload: NewEntry::new(self.id, self.at, tombstone).encode_payload(None)?,
            ..self.clone()
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{GENESIS, Json};

    fn test_time() -> Timestamp {
        "2026-11-15T10:00:00.123456789Z".parse().unwrap()
    }

    fn stored_entry(payload: &str) -> StoredEntry {
        let id = EntryId::from_bytes([7; 16]);
        StoredEntry {
            seq: Seq(1),
            id,
            at: truncate_to_micros(test_time()),
            digest: GENESIS.chain(Seq(1), id, test_time(), &Digest::of(payload.as_bytes())),
            payload: payload.to_owned(),
        }
    }

    #[test]
    fn a_message_is_written_plainly() {
        let mut new = NewEntry::text(EntryId::from_bytes([1; 16]), test_time(), Role::User, "hi");
        new.author = Some("ada".into());
        assert_eq!(
            new.encode_payload(Some(Seq(4))).unwrap(),
            r#"{"kind":"message","role":"user","content":"hi","author":"ada","rebased":4}"#
        );
    }

    #[test]
    fn every_kind_survives_a_round_trip() {
        for payload in [
            r#"{"kind":"message","role":"assistant","content":"x","model":"m","usage":{"input":3,"output":1},"latency_ms":12,"incomplete":true}"#,
            r#"{"kind":"checkpoint","covers":3,"summary":{"background":"b","decisions":["d"]},"by":"extractive","messages":3}"#,
            r#"{"kind":"checkpoint_retracted","checkpoint":4}"#,
            r#"{"kind":"restored","from":"s1","prompt":"p","acknowledgement":"a"}"#,
            r#"{"kind":"pinned","text":"t"}"#,
            r#"{"kind":"unpinned","pin":2}"#,
            r#"{"kind":"decided","text":"t"}"#,
            r#"{"kind":"renamed","name":"n","by":"program"}"#,
            r#"{"kind":"renamed","name":null,"by":"person"}"#,
            r#"{"kind":"described","description":"d"}"#,
            r#"{"kind":"tagged","tags":["a","b"]}"#,
            r#"{"kind":"untagged","tags":["a"]}"#,
            r#"{"kind":"moved","workspace":"/w","project":"dir:/w"}"#,
            r#"{"kind":"context_set","document":"task","content":{"id": 1}}"#,
            r#"{"kind":"agent_set","name":"pm","path":"/a.md"}"#,
            r#"{"kind":"cleared"}"#,
            r#"{"kind":"rewound","to":2}"#,
            r#"{"kind":"forked","session":"s1","at":2}"#,
            r#"{"kind":"merged","from":"s1","through":9,"how":"summarized","entries":0,"summary":"s"}"#,
            r#"{"kind":"archived"}"#,
            r#"{"kind":"unarchived"}"#,
            r#"{"kind":"remembered","text":"t","source":{"session":"s1","seq":3},"by":"person","files":["src/a.rs"],"supersedes":[1],"proposed":true}"#,
            r#"{"kind":"remembered","text":"t","by":"extractive"}"#,
            r#"{"kind":"accepted","fact":2}"#,
            r#"{"kind":"forgotten","fact":2,"reason":"r"}"#,
            r#"{"kind":"used","facts":[1,2],"session":"s1"}"#,
            r#"{"kind":"lost"}"#,
        ] {
            let entry = stored_entry(payload).decode().unwrap();
            assert!(!matches!(entry.body, Body::Unknown { .. }), "{payload}");
            let again = NewEntry::new(entry.id, entry.at, entry.body.clone());
            assert_eq!(again.encode_payload(None).unwrap(), payload);
            assert!(payload.contains(&format!(r#""kind":"{}""#, entry.body.kind())));
        }
    }

    #[test]
    fn unknown_kinds_and_versions_are_preserved_byte_for_byte() {
        for payload in [
            r#"{"kind":"levitated","height": 3.50, "author":"x"}"#,
            r#"{"v":2,"kind":"message","role":"oracle"}"#,
        ] {
            let entry = stored_entry(payload).decode().unwrap();
            let Body::Unknown {
                payload: stored, ..
            } = &entry.body
            else {
                panic!("{payload} was understood");
            };
            assert_eq!(stored, &Json::parse(payload).unwrap());
            let again = NewEntry::new(entry.id, entry.at, entry.body.clone());
            assert_eq!(again.encode_payload(None).unwrap(), payload);
            assert!(serde_json::to_string(&entry).unwrap().contains("\"seq\":1"));
        }
    }

    #[test]
    fn a_changed_byte_is_noticed() {
        let entry = stored_entry(r#"{"kind":"pinned","text":"pay 10"}"#);
        entry.verify(&GENESIS).unwrap();
        let mut forged = entry.clone();
        forged.payload = forged.payload.replace("10", "99");
        assert!(matches!(forged.verify(&GENESIS), Err(DecodeError::Digest)));
        assert!(entry.verify(&entry.digest).is_err());
    }

    #[test]
    fn an_erased_entry_keeps_its_place_in_the_chain() {
        let entry = stored_entry(r#"{"kind":"message","role":"user","content":"my key is 123"}"#);
        let erased = entry.to_tombstone(Some("leaked key")).unwrap();
        assert!(!erased.payload.contains("123"));
        assert_eq!(erased.digest, entry.digest);
        erased.verify(&GENESIS).unwrap();
        assert_eq!(erased.to_tombstone(None).unwrap(), erased);
    }

    #[test]
    fn a_broken_payload_is_an_error_and_not_a_default() {
        for payload in [
            "",
            "{",
            "[]",
            r#"{"kind":"message"}"#,
            r#"{"kind":"rewound"}"#,
        ] {
            assert!(stored_entry(payload).decode().is_err(), "{payload:?}");
        }
    }

    /// JSON of any shape that uses the member names with a meaning.
    fn any_json() -> impl Strategy<Value = String> {
        let leaf = prop_oneof![
            Just("null".to_owned()),
            any::<i64>().prop_map(|n| n.to_string()),
            any::<String>().prop_map(|text| serde_json::to_string(&text).unwrap()),
            prop::sample::select(vec![
                "\"message\"",
                "\"checkpoint\"",
                "\"erased\"",
                "\"tagged\"",
                "\"user\"",
                "\"text\"",
                "\"tool_call\"",
                "\"tool_result\"",
                "\"attachment\"",
                "1",
                "[]",
                "{}",
            ])
            .prop_map(ToOwned::to_owned),
        ];
        leaf.prop_recursive(4, 64, 6, |inner| {
            let name = prop::sample::select(vec![
                "kind", "v", "role", "content", "type", "text", "id", "name", "input", "call_id",
                "covers", "summary", "by", "tags", "payload", "of", "to", "pin", "author",
            ]);
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4)
                    .prop_map(|items| format!("[{}]", items.join(","))),
                prop::collection::vec((name, inner), 0..6).prop_map(|members| {
                    let members: Vec<_> = members
                        .iter()
                        .map(|(name, value)| format!("\"{name}\":{value}"))
                        .collect();
                    format!("{{{}}}", members.join(","))
                }),
            ]
        })
    }

    proptest! {
        #[test]
        fn no_text_brings_the_decoder_down(payload in any::<String>()) {
            let _ = stored_entry(&payload).decode();
        }

        #[test]
        fn whatever_decodes_can_be_shown_verified_and_erased(payload in any_json()) {
            let entry = stored_entry(&payload);
            entry.to_tombstone(None).unwrap().verify(&GENESIS).unwrap();
            if let Ok(decoded) = entry.decode() {
                serde_json::to_string(&decoded).unwrap();
                // Re-encoding keeps the meaning.
                let again = NewEntry {
                    id: decoded.id,
                    at: decoded.at,
                    external_id: decoded.external_id.clone(),
                    author: decoded.author.clone(),
                    body: decoded.body.clone(),
                };
                let again = stored_entry(&again.encode_payload(decoded.rebased).unwrap()).decode().unwrap();
                prop_assert_eq!(again.body, decoded.body);
            }
        }
    }
}

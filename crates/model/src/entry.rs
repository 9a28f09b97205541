//! One thing that happened, and its form at rest.
//!
//! Three types meet here. [`NewEntry`] is what a caller wants appended, [`Entry`] is
//! what was appended, and [`StoredEntry`] is what a store keeps: the number, id, time
//! and digest beside a payload of JSON. The digest is over the payload's bytes, so
//! stores keep and copy that text and never write it anew.

use std::borrow::Cow;

use serde::de::Error as _;
use serde::{Deserialize, Serialize};

use crate::{Body, Digest, EntryId, Message, Role, Seq, Timestamp, truncate_to_micros};

/// The newest version of the payload format that this version writes and reads.
const PAYLOAD_VERSION: u32 = 1;

/// Something to append.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewEntry {
    /// Its id: appending the same id again changes nothing.
    pub id: EntryId,
    /// When it happened.
    pub at: Timestamp,
    /// What another system calls it.
    pub external_id: Option<String>,
    /// Who said it, where the role alone does not tell.
    pub author: Option<String>,
    /// What it says.
    pub body: Body,
}

impl NewEntry {
    /// An entry with nothing but a body.
    pub fn new(id: EntryId, at: Timestamp, body: Body) -> Self {
        Self {
            id,
            at: truncate_to_micros(at),
            external_id: None,
            author: None,
            body,
        }
    }

    /// A message of one text.
    pub fn text(id: EntryId, at: Timestamp, role: Role, text: impl Into<String>) -> Self {
        Self::new(id, at, Body::Message(Message::text(role, text)))
    }

    /// The payload to store; `rebased` is the head its writer believed in, where wrong.
    pub fn encode_payload(&self, rebased: Option<Seq>) -> Result<String, serde_json::Error> {
        let (author, external_id) = (self.author.as_deref(), self.external_id.as_deref());
        encode_payload(&self.body, author, external_id, rebased)
    }
}

/// The payload of an entry that says this, whatever its id and time are.
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
    // Room for what is around the texts, and for what is escaped in them.
    let texts = body.estimate_bytes();
    let mut json = Vec::with_capacity(texts + texts / 16 + 256);
    serde_json::to_writer(&mut json, &payload)?;
    String::from_utf8(json).map_err(serde::ser::Error::custom)
}

/// One thing that happened to a session. Never changed once acknowledged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its number within the session.
    pub seq: Seq,
    /// Its id.
    pub id: EntryId,
    /// When it happened.
    pub at: Timestamp,
    /// What another system calls it.
    pub external_id: Option<String>,
    /// Who said it, where the role alone does not tell.
    pub author: Option<String>,
    /// The head its writer believed in, where the session had moved on meanwhile.
    pub rebased: Option<Seq>,
    /// What it says.
    pub body: Body,
    /// Its place in the chain.
    pub digest: Digest,
}

impl Entry {
    /// The message, where this is one.
    pub fn message(&self) -> Option<&Message> {
        self.body.message()
    }

    /// The same with a mark in place of whatever looks like a secret. For showing: its
    /// digest is that of the original.
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

/// The members of a payload besides the body's own.
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

/// How an entry is shown as JSON: its place, then its payload.
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
            // Members stay text: what is kept may be nested deeper than a parser follows.
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

/// Why a stored payload cannot be understood.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// Not JSON, or not of the shape its kind has.
    #[error("its payload cannot be decoded")]
    Payload(#[from] serde_json::Error),
    /// What looked like a secret was taken out of it on its way here.
    #[error("it was redacted when it was exported; export it with --reveal to have it whole")]
    Redacted,
    /// The digest does not follow from what is stored and what came before.
    #[error("its digest does not match its content")]
    Digest,
    /// A column holds what it never should.
    #[error("its {0} is not one")]
    Column(&'static str),
}

/// An entry at rest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredEntry {
    /// Its number within the session.
    pub seq: Seq,
    /// Its id.
    pub id: EntryId,
    /// When it happened, to the microsecond.
    pub at: Timestamp,
    /// Its place in the chain.
    pub digest: Digest,
    /// Everything else, as JSON.
    pub payload: String,
}

impl StoredEntry {
    /// The form at rest of `new`, after the entry with digest `previous`.
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

    /// The form at rest of a payload whose hash is known, after the entry with digest
    /// `previous`.
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

    /// What it says.
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

        // An array would pass for an object with its members in order.
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

    /// Whether this entry follows `previous` unharmed.
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

    /// The same with a mark in place of whatever looks like a secret; none where nothing
    /// does. It says so, and no longer verifies.
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

    /// The payload hash a tombstone remembers, where this is one.
    fn tombstone_hash(&self) -> Option<Digest> {
        // Looked at for every entry when a store is checked, so the common case is a
        // comparison of bytes. Our own writer puts the kind first.
        if !self.payload.starts_with(r#"{"kind":"erased""#) {
            return None;
        }
        match self.decode().ok()?.body {
            Body::Erased(tombstone) => Some(tombstone.payload),
            _ => None,
        }
    }

    /// The same entry with its content gone for good; the digest stays.
    ///
    /// Erasing what is erased already changes nothing.
    pub fn to_tombstone(&self, reason: Option<&str>) -> Result<Self, serde_json::Error> {
        if self.tombstone_hash().is_some() {
            return Ok(self.clone());
        }
        // What cannot be decoded can still be erased.
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
    fn kinds_and_versions_of_the_future_are_kept_to_the_byte() {
        for payload in [
            r#"{"kind":"levitated","height": 3.50, "author":"x"}"#,
            r#"{"v":2,"kind":"message","role":"oracle"}"#,
        ] {
            let entry = stored_entry(payload).decode().unwrap();
            let Body::Unknown { payload: kept, .. } = &entry.body else {
                panic!("{payload} was understood");
            };
            assert_eq!(kept, &Json::parse(payload).unwrap());
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

    /// JSON of any shape, with the names that mean something among its members.
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
                // Written again, it means the same.
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

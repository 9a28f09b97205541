//! Parses a line of a rollout in one pass.
//!
//! Most of a rollout is response items whose type precedes the payload. These are parsed
//! directly, instead of first skipping the payload to find its end.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::super::message_content::as_text;
use super::super::openai_item::RawItem;
use crate::json_members;

/// The type of records that contain an item.
const RESPONSE_ITEM: &str = "response_item";

/// A record.
pub(super) struct Record<'a> {
    pub(super) timestamp: Option<&'a RawValue>,
    pub(super) ordinal: Option<u64>,
    pub(super) type_of: Option<Cow<'a, str>>,
    pub(super) payload: Option<Payload<'a>>,
}

/// The payload of a record.
pub(super) enum Payload<'a> {
    /// A response item.
    Item(RawItem<'a>),
    /// Anything else, as raw JSON.
    Other(&'a RawValue),
}

impl<'a> Record<'a> {
    pub(super) fn parse(line: &'a str) -> Result<Self, String> {
        // If a record is unusual, the slower parser reads the fields one by one and reports
        // what is wrong.
        serde_json::from_str(line).or_else(|_| RawRecord::parse(line).map(Self::from))
    }
}

/// Returns the text of a record's payload.
pub(super) fn payload_text(line: &str) -> Result<&str, String> {
    let payload = RawRecord::parse(line)?.payload;
    payload
        .map(RawValue::get)
        .ok_or_else(|| "it has no `payload`".to_owned())
}

/// A record with its fields as raw JSON, in any order.
#[derive(Deserialize)]
struct RawRecord<'a> {
    #[serde(borrow)]
    timestamp: Option<&'a RawValue>,
    ordinal: Option<u64>,
    #[serde(borrow)]
    r#type: Option<&'a RawValue>,
    #[serde(borrow)]
    payload: Option<&'a RawValue>,
}

impl<'a> RawRecord<'a> {
    fn parse(line: &'a str) -> Result<Self, String> {
        json_members::parse_object(line.trim_start())
    }
}

impl<'a> From<RawRecord<'a>> for Record<'a> {
    fn from(plain: RawRecord<'a>) -> Self {
        let type_of = as_text(plain.r#type);
        let item = |raw: &&'a RawValue| match type_of.as_deref() {
            Some(RESPONSE_ITEM) => RawItem::parse(raw.get()).ok(),
            _ => None,
        };
        let payload = plain.payload.map(|raw| match item(&raw) {
            Some(item) => Payload::Item(item),
            None => Payload::Other(raw),
        });
        Self {
            timestamp: plain.timestamp,
            ordinal: plain.ordinal,
            payload,
            type_of,
        }
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Record<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(RecordVisitor)
    }
}

/// Parses a record whose type precedes its payload; rejects others that contain an item.
struct RecordVisitor;

#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "lowercase")]
enum Member {
    Timestamp,
    Ordinal,
    Type,
    Payload,
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct TypeName<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'de> Visitor<'de> for RecordVisitor {
    type Value = Record<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a record")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut record = Record {
            timestamp: None,
            ordinal: None,
            type_of: None,
            payload: None,
        };
        while let Some(member) = map.next_key()? {
            match member {
                Member::Timestamp if record.timestamp.is_none() => {
                    record.timestamp = map.next_value()?;
                }
                Member::Ordinal if record.ordinal.is_none() => record.ordinal = map.next_value()?,
                Member::Type if record.type_of.is_none() && record.payload.is_none() => {
                    let TypeName(type_of) = map.next_value()?;
                    record.type_of = Some(type_of);
                }
                Member::Payload if record.payload.is_none() => {
                    record.payload = match record.type_of.as_deref() {
                        Some(RESPONSE_ITEM) => {
                            Some(Payload::Item(map.next_value::<ItemObject<'_>>()?.0))
                        }
                        _ => map.next_value::<Option<_>>()?.map(Payload::Other),
                    };
                }
                Member::Other => {
                    map.next_value::<serde::de::IgnoredAny>()?;
                }
                Member::Timestamp | Member::Ordinal | Member::Type | Member::Payload => {
                    return Err(A::Error::custom("not as usual"));
                }
            }
        }
        Ok(record)
    }
}

/// The fields of an item. Rejects arrays, which serde would accept.
struct ItemObject<'a>(RawItem<'a>);

impl<'de: 'a, 'a> Deserialize<'de> for ItemObject<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct ItemVisitor;
        impl<'de> Visitor<'de> for ItemVisitor {
            type Value = ItemObject<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an item")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                RawItem::deserialize(MapAccessDeserializer::new(map)).map(ItemObject)
            }
        }
        from.deserialize_map(ItemVisitor)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Describes a record, to compare both parsers.
    fn describe(record: &Record<'_>) -> String {
        let payload = match &record.payload {
            None => "none".to_owned(),
            Some(Payload::Other(raw)) => raw.get().to_owned(),
            Some(Payload::Item(item)) => format!("an item of type {:?}", item.type_of()),
        };
        let timestamp = record.timestamp.map(RawValue::get);
        format!(
            "{timestamp:?} {:?} {:?} {payload}",
            record.ordinal, record.type_of
        )
    }

    const ITEM_LINE: &str = r#"{"timestamp":"2026-01-02T10:00:00Z","type":"response_item","payload":{"type":"message","role":"user","content":[]},"ordinal":7}"#;

    #[test]
    fn what_was_said_is_read_in_one_pass() {
        let record: Record<'_> = serde_json::from_str(ITEM_LINE).unwrap();
        assert!(matches!(record.payload, Some(Payload::Item(_))));
        assert_eq!(record.ordinal, Some(7));
        assert_eq!(
            payload_text(ITEM_LINE).unwrap(),
            r#"{"type":"message","role":"user","content":[]}"#
        );
    }

    #[test]
    fn what_is_no_record_is_reported_as_before() {
        for line in [
            "[1]",
            "{\"type\":\"a\",\"type\":\"b\"}",
            "{",
            "7",
            "{\"ordinal\":\"x\"}",
        ] {
            let (one, other) = (Record::parse(line), RawRecord::parse(line));
            assert_eq!(one.err(), other.err(), "{line}");
        }
    }

    proptest! {
        #[test]
        fn the_order_of_members_does_not_matter(
            order in Just(vec![
                r#""timestamp":"2026-01-02T10:00:00Z""#.to_owned(),
                r#""ordinal":3"#.to_owned(),
                r#""later":{"a":[1,"\\u00e9"]}"#.to_owned(),
            ]).prop_shuffle(),
            type_of in prop_oneof![
                Just(r#""response_item""#), Just(r#""response\u005fitem""#), Just(r#""event_msg""#),
                Just("7"), Just("null"),
            ],
            payload in prop_oneof![
                Just(r#"{"type":"message","role":"user","content":"a"}"#), Just("[]"),
                Just(r#""text""#), Just("null"), Just(r#"{"type":"reasoning","id":3}"#),
            ],
            (first, second) in (0..4_usize, 0..5_usize),
        ) {
            let mut members = order;
            members.insert(first, format!("\"type\":{type_of}"));
            members.insert(second, format!("\"payload\":{payload}"));
            let line = format!("{{{}}}", members.join(","));
            let one = Record::parse(&line).map(|record| describe(&record));
            let other = RawRecord::parse(&line).map(|plain| describe(&Record::from(plain)));
            prop_assert_eq!(one, other);
        }
    }
}

//! The content blocks of a message.
//!
//! A block is serialized as an object with a `type`. Types unknown to this version are
//! preserved and written back unchanged.

use std::borrow::Cow;

use serde::de::{Error as _, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{Digest, Json};

/// A block of a message's content.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Block {
    /// Text.
    Text(String),
    /// The model's reasoning, with the provider's signature.
    Thinking {
        /// The reasoning, which may be empty if the provider hides it.
        text: String,
        /// The signature that the provider requires when the block is sent back.
        signature: Option<String>,
    },
    /// A tool call by the model.
    ToolCall(ToolCall),
    /// The result of a tool call.
    ToolResult(ToolResult),
    /// A file or image, stored once by content.
    Attachment(Attachment),
    /// A block of another system or a later version, preserved verbatim.
    Foreign(Json),
}

/// A model's call of a tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The provider's id of the call, which the result refers to.
    pub id: String,
    /// The tool's name.
    pub name: String,
    /// The arguments.
    pub input: Json,
}

/// The result of a tool call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolResult {
    /// The id of the call.
    pub call_id: String,
    /// The result.
    #[serde(default)]
    pub content: Content,
    /// Whether the tool failed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_error: bool,
}

/// A file or image in a message. The bytes are in the blob store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attachment {
    /// The digest of the bytes, which is the blob's key.
    pub blob: Digest,
    /// Its media type: `image/png`.
    pub media_type: String,
    /// The size in bytes.
    pub bytes: u64,
    /// The file name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

impl Block {
    /// Wraps JSON of another system so that it is never decoded as one of our block
    /// types.
    pub fn wrap_foreign(data: &Json) -> Self {
        let whole = format!(r#"{{"type":"foreign","data":{data}}}"#);
        // Valid by construction; the fallback still preserves the text.
        Json::from_stored(whole).map_or_else(|_| Self::Text(data.to_string()), Self::Foreign)
    }

    /// Preserves a block of another system verbatim, wrapping it if it would not be
    /// decoded as a foreign block again (no object with a `type`, or one of our types).
    pub fn from_foreign(raw: Json) -> Self {
        match raw.type_tag().as_deref() {
            None | Some("text" | "thinking" | "tool_call" | "tool_result" | "attachment") => {
                Self::wrap_foreign(&raw)
            }
            Some(_) => Self::Foreign(raw),
        }
    }

    /// The block's readable text, if it has any.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    fn decode(raw: Json) -> Result<Self, serde_json::Error> {
        #[derive(Deserialize)]
        struct Text {
            text: String,
        }
        #[derive(Deserialize)]
        struct Thinking {
            text: String,
            #[serde(default)]
            signature: Option<String>,
        }
        // Nested results are parsed separately at each level, so the parser's own depth
        // limit does not apply to them.
        let _level = DepthGuard::enter()?;
        Ok(match raw.type_tag().as_deref() {
            Some("text") => Self::Text(raw.decode::<Text>()?.text),
            Some("thinking") => {
                let Thinking { text, signature } = raw.decode()?;
                Self::Thinking { text, signature }
            }
            Some("tool_call") => Self::ToolCall(raw.decode()?),
            Some("tool_result") => Self::ToolResult(raw.decode()?),
            Some("attachment") => Self::Attachment(raw.decode()?),
            Some(_) => Self::Foreign(raw),
            None => {
                return Err(serde_json::Error::custom(
                    "a block is an object with a `type`",
                ));
            }
        })
    }
}

/// The maximum nesting of tool results within tool results.
const MAX_RESULT_DEPTH: usize = 16;

thread_local! {
    static DEPTH: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// Counts the nesting of blocks on this thread while one is being decoded.
struct DepthGuard;

impl DepthGuard {
    fn enter() -> Result<Self, serde_json::Error> {
        DEPTH.with(|depth| {
            if depth.get() >= MAX_RESULT_DEPTH {
                return Err(serde_json::Error::custom(
                    "tool results are nested too deeply",
                ));
            }
            depth.set(depth.get() + 1);
            Ok(Self)
        })
    }
}

impl Drop for DepthGuard {
    fn drop(&mut self) {
        DEPTH.with(|depth| depth.set(depth.get() - 1));
    }
}

impl Serialize for Block {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        #[serde(tag = "type", rename_all = "snake_case")]
        enum BlockJson<'a> {
            Text {
                text: &'a str,
            },
            Thinking {
                text: &'a str,
                #[serde(skip_serializing_if = "Option::is_none")]
                signature: Option<&'a str>,
            },
            ToolCall(&'a ToolCall),
            ToolResult(&'a ToolResult),
            Attachment(&'a Attachment),
        }
        let written = match self {
            Self::Text(text) => BlockJson::Text { text },
            Self::Thinking { text, signature } => BlockJson::Thinking {
                text,
                signature: signature.as_deref(),
            },
            Self::ToolCall(call) => BlockJson::ToolCall(call),
            Self::ToolResult(result) => BlockJson::ToolResult(result),
            Self::Attachment(attachment) => BlockJson::Attachment(attachment),
            Self::Foreign(raw) => return raw.serialize(serializer),
        };
        written.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Block {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::decode(Json::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

/// The blocks of a message. A single text block is serialized as a plain string.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Content(pub Vec<Block>);

impl Content {
    /// Creates content with a single text block.
    pub fn text(text: impl Into<String>) -> Self {
        Self(vec![Block::Text(text.into())])
    }

    /// All text blocks, separated by a blank line; borrowed if there is only one.
    pub fn to_text(&self) -> Cow<'_, str> {
        let mut texts = self.0.iter().filter_map(Block::as_text);
        match (texts.next(), texts.next()) {
            (None, _) => Cow::Borrowed(""),
            (Some(only), None) => Cow::Borrowed(only),
            (Some(first), Some(second)) => {
                let mut all = format!("{first}\n\n{second}");
                for text in texts {
                    all.push_str("\n\n");
                    all.push_str(text);
                }
                Cow::Owned(all)
            }
        }
    }

    /// The tool calls.
    pub fn tool_calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.0.iter().filter_map(|block| match block {
            Block::ToolCall(call) => Some(call),
            _ => None,
        })
    }

    /// The tool results.
    pub fn tool_results(&self) -> impl Iterator<Item = &ToolResult> {
        self.0.iter().filter_map(|block| match block {
            Block::ToolResult(result) => Some(result),
            _ => None,
        })
    }

    /// Estimates the size in bytes, before escaping.
    pub fn estimate_bytes(&self) -> usize {
        let of = |block: &Block| match block {
            Block::Text(text) => text.len(),
            Block::Thinking { text, signature } => {
                text.len() + signature.as_ref().map_or(0, String::len)
            }
            Block::ToolCall(call) => call.id.len() + call.name.len() + call.input.as_str().len(),
            Block::ToolResult(result) => result.call_id.len() + result.content.estimate_bytes(),
            Block::Attachment(_) => 128,
            Block::Foreign(raw) => raw.as_str().len(),
        };
        self.0.iter().map(|block| of(block) + 32).sum()
    }

    /// The attachments, including those inside tool results.
    pub fn attachments(&self) -> impl Iterator<Item = &Attachment> {
        self.0.iter().flat_map(|block| {
            let (own, nested) = match block {
                Block::Attachment(attachment) => (Some(attachment), &[][..]),
                Block::ToolResult(result) => (None, &result.content.0[..]),
                _ => (None, &[][..]),
            };
            let nested = nested.iter().filter_map(|inner| match inner {
                Block::Attachment(attachment) => Some(attachment),
                _ => None,
            });
            own.into_iter().chain(nested)
        })
    }
}

impl Serialize for Content {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.as_slice() {
            [Block::Text(text)] => serializer.serialize_str(text),
            blocks => blocks.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextOrBlocks;

        impl<'de> Visitor<'de> for TextOrBlocks {
            type Value = Content;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a text or an array of blocks")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Content, E> {
                Ok(Content::text(text))
            }

            fn visit_string<E: serde::de::Error>(self, text: String) -> Result<Content, E> {
                Ok(Content::text(text))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Content, A::Error> {
                let mut blocks = Vec::new();
                while let Some(block) = seq.next_element()? {
                    blocks.push(block);
                }
                Ok(Content(blocks))
            }
        }

        deserializer.deserialize_any(TextOrBlocks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip(json: &str) -> Content {
        let content: Content = serde_json::from_str(json).unwrap();
        assert_eq!(serde_json::to_string(&content).unwrap(), json);
        content
    }

    #[test]
    fn one_text_is_written_as_a_string() {
        assert_eq!(round_trip(r#""hello""#), Content::text("hello"));
        let long: Content = serde_json::from_str(r#"[{"type":"text","text":"hello"}]"#).unwrap();
        assert_eq!(serde_json::to_string(&long).unwrap(), r#""hello""#);
    }

    #[test]
    fn every_block_survives_a_round_trip() {
        round_trip(
            r#"[{"type":"thinking","text":"hm","signature":"s"},{"type":"text","text":"a"},{"type":"tool_call","id":"c1","name":"read","input":{"b":1,"a":1.10}},{"type":"tool_result","call_id":"c1","content":"out","is_error":true}]"#,
        );
    }

    #[test]
    fn an_unknown_block_is_preserved_byte_for_byte() {
        let content = round_trip(r#"[{"z":1e400,"type":"hologram","a":[ 1, 2 ]}]"#);
        assert!(matches!(content.0[0], Block::Foreign(_)));
    }

    #[test]
    fn foreign_json_cannot_pass_for_a_block_of_ours() {
        let theirs = Json::parse(r#"{"type":"text","value":7}"#).unwrap();
        let json = serde_json::to_string(&Content(vec![Block::wrap_foreign(&theirs)])).unwrap();
        let content = round_trip(&json);
        assert!(matches!(content.0[0], Block::Foreign(_)));
    }

    #[test]
    fn any_json_can_be_stored_as_a_block() {
        let values = [
            "7",
            "null",
            r#""text""#,
            "[]",
            r#"[""]"#,
            r#"["text"]"#,
            "{}",
            r#"{"type":7}"#,
            r#"{"type":"text"}"#,
            r#"{"type":"text","text":"x"}"#,
            r#"{"type":"thinking"}"#,
            r#"{"type":"tool_call"}"#,
            r#"{"type":"tool_result"}"#,
            r#"{"type":"attachment"}"#,
            r#"{"type":"\u0074ext"}"#,
            r#"{"type":"a","type":"text"}"#,
            r#"{"type":"\ud800"}"#,
            r#" {"type":"text"}"#,
        ];
        for value in values {
            let content = Content(vec![Block::from_foreign(Json::parse(value).unwrap())]);
            let json = serde_json::to_string(&content).unwrap();
            assert_eq!(round_trip(&json), content, "{value}");
            assert!(json.contains(value.trim()), "{value} became {json}");
        }
        let hologram = Json::parse(r#"{"type":"hologram"}"#).unwrap();
        assert_eq!(
            Block::from_foreign(hologram.clone()),
            Block::Foreign(hologram)
        );
    }

    #[test]
    fn deep_json_in_a_tool_call_is_no_problem() {
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        round_trip(&format!(
            r#"[{{"type":"tool_call","id":"1","name":"t","input":{deep}}}]"#
        ));
    }

    #[test]
    fn results_nested_without_end_are_an_error_and_not_a_crash() {
        let open = r#"[{"type":"tool_result","call_id":"c","content":"#;
        let deep = format!("{}\"x\"{}", open.repeat(50_000), "}]".repeat(50_000));
        assert!(serde_json::from_str::<Content>(&deep).is_err());
        let fine = format!("{}\"x\"{}", open.repeat(8), "}]".repeat(8));
        assert!(serde_json::from_str::<Content>(&fine).is_ok());
    }

    #[test]
    fn a_block_without_a_type_is_an_error() {
        assert!(serde_json::from_str::<Content>(r#"[{"text":"x"}]"#).is_err());
        assert!(serde_json::from_str::<Content>(r#"[{"type":"text"}]"#).is_err());
        assert!(serde_json::from_str::<Content>(r#"[["text"]]"#).is_err());
        assert!(serde_json::from_str::<Content>("7").is_err());
    }
}

//! Parses message content in the formats of all supported systems.
//!
//! Blocks of Anthropic, OpenAI, Google and systems that wrap them become model blocks;
//! inlined files become attachments; blocks of unknown types are stored as they are.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;
use throughline_model::{Block, Content, Json, ToolCall, ToolResult};

use super::emitter::Emitter;
use crate::blocks;
use crate::json_string::parse_string;

/// Maximum nesting of tool results in tool results.
const MAX_NESTING: usize = 4;

/// The known fields of a block, as raw JSON.
#[derive(Default, Deserialize)]
struct RawBlock<'a> {
    #[serde(borrow)]
    r#type: Option<&'a RawValue>,
    #[serde(borrow)]
    text: Option<&'a RawValue>,
    #[serde(borrow)]
    thinking: Option<&'a RawValue>,
    #[serde(borrow, alias = "thinkingSignature", alias = "textSignature")]
    signature: Option<&'a RawValue>,
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    name: Option<&'a RawValue>,
    #[serde(borrow, alias = "arguments", alias = "args")]
    input: Option<&'a RawValue>,
    #[serde(borrow, alias = "tool_use_id", alias = "toolCallId")]
    call_id: Option<&'a RawValue>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    #[serde(borrow, alias = "isError")]
    is_error: Option<&'a RawValue>,
    #[serde(borrow)]
    source: Option<&'a RawValue>,
    #[serde(borrow)]
    data: Option<&'a RawValue>,
    #[serde(borrow, rename = "mimeType", alias = "mime_type")]
    media_type: Option<&'a RawValue>,
    #[serde(borrow)]
    image_url: Option<&'a RawValue>,
    #[serde(borrow, rename = "inlineData", alias = "inline_data")]
    inline_data: Option<&'a RawValue>,
    #[serde(borrow)]
    file_data: Option<&'a RawValue>,
    #[serde(borrow)]
    filename: Option<&'a RawValue>,
}

/// Returns a string value.
pub(super) fn to_text(raw: Option<&RawValue>) -> Option<String> {
    as_text(raw).map(Cow::into_owned)
}

/// Like [`to_text`], without a copy if possible.
pub(super) fn as_text(raw: Option<&RawValue>) -> Option<Cow<'_, str>> {
    parse_string(raw?)
}

/// Decodes a value; `None` if it has another type.
pub(super) fn decode<'a, T: Deserialize<'a>>(raw: Option<&'a RawValue>) -> Option<T> {
    serde_json::from_str(raw?.get()).ok()
}

/// Parses a string or an array of blocks.
pub(super) fn parse_content(emitter: &mut Emitter<'_>, raw: &RawValue) -> Content {
    parse_content_at(emitter, raw, 0)
}

/// Like [`parse_content`], for a value that may be missing.
pub(super) fn parse_optional_content(emitter: &mut Emitter<'_>, raw: Option<&RawValue>) -> Content {
    raw.map_or_else(Content::default, |raw| parse_content(emitter, raw))
}

fn parse_content_at(emitter: &mut Emitter<'_>, raw: &RawValue, depth: usize) -> Content {
    match raw.get().as_bytes().first() {
        Some(b'"') => Content::text(to_text(Some(raw)).unwrap_or_default()),
        Some(b'[') => {
            let elements: Vec<&RawValue> = serde_json::from_str(raw.get()).unwrap_or_default();
            let blocks = elements.into_iter();
            Content(blocks.map(|raw| parse_block(emitter, raw, depth)).collect())
        }
        Some(b'{') => Content(vec![parse_block(emitter, raw, depth)]),
        Some(b'n') | None => Content::default(),
        Some(_) => Content::text(raw.get()),
    }
}

fn parse_block(emitter: &mut Emitter<'_>, raw: &RawValue, depth: usize) -> Block {
    if raw.get().starts_with('"') {
        return Block::Text(to_text(Some(raw)).unwrap_or_default());
    }
    let known = serde_json::from_str::<RawBlock<'_>>(raw.get())
        .ok()
        .filter(|_| raw.get().starts_with('{'))
        .and_then(|members| parse_known_block(emitter, &members, depth));
    known.unwrap_or_else(|| foreign_block(raw.get()))
}

/// Wraps a block of another system unchanged.
pub(super) fn foreign_block(json: &str) -> Block {
    Json::parse(json).map_or_else(|_| Block::Text(json.to_owned()), Block::from_foreign)
}

fn parse_known_block(
    emitter: &mut Emitter<'_>,
    members: &RawBlock<'_>,
    depth: usize,
) -> Option<Block> {
    let type_of = as_text(members.r#type);
    Some(match type_of.as_deref() {
        Some("text" | "input_text" | "output_text" | "summary_text" | "reasoning_text") => {
            Block::Text(to_text(members.text)?)
        }
        // Google's parts have no type; their fields identify them.
        None if members.text.is_some() => Block::Text(to_text(members.text)?),
        Some("thinking" | "reasoning") => Block::Thinking {
            text: to_text(members.thinking.or(members.text))?,
            signature: to_text(members.signature),
        },
        Some("tool_use" | "tool_call" | "toolCall") => {
            let (input, _) = blocks::parse_arguments(members.input).ok()?;
            Block::ToolCall(ToolCall {
                id: to_text(members.id)?,
                name: to_text(members.name)?,
                input,
            })
        }
        Some("tool_result") if depth < MAX_NESTING => Block::ToolResult(ToolResult {
            call_id: to_text(members.call_id)?,
            content: members.content.map_or_else(Content::default, |raw| {
                parse_content_at(emitter, raw, depth + 1)
            }),
            is_error: decode(members.is_error).unwrap_or(false),
        }),
        Some("image" | "document" | "file" | "input_file") if members.source.is_some() => {
            #[derive(Deserialize)]
            struct Source {
                data: Option<String>,
                #[serde(alias = "mimeType")]
                media_type: Option<String>,
            }
            let source: Source = decode(members.source)?;
            emitter.attach_base64(&source.media_type?, &source.data?, None)?
        }
        Some("image") => {
            let media_type = to_text(members.media_type)?;
            emitter.attach_base64(&media_type, &to_text(members.data)?, None)?
        }
        Some("input_image" | "image_url") => {
            #[derive(Deserialize)]
            struct ImageUrl {
                url: String,
            }
            let address = to_text(members.image_url)
                .or_else(|| Some(decode::<ImageUrl>(members.image_url)?.url))?;
            emitter.attach_data_url(&address, None)?
        }
        Some("input_file") => {
            let name = to_text(members.filename);
            emitter.attach_data_url(&to_text(members.file_data)?, name.as_deref())?
        }
        None if members.inline_data.is_some() => {
            #[derive(Deserialize)]
            struct InlineData {
                data: String,
                #[serde(rename = "mimeType", alias = "mime_type")]
                media_type: String,
            }
            let inline: InlineData = decode(members.inline_data)?;
            emitter.attach_base64(&inline.media_type, &inline.data, None)?
        }
        _ => return None,
    })
}

/// Whether a text is valid JSON.
pub(super) fn is_json(text: &str) -> bool {
    serde_json::from_str::<&RawValue>(text.trim()).is_ok()
}

//! Parses message content blocks in our own format and in those of the large providers.
//!
//! Blocks of ours, of Anthropic and of OpenAI become model blocks; a block of any other
//! type is stored verbatim. Inputs and results of tools are not decoded, so their JSON may
//! be arbitrarily deep.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;
use throughline_model::{Attachment, Block, Content, Json, ToolCall, ToolResult};

use crate::LineError;
use crate::error::parser_message;
use crate::json_members::parse_object;
use crate::surrogate::replace_lone_surrogates;

/// Maximum nesting of tool results in tool results.
///
/// No known system nests them; deeper ones are stored as foreign blocks instead of
/// recursing until the stack overflows.
const MAX_NESTING: usize = 4;

/// Parses a string or an array of blocks.
pub(crate) fn parse_content(raw: &RawValue) -> Result<Content, LineError> {
    parse_content_at(raw, 0)
}

fn parse_content_at(raw: &RawValue, depth: usize) -> Result<Content, LineError> {
    let bad = |_| LineError::BadMember {
        member: "content",
        expected: "a string or an array of blocks",
    };
    if raw.get().starts_with('"') {
        let text: String = serde_json::from_str(raw.get()).map_err(bad)?;
        return Ok(Content::text(text));
    }
    let elements: Vec<&RawValue> = serde_json::from_str(raw.get()).map_err(bad)?;
    let mut blocks = Vec::with_capacity(elements.len());
    for (index, element) in elements.into_iter().enumerate() {
        let block = parse_block(element.get(), depth).map_err(|reason| LineError::BadBlock {
            index: index + 1,
            reason,
        })?;
        blocks.push(block);
    }
    Ok(Content(blocks))
}

fn parse_block(json: &str, depth: usize) -> Result<Block, String> {
    #[derive(Deserialize)]
    struct TypeTag<'a> {
        #[serde(borrow)]
        r#type: Cow<'a, str>,
    }
    #[derive(Deserialize)]
    struct Text {
        text: String,
    }
    #[derive(Deserialize)]
    struct Thinking {
        #[serde(alias = "thinking")]
        text: String,
        signature: Option<String>,
    }
    #[derive(Deserialize)]
    struct Call<'a> {
        id: String,
        name: String,
        #[serde(borrow)]
        input: Option<&'a RawValue>,
    }

    if json.starts_with('"') {
        let text = serde_json::from_str(json).map_err(|error| parser_message(&error))?;
        return Ok(Block::Text(text));
    }
    let tagged: TypeTag<'_> = parse_object(json)?;
    Ok(match &*tagged.r#type {
        "text" | "input_text" | "output_text" => Block::Text(parse_object::<Text>(json)?.text),
        "thinking" => {
            let Thinking { text, signature } = parse_object(json)?;
            Block::Thinking { text, signature }
        }
        "tool_call" | "tool_use" => {
            let Call { id, name, input } = parse_object(json)?;
            let input = input.map_or_else(empty_input, |raw| parse_json(raw.get()))?;
            Block::ToolCall(ToolCall { id, name, input })
        }
        "tool_result" if depth < MAX_NESTING => parse_tool_result(json, depth)?,
        "attachment" => Block::Attachment(parse_object::<Attachment>(json)?),
        _ => Block::from_foreign(parse_json(json)?),
    })
}

fn parse_tool_result(json: &str, depth: usize) -> Result<Block, String> {
    #[derive(Deserialize)]
    struct RawToolResult<'a> {
        #[serde(alias = "tool_use_id")]
        call_id: String,
        #[serde(borrow)]
        content: Option<&'a RawValue>,
        is_error: Option<bool>,
    }
    let answer: RawToolResult<'_> = parse_object(json)?;
    let content = match answer.content {
        Some(raw) => parse_content_at(raw, depth + 1).map_err(|error| error.to_string())?,
        None => Content::default(),
    };
    Ok(Block::ToolResult(ToolResult {
        call_id: answer.call_id,
        content,
        is_error: answer.is_error.unwrap_or(false),
    }))
}

/// Parses the tool calls of a chat message; also returns whether the JSON of any had to be
/// repaired.
///
/// Accepts both `{id, function: {name, arguments}}` and the flat `{id, name, args}`.
pub(crate) fn parse_tool_calls(raw: &RawValue) -> Result<(Vec<Block>, bool), LineError> {
    #[derive(Deserialize)]
    struct RawToolCall<'a> {
        id: Option<String>,
        name: Option<String>,
        #[serde(borrow, alias = "args", alias = "input")]
        arguments: Option<&'a RawValue>,
        #[serde(borrow)]
        function: Option<&'a RawValue>,
    }

    let bad = |_| LineError::BadMember {
        member: "tool_calls",
        expected: "an array of calls",
    };
    let elements: Vec<&RawValue> = serde_json::from_str(raw.get()).map_err(bad)?;
    let mut blocks = Vec::with_capacity(elements.len());
    let mut repaired = false;
    for (index, element) in elements.into_iter().enumerate() {
        let mut read = || {
            let outer: RawToolCall<'_> = parse_object(element.get())?;
            let inner: RawToolCall<'_> = outer
                .function
                .map_or_else(|| parse_object("{}"), |raw| parse_object(raw.get()))?;
            let name = inner.name.or(outer.name).ok_or("it has no name")?;
            let (input, mended) = parse_arguments(inner.arguments.or(outer.arguments))?;
            repaired |= mended;
            Ok(Block::ToolCall(ToolCall {
                id: outer.id.unwrap_or_default(),
                name,
                input,
            }))
        };
        blocks.push(read().map_err(|reason: String| LineError::BadToolCall {
            index: index + 1,
            reason,
        })?);
    }
    Ok((blocks, repaired))
}

/// Parses JSON, or JSON in a string; a string without valid JSON stays a string.
pub(crate) fn parse_arguments(raw: Option<&RawValue>) -> Result<(Json, bool), String> {
    let Some(raw) = raw else {
        return Ok((empty_input()?, false));
    };
    if !raw.get().starts_with('"') {
        return Ok((parse_json(raw.get())?, false));
    }
    let text: String = serde_json::from_str(raw.get()).map_err(|error| parser_message(&error))?;
    if text.trim().is_empty() {
        return Ok((empty_input()?, false));
    }
    let mended = replace_lone_surrogates(&text);
    match Json::parse(mended.as_deref().unwrap_or(&text)) {
        Ok(input) => Ok((input, mended.is_some())),
        Err(_) => Ok((parse_json(raw.get())?, false)),
    }
}

fn empty_input() -> Result<Json, String> {
    parse_json("{}")
}

fn parse_json(json: &str) -> Result<Json, String> {
    Json::parse(json).map_err(|error| parser_message(&error))
}

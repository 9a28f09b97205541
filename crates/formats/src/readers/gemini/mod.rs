//! Reads Gemini CLI sessions: JSON Lines, or one document in older versions.
//!
//! A message is written again when it changes, and its last version counts. A file is
//! therefore read twice: first to index the messages, then to emit them. The result of a
//! tool is emitted separately from its call and only when it is final, so that a session
//! that is read while in progress needs no corrections later.

mod message_log;

use std::fs::File;
use std::io::BufReader;

use serde::Deserialize;
use serde_json::value::RawValue;
use throughline_model::{
    Block, Content, EntryIdentity, ImportEvent, IncomingOrigin, Json, Message, Role, Timestamp,
    ToolCall, ToolResult, Usage,
};

use super::emitter::Emitter;
use super::message_content::{decode, foreign_block, parse_optional_content, to_text};
use super::{ReadError, is_json_lines, source_document};
use crate::json_members;
use crate::line_reader::LineReader;
use crate::surrogate::replace_lone_surrogates;
use message_log::{Event, FileWindow, MessageLog, SourceText, offset_within};

/// Prefix of user messages that the program generated.
const INJECTED_PREFIX: &str = "<session_context>";

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawMessage<'a> {
    id: Option<String>,
    #[serde(borrow)]
    timestamp: Option<&'a RawValue>,
    r#type: String,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    #[serde(borrow)]
    tool_calls: Option<&'a RawValue>,
    #[serde(borrow)]
    thoughts: Option<&'a RawValue>,
    tokens: Option<RawUsage>,
    model: Option<String>,
}

#[derive(Deserialize)]
#[serde(default)]
#[derive(Default)]
struct RawUsage {
    input: u64,
    output: u64,
    cached: u64,
    thoughts: u64,
    tool: u64,
}

#[derive(Deserialize)]
struct RawToolCall<'a> {
    id: Option<String>,
    name: String,
    args: Option<Json>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    status: Option<String>,
    #[serde(borrow)]
    timestamp: Option<&'a RawValue>,
}

pub(super) fn read(emitter: &mut Emitter<'_>) -> Result<(), ReadError> {
    let gathered = if is_json_lines(emitter.path) {
        Some(read_lines(emitter)?)
    } else {
        read_legacy(emitter)?
    };
    if let Some((log, mut kept)) = gathered {
        emit_log(emitter, &log, &mut kept)?;
    }
    Ok(())
}

/// Indexes the lines of a session.
fn read_lines(emitter: &mut Emitter<'_>) -> Result<(MessageLog, SourceText), ReadError> {
    let path = emitter.path;
    let failed = |error| ReadError::io(path, error);
    let file = File::open(path).map_err(failed)?;
    let mut lines = LineReader::new(BufReader::with_capacity(1 << 18, &file));
    let mut log = MessageLog::default();
    while let Some(next) = lines.next_with_position(|at, line| {
        let mended = replace_lone_surrogates(line);
        let line = mended.as_deref().unwrap_or(line);
        Ok(log.add_record(emitter, at.number, at.offset, line))
    }) {
        let (place, read) = next.map_err(failed)?;
        match read {
            Ok(Ok(())) => {}
            Ok(Err(_)) if !lines.is_terminated() => {
                emitter.emit_damaged(place, "the last line is not complete");
            }
            Ok(Err(wrong)) => emitter.emit_damaged(place, wrong),
            Err(error) => emitter.emit_damaged(place, error.to_string()),
        }
        emitter.check_stopped()?;
    }
    Ok((log, SourceText::File(FileWindow::new(file))))
}

/// Indexes the single document of older versions.
fn read_legacy(emitter: &mut Emitter<'_>) -> Result<Option<(MessageLog, SourceText)>, ReadError> {
    #[derive(Deserialize)]
    struct Document<'a> {
        #[serde(borrow)]
        messages: Vec<&'a RawValue>,
    }
    let Some(whole) = source_document::read_source_text(emitter)? else {
        return Ok(None);
    };
    let mut log = MessageLog::new(source_document::parse(emitter, &whole)?);
    let document: Document<'_> = source_document::parse(emitter, &whole)?;
    for (place, message) in (1..).zip(document.messages) {
        let text = message.get();
        if let Err(wrong) = log.add_record(emitter, place, offset_within(&whole, text), text) {
            emitter.emit_damaged(place, wrong);
        }
    }
    Ok(Some((log, SourceText::Whole(whole))))
}

fn emit_log(
    emitter: &mut Emitter<'_>,
    log: &MessageLog,
    kept: &mut SourceText,
) -> Result<(), ReadError> {
    let path = emitter.path;
    let head = &log.metadata;
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let id = head.session_id.clone();
    let mut found = emitter.new_session(id.unwrap_or_else(|| stem.into_owned()));
    found.at = head.start_time.as_ref().and_then(|at| at.parse().ok());
    let folders = head.directories.as_ref();
    found.workspace = folders.and_then(|all| all.first().cloned());
    if found.workspace.is_none() {
        found.workspace = project_root(emitter);
    }
    if head.kind.as_deref() == Some("subagent") {
        let parent = path.parent().and_then(|folder| folder.file_name());
        found.origin = parent.map(|parent| IncomingOrigin::Started {
            session: parent.to_string_lossy().into_owned(),
        });
    }
    emitter.emit_session(found);
    if let Some(title) = &head.summary {
        emitter.emit_title(1, "summary", None, title, false);
    }
    let last = log.messages.len().saturating_sub(1);
    let failed = |error| ReadError::io(path, error);
    for event in &log.events {
        match event {
            Event::Message(index) => {
                let written = &log.messages[*index];
                let text = kept.read_text(&written.at).map_err(failed)?;
                emit_message(emitter, written.place, &text, *index == last);
            }
            Event::Rewind(place, to) => {
                let to = match to {
                    Some(index) => {
                        let written = &log.messages[*index];
                        let text = kept.read_text(&written.at).map_err(failed)?;
                        Some(last_entry_id(written.place, &text))
                    }
                    None => None,
                };
                let identity = EntryIdentity::Position(format!("rewind:{place}"));
                emitter.emit_event(*place, identity, None, ImportEvent::Rewound { to });
            }
        }
        emitter.check_stopped()?;
    }
    Ok(())
}

/// Returns the project's folder, which is in a file two folders above a session's, or three
/// above a sub-agent's.
fn project_root(emitter: &mut Emitter<'_>) -> Option<String> {
    let path = emitter.path;
    let above = path.ancestors().skip(2).take(2);
    let mut texts = above.filter_map(|folder| {
        let text = source_document::read_sibling_text(emitter, &folder.join(".project_root"))?;
        Some(text.trim().to_owned()).filter(|text| !text.is_empty())
    });
    texts.next()
}

/// Returns the id of the last entry of a message: the result of its last call.
fn last_entry_id(place: u64, line: &str) -> String {
    let parsed: Option<RawMessage<'_>> = serde_json::from_str(line).ok();
    let own = parsed.as_ref().and_then(|parsed| parsed.id.clone());
    let id = own.unwrap_or_else(|| format!("#{place}"));
    let calls = parsed.and_then(|parsed| decode::<Vec<RawToolCall<'_>>>(parsed.tool_calls));
    match calls.as_deref().and_then(<[_]>::last) {
        Some(RawToolCall { id: Some(call), .. }) => format!("{id}/{call}"),
        _ => id,
    }
}

fn emit_message(emitter: &mut Emitter<'_>, place: u64, line: &str, last: bool) {
    let parsed: RawMessage<'_> = match serde_json::from_str(line) {
        Ok(parsed) => parsed,
        Err(error) => return emitter.emit_damaged(place, error.to_string()),
    };
    let at = json_members::parse_time(parsed.timestamp).ok().flatten();
    match parsed.r#type.as_str() {
        "user" => {
            let content = parse_optional_content(emitter, parsed.content);
            let injected = content.to_text().starts_with(INJECTED_PREFIX);
            let role = if injected { Role::System } else { Role::User };
            emitter.emit_message(place, parsed.id, at, Message::new(role, content));
        }
        "gemini" => emit_answer(emitter, place, &parsed, at, last),
        "info" | "error" | "warning" => {
            let content = parse_optional_content(emitter, parsed.content);
            emitter.emit_message(place, parsed.id, at, Message::new(Role::System, content));
        }
        _ => emitter.emit_foreign(place, parsed.id, at, line),
    }
}

fn emit_answer(
    emitter: &mut Emitter<'_>,
    place: u64,
    parsed: &RawMessage<'_>,
    at: Option<Timestamp>,
    last: bool,
) {
    #[derive(Deserialize)]
    struct Thought {
        subject: Option<String>,
        description: Option<String>,
    }
    let mut blocks = Vec::new();
    for thought in decode::<Vec<Thought>>(parsed.thoughts).unwrap_or_default() {
        let parts = [thought.subject, thought.description];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        blocks.push(Block::Thinking {
            text: parts.join("\n"),
            signature: None,
        });
    }
    let content = parse_optional_content(emitter, parsed.content).0;
    blocks.extend(
        content
            .into_iter()
            .filter(|block| block.as_text() != Some("")),
    );
    let calls: Vec<&RawValue> = decode(parsed.tool_calls).unwrap_or_default();
    let mut results = Vec::new();
    for (index, raw) in calls.iter().enumerate() {
        let Some(call) = decode::<RawToolCall<'_>>(Some(raw)) else {
            blocks.push(foreign_block(raw.get()));
            continue;
        };
        let id = call.id.clone().unwrap_or_else(|| format!("call-{index}"));
        let input = call.args.clone().or_else(|| Json::parse("{}").ok());
        if let Some(input) = input {
            blocks.push(Block::ToolCall(ToolCall {
                id: id.clone(),
                name: call.name.clone(),
                input,
            }));
        }
        let finished = matches!(
            call.status.as_deref(),
            Some("success" | "error" | "cancelled") | None
        );
        // A call that is still running at the end of the file may yet get a result.
        if finished || !last {
            results.push((id, call));
        }
    }
    let mut message = Message::new(Role::Assistant, Content(blocks));
    message.model.clone_from(&parsed.model);
    message.usage = parsed.tokens.as_ref().map(|tokens| Usage {
        input: tokens.input + tokens.tool,
        output: tokens.output + tokens.thoughts,
        cache_read: tokens.cached,
        cache_write: 0,
    });
    emitter.emit_message(place, parsed.id.clone(), at, message);
    for (call_id, call) in results {
        let own = parsed.id.as_deref().unwrap_or_default();
        let when = json_members::parse_time(call.timestamp)
            .ok()
            .flatten()
            .or(at);
        let is_error = !matches!(call.status.as_deref(), Some("success") | None);
        let content = parse_tool_result(emitter, call.result);
        let id = format!("{own}/{call_id}");
        let result = Block::ToolResult(ToolResult {
            call_id,
            content,
            is_error,
        });
        let message = Message::new(Role::Tool, Content(vec![result]));
        emitter.emit_message(place, Some(id), when, message);
    }
}

/// Parses the result of a tool: Google's parts with a function response.
fn parse_tool_result(emitter: &mut Emitter<'_>, raw: Option<&RawValue>) -> Content {
    #[derive(Deserialize)]
    struct FunctionPart<T> {
        #[serde(rename = "functionResponse")]
        function: Function<T>,
    }
    #[derive(Deserialize)]
    struct Function<T> {
        response: T,
    }
    #[derive(Deserialize)]
    struct Response<'a> {
        #[serde(borrow, alias = "error")]
        output: &'a RawValue,
    }
    let parsed = |part: FunctionPart<Response<'_>>| to_text(Some(part.function.response.output));
    // Usually all parts are texts, which are parsed without inspecting each one.
    let parts: Option<Vec<FunctionPart<Response<'_>>>> = decode(raw);
    let texts: Option<Vec<String>> =
        parts.and_then(|parts| parts.into_iter().map(parsed).collect());
    if let Some(texts) = texts {
        return Content(texts.into_iter().map(Block::Text).collect());
    }
    let parts: Option<Vec<&RawValue>> = decode(raw);
    let Some(parts) = parts else {
        return parse_optional_content(emitter, raw);
    };
    let mut blocks = Vec::new();
    for part in parts {
        if let Some(text) = decode(Some(part)).and_then(parsed) {
            blocks.push(Block::Text(text));
        } else if let Some(part) = decode::<FunctionPart<&RawValue>>(Some(part)) {
            blocks.push(foreign_block(part.function.response.get()));
        } else {
            blocks.extend(parse_optional_content(emitter, Some(part)).0);
        }
    }
    Content(blocks)
}

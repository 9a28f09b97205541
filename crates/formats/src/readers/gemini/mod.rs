//! Gemini CLI: JSON Lines a session, or one document in older versions.
//!
//! Messages are written again when they change and the last writing counts, so that a
//! session's file is gone through before it is told: once for where everything is, and
//! once for what it says. What a tool answered is told apart from its call
//! and only once it is final: a session that is read while it goes on need not be told
//! otherwise later.

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

/// How a message begins that the program says in the person's name.
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

pub(super) fn read(telling: &mut Emitter<'_>) -> Result<(), ReadError> {
    let gathered = if is_json_lines(telling.path) {
        Some(read_lines(telling)?)
    } else {
        read_legacy(telling)?
    };
    if let Some((log, mut kept)) = gathered {
        emit_log(telling, &log, &mut kept)?;
    }
    Ok(())
}

/// The lines of a session.
fn read_lines(telling: &mut Emitter<'_>) -> Result<(MessageLog, SourceText), ReadError> {
    let path = telling.path;
    let failed = |error| ReadError::io(path, error);
    let file = File::open(path).map_err(failed)?;
    let mut lines = LineReader::new(BufReader::with_capacity(1 << 18, &file));
    let mut log = MessageLog::default();
    while let Some(next) = lines.next_with_position(|at, line| {
        let mended = replace_lone_surrogates(line);
        let line = mended.as_deref().unwrap_or(line);
        Ok(log.add_record(telling, at.number, at.offset, line))
    }) {
        let (place, read) = next.map_err(failed)?;
        match read {
            Ok(Ok(())) => {}
            Ok(Err(_)) if !lines.is_terminated() => {
                telling.emit_damaged(place, "the last line is not complete");
            }
            Ok(Err(wrong)) => telling.emit_damaged(place, wrong),
            Err(error) => telling.emit_damaged(place, error.to_string()),
        }
        telling.check_stopped()?;
    }
    Ok((log, SourceText::File(FileWindow::new(file))))
}

/// The one document of older versions.
fn read_legacy(telling: &mut Emitter<'_>) -> Result<Option<(MessageLog, SourceText)>, ReadError> {
    #[derive(Deserialize)]
    struct Document<'a> {
        #[serde(borrow)]
        messages: Vec<&'a RawValue>,
    }
    let Some(whole) = source_document::read_source_text(telling)? else {
        return Ok(None);
    };
    let mut log = MessageLog::new(source_document::parse(telling, &whole)?);
    let document: Document<'_> = source_document::parse(telling, &whole)?;
    for (place, message) in (1..).zip(document.messages) {
        let text = message.get();
        if let Err(wrong) = log.add_record(telling, place, offset_within(&whole, text), text) {
            telling.emit_damaged(place, wrong);
        }
    }
    Ok(Some((log, SourceText::Whole(whole))))
}

fn emit_log(
    telling: &mut Emitter<'_>,
    log: &MessageLog,
    kept: &mut SourceText,
) -> Result<(), ReadError> {
    let path = telling.path;
    let head = &log.metadata;
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let id = head.session_id.clone();
    let mut found = telling.new_session(id.unwrap_or_else(|| stem.into_owned()));
    found.at = head.start_time.as_ref().and_then(|at| at.parse().ok());
    let folders = head.directories.as_ref();
    found.workspace = folders.and_then(|all| all.first().cloned());
    if found.workspace.is_none() {
        found.workspace = project_root(telling);
    }
    if head.kind.as_deref() == Some("subagent") {
        let parent = path.parent().and_then(|folder| folder.file_name());
        found.origin = parent.map(|parent| IncomingOrigin::Started {
            session: parent.to_string_lossy().into_owned(),
        });
    }
    telling.emit_session(found);
    if let Some(title) = &head.summary {
        telling.emit_title(1, "summary", None, title, false);
    }
    let last = log.messages.len().saturating_sub(1);
    let failed = |error| ReadError::io(path, error);
    for event in &log.events {
        match event {
            Event::Message(index) => {
                let written = &log.messages[*index];
                let text = kept.read_text(&written.at).map_err(failed)?;
                emit_message(telling, written.place, &text, *index == last);
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
                telling.emit_event(*place, identity, None, ImportEvent::Rewound { to });
            }
        }
        telling.check_stopped()?;
    }
    Ok(())
}

/// The folder of the project, as it stands in a file two folders above a session's, or three
/// above a sub-agent's.
fn project_root(telling: &mut Emitter<'_>) -> Option<String> {
    let path = telling.path;
    let above = path.ancestors().skip(2).take(2);
    let mut texts = above.filter_map(|folder| {
        let text = source_document::read_sibling_text(telling, &folder.join(".project_root"))?;
        Some(text.trim().to_owned()).filter(|text| !text.is_empty())
    });
    texts.next()
}

/// The last entry that a message is told as: the result of its last call.
fn last_entry_id(place: u64, line: &str) -> String {
    let said: Option<RawMessage<'_>> = serde_json::from_str(line).ok();
    let own = said.as_ref().and_then(|said| said.id.clone());
    let id = own.unwrap_or_else(|| format!("#{place}"));
    let calls = said.and_then(|said| decode::<Vec<RawToolCall<'_>>>(said.tool_calls));
    match calls.as_deref().and_then(<[_]>::last) {
        Some(RawToolCall { id: Some(call), .. }) => format!("{id}/{call}"),
        _ => id,
    }
}

fn emit_message(telling: &mut Emitter<'_>, place: u64, line: &str, last: bool) {
    let said: RawMessage<'_> = match serde_json::from_str(line) {
        Ok(said) => said,
        Err(error) => return telling.emit_damaged(place, error.to_string()),
    };
    let at = json_members::parse_time(said.timestamp).ok().flatten();
    match said.r#type.as_str() {
        "user" => {
            let content = parse_optional_content(telling, said.content);
            let injected = content.to_text().starts_with(INJECTED_PREFIX);
            let role = if injected { Role::System } else { Role::User };
            telling.emit_message(place, said.id, at, Message::new(role, content));
        }
        "gemini" => emit_answer(telling, place, &said, at, last),
        "info" | "error" | "warning" => {
            let content = parse_optional_content(telling, said.content);
            telling.emit_message(place, said.id, at, Message::new(Role::System, content));
        }
        _ => telling.emit_foreign(place, said.id, at, line),
    }
}

fn emit_answer(
    telling: &mut Emitter<'_>,
    place: u64,
    said: &RawMessage<'_>,
    at: Option<Timestamp>,
    last: bool,
) {
    #[derive(Deserialize)]
    struct Thought {
        subject: Option<String>,
        description: Option<String>,
    }
    let mut blocks = Vec::new();
    for thought in decode::<Vec<Thought>>(said.thoughts).unwrap_or_default() {
        let parts = [thought.subject, thought.description];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        blocks.push(Block::Thinking {
            text: parts.join("\n"),
            signature: None,
        });
    }
    let content = parse_optional_content(telling, said.content).0;
    blocks.extend(
        content
            .into_iter()
            .filter(|block| block.as_text() != Some("")),
    );
    let calls: Vec<&RawValue> = decode(said.tool_calls).unwrap_or_default();
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
        // One that still runs at the end of the file may yet be answered.
        if finished || !last {
            results.push((id, call));
        }
    }
    let mut message = Message::new(Role::Assistant, Content(blocks));
    message.model.clone_from(&said.model);
    message.usage = said.tokens.as_ref().map(|tokens| Usage {
        input: tokens.input + tokens.tool,
        output: tokens.output + tokens.thoughts,
        cache_read: tokens.cached,
        cache_write: 0,
    });
    telling.emit_message(place, said.id.clone(), at, message);
    for (call_id, call) in results {
        let own = said.id.as_deref().unwrap_or_default();
        let when = json_members::parse_time(call.timestamp)
            .ok()
            .flatten()
            .or(at);
        let is_error = !matches!(call.status.as_deref(), Some("success") | None);
        let content = parse_tool_result(telling, call.result);
        let id = format!("{own}/{call_id}");
        let result = Block::ToolResult(ToolResult {
            call_id,
            content,
            is_error,
        });
        let message = Message::new(Role::Tool, Content(vec![result]));
        telling.emit_message(place, Some(id), when, message);
    }
}

/// What a tool answered: Google's parts around a function's response.
fn parse_tool_result(telling: &mut Emitter<'_>, raw: Option<&RawValue>) -> Content {
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
    let said = |part: FunctionPart<Response<'_>>| to_text(Some(part.function.response.output));
    // As a rule all of it is texts, which are found without looking at each part by itself.
    let parts: Option<Vec<FunctionPart<Response<'_>>>> = decode(raw);
    let texts: Option<Vec<String>> = parts.and_then(|parts| parts.into_iter().map(said).collect());
    if let Some(texts) = texts {
        return Content(texts.into_iter().map(Block::Text).collect());
    }
    let parts: Option<Vec<&RawValue>> = decode(raw);
    let Some(parts) = parts else {
        return parse_optional_content(telling, raw);
    };
    let mut blocks = Vec::new();
    for part in parts {
        if let Some(text) = decode(Some(part)).and_then(said) {
            blocks.push(Block::Text(text));
        } else if let Some(part) = decode::<FunctionPart<&RawValue>>(Some(part)) {
            blocks.push(foreign_block(part.function.response.get()));
        } else {
            blocks.extend(parse_optional_content(telling, Some(part)).0);
        }
    }
    Content(blocks)
}

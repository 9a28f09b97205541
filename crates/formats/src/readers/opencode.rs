//! Reads OpenCode sessions: a database, `opencode export`, or in older versions one file
//! per part.
//!
//! An answer is emitted once it is complete, since its parts change before that.

use std::collections::HashMap;
use std::path::Path;

use serde::Deserialize;
use serde_json::value::RawValue;
use throughline_model::{
    Block, Body, Content, EntryIdentity, ImportEvent, IncomingOrigin, Json, Message, Role, Summary,
    Timestamp, ToolCall, ToolResult, Usage,
};

use super::emitter::Emitter;
use super::foreign_database::ForeignDatabase;
use super::message_content::{foreign_block, to_text};
use super::{ReadError, SourceCursor, source_document};

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawSessionInfo {
    id: String,
    #[serde(rename = "parentID")]
    parent: Option<String>,
    directory: Option<String>,
    title: Option<String>,
    time: Times,
    revert: Option<Revert>,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(default)]
struct Times {
    created: Option<i64>,
    completed: Option<i64>,
    archived: Option<i64>,
}

#[derive(Deserialize)]
struct Revert {
    #[serde(rename = "messageID")]
    message: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct MessageInfo {
    id: Option<String>,
    role: String,
    time: Times,
    #[serde(rename = "modelID")]
    model: Option<String>,
    #[serde(rename = "providerID")]
    provider: Option<String>,
    summary: Option<serde_json::Value>,
    tokens: Option<RawUsage>,
    error: Option<serde_json::Value>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawUsage {
    input: u64,
    output: u64,
    reasoning: u64,
    cache: CacheTokens,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct CacheTokens {
    read: u64,
    write: u64,
}

#[derive(Deserialize)]
struct RawPart<'a> {
    #[serde(borrow)]
    r#type: Option<&'a RawValue>,
    #[serde(borrow)]
    text: Option<&'a RawValue>,
    #[serde(borrow)]
    mime: Option<&'a RawValue>,
    #[serde(borrow)]
    url: Option<&'a RawValue>,
    #[serde(borrow)]
    filename: Option<&'a RawValue>,
    #[serde(borrow, rename = "callID")]
    call: Option<&'a RawValue>,
    #[serde(borrow)]
    tool: Option<&'a RawValue>,
    #[serde(borrow)]
    state: Option<ToolState<'a>>,
    #[serde(borrow)]
    tail_start_id: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct ToolState<'a> {
    status: Option<String>,
    input: Option<Json>,
    #[serde(borrow)]
    output: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

/// A message and its parts, as JSON.
struct RawMessage {
    id: String,
    info: String,
    parts: Vec<String>,
}

/// A session and its messages.
struct Session {
    info: RawSessionInfo,
    messages: Vec<RawMessage>,
}

pub(super) fn read(
    emitter: &mut Emitter<'_>,
    from: Option<&SourceCursor>,
) -> Result<Option<SourceCursor>, ReadError> {
    let path = emitter.path;
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("db") => read_database(emitter, from),
        // Older versions store sessions in `storage/session/<project>/`.
        Some("json")
            if path
                .ancestors()
                .nth(3)
                .is_some_and(|p| p.ends_with("storage")) =>
        {
            read_legacy(emitter)
        }
        _ => read_export(emitter),
    }
    .map(|bookmark| bookmark.filter(|_| path.extension().is_some_and(|e| e == "db")))
}

fn read_database(
    emitter: &mut Emitter<'_>,
    from: Option<&SourceCursor>,
) -> Result<Option<SourceCursor>, ReadError> {
    let (database, mut until) = ForeignDatabase::open(emitter, from)?;
    let since = until.until;
    let sessions: Vec<(i64, RawSessionInfo)> = database.query_rows(
        emitter,
        "SELECT id, parent_id, directory, title, time_created, time_updated, time_archived, revert
         FROM session WHERE time_updated >= ?1 ORDER BY time_created, id",
        &[&since],
        |row| {
            let revert: Option<String> = row.get(7)?;
            Ok((
                row.get(5)?,
                RawSessionInfo {
                    id: row.get(0)?,
                    parent: row.get(1)?,
                    directory: row.get(2)?,
                    title: row.get(3)?,
                    time: Times {
                        created: row.get(4)?,
                        completed: None,
                        archived: row.get(6)?,
                    },
                    revert: revert.and_then(|json| serde_json::from_str(&json).ok()),
                },
            ))
        },
    )?;
    for (updated, info) in sessions {
        until.until = until.until.max(updated);
        let mut messages: Vec<RawMessage> = database.query_rows(
            emitter,
            "SELECT id, data FROM message WHERE session_id = ?1 ORDER BY time_created, id",
            &[&info.id],
            |row| {
                Ok(RawMessage {
                    id: row.get(0)?,
                    info: row.get(1)?,
                    parts: Vec::new(),
                })
            },
        )?;
        let index: HashMap<String, usize> = messages
            .iter()
            .enumerate()
            .map(|(index, message)| (message.id.clone(), index))
            .collect();
        let parts: Vec<(String, String)> = database.query_rows(
            emitter,
            "SELECT message_id, data FROM part WHERE session_id = ?1 ORDER BY id",
            &[&info.id],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )?;
        for (message, part) in parts {
            if let Some(index) = index.get(&message) {
                messages[*index].parts.push(part);
            }
        }
        if messages.is_empty() && database.has_columns("session_message", &["seq"]) {
            messages = read_session_messages(emitter, &database, &info.id)?;
        }
        emit_session(emitter, Session { info, messages });
        emitter.check_stopped()?;
    }
    Ok(until.to_cursor())
}

/// Reads messages of the newer table, which contain their parts.
fn read_session_messages(
    emitter: &mut Emitter<'_>,
    database: &ForeignDatabase,
    session: &str,
) -> Result<Vec<RawMessage>, ReadError> {
    #[derive(Deserialize)]
    struct EmbeddedMessage<'a> {
        #[serde(borrow)]
        parts: Option<Vec<&'a RawValue>>,
        #[serde(borrow)]
        info: Option<&'a RawValue>,
    }
    let rows: Vec<(String, String, String)> = database.query_rows(
        emitter,
        "SELECT id, type, data FROM session_message WHERE session_id = ?1 ORDER BY seq",
        &[&session],
        |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
    )?;
    let mut messages = Vec::new();
    for (place, (id, type_of, data)) in rows.into_iter().enumerate() {
        let inside: Option<EmbeddedMessage<'_>> = serde_json::from_str(&data).ok();
        let parts = inside.as_ref().and_then(|inside| inside.parts.as_ref());
        let Some(parts) = parts else {
            emitter.emit_skipped(place as u64 + 1, format!("session_message {type_of}"));
            continue;
        };
        let parts = parts.iter().map(|raw| raw.get().to_owned()).collect();
        let info = inside.as_ref().and_then(|inside| inside.info);
        let info = info.map_or_else(|| data.clone(), |raw| raw.get().to_owned());
        messages.push(RawMessage { id, info, parts });
    }
    Ok(messages)
}

/// Reads the output of `opencode export`.
fn read_export(emitter: &mut Emitter<'_>) -> Result<Option<SourceCursor>, ReadError> {
    #[derive(Deserialize)]
    struct Export<'a> {
        info: RawSessionInfo,
        #[serde(borrow)]
        messages: Vec<ExportedMessage<'a>>,
    }
    #[derive(Deserialize)]
    struct ExportedMessage<'a> {
        #[serde(borrow)]
        info: &'a RawValue,
        #[serde(borrow)]
        parts: Vec<&'a RawValue>,
    }
    let Some(whole) = source_document::read_source_text(emitter)? else {
        return Ok(None);
    };
    // The command may print a message before it.
    let start = whole.find('{').unwrap_or(0);
    let export: Export<'_> = source_document::parse(emitter, &whole[start..])?;
    let messages = export.messages.into_iter().map(|message| RawMessage {
        id: parse_id(message.info.get()),
        info: message.info.get().to_owned(),
        parts: message
            .parts
            .iter()
            .map(|raw| raw.get().to_owned())
            .collect(),
    });
    let messages = messages.collect();
    emit_session(
        emitter,
        Session {
            info: export.info,
            messages,
        },
    );
    Ok(None)
}

/// Reads the older layout: `session/<project>/<id>.json`, `message/<session>/*.json`,
/// `part/<message>/*.json`.
fn read_legacy(emitter: &mut Emitter<'_>) -> Result<Option<SourceCursor>, ReadError> {
    let path = emitter.path;
    let Some(whole) = source_document::read_source_text(emitter)? else {
        return Ok(None);
    };
    let info: RawSessionInfo = source_document::parse(emitter, &whole)?;
    let storage = path.ancestors().nth(3).unwrap_or(path).to_owned();
    let mut messages = Vec::new();
    for message in read_json_files(emitter, &storage.join("message").join(&info.id)) {
        let id = parse_id(&message);
        let parts = read_json_files(emitter, &storage.join("part").join(&id));
        messages.push(RawMessage {
            id,
            info: message,
            parts,
        });
    }
    emit_session(emitter, Session { info, messages });
    Ok(None)
}

/// Reads the JSON files of a folder, sorted by name.
fn read_json_files(emitter: &mut Emitter<'_>, folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<_> = entries.map(|entry| entry.path()).collect();
    paths.retain(|path| {
        path.extension()
            .is_some_and(|extension| extension == "json")
    });
    paths.sort();
    let texts = paths.iter();
    texts
        .filter_map(|path| source_document::read_sibling_text(emitter, path))
        .collect()
}

fn parse_id(json: &str) -> String {
    #[derive(Deserialize)]
    struct Identified {
        id: Option<String>,
    }
    let named: Option<Identified> = serde_json::from_str(json).ok();
    named.and_then(|named| named.id).unwrap_or_default()
}

fn from_millis(millis: Option<i64>) -> Option<Timestamp> {
    millis.and_then(|millis| Timestamp::from_millisecond(millis).ok())
}

fn emit_session(emitter: &mut Emitter<'_>, session: Session) {
    let Session { info, messages } = session;
    let mut found = emitter.new_session(&info.id);
    found.at = from_millis(info.time.created);
    found.workspace.clone_from(&info.directory);
    found.origin = info
        .parent
        .clone()
        .map(|session| IncomingOrigin::Started { session });
    emitter.emit_session(found);
    if let Some(title) = info
        .title
        .as_deref()
        .filter(|t| !t.starts_with("New session"))
    {
        emitter.emit_title(0, &format!("title:{title}"), None, title, false);
    }
    let last = messages.len().saturating_sub(1);
    let mut before = None;
    let mut reverted = None;
    let mut keeps = None;
    for (index, message) in messages.iter().enumerate() {
        if info
            .revert
            .as_ref()
            .is_some_and(|revert| revert.message == message.id)
        {
            let identity = EntryIdentity::Position(format!("revert:{}", message.id));
            // Emitted at the end, after all the messages that it reverts.
            reverted = Some((identity, before.clone()));
        }
        let place = index as u64 + 1;
        before = emit_message(emitter, place, message, index == last, &mut keeps).or(before);
    }
    if let Some((identity, to)) = reverted {
        let place = messages.len() as u64;
        emitter.emit_event(place, identity, None, ImportEvent::Rewound { to });
    }
    if info.time.archived.is_some() {
        emitter.emit_body(
            0,
            "archived",
            from_millis(info.time.archived),
            Body::Archived,
        );
    }
}

/// Emits a message and returns the id of its last entry. A compaction request names the first
/// message that stays verbatim (`keeps`), which is emitted with the summary that follows.
fn emit_message(
    emitter: &mut Emitter<'_>,
    place: u64,
    whole: &RawMessage,
    last: bool,
    keeps: &mut Option<String>,
) -> Option<String> {
    let parsed: MessageInfo = match serde_json::from_str(&whole.info) {
        Ok(parsed) => parsed,
        Err(error) => {
            emitter.emit_damaged(place, error.to_string());
            return None;
        }
    };
    let id = match (&parsed.id, whole.id.as_str()) {
        (Some(id), "") => id.clone(),
        (_, id) => id.to_owned(),
    };
    let at = from_millis(parsed.time.created);
    let assistant = parsed.role == "assistant";
    if assistant && last && parsed.time.completed.is_none() && parsed.error.is_none() {
        emitter.emit_skipped(place, "answer in progress");
        return None;
    }
    let (mut blocks, mut results) = (Vec::new(), Vec::new());
    for raw in &whole.parts {
        parse_part(emitter, place, raw, &mut blocks, &mut results, keeps);
    }
    let content = Content(blocks);
    if assistant
        && parsed
            .summary
            .as_ref()
            .is_some_and(|s| s == &serde_json::Value::Bool(true))
    {
        let what = ImportEvent::Compacted {
            summary: Summary {
                background: content.to_text().into_owned(),
                ..Summary::default()
            },
            by: parsed
                .model
                .unwrap_or_else(|| emitter.format.name().to_owned()),
            keeps: keeps.take(),
            usage: parsed.tokens.as_ref().map(to_usage),
        };
        emitter.emit_event(place, EntryIdentity::External(id.clone()), at, what);
        return Some(id);
    }
    if content.0.is_empty() && results.is_empty() && parsed.error.is_none() {
        emitter.emit_skipped(place, "message without content");
        return None;
    }
    let mut message = Message::new(
        if assistant {
            Role::Assistant
        } else {
            Role::User
        },
        content,
    );
    if assistant {
        message.model = parsed.model;
        message.provider = parsed.provider;
        message.usage = parsed.tokens.as_ref().map(to_usage);
        message.incomplete = parsed.error.is_some();
        message.latency_ms = match (parsed.time.created, parsed.time.completed) {
            (Some(from), Some(to)) => to
                .checked_sub(from)
                .and_then(|taken| u64::try_from(taken).ok()),
            _ => None,
        };
    }
    emitter.emit_message(place, Some(id.clone()), at, message);
    if results.is_empty() {
        return Some(id);
    }
    let id = format!("{id}/results");
    let at = from_millis(parsed.time.completed).or(at);
    let message = Message::new(Role::Tool, Content(results));
    emitter.emit_message(place, Some(id.clone()), at, message);
    Some(id)
}

fn to_usage(tokens: &RawUsage) -> Usage {
    Usage {
        input: tokens.input + tokens.cache.read + tokens.cache.write,
        output: tokens.output + tokens.reasoning,
        cache_read: tokens.cache.read,
        cache_write: tokens.cache.write,
    }
}

fn parse_part(
    emitter: &mut Emitter<'_>,
    place: u64,
    raw: &str,
    blocks: &mut Vec<Block>,
    results: &mut Vec<Block>,
    keeps: &mut Option<String>,
) {
    let Ok(part) = serde_json::from_str::<RawPart<'_>>(raw) else {
        return emitter.emit_damaged(place, "one of its parts is not JSON");
    };
    match to_text(part.r#type).as_deref() {
        Some("text") => blocks.push(Block::Text(to_text(part.text).unwrap_or_default())),
        Some("reasoning") => blocks.push(Block::Thinking {
            text: to_text(part.text).unwrap_or_default(),
            signature: None,
        }),
        Some("file") => {
            let (url, name) = (
                to_text(part.url).unwrap_or_default(),
                to_text(part.filename),
            );
            let _ = part.mime;
            match emitter.attach_data_url(&url, name.as_deref()) {
                Some(block) => blocks.push(block),
                None => blocks.push(foreign_block(raw)),
            }
        }
        Some("tool") => {
            let (Some(id), Some(name), Some(state)) =
                (to_text(part.call), to_text(part.tool), part.state)
            else {
                return blocks.push(foreign_block(raw));
            };
            if let Some(input) = state.input.or_else(|| Json::parse("{}").ok()) {
                let call = ToolCall {
                    id: id.clone(),
                    name,
                    input,
                };
                blocks.push(Block::ToolCall(call));
            }
            let failed = state.status.as_deref() == Some("error");
            let output = to_text(state.output).or_else(|| to_text(state.error));
            if failed || state.status.as_deref() == Some("completed") {
                results.push(Block::ToolResult(ToolResult {
                    call_id: id,
                    content: Content::text(output.unwrap_or_default()),
                    is_error: failed,
                }));
            }
        }
        Some("compaction") => {
            *keeps = to_text(part.tail_start_id);
            emitter.emit_skipped(place, "part compaction");
        }
        Some(noise @ ("step-start" | "step-finish" | "snapshot" | "retry")) => {
            emitter.emit_skipped(place, format!("part {noise}"));
        }
        _ => blocks.push(foreign_block(raw)),
    }
}

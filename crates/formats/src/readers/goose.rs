//! Reads Goose sessions: a database; in older versions, one JSON Lines file each.
//!
//! A compaction hides messages from the model and adds a summary that only the model sees.
//! The summary becomes the checkpoint; it is recognized by its role, since the next
//! compaction hides it too. A compaction rewrites the rows with new numbers, but message
//! ids stay the same.

use std::collections::HashMap;
use std::path::Path;

use rusqlite::Row;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use throughline_model::{
    Block, Content, EntryIdentity, ImportEvent, IncomingOrigin, Message, Role, Summary, Timestamp,
    ToolCall, ToolResult, Usage,
};

use super::emitter::Emitter;
use super::foreign_database::ForeignDatabase;
use super::line_format::LineFormat;
use super::message_content::{decode, foreign_block, parse_optional_content, to_text};
use super::{ReadError, SourceCursor};
use crate::{blocks, json_members};

struct Session {
    id: String,
    name: Option<String>,
    by_person: bool,
    folder: Option<String>,
    created: Option<String>,
    provider: Option<String>,
    parent: Option<String>,
}

pub(super) fn read(
    emitter: &mut Emitter<'_>,
    from: Option<&SourceCursor>,
) -> Result<Option<SourceCursor>, ReadError> {
    let (database, mut until) = ForeignDatabase::open(emitter, from)?;
    let since = until.until;
    let by_person = database.column_or("sessions", "user_set_name", "0");
    let name = if database.has_columns("sessions", &["name"]) {
        "coalesce(nullif(name, ''), description)"
    } else {
        "description"
    };
    let provider = database.column_or("sessions", "provider_name", "NULL");
    let parent = database.column_or("sessions", "parent_session_id", "NULL");
    let question = format!(
        "SELECT id, {name}, {by_person}, working_dir, created_at, {provider}, {parent} FROM sessions
         WHERE EXISTS (SELECT 1 FROM messages WHERE session_id = sessions.id AND messages.id > ?1)
         ORDER BY created_at, id"
    );
    let sessions = database.query_rows(emitter, &question, &[&since], |row| {
        Ok(Session {
            id: row.get(0)?,
            name: row.get(1)?,
            by_person: row.get::<_, Option<bool>>(2)?.unwrap_or(false),
            folder: row.get(3)?,
            created: row.get(4)?,
            provider: row.get(5)?,
            parent: row.get(6)?,
        })
    })?;
    let own = database.column_or("messages", "message_id", "NULL");
    let metadata = database.column_or("messages", "metadata_json", "NULL");
    let question = format!(
        "SELECT id, {own}, role, content_json, created_timestamp, {metadata} FROM messages
         WHERE session_id = ?1 ORDER BY created_timestamp, id"
    );
    for session in sessions {
        let mut found = emitter.new_session(&session.id);
        found.at = session.created.as_deref().and_then(parse_sqlite_time);
        found.workspace = session.folder;
        found.origin = session
            .parent
            .map(|session| IncomingOrigin::Started { session });
        emitter.emit_session(found);
        let mut log = RowReader::new(session.provider.as_deref());
        if let Some(name) = &session.name {
            emitter.emit_title(0, &format!("name:{name}"), None, name, session.by_person);
        }
        database.for_each_row(emitter, &question, &[&session.id], |emitter, row| {
            until.until = until.until.max(row.get(0)?);
            log.read_row(emitter, row)
        })?;
    }
    Ok(until.to_cursor())
}

/// Parses SQLite's `2026-01-02 03:04:05`, in UTC.
pub(super) fn parse_sqlite_time(text: &str) -> Option<Timestamp> {
    let text = text.trim();
    text.parse().ok().or_else(|| {
        let civil: jiff::civil::DateTime = text.parse().ok()?;
        Some(civil.to_zoned(jiff::tz::TimeZone::UTC).ok()?.timestamp())
    })
}

/// The state of a session between two rows.
struct RowReader<'a> {
    provider: Option<&'a str>,
    /// Number of occurrences of each id.
    ids: HashMap<String, u32>,
    /// Whether messages were hidden from the model, as by a compaction.
    compacted: bool,
}

impl<'a> RowReader<'a> {
    fn new(provider: Option<&'a str>) -> Self {
        Self {
            provider,
            ids: HashMap::new(),
            compacted: false,
        }
    }

    fn read_row(&mut self, emitter: &mut Emitter<'_>, row: &Row<'_>) -> rusqlite::Result<()> {
        let number: i64 = row.get(0)?;
        let own: Option<String> = row.get(1)?;
        let role: String = row.get(2)?;
        let content: String = row.get(3)?;
        let at: Option<i64> = row.get(4)?;
        let metadata: Option<String> = row.get(5)?;
        let place = u64::try_from(number).unwrap_or(0);
        // Invalid metadata hides nothing: the message is stored.
        let metadata = metadata
            .as_deref()
            .and_then(|json| serde_json::from_str(json).ok());
        let metadata: Metadata<'_> = metadata.unwrap_or_default();
        let inference: Option<Inference> = decode(metadata.inference);
        let inference = inference.unwrap_or_default();
        let cost: Option<RawUsage> = decode(metadata.usage);
        let Ok(raw) = serde_json::from_str::<&RawValue>(&content) else {
            emitter.emit_damaged(place, "its content is not JSON");
            return Ok(());
        };
        self.compacted |= metadata.agent_visible == Some(false);
        let summary = metadata.user_visible == Some(false) && !has_tool_results(raw);
        if summary && (metadata.turn_context == Some(true) || role != "user" || !self.compacted) {
            // The time and folder of a turn, or instructions for a summary.
            emitter.emit_skipped(place, "message only for the model");
            return Ok(());
        }
        let parsed = MessageInfo {
            role: &role,
            provider: inference.provider.as_deref().or(self.provider),
            model: inference.requested_model.as_deref(),
            usage: cost.map(RawUsage::to_usage),
            summary,
        };
        let id = self.unique_id(own.unwrap_or_else(|| format!("row-{number}")));
        emit_message(emitter, place, id, at.and_then(parse_epoch), &parsed, raw);
        Ok(())
    }

    /// Makes an id unique, since one answer may be stored in several rows.
    fn unique_id(&mut self, own: String) -> String {
        let times = self.ids.entry(own.clone()).or_default();
        *times += 1;
        match times {
            1 => own,
            times => format!("{own}#{times}"),
        }
    }
}

/// Metadata of a message. Its visibility is parsed independently of the other fields.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata<'a> {
    user_visible: Option<bool>,
    agent_visible: Option<bool>,
    turn_context: Option<bool>,
    #[serde(borrow)]
    inference: Option<&'a RawValue>,
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Inference {
    provider: Option<String>,
    requested_model: Option<String>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawUsage {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    cache_read_tokens: Option<u64>,
    cache_write_tokens: Option<u64>,
}

impl RawUsage {
    fn to_usage(self) -> Usage {
        Usage {
            input: self.input_tokens.unwrap_or(0),
            output: self.output_tokens.unwrap_or(0),
            cache_read: self.cache_read_tokens.unwrap_or(0),
            cache_write: self.cache_write_tokens.unwrap_or(0),
        }
    }
}

fn parse_epoch(number: i64) -> Option<Timestamp> {
    if number > 100_000_000_000 {
        Timestamp::from_millisecond(number).ok()
    } else {
        Timestamp::from_second(number).ok()
    }
}

/// Role, usage and kind of a message.
struct MessageInfo<'a> {
    role: &'a str,
    provider: Option<&'a str>,
    model: Option<&'a str>,
    usage: Option<Usage>,
    /// Whether it is the summary of a compaction.
    summary: bool,
}

/// Whether it contains tool results.
fn has_tool_results(raw: &RawValue) -> bool {
    let blocks: Option<Vec<&RawValue>> = decode(Some(raw));
    let answers = |block: &&RawValue| {
        decode::<RawBlock<'_>>(Some(block)).is_some_and(|members| members.tool_result.is_some())
    };
    blocks.is_some_and(|blocks| blocks.iter().any(answers))
}

fn emit_message(
    emitter: &mut Emitter<'_>,
    place: u64,
    id: String,
    at: Option<Timestamp>,
    parsed: &MessageInfo<'_>,
    raw: &RawValue,
) {
    let blocks: Vec<&RawValue> = serde_json::from_str(raw.get()).unwrap_or_default();
    let content = Content(blocks.iter().map(|raw| parse_block(emitter, raw)).collect());
    if parsed.summary && !content.to_text().is_empty() {
        let what = ImportEvent::Compacted {
            summary: Summary {
                background: content.to_text().into_owned(),
                ..Summary::default()
            },
            by: emitter.format.name().to_owned(),
            keeps: None,
            usage: None,
        };
        return emitter.emit_event(place, EntryIdentity::External(id), at, what);
    }
    let results = content.tool_results().next().is_some();
    let role = match parsed.role {
        "assistant" => Role::Assistant,
        "system" => Role::System,
        _ if results => Role::Tool,
        _ => Role::User,
    };
    let mut message = Message::new(role, content);
    if role == Role::Assistant {
        message.provider = parsed.provider.map(ToOwned::to_owned);
        message.model = parsed.model.map(ToOwned::to_owned);
        message.usage = parsed.usage;
    }
    emitter.emit_message(place, Some(id), at, message);
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawBlock<'a> {
    #[serde(borrow)]
    r#type: Option<&'a RawValue>,
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    tool_call: Option<&'a RawValue>,
    #[serde(borrow)]
    tool_result: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct ToolOutcome<'a> {
    status: Option<String>,
    #[serde(borrow)]
    value: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

fn parse_block(emitter: &mut Emitter<'_>, raw: &RawValue) -> Block {
    let members: Option<RawBlock<'_>> = decode(Some(raw));
    let known = members.and_then(|members| match to_text(members.r#type).as_deref() {
        Some("toolRequest") => parse_tool_request(&members),
        Some("toolResponse") => parse_tool_response(emitter, &members),
        _ => None,
    });
    known.unwrap_or_else(|| {
        // An array in place of a block may contain any number of blocks.
        let blocks = parse_optional_content(emitter, Some(raw)).0;
        let only = <[Block; 1]>::try_from(blocks);
        only.map_or_else(|_| foreign_block(raw.get()), |[block]| block)
    })
}

fn parse_tool_request(members: &RawBlock<'_>) -> Option<Block> {
    #[derive(Deserialize)]
    struct Call<'a> {
        name: String,
        #[serde(borrow)]
        arguments: Option<&'a RawValue>,
    }
    let outcome: ToolOutcome<'_> = decode(members.tool_call)?;
    let call: Call<'_> = decode(outcome.value)?;
    let (input, _) = blocks::parse_arguments(call.arguments).ok()?;
    Some(Block::ToolCall(ToolCall {
        id: to_text(members.id)?,
        name: call.name,
        input,
    }))
}

fn parse_tool_response(emitter: &mut Emitter<'_>, members: &RawBlock<'_>) -> Option<Block> {
    #[derive(Deserialize)]
    struct WrappedContent<'a> {
        #[serde(borrow)]
        content: Option<&'a RawValue>,
        #[serde(rename = "isError")]
        is_error: Option<bool>,
    }
    let outcome: ToolOutcome<'_> = decode(members.tool_result)?;
    let mut is_error = outcome.status.as_deref() == Some("error");
    let inner = match outcome.value {
        Some(value) if value.get().starts_with('{') => {
            let wrapped: Option<WrappedContent<'_>> = decode(Some(value));
            is_error |= wrapped.as_ref().and_then(|w| w.is_error) == Some(true);
            wrapped.and_then(|wrapped| wrapped.content)
        }
        value => value,
    };
    Some(Block::ToolResult(ToolResult {
        call_id: to_text(members.id)?,
        content: parse_optional_content(emitter, inner.or(outcome.error)),
        is_error,
    }))
}

/// The older files: one line of metadata, then one line per message.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct LegacyGoose {
    session: String,
    begun: bool,
}

#[derive(Deserialize)]
struct LegacyLine<'a> {
    id: Option<String>,
    role: Option<String>,
    #[serde(borrow)]
    created: Option<&'a RawValue>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    working_dir: Option<String>,
    description: Option<String>,
}

impl LineFormat for LegacyGoose {
    fn new(path: &Path) -> Self {
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        Self {
            session: stem.into_owned(),
            begun: false,
        }
    }

    fn read_line(
        &mut self,
        emitter: &mut Emitter<'_>,
        place: u64,
        line: &str,
    ) -> Result<(), String> {
        let read: LegacyLine<'_> = json_members::parse_object(line.trim())?;
        let at = json_members::parse_time(read.created).ok().flatten();
        if !self.begun {
            let mut found = emitter.new_session(&self.session);
            found.at = at;
            found.workspace = read.working_dir;
            emitter.emit_session(found);
            self.begun = true;
            if let Some(title) = &read.description {
                emitter.emit_title(place, "description", at, title, false);
            }
        }
        match (read.role, read.content) {
            (Some(role), Some(content)) => {
                let id = read.id.unwrap_or_else(|| format!("line-{place}"));
                let parsed = MessageInfo {
                    role: &role,
                    provider: None,
                    model: None,
                    usage: None,
                    summary: false,
                };
                emit_message(emitter, place, id, at, &parsed, content);
            }
            _ if place == 1 => {}
            _ => emitter.emit_foreign(place, None, at, line),
        }
        Ok(())
    }

    fn resume(&self, emitter: &mut Emitter<'_>) {
        if self.begun {
            emitter.emit_session(emitter.new_session(&self.session));
        }
    }
}

//! Goose: a database of sessions and messages; before that, JSON Lines a session.
//!
//! A compaction hides messages from the model and adds a summary that only the model sees:
//! that one becomes the checkpoint, and is known by its role from then on, since the next
//! compaction hides it too. Rows are written anew then, and get other numbers; a message's own
//! id stays.

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
    telling: &mut Emitter<'_>,
    from: Option<&SourceCursor>,
) -> Result<Option<SourceCursor>, ReadError> {
    let (database, mut until) = ForeignDatabase::open(telling, from)?;
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
    let sessions = database.query_rows(telling, &question, &[&since], |row| {
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
        let mut found = telling.new_session(&session.id);
        found.at = session.created.as_deref().and_then(parse_sqlite_time);
        found.workspace = session.folder;
        found.origin = session
            .parent
            .map(|session| IncomingOrigin::Started { session });
        telling.emit_session(found);
        let mut log = RowReader::new(session.provider.as_deref());
        if let Some(name) = &session.name {
            telling.emit_title(0, &format!("name:{name}"), None, name, session.by_person);
        }
        database.for_each_row(telling, &question, &[&session.id], |telling, row| {
            until.until = until.until.max(row.get(0)?);
            log.read_row(telling, row)
        })?;
    }
    Ok(until.to_cursor())
}

/// `2026-01-02 03:04:05` as SQLite writes it, in UTC.
pub(super) fn parse_sqlite_time(text: &str) -> Option<Timestamp> {
    let text = text.trim();
    text.parse().ok().or_else(|| {
        let civil: jiff::civil::DateTime = text.parse().ok()?;
        Some(civil.to_zoned(jiff::tz::TimeZone::UTC).ok()?.timestamp())
    })
}

/// What is known of a session between two of its rows.
struct RowReader<'a> {
    provider: Option<&'a str>,
    /// How often each id has come.
    ids: HashMap<String, u32>,
    /// Whether something was hidden from the model, as a compaction does.
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

    fn read_row(&mut self, telling: &mut Emitter<'_>, row: &Row<'_>) -> rusqlite::Result<()> {
        let number: i64 = row.get(0)?;
        let own: Option<String> = row.get(1)?;
        let role: String = row.get(2)?;
        let content: String = row.get(3)?;
        let at: Option<i64> = row.get(4)?;
        let metadata: Option<String> = row.get(5)?;
        let place = u64::try_from(number).unwrap_or(0);
        // What cannot be understood hides nothing: the message is kept.
        let metadata = metadata
            .as_deref()
            .and_then(|json| serde_json::from_str(json).ok());
        let metadata: Metadata<'_> = metadata.unwrap_or_default();
        let inference: Option<Inference> = decode(metadata.inference);
        let inference = inference.unwrap_or_default();
        let cost: Option<RawUsage> = decode(metadata.usage);
        let Ok(raw) = serde_json::from_str::<&RawValue>(&content) else {
            telling.emit_damaged(place, "its content is not JSON");
            return Ok(());
        };
        self.compacted |= metadata.agent_visible == Some(false);
        let summary = metadata.user_visible == Some(false) && !has_tool_results(raw);
        if summary && (metadata.turn_context == Some(true) || role != "user" || !self.compacted) {
            // The time and the folder of a turn, or what to make of a summary.
            telling.emit_skipped(place, "words to the model alone");
            return Ok(());
        }
        let said = MessageInfo {
            role: &role,
            provider: inference.provider.as_deref().or(self.provider),
            model: inference.requested_model.as_deref(),
            usage: cost.map(RawUsage::to_usage),
            summary,
        };
        let id = self.unique_id(own.unwrap_or_else(|| format!("row-{number}")));
        emit_message(telling, place, id, at.and_then(parse_epoch), &said, raw);
        Ok(())
    }

    /// An id of its own for each: a provider's answer may be kept in several rows.
    fn unique_id(&mut self, own: String) -> String {
        let times = self.ids.entry(own.clone()).or_default();
        *times += 1;
        match times {
            1 => own,
            times => format!("{own}#{times}"),
        }
    }
}

/// What Goose notes of a message. Who sees it is known whatever the rest looks like.
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

/// Who said something, and how.
struct MessageInfo<'a> {
    role: &'a str,
    provider: Option<&'a str>,
    model: Option<&'a str>,
    usage: Option<Usage>,
    /// Whether it is what a compaction came to.
    summary: bool,
}

/// Whether tools have answered in it.
fn has_tool_results(raw: &RawValue) -> bool {
    let blocks: Option<Vec<&RawValue>> = decode(Some(raw));
    let answers = |block: &&RawValue| {
        decode::<RawBlock<'_>>(Some(block)).is_some_and(|members| members.tool_result.is_some())
    };
    blocks.is_some_and(|blocks| blocks.iter().any(answers))
}

fn emit_message(
    telling: &mut Emitter<'_>,
    place: u64,
    id: String,
    at: Option<Timestamp>,
    said: &MessageInfo<'_>,
    raw: &RawValue,
) {
    let blocks: Vec<&RawValue> = serde_json::from_str(raw.get()).unwrap_or_default();
    let content = Content(blocks.iter().map(|raw| parse_block(telling, raw)).collect());
    if said.summary && !content.to_text().is_empty() {
        let what = ImportEvent::Compacted {
            summary: Summary {
                background: content.to_text().into_owned(),
                ..Summary::default()
            },
            by: telling.format.name().to_owned(),
            keeps: None,
            usage: None,
        };
        return telling.emit_event(place, EntryIdentity::External(id), at, what);
    }
    let results = content.tool_results().next().is_some();
    let role = match said.role {
        "assistant" => Role::Assistant,
        "system" => Role::System,
        _ if results => Role::Tool,
        _ => Role::User,
    };
    let mut message = Message::new(role, content);
    if role == Role::Assistant {
        message.provider = said.provider.map(ToOwned::to_owned);
        message.model = said.model.map(ToOwned::to_owned);
        message.usage = said.usage;
    }
    telling.emit_message(place, Some(id), at, message);
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

fn parse_block(telling: &mut Emitter<'_>, raw: &RawValue) -> Block {
    let members: Option<RawBlock<'_>> = decode(Some(raw));
    let known = members.and_then(|members| match to_text(members.r#type).as_deref() {
        Some("toolRequest") => parse_tool_request(&members),
        Some("toolResponse") => parse_tool_response(telling, &members),
        _ => None,
    });
    known.unwrap_or_else(|| {
        // An array where a block should be may hold any number of them.
        let blocks = parse_optional_content(telling, Some(raw)).0;
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

fn parse_tool_response(telling: &mut Emitter<'_>, members: &RawBlock<'_>) -> Option<Block> {
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
        content: parse_optional_content(telling, inner.or(outcome.error)),
        is_error,
    }))
}

/// The older files: a line of metadata, then a line a message.
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
        telling: &mut Emitter<'_>,
        place: u64,
        line: &str,
    ) -> Result<(), String> {
        let read: LegacyLine<'_> = json_members::parse_object(line.trim())?;
        let at = json_members::parse_time(read.created).ok().flatten();
        if !self.begun {
            let mut found = telling.new_session(&self.session);
            found.at = at;
            found.workspace = read.working_dir;
            telling.emit_session(found);
            self.begun = true;
            if let Some(title) = &read.description {
                telling.emit_title(place, "description", at, title, false);
            }
        }
        match (read.role, read.content) {
            (Some(role), Some(content)) => {
                let id = read.id.unwrap_or_else(|| format!("line-{place}"));
                let said = MessageInfo {
                    role: &role,
                    provider: None,
                    model: None,
                    usage: None,
                    summary: false,
                };
                emit_message(telling, place, id, at, &said, content);
            }
            _ if place == 1 => {}
            _ => telling.emit_foreign(place, None, at, line),
        }
        Ok(())
    }

    fn resume(&self, telling: &mut Emitter<'_>) {
        if self.begun {
            telling.emit_session(telling.new_session(&self.session));
        }
    }
}

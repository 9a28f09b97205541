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
    Block, Content, Happened, Identity, Message, Origin, Role, Summary, Timestamp, ToolCall,
    ToolResult, Usage,
};

use super::content::{any, content_of, foreign, text};
use super::database::Database;
use super::line_format::LineFormat;
use super::telling::Telling;
use super::{Bookmark, ReadError};
use crate::{blocks, members};

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
    telling: &mut Telling<'_>,
    from: Option<&Bookmark>,
) -> Result<Option<Bookmark>, ReadError> {
    let (database, mut until) = Database::open(telling, from)?;
    let since = until.until;
    let by_person = database.column_or("sessions", "user_set_name", "0");
    let name = if database.has("sessions", &["name"]) {
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
    let sessions = database.all(telling, &question, &[&since], |row| {
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
        let mut found = telling.found(&session.id);
        found.at = session.created.as_deref().and_then(sqlite_time);
        found.workspace = session.folder;
        found.origin = session.parent.map(|session| Origin::Started { session });
        telling.session(found);
        let mut log = Log::of(session.provider.as_deref());
        if let Some(name) = &session.name {
            telling.titled(0, &format!("name:{name}"), None, name, session.by_person);
        }
        database.each(telling, &question, &[&session.id], |telling, row| {
            until.until = until.until.max(row.get(0)?);
            log.row(telling, row)
        })?;
    }
    Ok(until.bookmark())
}

/// `2026-01-02 03:04:05` as SQLite writes it, in UTC.
pub(super) fn sqlite_time(text: &str) -> Option<Timestamp> {
    let text = text.trim();
    text.parse().ok().or_else(|| {
        let civil: jiff::civil::DateTime = text.parse().ok()?;
        Some(civil.to_zoned(jiff::tz::TimeZone::UTC).ok()?.timestamp())
    })
}

/// What is known of a session between two of its rows.
struct Log<'a> {
    provider: Option<&'a str>,
    /// How often each id has come.
    ids: HashMap<String, u32>,
    /// Whether something was hidden from the model, as a compaction does.
    compacted: bool,
}

impl<'a> Log<'a> {
    fn of(provider: Option<&'a str>) -> Self {
        Self {
            provider,
            ids: HashMap::new(),
            compacted: false,
        }
    }

    fn row(&mut self, telling: &mut Telling<'_>, row: &Row<'_>) -> rusqlite::Result<()> {
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
        let inference: Option<Inference> = any(metadata.inference);
        let inference = inference.unwrap_or_default();
        let cost: Option<Cost> = any(metadata.usage);
        let Ok(raw) = serde_json::from_str::<&RawValue>(&content) else {
            telling.damaged(place, "its content is not JSON");
            return Ok(());
        };
        self.compacted |= metadata.agent_visible == Some(false);
        let summary = metadata.user_visible == Some(false) && !has_results(raw);
        if summary && (metadata.turn_context == Some(true) || role != "user" || !self.compacted) {
            // The time and the folder of a turn, or what to make of a summary.
            telling.passed(place, "words to the model alone");
            return Ok(());
        }
        let said = Said {
            role: &role,
            provider: inference.provider.as_deref().or(self.provider),
            model: inference.requested_model.as_deref(),
            usage: cost.map(Cost::usage),
            summary,
        };
        let id = self.id(own.unwrap_or_else(|| format!("row-{number}")));
        told(telling, place, id, at.and_then(seconds), &said, raw);
        Ok(())
    }

    /// An id of its own for each: a provider's answer may be kept in several rows.
    fn id(&mut self, own: String) -> String {
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
struct Cost {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    cache_read_tokens: Option<u64>,
    cache_write_tokens: Option<u64>,
}

impl Cost {
    fn usage(self) -> Usage {
        Usage {
            input: self.input_tokens.unwrap_or(0),
            output: self.output_tokens.unwrap_or(0),
            cache_read: self.cache_read_tokens.unwrap_or(0),
            cache_write: self.cache_write_tokens.unwrap_or(0),
        }
    }
}

fn seconds(number: i64) -> Option<Timestamp> {
    if number > 100_000_000_000 {
        Timestamp::from_millisecond(number).ok()
    } else {
        Timestamp::from_second(number).ok()
    }
}

/// Who said something, and how.
struct Said<'a> {
    role: &'a str,
    provider: Option<&'a str>,
    model: Option<&'a str>,
    usage: Option<Usage>,
    /// Whether it is what a compaction came to.
    summary: bool,
}

/// Whether tools have answered in it.
fn has_results(raw: &RawValue) -> bool {
    let blocks: Option<Vec<&RawValue>> = any(Some(raw));
    let answers = |block: &&RawValue| {
        any::<Members<'_>>(Some(block)).is_some_and(|members| members.tool_result.is_some())
    };
    blocks.is_some_and(|blocks| blocks.iter().any(answers))
}

fn told(
    telling: &mut Telling<'_>,
    place: u64,
    id: String,
    at: Option<Timestamp>,
    said: &Said<'_>,
    raw: &RawValue,
) {
    let blocks: Vec<&RawValue> = serde_json::from_str(raw.get()).unwrap_or_default();
    let content = Content(blocks.iter().map(|raw| block(telling, raw)).collect());
    if said.summary && !content.to_text().is_empty() {
        let what = Happened::Compacted {
            summary: Summary {
                background: content.to_text().into_owned(),
                ..Summary::default()
            },
            by: telling.agent.name().to_owned(),
            keeps: None,
            usage: None,
        };
        return telling.happened(place, Identity::Own(id), at, what);
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
    telling.message(place, Some(id), at, message);
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Members<'a> {
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
struct Outcome<'a> {
    status: Option<String>,
    #[serde(borrow)]
    value: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

fn block(telling: &mut Telling<'_>, raw: &RawValue) -> Block {
    let members: Option<Members<'_>> = any(Some(raw));
    let known = members.and_then(|members| match text(members.r#type).as_deref() {
        Some("toolRequest") => request(&members),
        Some("toolResponse") => response(telling, &members),
        _ => None,
    });
    known.unwrap_or_else(|| {
        // An array where a block should be may hold any number of them.
        let blocks = content_of(telling, Some(raw)).0;
        let only = <[Block; 1]>::try_from(blocks);
        only.map_or_else(|_| foreign(raw.get()), |[block]| block)
    })
}

fn request(members: &Members<'_>) -> Option<Block> {
    #[derive(Deserialize)]
    struct Call<'a> {
        name: String,
        #[serde(borrow)]
        arguments: Option<&'a RawValue>,
    }
    let outcome: Outcome<'_> = any(members.tool_call)?;
    let call: Call<'_> = any(outcome.value)?;
    let (input, _) = blocks::arguments(call.arguments).ok()?;
    Some(Block::ToolCall(ToolCall {
        id: text(members.id)?,
        name: call.name,
        input,
    }))
}

fn response(telling: &mut Telling<'_>, members: &Members<'_>) -> Option<Block> {
    #[derive(Deserialize)]
    struct Wrapped<'a> {
        #[serde(borrow)]
        content: Option<&'a RawValue>,
        #[serde(rename = "isError")]
        is_error: Option<bool>,
    }
    let outcome: Outcome<'_> = any(members.tool_result)?;
    let mut is_error = outcome.status.as_deref() == Some("error");
    let inner = match outcome.value {
        Some(value) if value.get().starts_with('{') => {
            let wrapped: Option<Wrapped<'_>> = any(Some(value));
            is_error |= wrapped.as_ref().and_then(|w| w.is_error) == Some(true);
            wrapped.and_then(|wrapped| wrapped.content)
        }
        value => value,
    };
    Some(Block::ToolResult(ToolResult {
        call_id: text(members.id)?,
        content: content_of(telling, inner.or(outcome.error)),
        is_error,
    }))
}

/// The older files: a line of metadata, then a line a message.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Legacy {
    session: String,
    begun: bool,
}

#[derive(Deserialize)]
struct Line<'a> {
    id: Option<String>,
    role: Option<String>,
    #[serde(borrow)]
    created: Option<&'a RawValue>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    working_dir: Option<String>,
    description: Option<String>,
}

impl LineFormat for Legacy {
    fn before(path: &Path) -> Self {
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        Self {
            session: stem.into_owned(),
            begun: false,
        }
    }

    fn line(&mut self, telling: &mut Telling<'_>, place: u64, line: &str) -> Result<(), String> {
        let read: Line<'_> = members::object(line.trim())?;
        let at = members::time(read.created).ok().flatten();
        if !self.begun {
            let mut found = telling.found(&self.session);
            found.at = at;
            found.workspace = read.working_dir;
            telling.session(found);
            self.begun = true;
            if let Some(title) = &read.description {
                telling.titled(place, "description", at, title, false);
            }
        }
        match (read.role, read.content) {
            (Some(role), Some(content)) => {
                let id = read.id.unwrap_or_else(|| format!("line-{place}"));
                let said = Said {
                    role: &role,
                    provider: None,
                    model: None,
                    usage: None,
                    summary: false,
                };
                told(telling, place, id, at, &said, content);
            }
            _ if place == 1 => {}
            _ => telling.foreign(place, None, at, line),
        }
        Ok(())
    }

    fn again(&self, telling: &mut Telling<'_>) {
        if self.begun {
            telling.session(telling.found(&self.session));
        }
    }
}

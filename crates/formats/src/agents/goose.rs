//! Goose: a database of sessions and messages; before that, JSON Lines a session.
//!
//! A compaction hides messages from the model and adds a summary that only the model sees:
//! that one becomes the checkpoint.

use std::path::Path;

use rusqlite::Row;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use throughline_model::{
    Block, Content, Happened, Identity, Message, Role, Summary, Timestamp, ToolCall, ToolResult,
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
}

pub(super) fn read(
    telling: &mut Telling<'_>,
    from: Option<&Bookmark>,
) -> Result<Option<Bookmark>, ReadError> {
    let (database, mut until) = Database::open(telling, from)?;
    let since = until.until;
    let by_person = if database.has("sessions", &["user_set_name"]) {
        "user_set_name"
    } else {
        "0"
    };
    let name = if database.has("sessions", &["name"]) {
        "coalesce(nullif(name, ''), description)"
    } else {
        "description"
    };
    let provider = if database.has("sessions", &["provider_name"]) {
        "provider_name"
    } else {
        "NULL"
    };
    let question = format!(
        "SELECT id, {name}, {by_person}, working_dir, created_at, {provider} FROM sessions
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
        })
    })?;
    let own = if database.has("messages", &["message_id"]) {
        "message_id"
    } else {
        "NULL"
    };
    let metadata = if database.has("messages", &["metadata_json"]) {
        "metadata_json"
    } else {
        "NULL"
    };
    let question = format!(
        "SELECT id, {own}, role, content_json, created_timestamp, {metadata} FROM messages
         WHERE session_id = ?1 ORDER BY created_timestamp, id"
    );
    for session in sessions {
        let mut found = telling.found(&session.id);
        found.at = session.created.as_deref().and_then(sqlite_time);
        found.workspace = session.folder;
        telling.session(found);
        if let Some(name) = &session.name {
            telling.titled(0, &format!("name:{name}"), None, name, session.by_person);
        }
        database.each(telling, &question, &[&session.id], |telling, row| {
            until.until = until.until.max(row.get(0)?);
            row_message(telling, row, session.provider.as_deref())
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

fn row_message(
    telling: &mut Telling<'_>,
    row: &Row<'_>,
    provider: Option<&str>,
) -> rusqlite::Result<()> {
    let number: i64 = row.get(0)?;
    let own: Option<String> = row.get(1)?;
    let role: String = row.get(2)?;
    let content: String = row.get(3)?;
    let at: Option<i64> = row.get(4)?;
    let metadata: Option<String> = row.get(5)?;
    let place = u64::try_from(number).unwrap_or(0);
    let at = at.and_then(seconds);
    let id = own.unwrap_or_else(|| format!("row-{number}"));
    let hidden = metadata.as_deref().is_some_and(is_summary);
    match serde_json::from_str::<&RawValue>(&content) {
        Ok(raw) => told(telling, place, id, at, (&role, provider), raw, hidden),
        Err(_) => telling.damaged(place, "its content is not JSON"),
    }
    Ok(())
}

fn seconds(number: i64) -> Option<Timestamp> {
    if number > 100_000_000_000 {
        Timestamp::from_millisecond(number).ok()
    } else {
        Timestamp::from_second(number).ok()
    }
}

/// Whether only the model sees a message: it is what a compaction came to.
fn is_summary(metadata: &str) -> bool {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Visible {
        user_visible: Option<bool>,
        agent_visible: Option<bool>,
    }
    serde_json::from_str::<Visible>(metadata).is_ok_and(|visible| {
        visible.user_visible == Some(false) && visible.agent_visible != Some(false)
    })
}

fn told(
    telling: &mut Telling<'_>,
    place: u64,
    id: String,
    at: Option<Timestamp>,
    (role, provider): (&str, Option<&str>),
    raw: &RawValue,
    summary: bool,
) {
    let blocks: Vec<&RawValue> = serde_json::from_str(raw.get()).unwrap_or_default();
    let content = Content(blocks.iter().map(|raw| block(telling, raw)).collect());
    if summary && content.tool_results().next().is_none() && !content.to_text().is_empty() {
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
    let role = match role {
        "assistant" => Role::Assistant,
        "system" => Role::System,
        _ if results => Role::Tool,
        _ => Role::User,
    };
    let mut message = Message::new(role, content);
    if role == Role::Assistant {
        message.provider = provider.map(ToOwned::to_owned);
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
        let mut blocks = content_of(telling, Some(raw)).0;
        match blocks.pop() {
            Some(block) => block,
            None => foreign(raw.get()),
        }
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
                told(telling, place, id, at, (&role, None), content, false);
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

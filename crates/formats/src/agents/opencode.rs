//! OpenCode: a database, `opencode export`, or in older versions a file a part.
//!
//! An answer is told once it is complete: its parts change while it is made.

use std::collections::HashMap;
use std::path::Path;

use serde::Deserialize;
use serde_json::value::RawValue;
use throughline_model::{
    Block, Body, Content, Happened, Identity, Json, Message, Origin, Role, Summary, Timestamp,
    ToolCall, ToolResult, Usage,
};

use super::content::{foreign, text};
use super::database::Database;
use super::telling::Telling;
use super::{Bookmark, ReadError, document};

#[derive(Default, Deserialize)]
#[serde(default)]
struct Info {
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
struct Said {
    id: Option<String>,
    role: String,
    time: Times,
    #[serde(rename = "modelID")]
    model: Option<String>,
    #[serde(rename = "providerID")]
    provider: Option<String>,
    summary: Option<serde_json::Value>,
    tokens: Option<Tokens>,
    error: Option<serde_json::Value>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Tokens {
    input: u64,
    output: u64,
    reasoning: u64,
    cache: Cache,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Cache {
    read: u64,
    write: u64,
}

#[derive(Deserialize)]
struct Part<'a> {
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
    state: Option<State<'a>>,
    #[serde(borrow)]
    tail_start_id: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct State<'a> {
    status: Option<String>,
    input: Option<Json>,
    #[serde(borrow)]
    output: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

/// A message and its parts, as JSON.
struct Whole {
    id: String,
    info: String,
    parts: Vec<String>,
}

/// A session and its messages.
struct Session {
    info: Info,
    messages: Vec<Whole>,
}

pub(super) fn read(
    telling: &mut Telling<'_>,
    from: Option<&Bookmark>,
) -> Result<Option<Bookmark>, ReadError> {
    let path = telling.path;
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("db") => database(telling, from),
        // An old session's own file stands in `storage/session/<project>/`.
        Some("json")
            if path
                .ancestors()
                .nth(3)
                .is_some_and(|p| p.ends_with("storage")) =>
        {
            legacy(telling)
        }
        _ => export(telling),
    }
    .map(|bookmark| bookmark.filter(|_| path.extension().is_some_and(|e| e == "db")))
}

fn database(
    telling: &mut Telling<'_>,
    from: Option<&Bookmark>,
) -> Result<Option<Bookmark>, ReadError> {
    let (database, mut until) = Database::open(telling, from)?;
    let since = until.until;
    let sessions: Vec<(i64, Info)> = database.all(
        telling,
        "SELECT id, parent_id, directory, title, time_created, time_updated, time_archived, revert
         FROM session WHERE time_updated >= ?1 ORDER BY time_created, id",
        &[&since],
        |row| {
            let revert: Option<String> = row.get(7)?;
            Ok((
                row.get(5)?,
                Info {
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
        let mut messages: Vec<Whole> = database.all(
            telling,
            "SELECT id, data FROM message WHERE session_id = ?1 ORDER BY time_created, id",
            &[&info.id],
            |row| {
                Ok(Whole {
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
        let parts: Vec<(String, String)> = database.all(
            telling,
            "SELECT message_id, data FROM part WHERE session_id = ?1 ORDER BY id",
            &[&info.id],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )?;
        for (message, part) in parts {
            if let Some(index) = index.get(&message) {
                messages[*index].parts.push(part);
            }
        }
        if messages.is_empty() && database.has("session_message", &["seq"]) {
            messages = newer(telling, &database, &info.id)?;
        }
        tell(telling, Session { info, messages });
        telling.go_on()?;
    }
    Ok(until.bookmark())
}

/// Messages of the newer table, which have their parts inside.
fn newer(
    telling: &mut Telling<'_>,
    database: &Database,
    session: &str,
) -> Result<Vec<Whole>, ReadError> {
    #[derive(Deserialize)]
    struct Inside<'a> {
        #[serde(borrow)]
        parts: Option<Vec<&'a RawValue>>,
        #[serde(borrow)]
        info: Option<&'a RawValue>,
    }
    let rows: Vec<(String, String, String)> = database.all(
        telling,
        "SELECT id, type, data FROM session_message WHERE session_id = ?1 ORDER BY seq",
        &[&session],
        |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
    )?;
    let mut messages = Vec::new();
    for (place, (id, type_of, data)) in rows.into_iter().enumerate() {
        let inside: Option<Inside<'_>> = serde_json::from_str(&data).ok();
        let parts = inside.as_ref().and_then(|inside| inside.parts.as_ref());
        let Some(parts) = parts else {
            telling.passed(place as u64 + 1, format!("session_message {type_of}"));
            continue;
        };
        let parts = parts.iter().map(|raw| raw.get().to_owned()).collect();
        let info = inside.as_ref().and_then(|inside| inside.info);
        let info = info.map_or_else(|| data.clone(), |raw| raw.get().to_owned());
        messages.push(Whole { id, info, parts });
    }
    Ok(messages)
}

/// What `opencode export` writes.
fn export(telling: &mut Telling<'_>) -> Result<Option<Bookmark>, ReadError> {
    #[derive(Deserialize)]
    struct Export<'a> {
        info: Info,
        #[serde(borrow)]
        messages: Vec<Exported<'a>>,
    }
    #[derive(Deserialize)]
    struct Exported<'a> {
        #[serde(borrow)]
        info: &'a RawValue,
        #[serde(borrow)]
        parts: Vec<&'a RawValue>,
    }
    let Some(whole) = document::whole(telling)? else {
        return Ok(None);
    };
    // The command may say something before it.
    let start = whole.find('{').unwrap_or(0);
    let export: Export<'_> = document::parsed(telling, &whole[start..])?;
    let messages = export.messages.into_iter().map(|message| Whole {
        id: id_of(message.info.get()),
        info: message.info.get().to_owned(),
        parts: message
            .parts
            .iter()
            .map(|raw| raw.get().to_owned())
            .collect(),
    });
    let messages = messages.collect();
    tell(
        telling,
        Session {
            info: export.info,
            messages,
        },
    );
    Ok(None)
}

/// The older layout: `session/<project>/<id>.json`, `message/<session>/*.json`,
/// `part/<message>/*.json`.
fn legacy(telling: &mut Telling<'_>) -> Result<Option<Bookmark>, ReadError> {
    let path = telling.path;
    let Some(whole) = document::whole(telling)? else {
        return Ok(None);
    };
    let info: Info = document::parsed(telling, &whole)?;
    let storage = path.ancestors().nth(3).unwrap_or(path).to_owned();
    let mut messages = Vec::new();
    for message in files(telling, &storage.join("message").join(&info.id)) {
        let id = id_of(&message);
        let parts = files(telling, &storage.join("part").join(&id));
        messages.push(Whole {
            id,
            info: message,
            parts,
        });
    }
    tell(telling, Session { info, messages });
    Ok(None)
}

/// The JSON files of a folder, by name.
fn files(telling: &mut Telling<'_>, folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<_> = entries.map(|entry| entry.path()).collect();
    paths.retain(|path| {
        path.extension()
            .is_some_and(|extension| extension == "json")
    });
    paths.sort();
    let texts = paths.iter();
    texts
        .filter_map(|path| document::text_beside(telling, path))
        .collect()
}

fn id_of(json: &str) -> String {
    #[derive(Deserialize)]
    struct Named {
        id: Option<String>,
    }
    let named: Option<Named> = serde_json::from_str(json).ok();
    named.and_then(|named| named.id).unwrap_or_default()
}

fn time(millis: Option<i64>) -> Option<Timestamp> {
    millis.and_then(|millis| Timestamp::from_millisecond(millis).ok())
}

fn tell(telling: &mut Telling<'_>, session: Session) {
    let Session { info, messages } = session;
    let mut found = telling.found(&info.id);
    found.at = time(info.time.created);
    found.workspace.clone_from(&info.directory);
    found.origin = info
        .parent
        .clone()
        .map(|session| Origin::Started { session });
    telling.session(found);
    if let Some(title) = info
        .title
        .as_deref()
        .filter(|t| !t.starts_with("New session"))
    {
        telling.titled(0, &format!("title:{title}"), None, title, false);
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
            let identity = Identity::Place(format!("revert:{}", message.id));
            // Told at the end, when everything it takes back is there.
            reverted = Some((identity, before.clone()));
        }
        let place = index as u64 + 1;
        before = tell_message(telling, place, message, index == last, &mut keeps).or(before);
    }
    if let Some((identity, to)) = reverted {
        let place = messages.len() as u64;
        telling.happened(place, identity, None, Happened::Rewound { to });
    }
    if info.time.archived.is_some() {
        telling.body(0, "archived", time(info.time.archived), Body::Archived);
    }
}

/// Tells a message; answers with the last entry it was told as. What a compaction keeps is
/// said by whoever asks for it, and told with the summary that comes after.
fn tell_message(
    telling: &mut Telling<'_>,
    place: u64,
    whole: &Whole,
    last: bool,
    keeps: &mut Option<String>,
) -> Option<String> {
    let said: Said = match serde_json::from_str(&whole.info) {
        Ok(said) => said,
        Err(error) => {
            telling.damaged(place, error.to_string());
            return None;
        }
    };
    let id = match (&said.id, whole.id.as_str()) {
        (Some(id), "") => id.clone(),
        (_, id) => id.to_owned(),
    };
    let at = time(said.time.created);
    let assistant = said.role == "assistant";
    if assistant && last && said.time.completed.is_none() && said.error.is_none() {
        telling.passed(place, "answer under way");
        return None;
    }
    let (mut blocks, mut results) = (Vec::new(), Vec::new());
    for raw in &whole.parts {
        part(telling, place, raw, &mut blocks, &mut results, keeps);
    }
    let content = Content(blocks);
    if assistant
        && said
            .summary
            .as_ref()
            .is_some_and(|s| s == &serde_json::Value::Bool(true))
    {
        let what = Happened::Compacted {
            summary: Summary {
                background: content.to_text().into_owned(),
                ..Summary::default()
            },
            by: said
                .model
                .unwrap_or_else(|| telling.agent.name().to_owned()),
            keeps: keeps.take(),
            usage: said.tokens.as_ref().map(usage),
        };
        telling.happened(place, Identity::Own(id.clone()), at, what);
        return Some(id);
    }
    if content.0.is_empty() && results.is_empty() && said.error.is_none() {
        telling.passed(place, "message without content");
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
        message.model = said.model;
        message.provider = said.provider;
        message.usage = said.tokens.as_ref().map(usage);
        message.incomplete = said.error.is_some();
        message.latency_ms = match (said.time.created, said.time.completed) {
            (Some(from), Some(to)) => to
                .checked_sub(from)
                .and_then(|taken| u64::try_from(taken).ok()),
            _ => None,
        };
    }
    telling.message(place, Some(id.clone()), at, message);
    if results.is_empty() {
        return Some(id);
    }
    let id = format!("{id}/results");
    let at = time(said.time.completed).or(at);
    let message = Message::new(Role::Tool, Content(results));
    telling.message(place, Some(id.clone()), at, message);
    Some(id)
}

fn usage(tokens: &Tokens) -> Usage {
    Usage {
        input: tokens.input + tokens.cache.read + tokens.cache.write,
        output: tokens.output + tokens.reasoning,
        cache_read: tokens.cache.read,
        cache_write: tokens.cache.write,
    }
}

fn part(
    telling: &mut Telling<'_>,
    place: u64,
    raw: &str,
    blocks: &mut Vec<Block>,
    results: &mut Vec<Block>,
    keeps: &mut Option<String>,
) {
    let Ok(part) = serde_json::from_str::<Part<'_>>(raw) else {
        return telling.damaged(place, "a part of it is not JSON");
    };
    match text(part.r#type).as_deref() {
        Some("text") => blocks.push(Block::Text(text(part.text).unwrap_or_default())),
        Some("reasoning") => blocks.push(Block::Thinking {
            text: text(part.text).unwrap_or_default(),
            signature: None,
        }),
        Some("file") => {
            let (url, name) = (text(part.url).unwrap_or_default(), text(part.filename));
            let _ = part.mime;
            match telling.data_url(&url, name.as_deref()) {
                Some(block) => blocks.push(block),
                None => blocks.push(foreign(raw)),
            }
        }
        Some("tool") => {
            let (Some(id), Some(name), Some(state)) =
                (text(part.call), text(part.tool), part.state)
            else {
                return blocks.push(foreign(raw));
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
            let output = text(state.output).or_else(|| text(state.error));
            if failed || state.status.as_deref() == Some("completed") {
                results.push(Block::ToolResult(ToolResult {
                    call_id: id,
                    content: Content::text(output.unwrap_or_default()),
                    is_error: failed,
                }));
            }
        }
        Some("compaction") => {
            *keeps = text(part.tail_start_id);
            telling.passed(place, "part compaction");
        }
        Some(noise @ ("step-start" | "step-finish" | "snapshot" | "retry")) => {
            telling.passed(place, format!("part {noise}"));
        }
        _ => blocks.push(foreign(raw)),
    }
}

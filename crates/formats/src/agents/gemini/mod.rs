//! Gemini CLI: JSON Lines a session, or one document in older versions.
//!
//! Messages are written again when they change and the last writing counts, so that a
//! session's file is gone through before it is told: once for where everything is, and
//! once for what it says. What a tool answered is told apart from its call
//! and only once it is final: a session that is read while it goes on need not be told
//! otherwise later.

mod log;

use std::fs::File;
use std::io::BufReader;

use serde::Deserialize;
use serde_json::value::RawValue;
use throughline_model::{
    Block, Content, Happened, Identity, Json, Message, Origin, Role, Timestamp, ToolCall,
    ToolResult, Usage,
};

use super::content::{any, content_of, foreign, text};
use super::telling::Telling;
use super::{ReadError, document, is_lines};
use crate::lines::Lines;
use crate::members;
use crate::surrogate::repair;
use log::{Event, Kept, Log, Window, within};

/// How a message begins that the program says in the person's name.
const INJECTED: &str = "<session_context>";

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Said<'a> {
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
    tokens: Option<Tokens>,
    model: Option<String>,
}

#[derive(Deserialize)]
#[serde(default)]
#[derive(Default)]
struct Tokens {
    input: u64,
    output: u64,
    cached: u64,
    thoughts: u64,
    tool: u64,
}

#[derive(Deserialize)]
struct Call<'a> {
    id: Option<String>,
    name: String,
    args: Option<Json>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    status: Option<String>,
    #[serde(borrow)]
    timestamp: Option<&'a RawValue>,
}

pub(super) fn read(telling: &mut Telling<'_>) -> Result<(), ReadError> {
    let gathered = if is_lines(telling.path) {
        Some(lines(telling)?)
    } else {
        older(telling)?
    };
    if let Some((log, mut kept)) = gathered {
        tell(telling, &log, &mut kept)?;
    }
    Ok(())
}

/// The lines of a session.
fn lines(telling: &mut Telling<'_>) -> Result<(Log, Kept), ReadError> {
    let path = telling.path;
    let failed = |error| ReadError::io(path, error);
    let file = File::open(path).map_err(failed)?;
    let mut lines = Lines::new(BufReader::with_capacity(1 << 18, &file));
    let mut log = Log::default();
    while let Some(next) = lines.next_placed(|at, line| {
        let mended = repair(line);
        let line = mended.as_deref().unwrap_or(line);
        Ok(log.record(telling, at.number, at.offset, line))
    }) {
        let (place, read) = next.map_err(failed)?;
        match read {
            Ok(Ok(())) => {}
            Ok(Err(_)) if !lines.ended() => {
                telling.damaged(place, "the last line is not complete");
            }
            Ok(Err(wrong)) => telling.damaged(place, wrong),
            Err(error) => telling.damaged(place, error.to_string()),
        }
        telling.go_on()?;
    }
    Ok((log, Kept::File(Window::of(file))))
}

/// The one document of older versions.
fn older(telling: &mut Telling<'_>) -> Result<Option<(Log, Kept)>, ReadError> {
    #[derive(Deserialize)]
    struct Document<'a> {
        #[serde(borrow)]
        messages: Vec<&'a RawValue>,
    }
    let Some(whole) = document::whole(telling)? else {
        return Ok(None);
    };
    let mut log = Log::of(document::parsed(telling, &whole)?);
    let document: Document<'_> = document::parsed(telling, &whole)?;
    for (place, message) in (1..).zip(document.messages) {
        let text = message.get();
        if let Err(wrong) = log.record(telling, place, within(&whole, text), text) {
            telling.damaged(place, wrong);
        }
    }
    Ok(Some((log, Kept::Whole(whole))))
}

fn tell(telling: &mut Telling<'_>, log: &Log, kept: &mut Kept) -> Result<(), ReadError> {
    let path = telling.path;
    let head = &log.head;
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let id = head.session_id.clone();
    let mut found = telling.found(id.unwrap_or_else(|| stem.into_owned()));
    found.at = head.start_time.as_ref().and_then(|at| at.parse().ok());
    let folders = head.directories.as_ref();
    found.workspace = folders.and_then(|all| all.first().cloned());
    if found.workspace.is_none() {
        found.workspace = project_root(telling);
    }
    if head.kind.as_deref() == Some("subagent") {
        let parent = path.parent().and_then(|folder| folder.file_name());
        found.origin = parent.map(|parent| Origin::Started {
            session: parent.to_string_lossy().into_owned(),
        });
    }
    telling.session(found);
    if let Some(title) = &head.summary {
        telling.titled(1, "summary", None, title, false);
    }
    let last = log.messages.len().saturating_sub(1);
    let failed = |error| ReadError::io(path, error);
    for event in &log.events {
        match event {
            Event::Message(index) => {
                let written = &log.messages[*index];
                let text = kept.text(&written.at).map_err(failed)?;
                message(telling, written.place, &text, *index == last);
            }
            Event::Rewound(place, to) => {
                let to = match to {
                    Some(index) => {
                        let written = &log.messages[*index];
                        let text = kept.text(&written.at).map_err(failed)?;
                        Some(last_entry(written.place, &text))
                    }
                    None => None,
                };
                let identity = Identity::Place(format!("rewind:{place}"));
                telling.happened(*place, identity, None, Happened::Rewound { to });
            }
        }
        telling.go_on()?;
    }
    Ok(())
}

/// The folder of the project, as it stands in a file two folders above a session's, or three
/// above a sub-agent's.
fn project_root(telling: &mut Telling<'_>) -> Option<String> {
    let path = telling.path;
    let above = path.ancestors().skip(2).take(2);
    let mut texts = above.filter_map(|folder| {
        let text = document::text_beside(telling, &folder.join(".project_root"))?;
        Some(text.trim().to_owned()).filter(|text| !text.is_empty())
    });
    texts.next()
}

/// The last entry that a message is told as: the result of its last call.
fn last_entry(place: u64, line: &str) -> String {
    let said: Option<Said<'_>> = serde_json::from_str(line).ok();
    let own = said.as_ref().and_then(|said| said.id.clone());
    let id = own.unwrap_or_else(|| format!("#{place}"));
    let calls = said.and_then(|said| any::<Vec<Call<'_>>>(said.tool_calls));
    match calls.as_deref().and_then(<[_]>::last) {
        Some(Call { id: Some(call), .. }) => format!("{id}/{call}"),
        _ => id,
    }
}

fn message(telling: &mut Telling<'_>, place: u64, line: &str, last: bool) {
    let said: Said<'_> = match serde_json::from_str(line) {
        Ok(said) => said,
        Err(error) => return telling.damaged(place, error.to_string()),
    };
    let at = members::time(said.timestamp).ok().flatten();
    match said.r#type.as_str() {
        "user" => {
            let content = content_of(telling, said.content);
            let injected = content.to_text().starts_with(INJECTED);
            let role = if injected { Role::System } else { Role::User };
            telling.message(place, said.id, at, Message::new(role, content));
        }
        "gemini" => answer(telling, place, &said, at, last),
        "info" | "error" | "warning" => {
            let content = content_of(telling, said.content);
            telling.message(place, said.id, at, Message::new(Role::System, content));
        }
        _ => telling.foreign(place, said.id, at, line),
    }
}

fn answer(
    telling: &mut Telling<'_>,
    place: u64,
    said: &Said<'_>,
    at: Option<Timestamp>,
    last: bool,
) {
    #[derive(Deserialize)]
    struct Thought {
        subject: Option<String>,
        description: Option<String>,
    }
    let mut blocks = Vec::new();
    for thought in any::<Vec<Thought>>(said.thoughts).unwrap_or_default() {
        let parts = [thought.subject, thought.description];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        blocks.push(Block::Thinking {
            text: parts.join("\n"),
            signature: None,
        });
    }
    let content = content_of(telling, said.content).0;
    blocks.extend(
        content
            .into_iter()
            .filter(|block| block.as_text() != Some("")),
    );
    let calls: Vec<&RawValue> = any(said.tool_calls).unwrap_or_default();
    let mut results = Vec::new();
    for (index, raw) in calls.iter().enumerate() {
        let Some(call) = any::<Call<'_>>(Some(raw)) else {
            blocks.push(foreign(raw.get()));
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
    telling.message(place, said.id.clone(), at, message);
    for (call_id, call) in results {
        let own = said.id.as_deref().unwrap_or_default();
        let when = members::time(call.timestamp).ok().flatten().or(at);
        let is_error = !matches!(call.status.as_deref(), Some("success") | None);
        let content = result(telling, call.result);
        let id = format!("{own}/{call_id}");
        let result = Block::ToolResult(ToolResult {
            call_id,
            content,
            is_error,
        });
        let message = Message::new(Role::Tool, Content(vec![result]));
        telling.message(place, Some(id), when, message);
    }
}

/// What a tool answered: Google's parts around a function's response.
fn result(telling: &mut Telling<'_>, raw: Option<&RawValue>) -> Content {
    #[derive(Deserialize)]
    struct Part<T> {
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
    let said = |part: Part<Response<'_>>| text(Some(part.function.response.output));
    // As a rule all of it is texts, which are found without looking at each part by itself.
    let parts: Option<Vec<Part<Response<'_>>>> = any(raw);
    let texts: Option<Vec<String>> = parts.and_then(|parts| parts.into_iter().map(said).collect());
    if let Some(texts) = texts {
        return Content(texts.into_iter().map(Block::Text).collect());
    }
    let parts: Option<Vec<&RawValue>> = any(raw);
    let Some(parts) = parts else {
        return content_of(telling, raw);
    };
    let mut blocks = Vec::new();
    for part in parts {
        if let Some(text) = any(Some(part)).and_then(said) {
            blocks.push(Block::Text(text));
        } else if let Some(part) = any::<Part<&RawValue>>(Some(part)) {
            blocks.push(foreign(part.function.response.get()));
        } else {
            blocks.extend(content_of(telling, Some(part)).0);
        }
    }
    Content(blocks)
}

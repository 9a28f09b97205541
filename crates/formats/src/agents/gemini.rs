//! Gemini CLI: JSON Lines a session, or one document in older versions.
//!
//! Messages are written again when they change and the last writing counts, so that a
//! session is gathered before it is told. What a tool answered is told apart from its call
//! and only once it is final: a session that is read while it goes on need not be told
//! otherwise later.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::value::RawValue;
use throughline_model::{
    Block, Content, Happened, Identity, Json, Message, Origin, Role, Timestamp, ToolCall,
    ToolResult, Usage,
};

use super::content::{any, content_of, foreign, text};
use super::telling::Telling;
use super::{ReadError, is_lines};
use crate::members;
use crate::surrogate::repair;

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Head {
    session_id: Option<String>,
    start_time: Option<String>,
    kind: Option<String>,
    directories: Option<Vec<String>>,
    summary: Option<String>,
}

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

/// What a session came to, in the order it happened.
#[derive(Default)]
struct Gathered {
    head: Head,
    /// Messages by where they first stood: the place, and the latest writing.
    messages: Vec<(u64, String)>,
    by_id: HashMap<String, usize>,
    events: Vec<Event>,
    /// The ids of the messages that count now.
    counting: Vec<String>,
}

enum Event {
    /// The message with this index.
    Message(usize),
    /// Back to the message with this id.
    Rewound(u64, Option<String>),
}

pub(super) fn read(telling: &mut Telling<'_>) -> Result<(), ReadError> {
    let path = telling.path;
    let whole = std::fs::read(path).map_err(|error| ReadError::io(path, error))?;
    let whole = String::from_utf8_lossy(&whole);
    let mut gathered = Gathered::default();
    if is_lines(path) {
        let mut lines = whole.lines().enumerate().peekable();
        while let Some((index, line)) = lines.next() {
            if line.trim().is_empty() {
                continue;
            }
            let place = index as u64 + 1;
            let mended = repair(line);
            let line = mended.as_deref().unwrap_or(line);
            if let Err(wrong) = gathered.line(telling, place, line) {
                let last = lines.peek().is_none() && !whole.ends_with('\n');
                telling.damaged(
                    place,
                    if last {
                        "the last line is not complete".into()
                    } else {
                        wrong
                    },
                );
            }
        }
    } else {
        #[derive(Deserialize)]
        struct Document<'a> {
            #[serde(borrow)]
            messages: Vec<&'a RawValue>,
        }
        let mended = repair(&whole);
        let whole = mended.as_deref().unwrap_or(&whole);
        let shape = |error: serde_json::Error| ReadError::shape(telling.agent, path, error);
        gathered.head = serde_json::from_str(whole).map_err(shape)?;
        let document: Document<'_> = serde_json::from_str(whole).map_err(shape)?;
        for (index, message) in document.messages.into_iter().enumerate() {
            if let Err(wrong) = gathered.line(telling, index as u64 + 1, message.get()) {
                telling.damaged(index as u64 + 1, wrong);
            }
        }
    }
    gathered.tell(telling);
    telling.go_on()
}

impl Gathered {
    fn line(&mut self, telling: &mut Telling<'_>, place: u64, line: &str) -> Result<(), String> {
        #[derive(Deserialize)]
        struct Operator<'a> {
            #[serde(borrow, rename = "$set")]
            set: Option<&'a RawValue>,
            #[serde(rename = "$rewindTo")]
            rewind: Option<String>,
            #[serde(borrow, rename = "sessionId")]
            session: Option<&'a RawValue>,
            #[serde(borrow, rename = "type")]
            r#type: Option<&'a RawValue>,
            id: Option<String>,
        }
        let operator: Operator<'_> = members::object(line.trim())?;
        if let Some(set) = operator.set {
            return self.set(place, set);
        }
        if let Some(to) = operator.rewind {
            self.rewind(place, &to);
            return Ok(());
        }
        if operator.r#type.is_none() && operator.session.is_some() {
            self.head = serde_json::from_str(line).map_err(|error| error.to_string())?;
            return Ok(());
        }
        if operator.r#type.is_none() {
            telling.passed(place, "record of no known kind");
            return Ok(());
        }
        let id = operator.id.unwrap_or_else(|| format!("#{place}"));
        self.message(place, id, line);
        Ok(())
    }

    fn message(&mut self, place: u64, id: String, line: &str) {
        if let Some(index) = self.by_id.get(&id) {
            line.clone_into(&mut self.messages[*index].1);
            if self.counting.contains(&id) {
                return;
            }
        } else {
            self.by_id.insert(id.clone(), self.messages.len());
            self.messages.push((place, line.to_owned()));
            self.events.push(Event::Message(self.messages.len() - 1));
        }
        self.counting.push(id);
    }

    fn rewind(&mut self, place: u64, to: &str) {
        let kept = self.counting.iter().position(|id| id == to).unwrap_or(0);
        self.counting.truncate(kept);
        let last = self.counting.last().cloned();
        self.events.push(Event::Rewound(place, last));
    }

    fn set(&mut self, place: u64, set: &RawValue) -> Result<(), String> {
        #[derive(Deserialize)]
        struct Messages<'a> {
            #[serde(borrow)]
            messages: Option<Vec<&'a RawValue>>,
        }
        #[derive(Deserialize)]
        struct Named {
            id: Option<String>,
        }
        let wrong = |error: serde_json::Error| error.to_string();
        let head: Head = serde_json::from_str(set.get()).map_err(wrong)?;
        self.head.summary = head.summary.or_else(|| self.head.summary.take());
        self.head.directories = head.directories.or_else(|| self.head.directories.take());
        let messages: Messages<'_> = serde_json::from_str(set.get()).map_err(wrong)?;
        let Some(messages) = messages.messages else {
            return Ok(());
        };
        let ids: Vec<String> = messages
            .iter()
            .enumerate()
            .map(|(index, raw)| {
                let named: Option<Named> = any(Some(raw));
                let own = named.and_then(|named| named.id);
                own.unwrap_or_else(|| format!("#{place}.{index}"))
            })
            .collect();
        // What stays at the beginning stays; the rest is taken back and said anew.
        let same = self.counting.iter().zip(&ids).take_while(|(a, b)| a == b);
        let same = same.count();
        if same < self.counting.len() {
            self.counting.truncate(same);
            let last = self.counting.last().cloned();
            self.events.push(Event::Rewound(place, last));
        }
        for (raw, id) in messages.iter().zip(ids) {
            self.message(place, id, raw.get());
        }
        Ok(())
    }

    fn tell(self, telling: &mut Telling<'_>) {
        let path = telling.path;
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        let id = self.head.session_id.clone();
        let mut found = telling.found(id.unwrap_or_else(|| stem.into_owned()));
        found.at = self.head.start_time.as_ref().and_then(|at| at.parse().ok());
        found.workspace = self
            .head
            .directories
            .as_ref()
            .and_then(|all| all.first().cloned());
        if self.head.kind.as_deref() == Some("subagent") {
            let parent = path.parent().and_then(|folder| folder.file_name());
            found.origin = parent.map(|parent| Origin::Started {
                session: parent.to_string_lossy().into_owned(),
            });
        }
        telling.session(found);
        if let Some(title) = &self.head.summary {
            telling.titled(1, "summary", None, title, false);
        }
        let last = self.messages.len().saturating_sub(1);
        for event in self.events {
            match event {
                Event::Message(index) => {
                    let (place, line) = &self.messages[index];
                    message(telling, *place, line, index == last);
                }
                Event::Rewound(place, to) => {
                    let identity = Identity::Place(format!("rewind:{place}"));
                    let to = to.map(|id| match self.by_id.get(&id) {
                        Some(index) => last_entry(&id, &self.messages[*index].1),
                        None => id,
                    });
                    telling.happened(place, identity, None, Happened::Rewound { to });
                }
            }
        }
    }
}

/// The last entry that a message is told as: the result of its last call.
fn last_entry(id: &str, line: &str) -> String {
    let said: Option<Said<'_>> = serde_json::from_str(line).ok();
    let calls = said.and_then(|said| any::<Vec<Call<'_>>>(said.tool_calls));
    match calls.as_deref().and_then(<[_]>::last) {
        Some(Call { id: Some(call), .. }) => format!("{id}/{call}"),
        _ => id.to_owned(),
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
            telling.message(place, said.id, at, Message::new(Role::User, content));
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
    struct Part<'a> {
        #[serde(borrow, rename = "functionResponse")]
        function: Option<Function<'a>>,
    }
    #[derive(Deserialize)]
    struct Function<'a> {
        #[serde(borrow)]
        response: Option<&'a RawValue>,
    }
    #[derive(Deserialize)]
    struct Response<'a> {
        #[serde(borrow, alias = "error")]
        output: Option<&'a RawValue>,
    }
    let parts: Option<Vec<&RawValue>> = any(raw);
    let Some(parts) = parts else {
        return content_of(telling, raw);
    };
    let mut blocks = Vec::new();
    for part in parts {
        let function = any::<Part<'_>>(Some(part)).and_then(|part| part.function);
        match function.and_then(|function| function.response) {
            Some(response) => {
                let output = any::<Response<'_>>(Some(response)).and_then(|r| r.output);
                match text(output) {
                    Some(text) => blocks.push(Block::Text(text)),
                    None => blocks.push(foreign(response.get())),
                }
            }
            None => blocks.extend(content_of(telling, Some(part)).0),
        }
    }
    Content(blocks)
}

//! Reads ChatGPT's data export (`conversations.json`, an array of message trees) and
//! Claude's (an array of conversations with messages in order).
//!
//! Every branch is emitted, the current one last. A rewind to the branching point comes
//! between two branches.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::{BufRead, BufReader};

use serde::Deserialize;
use serde::de::{Deserializer as _, SeqAccess, Visitor};
use serde_json::value::RawValue;
use throughline_model::{
    Block, Body, Content, EntryIdentity, ImportEvent, Message, Role, Timestamp,
};

use super::emitter::Emitter;
use super::message_content::{decode, foreign_block, parse_optional_content};
use super::{ReadError, SourceFormat};
use crate::json_members;
use crate::surrogate::replace_lone_surrogates;

#[derive(Deserialize)]
struct Conversation {
    #[serde(alias = "conversation_id", alias = "uuid")]
    id: Option<String>,
    #[serde(alias = "name")]
    title: Option<String>,
    create_time: Option<Box<RawValue>>,
    created_at: Option<Box<RawValue>>,
    mapping: Option<BTreeMap<String, Node>>,
    current_node: Option<String>,
    is_archived: Option<bool>,
    is_starred: Option<bool>,
    chat_messages: Option<Vec<Box<RawValue>>>,
}

#[derive(Deserialize)]
struct Node {
    message: Option<Box<RawValue>>,
    parent: Option<String>,
    #[serde(default)]
    children: Vec<String>,
}

#[derive(Deserialize)]
struct RawMessage<'a> {
    author: Author,
    #[serde(borrow)]
    create_time: Option<&'a RawValue>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    #[serde(default)]
    metadata: Metadata,
    end_turn: Option<bool>,
    status: Option<String>,
}

#[derive(Deserialize)]
struct Author {
    role: String,
    name: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Metadata {
    model_slug: Option<String>,
    is_visually_hidden_from_conversation: Option<bool>,
}

pub(super) fn read(emitter: &mut Emitter<'_>) -> Result<(), ReadError> {
    let path = emitter.path;
    let failed = |error| ReadError::io(path, error);
    let file = File::open(path).map_err(failed)?;
    let mut input = BufReader::with_capacity(1 << 18, file);
    let start = input.fill_buf().map_err(failed)?;
    if start.is_empty() {
        emitter.emit_skipped(0, "empty file");
        return Ok(());
    }
    if start.starts_with(b"\xEF\xBB\xBF") {
        input.consume(3);
    }
    let mut json = serde_json::Deserializer::from_reader(input);
    let mut place = 0;
    let done = json.deserialize_any(ConversationVisitor {
        emitter,
        place: &mut place,
    });
    emitter.check_stopped()?;
    match done {
        Ok(()) => Ok(()),
        // In a truncated file, the conversations before the end are still valid.
        Err(error) if place > 0 => {
            emitter.emit_damaged(place + 1, format!("the rest cannot be read: {error}"));
            Ok(())
        }
        Err(error) => Err(ReadError::wrong_format(SourceFormat::ChatGpt, path, error)),
    }
}

/// Visits the conversations one at a time, so that only one is in memory.
struct ConversationVisitor<'t, 'a> {
    emitter: &'t mut Emitter<'a>,
    place: &'t mut u64,
}

impl<'de> Visitor<'de> for ConversationVisitor<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of conversations")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        while let Some(raw) = seq.next_element::<Box<RawValue>>()? {
            *self.place += 1;
            let mended = replace_lone_surrogates(raw.get());
            match serde_json::from_str(mended.as_deref().unwrap_or(raw.get())) {
                Ok(found) => read_conversation(self.emitter, *self.place, found),
                Err(error) => self.emitter.emit_damaged(*self.place, error.to_string()),
            }
            if self.emitter.check_stopped().is_err() {
                return Ok(());
            }
        }
        Ok(())
    }
}

fn read_conversation(emitter: &mut Emitter<'_>, place: u64, found: Conversation) {
    let Some(id) = found.id else {
        return emitter.emit_damaged(place, "a conversation without an id");
    };
    let began = found.create_time.as_deref().or(found.created_at.as_deref());
    let at = json_members::parse_time(began).ok().flatten();
    let mut session = emitter.new_session(&id);
    session.at = at;
    emitter.emit_session(session);
    if let Some(title) = &found.title {
        emitter.emit_title(place, &format!("title:{title}"), at, title, false);
    }
    if let Some(messages) = found.chat_messages {
        for (index, raw) in messages.iter().enumerate() {
            emit_claude_message(emitter, index as u64 + 1, raw);
        }
        return;
    }
    let mapping = found.mapping.unwrap_or_default();
    Tree {
        mapping: &mapping,
        current: ancestors_of(&mapping, found.current_node.as_deref()),
    }
    .emit(emitter);
    if found.is_starred == Some(true) {
        let identity = EntryIdentity::Position("starred".into());
        emitter.emit_event(
            place,
            identity,
            at,
            ImportEvent::Tagged(vec!["starred".into()]),
        );
    }
    if found.is_archived == Some(true) {
        emitter.emit_body(place, "archived", at, Body::Archived);
    }
}

/// Returns the nodes from a node up to the root.
fn ancestors_of<'m>(mapping: &'m BTreeMap<String, Node>, node: Option<&'m str>) -> Vec<&'m str> {
    let mut path = Vec::new();
    let mut next = node;
    while let Some(id) = next {
        // Stop if the parents form a cycle.
        if path.len() > mapping.len() {
            break;
        }
        path.push(id);
        next = mapping.get(id).and_then(|node| node.parent.as_deref());
    }
    path
}

struct Tree<'m> {
    mapping: &'m BTreeMap<String, Node>,
    current: Vec<&'m str>,
}

impl Tree<'_> {
    fn emit(&self, emitter: &mut Emitter<'_>) {
        let is_root = |node: &Node| match &node.parent {
            None => true,
            Some(parent) => !self.mapping.contains_key(parent),
        };
        let roots = self.mapping.iter().filter(|(_, node)| is_root(node));
        let mut waiting: Vec<(&str, Option<&str>)> =
            roots.map(|(id, _)| (id.as_str(), None)).collect();
        waiting.sort_by_key(|(id, _)| self.current.contains(id));
        waiting.reverse();
        let mut last: Option<&str> = None;
        let mut seen = std::collections::HashSet::new();
        let mut place = 0;
        while let Some((id, after)) = waiting.pop() {
            let Some(node) = self.mapping.get(id).filter(|_| seen.insert(id)) else {
                continue;
            };
            let mut here = after;
            if let Some(raw) = &node.message {
                place += 1;
                if last.is_some() && last != after {
                    let identity = EntryIdentity::Position(format!("rewind:{id}"));
                    let to = after.map(ToOwned::to_owned);
                    emitter.emit_event(place, identity, None, ImportEvent::Rewound { to });
                }
                if emit_message(emitter, place, id, raw) {
                    here = Some(id);
                    last = here;
                } else if last != after {
                    last = after;
                }
            }
            // The current branch is pushed first, and so emitted last.
            let mut children: Vec<&str> = node.children.iter().map(String::as_str).collect();
            children.sort_by_key(|child| self.current.contains(child));
            waiting.extend(children.into_iter().rev().map(|child| (child, here)));
        }
    }
}

/// Emits a message; returns whether it was emitted.
fn emit_message(emitter: &mut Emitter<'_>, place: u64, id: &str, raw: &RawValue) -> bool {
    let parsed: RawMessage<'_> = match serde_json::from_str(raw.get()) {
        Ok(parsed) => parsed,
        Err(error) => {
            emitter.emit_damaged(place, error.to_string());
            return false;
        }
    };
    let content = parse_content(emitter, parsed.content);
    let hidden = parsed.metadata.is_visually_hidden_from_conversation == Some(true);
    if content.0.is_empty() || (hidden && content.to_text().is_empty()) {
        emitter.emit_skipped(place, "message without content");
        return false;
    }
    let role = match parsed.author.role.as_str() {
        "user" => Role::User,
        "assistant" => Role::Assistant,
        "tool" => Role::Tool,
        _ => Role::System,
    };
    let at = json_members::parse_time(parsed.create_time).ok().flatten();
    let mut message = Message::new(role, content);
    message.model = parsed
        .metadata
        .model_slug
        .filter(|_| role == Role::Assistant);
    message.incomplete = role == Role::Assistant
        && parsed.end_turn.is_none()
        && parsed.status.as_deref() == Some("in_progress");
    let mut entry =
        throughline_model::IncomingEntry::message(place, Some(id.to_owned()), at, message);
    entry.author = parsed.author.name.filter(|name| !name.is_empty());
    emitter.emit(throughline_model::IncomingItem::Entry(Box::new(entry)));
    true
}

fn parse_content(emitter: &mut Emitter<'_>, raw: Option<&RawValue>) -> Content {
    #[derive(Deserialize)]
    struct RawContent<'a> {
        content_type: Option<String>,
        #[serde(borrow)]
        parts: Option<Vec<&'a RawValue>>,
        text: Option<String>,
        #[serde(borrow)]
        thoughts: Option<&'a RawValue>,
    }
    #[derive(Deserialize)]
    struct Thought {
        summary: Option<String>,
        content: Option<String>,
    }
    let (Some(raw), Some(shape)) = (raw, decode::<RawContent<'_>>(raw)) else {
        return Content::default();
    };
    let mut blocks = Vec::new();
    match shape.content_type.as_deref() {
        Some("thoughts") => {
            for thought in decode::<Vec<Thought>>(shape.thoughts).unwrap_or_default() {
                let parts = [thought.summary, thought.content];
                let parts: Vec<_> = parts.into_iter().flatten().collect();
                blocks.push(Block::Thinking {
                    text: parts.join("\n"),
                    signature: None,
                });
            }
        }
        _ if shape.parts.is_some() => {
            for part in shape.parts.unwrap_or_default() {
                if part.get().starts_with('"') {
                    blocks.extend(parse_optional_content(emitter, Some(part)).0);
                } else {
                    blocks.push(foreign_block(part.get()));
                }
            }
            blocks.retain(|block| block.as_text() != Some(""));
        }
        Some("code") => {
            let text = shape.text.unwrap_or_default();
            blocks.push(Block::Text(format!("```\n{text}\n```")));
        }
        _ => match shape.text {
            Some(text) if text.is_empty() => {}
            Some(text) => blocks.push(Block::Text(text)),
            None => blocks.push(foreign_block(raw.get())),
        },
    }
    Content(blocks)
}

/// Emits a message of Claude's export.
fn emit_claude_message(emitter: &mut Emitter<'_>, place: u64, raw: &RawValue) {
    #[derive(Deserialize)]
    struct ClaudeMessage<'a> {
        uuid: Option<String>,
        sender: String,
        text: Option<String>,
        #[serde(borrow)]
        content: Option<&'a RawValue>,
        #[serde(borrow)]
        created_at: Option<&'a RawValue>,
    }
    let written: ClaudeMessage<'_> = match serde_json::from_str(raw.get()) {
        Ok(written) => written,
        Err(error) => return emitter.emit_damaged(place, error.to_string()),
    };
    let mut content = parse_optional_content(emitter, written.content);
    if content.0.is_empty() {
        content = Content::text(written.text.unwrap_or_default());
    }
    let role = if written.sender == "human" {
        Role::User
    } else {
        Role::Assistant
    };
    let at: Option<Timestamp> = json_members::parse_time(written.created_at).ok().flatten();
    emitter.emit_message(place, written.uuid, at, Message::new(role, content));
}

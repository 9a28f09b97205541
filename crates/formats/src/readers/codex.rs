//! Codex CLI: rollouts, a file of JSON records a thread; and the index of thread names.
//!
//! A record is known by its ordinal, or else by its line: rollouts are only appended to.
//! What was said stands there twice, as an event and as an item; the items are taken.

mod record;

use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use throughline_model::{
    Body, EntryIdentity, ImportEvent, IncomingEntry, IncomingItem, IncomingOrigin, Message, Role,
    Summary, Timestamp, Usage,
};

use super::emitter::Emitter;
use super::line_format::LineFormat;
use super::message_content::decode;
use super::openai_item;
use crate::json_members;
use record::{Payload, Record};

/// What the first words of a user's message are where the program says it, not the person.
const INJECTED_PREFIXES: &[&str] = &[
    "<environment_context>",
    "<user_instructions>",
    "<permissions instructions>",
    "<skills_instructions>",
    "<turn_aborted>",
    "# AGENTS.md instructions",
];

/// What is known between two records.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Codex {
    session: String,
    /// Whether the file is the index of names.
    index: bool,
    begun: bool,
    folder: Option<String>,
    model: Option<String>,
    provider: Option<String>,
    /// An answer that waits for what it cost.
    #[serde(skip)]
    pending_answer: Option<Box<IncomingEntry>>,
}

#[derive(Deserialize)]
struct SessionMeta {
    #[serde(alias = "session_id")]
    id: Option<String>,
    forked_from_id: Option<String>,
    parent_thread_id: Option<String>,
    timestamp: Option<String>,
    cwd: Option<String>,
    model_provider: Option<String>,
    git: Option<Git>,
    history_base: Option<HistoryBase>,
}

#[derive(Deserialize)]
struct Git {
    repository_url: Option<String>,
}

#[derive(Deserialize)]
struct HistoryBase {
    thread_id: String,
    end_ordinal_exclusive: Option<u64>,
}

/// What an answer cost, in a record of its own.
#[derive(Deserialize)]
struct UsageRecord {
    usage: Option<RawUsage>,
}

#[derive(Deserialize)]
struct RawUsage {
    input_tokens: Option<u64>,
    cached_input_tokens: Option<u64>,
    cache_write_input_tokens: Option<u64>,
    output_tokens: Option<u64>,
}

impl LineFormat for Codex {
    fn new(path: &Path) -> Self {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let stem = name.split('.').next().unwrap_or(&name);
        // rollout-2026-01-02T03-04-05-<uuid>
        let uuid = stem.get(stem.len().saturating_sub(36)..).unwrap_or(stem);
        Self {
            session: uuid.to_owned(),
            index: name.starts_with("session_index"),
            ..Self::default()
        }
    }

    fn read_line(
        &mut self,
        telling: &mut Emitter<'_>,
        place: u64,
        line: &str,
    ) -> Result<(), String> {
        if self.index {
            return read_name(telling, place, line);
        }
        let record = Record::parse(line)?;
        let at = json_members::parse_time(record.timestamp).ok().flatten();
        let (Some(type_of), Some(payload)) = (record.type_of, record.payload) else {
            return Err("it has no `type` or no `payload`".to_owned());
        };
        // Ordinals are kept when a file is rewritten; lines are not.
        let number = record.ordinal.unwrap_or(place);
        let payload = match payload {
            Payload::Other(payload) => payload,
            Payload::Item(item) => {
                self.emit_pending_answer(telling);
                self.begin_session_without_meta(telling, at);
                if self
                    .read_item(telling, place, number, at, &item, line)
                    .is_err()
                {
                    telling.emit_foreign(place, Some(number.to_string()), at, line);
                }
                return Ok(());
            }
        };
        if type_of == "session_meta" {
            if self.begun {
                telling.emit_skipped(place, "session_meta of another thread");
                return Ok(());
            }
            let meta = decode(Some(payload)).ok_or("its payload cannot be understood")?;
            self.begin_session(telling, meta, at);
            return Ok(());
        }
        if type_of == "event_msg" {
            let event = self.read_event(payload);
            telling.emit_skipped(place, format!("event_msg {event}"));
            return Ok(());
        }
        if type_of == "token_usage_record" {
            let recorded: Option<UsageRecord> = decode(Some(payload));
            self.set_usage(recorded.and_then(|recorded| recorded.usage));
            telling.emit_skipped(place, type_of);
            return Ok(());
        }
        self.emit_pending_answer(telling);
        self.begin_session_without_meta(telling, at);
        match &*type_of {
            "turn_context" => self.read_turn_context(telling, place, at, payload),
            "compacted" => emit_compaction(telling, place, number, at, payload),
            _ => telling.emit_foreign(place, Some(number.to_string()), at, line),
        }
        Ok(())
    }

    fn resume(&self, telling: &mut Emitter<'_>) {
        if self.begun {
            telling.emit_session(telling.new_session(&self.session));
        }
    }

    fn finish(&mut self, telling: &mut Emitter<'_>) {
        self.emit_pending_answer(telling);
    }
}

impl Codex {
    fn begin_session(
        &mut self,
        telling: &mut Emitter<'_>,
        meta: SessionMeta,
        at: Option<Timestamp>,
    ) {
        if let Some(id) = meta.id {
            self.session = id;
        }
        let mut found = telling.new_session(&self.session);
        found.at = meta.timestamp.and_then(|time| time.parse().ok()).or(at);
        found.workspace.clone_from(&meta.cwd);
        found.remote = meta.git.and_then(|git| git.repository_url);
        found.origin = if let Some(base) = meta.history_base {
            Some(IncomingOrigin::Forked {
                session: base.thread_id,
                at: base
                    .end_ordinal_exclusive
                    .map(|end| end.saturating_sub(1).to_string()),
            })
        } else if let Some(session) = meta.forked_from_id {
            Some(IncomingOrigin::Forked { session, at: None })
        } else {
            let parent = meta.parent_thread_id;
            parent.map(|session| IncomingOrigin::Started { session })
        };
        self.folder = meta.cwd;
        self.provider = meta.model_provider;
        telling.emit_session(found);
        self.begun = true;
    }

    /// Begins the session of a rollout of an early version, or of one that lost its first
    /// line.
    fn begin_session_without_meta(&mut self, telling: &mut Emitter<'_>, at: Option<Timestamp>) {
        if !self.begun {
            let mut found = telling.new_session(&self.session);
            found.at = at;
            telling.emit_session(found);
            self.begun = true;
        }
    }

    fn read_item(
        &mut self,
        telling: &mut Emitter<'_>,
        place: u64,
        number: u64,
        at: Option<Timestamp>,
        item: &openai_item::RawItem<'_>,
        line: &str,
    ) -> Result<(), String> {
        if item.type_of().as_deref() == Some("ghost_snapshot") {
            telling.emit_skipped(place, "ghost_snapshot");
            return Ok(());
        }
        let mut message = item.to_message(telling, || record::payload_text(line))?;
        if message.role == Role::User && is_injected(&message) {
            message.role = Role::System;
        }
        let answer = message.role == Role::Assistant;
        if answer {
            message.model.clone_from(&self.model);
            message.provider.clone_from(&self.provider);
        }
        let entry = IncomingEntry::message(place, Some(number.to_string()), at, message);
        if answer {
            self.pending_answer = Some(Box::new(entry));
        } else {
            telling.emit(IncomingItem::Entry(Box::new(entry)));
        }
        Ok(())
    }

    /// An event: only what an answer cost is taken from it.
    fn read_event(&mut self, payload: &RawValue) -> String {
        #[derive(Deserialize)]
        struct Event {
            r#type: Option<String>,
            info: Option<Info>,
        }
        #[derive(Deserialize)]
        struct Info {
            last_token_usage: Option<RawUsage>,
        }
        let Some(event) = decode::<Event>(Some(payload)) else {
            return "of a later version".to_owned();
        };
        self.set_usage(event.info.and_then(|info| info.last_token_usage));
        event.r#type.unwrap_or_else(|| "without a type".to_owned())
    }

    /// Takes what the answer that waits cost.
    fn set_usage(&mut self, tokens: Option<RawUsage>) {
        if let Some(tokens) = tokens
            && let Some(held) = &mut self.pending_answer
            && let ImportEvent::Body(Body::Message(message)) = &mut held.event
            && message.usage.is_none()
        {
            message.usage = Some(Usage {
                input: tokens.input_tokens.unwrap_or(0),
                output: tokens.output_tokens.unwrap_or(0),
                cache_read: tokens.cached_input_tokens.unwrap_or(0),
                cache_write: tokens.cache_write_input_tokens.unwrap_or(0),
            });
        }
    }

    fn read_turn_context(
        &mut self,
        telling: &mut Emitter<'_>,
        place: u64,
        at: Option<Timestamp>,
        payload: &RawValue,
    ) {
        #[derive(Deserialize)]
        struct TurnContext {
            cwd: Option<String>,
            model: Option<String>,
        }
        let turn: Option<TurnContext> = decode(Some(payload));
        telling.emit_skipped(place, "turn_context");
        let Some(turn) = turn else { return };
        self.model = turn.model.or_else(|| self.model.take());
        if let Some(workspace) = turn.cwd
            && self.folder.as_ref() != Some(&workspace)
        {
            if self.folder.is_some() {
                let body = Body::Moved {
                    workspace: workspace.clone(),
                    project: None,
                };
                telling.emit_body(place, &format!("moved:{place}"), at, body);
            }
            self.folder = Some(workspace);
        }
    }

    fn emit_pending_answer(&mut self, telling: &mut Emitter<'_>) {
        if let Some(entry) = self.pending_answer.take() {
            telling.emit(IncomingItem::Entry(entry));
        }
    }
}

fn is_injected(message: &Message) -> bool {
    let text = message.content.to_text();
    INJECTED_PREFIXES
        .iter()
        .any(|start| text.trim_start().starts_with(start))
}

fn emit_compaction(
    telling: &mut Emitter<'_>,
    place: u64,
    number: u64,
    at: Option<Timestamp>,
    payload: &RawValue,
) {
    #[derive(Default, Deserialize)]
    struct CompactionRecord {
        #[serde(default)]
        message: String,
    }
    let compacted: CompactionRecord = decode(Some(payload)).unwrap_or_default();
    let background = match compacted.message.trim() {
        "" => "Compacted; the provider keeps the summary to itself.".to_owned(),
        _ => compacted.message,
    };
    let what = ImportEvent::Compacted {
        summary: Summary {
            background,
            ..Summary::default()
        },
        by: telling.format.name().to_owned(),
        keeps: None,
        usage: None,
    };
    telling.emit_event(place, EntryIdentity::External(number.to_string()), at, what);
}

/// A line of the index of names.
fn read_name(telling: &mut Emitter<'_>, place: u64, line: &str) -> Result<(), String> {
    #[derive(Deserialize)]
    struct NameRecord<'a> {
        id: String,
        thread_name: String,
        #[serde(borrow)]
        updated_at: Option<&'a RawValue>,
    }
    let named: NameRecord<'_> = json_members::parse_object(line.trim_start())?;
    let at = json_members::parse_time(named.updated_at).ok().flatten();
    telling.emit_session(telling.new_session(&named.id));
    let word = format!("name:{}", named.thread_name);
    telling.emit_title(place, &word, at, &named.thread_name, true);
    Ok(())
}

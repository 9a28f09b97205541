//! Reads Codex CLI rollouts, one file of JSON records per thread, and the thread name index.
//!
//! A record is identified by its ordinal, or else by its line, since rollouts are
//! append-only. Messages are stored twice, as an event and as an item; the items are used.

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

/// Prefixes of user messages that the program generated.
const INJECTED_PREFIXES: &[&str] = &[
    "<environment_context>",
    "<user_instructions>",
    "<permissions instructions>",
    "<skills_instructions>",
    "<turn_aborted>",
    "# AGENTS.md instructions",
];

/// The state between two records.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Codex {
    session: String,
    /// Whether the file is the name index.
    index: bool,
    begun: bool,
    folder: Option<String>,
    model: Option<String>,
    provider: Option<String>,
    /// An answer whose usage has not been read yet.
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

/// The token usage of an answer, which is a separate record.
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
        emitter: &mut Emitter<'_>,
        place: u64,
        line: &str,
    ) -> Result<(), String> {
        if self.index {
            return read_name(emitter, place, line);
        }
        let record = Record::parse(line)?;
        let at = json_members::parse_time(record.timestamp).ok().flatten();
        let (Some(type_of), Some(payload)) = (record.type_of, record.payload) else {
            return Err("it has no `type` or no `payload`".to_owned());
        };
        // Ordinals stay the same when a file is rewritten; line numbers do not.
        let number = record.ordinal.unwrap_or(place);
        let payload = match payload {
            Payload::Other(payload) => payload,
            Payload::Item(item) => {
                self.emit_pending_answer(emitter);
                self.begin_session_without_meta(emitter, at);
                if self
                    .read_item(emitter, place, number, at, &item, line)
                    .is_err()
                {
                    emitter.emit_foreign(place, Some(number.to_string()), at, line);
                }
                return Ok(());
            }
        };
        if type_of == "session_meta" {
            if self.begun {
                emitter.emit_skipped(place, "session_meta of another thread");
                return Ok(());
            }
            let meta = decode(Some(payload)).ok_or("its payload is not valid")?;
            self.begin_session(emitter, meta, at);
            return Ok(());
        }
        if type_of == "event_msg" {
            let event = self.read_event(payload);
            emitter.emit_skipped(place, format!("event_msg {event}"));
            return Ok(());
        }
        if type_of == "token_usage_record" {
            let recorded: Option<UsageRecord> = decode(Some(payload));
            self.set_usage(recorded.and_then(|recorded| recorded.usage));
            emitter.emit_skipped(place, type_of);
            return Ok(());
        }
        self.emit_pending_answer(emitter);
        self.begin_session_without_meta(emitter, at);
        match &*type_of {
            "turn_context" => self.read_turn_context(emitter, place, at, payload),
            "compacted" => emit_compaction(emitter, place, number, at, payload),
            _ => emitter.emit_foreign(place, Some(number.to_string()), at, line),
        }
        Ok(())
    }

    fn resume(&self, emitter: &mut Emitter<'_>) {
        if self.begun {
            emitter.emit_session(emitter.new_session(&self.session));
        }
    }

    fn finish(&mut self, emitter: &mut Emitter<'_>) {
        self.emit_pending_answer(emitter);
    }
}

impl Codex {
    fn begin_session(
        &mut self,
        emitter: &mut Emitter<'_>,
        meta: SessionMeta,
        at: Option<Timestamp>,
    ) {
        if let Some(id) = meta.id {
            self.session = id;
        }
        let mut found = emitter.new_session(&self.session);
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
        emitter.emit_session(found);
        self.begun = true;
    }

    /// Begins the session of an early rollout, or of one without its first line.
    fn begin_session_without_meta(&mut self, emitter: &mut Emitter<'_>, at: Option<Timestamp>) {
        if !self.begun {
            let mut found = emitter.new_session(&self.session);
            found.at = at;
            emitter.emit_session(found);
            self.begun = true;
        }
    }

    fn read_item(
        &mut self,
        emitter: &mut Emitter<'_>,
        place: u64,
        number: u64,
        at: Option<Timestamp>,
        item: &openai_item::RawItem<'_>,
        line: &str,
    ) -> Result<(), String> {
        if item.type_of().as_deref() == Some("ghost_snapshot") {
            emitter.emit_skipped(place, "ghost_snapshot");
            return Ok(());
        }
        let mut message = item.to_message(emitter, || record::payload_text(line))?;
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
            emitter.emit(IncomingItem::Entry(Box::new(entry)));
        }
        Ok(())
    }

    /// Reads an event. Only the token usage is used.
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
            return "of a newer version".to_owned();
        };
        self.set_usage(event.info.and_then(|info| info.last_token_usage));
        event.r#type.unwrap_or_else(|| "without a type".to_owned())
    }

    /// Sets the usage of the pending answer.
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
        emitter: &mut Emitter<'_>,
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
        emitter.emit_skipped(place, "turn_context");
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
                emitter.emit_body(place, &format!("moved:{place}"), at, body);
            }
            self.folder = Some(workspace);
        }
    }

    fn emit_pending_answer(&mut self, emitter: &mut Emitter<'_>) {
        if let Some(entry) = self.pending_answer.take() {
            emitter.emit(IncomingItem::Entry(entry));
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
    emitter: &mut Emitter<'_>,
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
        by: emitter.format.name().to_owned(),
        keeps: None,
        usage: None,
    };
    emitter.emit_event(place, EntryIdentity::External(number.to_string()), at, what);
}

/// Reads a line of the name index.
fn read_name(emitter: &mut Emitter<'_>, place: u64, line: &str) -> Result<(), String> {
    #[derive(Deserialize)]
    struct NameRecord<'a> {
        id: String,
        thread_name: String,
        #[serde(borrow)]
        updated_at: Option<&'a RawValue>,
    }
    let named: NameRecord<'_> = json_members::parse_object(line.trim_start())?;
    let at = json_members::parse_time(named.updated_at).ok().flatten();
    emitter.emit_session(emitter.new_session(&named.id));
    let word = format!("name:{}", named.thread_name);
    emitter.emit_title(place, &word, at, &named.thread_name, true);
    Ok(())
}

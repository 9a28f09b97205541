//! Reads pi sessions: one file of JSON entries each, a tree linked by `parentId`.
//!
//! An entry whose parent is not the previous entry is a rewind.

use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use throughline_model::{
    Block, Content, EntryIdentity, ImportEvent, IncomingOrigin, Message, Role, Summary, Timestamp,
    ToolResult, Usage,
};

use super::emitter::Emitter;
use super::line_format::LineFormat;
use super::message_content::{as_text, decode, parse_optional_content, to_text};
use crate::json_members;

/// The state between two entries.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Pi {
    session: String,
    begun: bool,
    last: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawEntry<'a> {
    #[serde(borrow)]
    r#type: Option<&'a RawValue>,
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    parent_id: Option<&'a RawValue>,
    #[serde(borrow)]
    timestamp: Option<&'a RawValue>,
    #[serde(borrow)]
    cwd: Option<&'a RawValue>,
    #[serde(borrow)]
    parent_session: Option<&'a RawValue>,
    #[serde(borrow)]
    message: Option<&'a RawValue>,
    #[serde(borrow)]
    summary: Option<&'a RawValue>,
    #[serde(borrow)]
    first_kept_entry_id: Option<&'a RawValue>,
    #[serde(borrow)]
    name: Option<&'a RawValue>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawMessage<'a> {
    #[serde(borrow)]
    role: Option<&'a RawValue>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    #[serde(borrow)]
    model: Option<&'a RawValue>,
    #[serde(borrow)]
    provider: Option<&'a RawValue>,
    usage: Option<RawUsage>,
    #[serde(borrow)]
    stop_reason: Option<&'a RawValue>,
    #[serde(borrow)]
    tool_call_id: Option<&'a RawValue>,
    is_error: Option<bool>,
    #[serde(borrow)]
    command: Option<&'a RawValue>,
    #[serde(borrow)]
    output: Option<&'a RawValue>,
    #[serde(borrow)]
    summary: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct RawUsage {
    input: u64,
    output: u64,
    cache_read: u64,
    cache_write: u64,
}

impl LineFormat for Pi {
    fn new(path: &Path) -> Self {
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        Self {
            session: session_id(&stem).to_owned(),
            ..Self::default()
        }
    }

    fn read_line(
        &mut self,
        emitter: &mut Emitter<'_>,
        place: u64,
        line: &str,
    ) -> Result<(), String> {
        let entry: RawEntry<'_> = json_members::parse_object(line.trim_start())?;
        let at = json_members::parse_time(entry.timestamp).ok().flatten();
        let type_of = as_text(entry.r#type).ok_or("it has no `type`")?;
        if type_of == "session" {
            self.begin_session(emitter, &entry, at);
            return Ok(());
        }
        if !self.begun {
            self.begin_session(emitter, &entry, at);
        }
        let id = to_text(entry.id);
        self.emit_rewind(emitter, &entry, place, id.as_deref(), at);
        let identity = id.clone().map_or_else(
            || EntryIdentity::Position(place.to_string()),
            EntryIdentity::External,
        );
        match &*type_of {
            "message" => {
                let parsed: RawMessage<'_> =
                    decode(entry.message).ok_or("its message is not valid")?;
                match parse_message(emitter, &parsed) {
                    Some(message) => emitter.emit_message(place, id, at, message),
                    None => emitter.emit_foreign(place, id, at, line),
                }
            }
            "compaction" => {
                let what = ImportEvent::Compacted {
                    summary: Summary {
                        background: to_text(entry.summary).unwrap_or_default(),
                        ..Summary::default()
                    },
                    by: emitter.format.name().to_owned(),
                    keeps: to_text(entry.first_kept_entry_id),
                    usage: None,
                };
                emitter.emit_event(place, identity, at, what);
            }
            "branch_summary" => {
                let summary = to_text(entry.summary).unwrap_or_default();
                emitter.emit_message(place, id, at, Message::text(Role::System, summary));
            }
            "custom_message" => {
                let content = parse_optional_content(emitter, entry.content);
                emitter.emit_message(place, id, at, Message::new(Role::System, content));
            }
            "session_info" => {
                let title = to_text(entry.name).unwrap_or_default();
                if title.trim().is_empty() {
                    emitter.emit_foreign(place, id, at, line);
                } else {
                    let what = ImportEvent::Titled {
                        title,
                        by_person: true,
                    };
                    emitter.emit_event(place, identity, at, what);
                }
            }
            _ => emitter.emit_foreign(place, id, at, line),
        }
        Ok(())
    }

    fn resume(&self, emitter: &mut Emitter<'_>) {
        if self.begun {
            emitter.emit_session(emitter.new_session(&self.session));
        }
    }
}

impl Pi {
    fn begin_session(
        &mut self,
        emitter: &mut Emitter<'_>,
        entry: &RawEntry<'_>,
        at: Option<Timestamp>,
    ) {
        if self.begun {
            return;
        }
        let header = as_text(entry.r#type).as_deref() == Some("session");
        if let Some(id) = to_text(entry.id).filter(|_| header) {
            self.session = id;
        }
        let mut found = emitter.new_session(&self.session);
        found.at = at;
        found.workspace = to_text(entry.cwd);
        found.origin = to_text(entry.parent_session).map(|path| IncomingOrigin::Forked {
            session: session_id(file_stem(&path)).to_owned(),
            at: None,
        });
        emitter.emit_session(found);
        self.begun = true;
    }

    fn emit_rewind(
        &mut self,
        emitter: &mut Emitter<'_>,
        entry: &RawEntry<'_>,
        place: u64,
        id: Option<&str>,
        at: Option<Timestamp>,
    ) {
        let Some(id) = id else { return };
        let parent = to_text(entry.parent_id);
        if self.last.is_some() && parent != self.last {
            let identity = EntryIdentity::Position(format!("rewind:{id}"));
            emitter.emit_event(place, identity, at, ImportEvent::Rewound { to: parent });
        }
        self.last = Some(id.to_owned());
    }
}

/// Returns the name of a session's file without folder and extension, on any platform.
fn file_stem(path: &str) -> &str {
    let name = path.rsplit(['/', '\\']).next().unwrap_or(path);
    name.strip_suffix(".jsonl").unwrap_or(name)
}

/// Extracts the id from a file name `<time>_<id>`.
fn session_id(stem: &str) -> &str {
    stem.split_once('_').map_or(stem, |(_, id)| id)
}

fn parse_message(emitter: &mut Emitter<'_>, parsed: &RawMessage<'_>) -> Option<Message> {
    let role = as_text(parsed.role)?;
    Some(match &*role {
        "user" => Message::new(Role::User, parse_optional_content(emitter, parsed.content)),
        "assistant" => {
            let mut message = Message::new(
                Role::Assistant,
                parse_optional_content(emitter, parsed.content),
            );
            message.model = to_text(parsed.model);
            message.provider = to_text(parsed.provider);
            message.usage = parsed.usage.as_ref().map(|tokens| Usage {
                input: tokens.input + tokens.cache_read + tokens.cache_write,
                output: tokens.output,
                cache_read: tokens.cache_read,
                cache_write: tokens.cache_write,
            });
            let reason = to_text(parsed.stop_reason);
            message.incomplete = matches!(reason.as_deref(), Some("aborted" | "error" | "length"));
            message
        }
        "toolResult" => {
            let result = ToolResult {
                call_id: to_text(parsed.tool_call_id)?,
                content: parse_optional_content(emitter, parsed.content),
                is_error: parsed.is_error.unwrap_or(false),
            };
            Message::new(Role::Tool, Content(vec![Block::ToolResult(result)]))
        }
        "bashExecution" => {
            let command = to_text(parsed.command)?;
            let output = to_text(parsed.output).unwrap_or_default();
            Message::text(Role::User, format!("$ {command}\n{output}"))
        }
        "custom" | "hookMessage" => Message::new(
            Role::System,
            parse_optional_content(emitter, parsed.content),
        ),
        "branchSummary" | "compactionSummary" => {
            Message::text(Role::System, to_text(parsed.summary)?)
        }
        _ => return None,
    })
}

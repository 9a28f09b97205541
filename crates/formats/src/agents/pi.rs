//! pi: a file of JSON entries a session, a tree by `parentId`.
//!
//! Where an entry follows another than the one before it, somebody went back: a rewind.

use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use throughline_model::{
    Block, Content, Happened, Identity, Message, Origin, Role, Summary, Timestamp, ToolResult,
    Usage,
};

use super::content::{any, content_of, text, word};
use super::line_format::LineFormat;
use super::telling::Telling;
use crate::members;

/// What is known between two entries.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Pi {
    session: String,
    begun: bool,
    last: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry<'a> {
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
struct Said<'a> {
    #[serde(borrow)]
    role: Option<&'a RawValue>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    #[serde(borrow)]
    model: Option<&'a RawValue>,
    #[serde(borrow)]
    provider: Option<&'a RawValue>,
    usage: Option<Tokens>,
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
struct Tokens {
    input: u64,
    output: u64,
    cache_read: u64,
    cache_write: u64,
}

impl LineFormat for Pi {
    fn before(path: &Path) -> Self {
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        Self {
            session: own_id(&stem).to_owned(),
            ..Self::default()
        }
    }

    fn line(&mut self, telling: &mut Telling<'_>, place: u64, line: &str) -> Result<(), String> {
        let entry: Entry<'_> = members::object(line.trim_start())?;
        let at = members::time(entry.timestamp).ok().flatten();
        let type_of = word(entry.r#type).ok_or("it has no `type`")?;
        if type_of == "session" {
            self.begin(telling, &entry, at);
            return Ok(());
        }
        if !self.begun {
            self.begin(telling, &entry, at);
        }
        let id = text(entry.id);
        self.rewind(telling, &entry, place, id.as_deref(), at);
        let identity = id
            .clone()
            .map_or_else(|| Identity::Place(place.to_string()), Identity::Own);
        match &*type_of {
            "message" => {
                let said: Said<'_> =
                    any(entry.message).ok_or("its message cannot be understood")?;
                match message(telling, &said) {
                    Some(message) => telling.message(place, id, at, message),
                    None => telling.foreign(place, id, at, line),
                }
            }
            "compaction" => {
                let what = Happened::Compacted {
                    summary: Summary {
                        background: text(entry.summary).unwrap_or_default(),
                        ..Summary::default()
                    },
                    by: telling.agent.name().to_owned(),
                    keeps: text(entry.first_kept_entry_id),
                    usage: None,
                };
                telling.happened(place, identity, at, what);
            }
            "branch_summary" => {
                let summary = text(entry.summary).unwrap_or_default();
                telling.message(place, id, at, Message::text(Role::System, summary));
            }
            "custom_message" => {
                let content = content_of(telling, entry.content);
                telling.message(place, id, at, Message::new(Role::System, content));
            }
            "session_info" => {
                let title = text(entry.name).unwrap_or_default();
                if title.trim().is_empty() {
                    telling.foreign(place, id, at, line);
                } else {
                    let what = Happened::Titled {
                        title,
                        by_person: true,
                    };
                    telling.happened(place, identity, at, what);
                }
            }
            _ => telling.foreign(place, id, at, line),
        }
        Ok(())
    }

    fn again(&self, telling: &mut Telling<'_>) {
        if self.begun {
            telling.session(telling.found(&self.session));
        }
    }
}

impl Pi {
    fn begin(&mut self, telling: &mut Telling<'_>, entry: &Entry<'_>, at: Option<Timestamp>) {
        if self.begun {
            return;
        }
        let header = word(entry.r#type).as_deref() == Some("session");
        if let Some(id) = text(entry.id).filter(|_| header) {
            self.session = id;
        }
        let mut found = telling.found(&self.session);
        found.at = at;
        found.workspace = text(entry.cwd);
        found.origin = text(entry.parent_session).map(|path| Origin::Forked {
            session: own_id(stem(&path)).to_owned(),
            at: None,
        });
        telling.session(found);
        self.begun = true;
    }

    fn rewind(
        &mut self,
        telling: &mut Telling<'_>,
        entry: &Entry<'_>,
        place: u64,
        id: Option<&str>,
        at: Option<Timestamp>,
    ) {
        let Some(id) = id else { return };
        let parent = text(entry.parent_id);
        if self.last.is_some() && parent != self.last {
            let identity = Identity::Place(format!("rewind:{id}"));
            telling.happened(place, identity, at, Happened::Rewound { to: parent });
        }
        self.last = Some(id.to_owned());
    }
}

/// The name of a session's file without its folder and ending, whatever system it is of.
fn stem(path: &str) -> &str {
    let name = path.rsplit(['/', '\\']).next().unwrap_or(path);
    name.strip_suffix(".jsonl").unwrap_or(name)
}

/// `<time>_<id>` in a file's name.
fn own_id(stem: &str) -> &str {
    stem.split_once('_').map_or(stem, |(_, id)| id)
}

fn message(telling: &mut Telling<'_>, said: &Said<'_>) -> Option<Message> {
    let role = word(said.role)?;
    Some(match &*role {
        "user" => Message::new(Role::User, content_of(telling, said.content)),
        "assistant" => {
            let mut message = Message::new(Role::Assistant, content_of(telling, said.content));
            message.model = text(said.model);
            message.provider = text(said.provider);
            message.usage = said.usage.as_ref().map(|tokens| Usage {
                input: tokens.input + tokens.cache_read + tokens.cache_write,
                output: tokens.output,
                cache_read: tokens.cache_read,
                cache_write: tokens.cache_write,
            });
            let reason = text(said.stop_reason);
            message.incomplete = matches!(reason.as_deref(), Some("aborted" | "error" | "length"));
            message
        }
        "toolResult" => {
            let result = ToolResult {
                call_id: text(said.tool_call_id)?,
                content: content_of(telling, said.content),
                is_error: said.is_error.unwrap_or(false),
            };
            Message::new(Role::Tool, Content(vec![Block::ToolResult(result)]))
        }
        "bashExecution" => {
            let command = text(said.command)?;
            let output = text(said.output).unwrap_or_default();
            Message::text(Role::User, format!("$ {command}\n{output}"))
        }
        "custom" | "hookMessage" => Message::new(Role::System, content_of(telling, said.content)),
        "branchSummary" | "compactionSummary" => Message::text(Role::System, text(said.summary)?),
        _ => return None,
    })
}

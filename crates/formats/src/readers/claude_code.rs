//! Reads Claude Code sessions: one file of JSON records each, linked by `parentUuid`.
//!
//! A file is read in order. If the user went back and continued differently, the record
//! names an earlier one as its parent; that becomes a rewind, so that the latest branch is
//! in effect and the others stay readable. Sub-agents, in separate files or as side chains
//! in the same file, are sessions started by this one.
//!
//! An answer often consists of several records with cumulative usage; each entry gets the
//! difference.

use std::collections::VecDeque;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use throughline_model::{
    Body, EntryIdentity, ImportEvent, IncomingOrigin, Message, Role, Summary, Timestamp, Usage,
};

use super::emitter::Emitter;
use super::line_format::LineFormat;
use super::message_content::{as_text, parse_optional_content, to_text};
use crate::json_members;

/// Number of skipped records whose predecessors are remembered.
const MAX_SKIPPED: usize = 1_024;
/// Number of records of a turn that are remembered.
const MAX_TURN_RECORDS: usize = 8_192;
/// Maximum number of open side chains.
const MAX_SIDE_CHAINS: usize = 256;

/// The state between two records.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct ClaudeCode {
    /// The session of the file.
    session: String,
    /// Whether the file belongs to a sub-agent.
    sub_agent: bool,
    /// The id under which the session was emitted, if it was.
    begun: Option<String>,
    /// The session that was emitted last.
    current: String,
    /// The last record of the main chain.
    last: Option<String>,
    /// The records since the last message of the user.
    turn: Vec<String>,
    /// Records without an entry, with the records before them.
    stands_after: VecDeque<(String, String)>,
    /// Side chains: the last record and the session of each.
    side_chains: VecDeque<(String, String)>,
    /// The last emitted answer, and its usage so far.
    answer: Option<String>,
    cost: Usage,
    folder: Option<String>,
    title: Option<String>,
    tag: Option<String>,
    /// Titles read before the session began.
    early: Vec<(u64, String, bool)>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Record<'a> {
    #[serde(borrow)]
    r#type: Option<&'a RawValue>,
    #[serde(borrow)]
    subtype: Option<&'a RawValue>,
    #[serde(borrow)]
    uuid: Option<&'a RawValue>,
    #[serde(borrow)]
    parent_uuid: Option<&'a RawValue>,
    #[serde(borrow)]
    logical_parent_uuid: Option<&'a RawValue>,
    #[serde(borrow)]
    session_id: Option<&'a RawValue>,
    #[serde(borrow)]
    timestamp: Option<&'a RawValue>,
    #[serde(borrow)]
    cwd: Option<&'a RawValue>,
    is_sidechain: Option<bool>,
    is_meta: Option<bool>,
    is_compact_summary: Option<bool>,
    #[serde(borrow)]
    forked_from: Option<&'a RawValue>,
    #[serde(borrow)]
    message: Option<&'a RawValue>,
    #[serde(borrow)]
    custom_title: Option<&'a RawValue>,
    #[serde(borrow)]
    ai_title: Option<&'a RawValue>,
    #[serde(borrow)]
    tag: Option<&'a RawValue>,
    #[serde(borrow)]
    summary: Option<&'a RawValue>,
    #[serde(borrow)]
    leaf_uuid: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
struct RawMessage<'a> {
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    model: Option<&'a RawValue>,
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
}

/// The position, id and time of a record.
struct RecordPosition {
    place: u64,
    uuid: Option<String>,
    when: Option<Timestamp>,
}

impl LineFormat for ClaudeCode {
    fn new(path: &Path) -> Self {
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        Self {
            sub_agent: stem.starts_with("agent-"),
            session: stem.into_owned(),
            ..Self::default()
        }
    }

    fn read_line(
        &mut self,
        emitter: &mut Emitter<'_>,
        place: u64,
        line: &str,
    ) -> Result<(), String> {
        let record: Record<'_> = json_members::parse_object(line.trim_start())?;
        let at = RecordPosition {
            place,
            uuid: to_text(record.uuid),
            when: json_members::parse_time(record.timestamp).ok().flatten(),
        };
        match as_text(record.r#type).as_deref() {
            Some("user" | "assistant") if record.message.is_some() => {
                self.read_message(emitter, &record, &at);
            }
            Some("system") if as_text(record.subtype).as_deref() == Some("compact_boundary") => {
                let before = to_text(record.logical_parent_uuid).or_else(|| self.last.clone());
                self.link_skipped(at.uuid.as_deref(), before);
                emitter.emit_skipped(place, "compact boundary");
            }
            Some("custom-title") => {
                self.emit_title(emitter, place, to_text(record.custom_title), true);
            }
            Some("ai-title") => self.emit_title(emitter, place, to_text(record.ai_title), false),
            Some("summary") => {
                let leaf = to_text(record.leaf_uuid);
                let ours = leaf.is_some_and(|leaf| self.turn.contains(&leaf));
                if ours {
                    self.emit_title(emitter, place, to_text(record.summary), false);
                } else {
                    emitter.emit_skipped(place, "summary of another session");
                }
            }
            Some("tag") => self.emit_tag(emitter, place, &to_text(record.tag).unwrap_or_default()),
            Some(
                noise @ ("progress"
                | "file-history-snapshot"
                | "queue-operation"
                | "content-replacement"
                | "last-prompt"
                | "mode"),
            ) => {
                let parent = to_text(record.parent_uuid);
                self.link_skipped(at.uuid.as_deref(), parent);
                emitter.emit_skipped(place, noise);
            }
            _ if self.begun.is_none() && at.uuid.is_none() => {
                emitter.emit_skipped(place, "record before the session");
            }
            _ => {
                self.enter_session(emitter, &record, &at, false);
                if let Some(uuid) = &at.uuid {
                    self.push_record(uuid);
                }
                emitter.emit_foreign(place, at.uuid, at.when, line);
            }
        }
        Ok(())
    }

    fn resume(&self, emitter: &mut Emitter<'_>) {
        if self.begun.is_some() {
            emitter.emit_session(emitter.new_session(&self.current));
        }
    }
}

impl ClaudeCode {
    fn read_message(
        &mut self,
        emitter: &mut Emitter<'_>,
        record: &Record<'_>,
        at: &RecordPosition,
    ) {
        let parsed: RawMessage<'_> = record
            .message
            .and_then(|raw| serde_json::from_str(raw.get()).ok())
            .unwrap_or_default();
        let assistant = as_text(record.r#type).as_deref() == Some("assistant");
        let side = record.is_sidechain == Some(true) && !self.sub_agent;
        let content = parse_optional_content(emitter, parsed.content);
        let prompt =
            !assistant && record.is_meta != Some(true) && content.tool_results().next().is_none();

        self.enter_session(emitter, record, at, side);
        if !side {
            self.emit_rewind(emitter, record, at, prompt);
            self.emit_move(emitter, record, at);
        }
        if record.is_compact_summary == Some(true) {
            let what = ImportEvent::Compacted {
                summary: Summary {
                    background: content.to_text().into_owned(),
                    ..Summary::default()
                },
                by: emitter.format.name().to_owned(),
                keeps: None,
                usage: None,
            };
            let identity = match &at.uuid {
                Some(uuid) => EntryIdentity::External(uuid.clone()),
                None => EntryIdentity::Position(at.place.to_string()),
            };
            emitter.emit_event(at.place, identity, at.when, what);
            return;
        }
        let role = match (assistant, record.is_meta == Some(true)) {
            (true, _) => Role::Assistant,
            (false, true) => Role::System,
            (false, false) => Role::User,
        };
        let mut message = Message::new(role, content);
        if assistant {
            message.model = to_text(parsed.model).filter(|model| model != "<synthetic>");
            message.usage = self.usage_increment(to_text(parsed.id), parsed.usage);
        }
        emitter.emit_message(at.place, at.uuid.clone(), at.when, message);
    }

    /// Returns the usage that a record adds to its answer.
    fn usage_increment(
        &mut self,
        answer: Option<String>,
        usage: Option<&RawValue>,
    ) -> Option<Usage> {
        let usage = json_members::parse_usage(usage).ok().flatten()?;
        let before = match (&answer, &self.answer) {
            (Some(this), Some(last)) if this == last => self.cost,
            _ => Usage::default(),
        };
        self.answer = answer;
        self.cost = usage;
        let added = Usage {
            input: usage.input.saturating_sub(before.input),
            output: usage.output.saturating_sub(before.output),
            cache_read: usage.cache_read.saturating_sub(before.cache_read),
            cache_write: usage.cache_write.saturating_sub(before.cache_write),
        };
        (added != Usage::default()).then_some(added)
    }

    /// Emits the session of a record, if it is not the current one.
    fn enter_session(
        &mut self,
        emitter: &mut Emitter<'_>,
        record: &Record<'_>,
        at: &RecordPosition,
        side: bool,
    ) {
        if self.begun.is_none() {
            self.begin_session(emitter, record, at);
        }
        let main = self.begun.clone().unwrap_or_default();
        let session = if side {
            self.side_chain_session(record, at, &main)
        } else {
            main.clone()
        };
        if session == self.current {
            return;
        }
        let mut found = emitter.new_session(&session);
        if side {
            found.at = at.when;
            found.workspace = to_text(record.cwd);
            found.origin = Some(IncomingOrigin::Started { session: main });
        }
        emitter.emit_session(found);
        self.current = session;
    }

    fn begin_session(
        &mut self,
        emitter: &mut Emitter<'_>,
        record: &Record<'_>,
        at: &RecordPosition,
    ) {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct ForkedFrom {
            session_id: String,
            message_uuid: Option<String>,
        }
        let of = to_text(record.session_id);
        let mut id = self.session.clone();
        let mut found = emitter.new_session(&id);
        if self.sub_agent {
            if let Some(of) = of {
                id = format!("{of}.{id}");
                found.id.clone_from(&id);
                found.origin = Some(IncomingOrigin::Started { session: of });
            }
        } else if let Some(raw) = record.forked_from
            && let Ok(fork) = serde_json::from_str::<ForkedFrom>(raw.get())
        {
            found.origin = Some(IncomingOrigin::Forked {
                session: fork.session_id,
                at: fork.message_uuid,
            });
        }
        self.folder = to_text(record.cwd);
        found.at = at.when;
        found.workspace.clone_from(&self.folder);
        emitter.emit_session(found);
        self.current.clone_from(&id);
        self.begun = Some(id);
        for (place, title, by_person) in std::mem::take(&mut self.early) {
            emitter.emit_title(place, &format!("title:{place}"), at.when, &title, by_person);
        }
        if let Some(tag) = self.tag.take() {
            self.emit_tag(emitter, at.place, &tag);
        }
    }

    /// Returns the session of a side chain, by the record it follows.
    fn side_chain_session(
        &mut self,
        record: &Record<'_>,
        at: &RecordPosition,
        main: &str,
    ) -> String {
        let uuid = at.uuid.clone().unwrap_or_default();
        let parent = to_text(record.parent_uuid);
        let known = self
            .side_chains
            .iter_mut()
            .find(|(last, _)| parent.as_ref() == Some(last));
        if let Some((last, session)) = known {
            *last = uuid;
            return session.clone();
        }
        let session = format!("{main}.side-{}", uuid.split('-').next().unwrap_or(&uuid));
        self.side_chains.push_back((uuid, session.clone()));
        if self.side_chains.len() > MAX_SIDE_CHAINS {
            self.side_chains.pop_front();
        }
        session
    }

    /// Emits a rewind if the user's message does not follow the previous turn. Within a turn,
    /// records branch without a rewind: results of several tools each follow the record of
    /// their call.
    fn emit_rewind(
        &mut self,
        emitter: &mut Emitter<'_>,
        record: &Record<'_>,
        at: &RecordPosition,
        prompt: bool,
    ) {
        let Some(uuid) = at.uuid.clone() else {
            return;
        };
        let parent = to_text(record.parent_uuid).map(|parent| self.resolve_entry(&parent));
        let follows = match &parent {
            Some(parent) => self.turn.contains(parent) || self.last.as_ref() == Some(parent),
            None => false,
        };
        if prompt && self.last.is_some() && !follows && self.turn.len() < MAX_TURN_RECORDS {
            let identity = EntryIdentity::Position(format!("rewind:{uuid}"));
            let what = ImportEvent::Rewound { to: parent };
            emitter.emit_event(at.place, identity, at.when, what);
        }
        if prompt {
            self.turn.clear();
        }
        self.push_record(&uuid);
    }

    fn push_record(&mut self, uuid: &str) {
        if self.turn.len() < MAX_TURN_RECORDS {
            self.turn.push(uuid.to_owned());
        }
        self.last = Some(uuid.to_owned());
    }

    fn link_skipped(&mut self, uuid: Option<&str>, parent: Option<String>) {
        if let (Some(uuid), Some(parent)) = (uuid, parent) {
            let entry = self.resolve_entry(&parent);
            self.stands_after.push_back((uuid.to_owned(), entry));
            if self.stands_after.len() > MAX_SKIPPED {
                self.stands_after.pop_front();
            }
        }
    }

    /// Returns the entry of a record, or the entry before it if it has none.
    fn resolve_entry(&self, uuid: &str) -> String {
        let known = self.stands_after.iter().rev().find(|(of, _)| of == uuid);
        known.map_or_else(|| uuid.to_owned(), |(_, entry)| entry.clone())
    }

    fn emit_move(&mut self, emitter: &mut Emitter<'_>, record: &Record<'_>, at: &RecordPosition) {
        let folder = to_text(record.cwd);
        if folder.is_some() && folder != self.folder {
            let workspace = folder.clone().unwrap_or_default();
            let body = Body::Moved {
                workspace,
                project: None,
            };
            emitter.emit_body(at.place, &format!("moved:{}", at.place), at.when, body);
            self.folder = folder;
        }
    }

    fn emit_title(
        &mut self,
        emitter: &mut Emitter<'_>,
        place: u64,
        title: Option<String>,
        by_person: bool,
    ) {
        // The same title is written repeatedly, to be near the end of the file.
        let Some(title) = title.filter(|title| self.title.as_ref() != Some(title)) else {
            return emitter.emit_skipped(place, "repeated title");
        };
        if self.begun.is_none() {
            self.early.push((place, title.clone(), by_person));
        } else {
            self.return_to_main(emitter);
            emitter.emit_title(place, &format!("title:{place}"), None, &title, by_person);
        }
        self.title = Some(title);
    }

    fn emit_tag(&mut self, emitter: &mut Emitter<'_>, place: u64, tag: &str) {
        if self.begun.is_none() {
            self.tag = Some(tag.to_owned()).filter(|tag| !tag.is_empty());
            return;
        }
        if self.tag.as_deref() == Some(tag) {
            return emitter.emit_skipped(place, "repeated tag");
        }
        self.return_to_main(emitter);
        if let Some(old) = self.tag.take() {
            let identity = EntryIdentity::Position(format!("untag:{place}"));
            emitter.emit_event(place, identity, None, ImportEvent::Untagged(vec![old]));
        }
        if !tag.is_empty() {
            let identity = EntryIdentity::Position(format!("tag:{place}"));
            emitter.emit_event(
                place,
                identity,
                None,
                ImportEvent::Tagged(vec![tag.to_owned()]),
            );
            self.tag = Some(tag.to_owned());
        }
    }

    fn return_to_main(&mut self, emitter: &mut Emitter<'_>) {
        if let Some(main) = self.begun.clone()
            && main != self.current
        {
            emitter.emit_session(emitter.new_session(&main));
            self.current = main;
        }
    }
}

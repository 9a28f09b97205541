//! Renders one entry as HTML.

use std::collections::HashMap;

use maud::{Markup, html};
use throughline::format::{abbreviate, format_thousands, pluralize};
use throughline::{
    Attachment, Block, Body, Checkpoint, Content, Entry, MergeMode, Message, Role, Seq, SessionId,
    SessionState, Summary, ToolCall, ToolResult,
};

use super::markdown::{render_markdown, truncate_text};
use super::page_format::{
    author_name, clock_time, entry_path, format_bytes, session_path, truncate_line,
};
use super::visitor::VisitorSession;

/// Renders the entries of a session.
pub(super) struct EntryRenderer<'a> {
    visitor_session: &'a VisitorSession,
    /// Tool results that are shown with their calls.
    results: HashMap<&'a str, &'a ToolResult>,
    /// The entry to highlight.
    highlighted: Option<Seq>,
}

impl<'a> EntryRenderer<'a> {
    /// Creates a renderer for these entries, highlighting one.
    pub(super) fn new(
        visitor_session: &'a VisitorSession,
        entries: &'a [Entry],
        highlighted: Option<Seq>,
    ) -> Self {
        let messages = entries.iter().filter_map(Entry::message);
        let calls: Vec<&str> = messages
            .clone()
            .flat_map(|message| message.content.tool_calls())
            .map(|call| call.id.as_str())
            .collect();
        let results = messages
            .flat_map(|message| message.content.tool_results())
            .map(|result| (result.call_id.as_str(), result))
            .filter(|(id, _)| calls.contains(id))
            .collect();
        Self {
            visitor_session,
            results,
            highlighted,
        }
    }

    fn state(&self) -> &SessionState {
        &self.visitor_session.record.state
    }

    fn id(&self) -> &SessionId {
        self.visitor_session.session.id()
    }

    fn time(&self, entry: &Entry) -> Markup {
        let visitor = &self.visitor_session.visitor;
        clock_time(
            entry.at,
            visitor.caller.tl.now(),
            &visitor.app.config.time_zone,
        )
    }

    /// CSS class for whether the model sees an entry as is, as part of a summary, or not at all.
    fn visibility_class(&self, seq: Seq) -> &'static str {
        let state = self.state();
        if !state.is_visible(seq) {
            return "unseen";
        }
        match state.checkpoint() {
            Some(mark) if seq <= mark.covers => "covered",
            _ => "",
        }
    }

    pub(super) fn render_entry(&self, entry: &Entry) -> Markup {
        match &entry.body {
            Body::Message(message) => self.render_message(entry, message),
            Body::Checkpoint(checkpoint) => self.render_checkpoint(entry, checkpoint, true),
            Body::Summarized(summary) => self.render_checkpoint(entry, summary, false),
            body => self.render_note(entry, &self.describe_change(body)),
        }
    }

    /// Renders an entry that is not a message.
    fn render_note(&self, entry: &Entry, what: &Markup) -> Markup {
        let seq = entry.seq;
        html! {
            div.note id={ "e" (seq) } data-seq=(seq) tabindex="-1" data-at[self.highlighted == Some(seq)] {
                span { (what) } " " (self.time(entry)) " "
                a.num href=(entry_path(self.id(), seq)) aria-label={ "Entry " (seq) } { "#" (seq) }
            }
        }
    }

    fn describe_change(&self, body: &Body) -> Markup {
        let names =
            |tags: &[throughline::Tag]| html! { @for tag in tags { " " span.tag { (tag) } } };
        match body {
            Body::CheckpointRetracted { checkpoint } => {
                html! { "Undid the summary at #" (checkpoint) }
            }
            Body::Restored(restored) => html! {
                "Continued from " a href=(session_path(&restored.from)) { (restored.from) }
                @if let Some(text) = &restored.acknowledgement { ": " q { (truncate_line(text, 300)) } }
            },
            Body::Pinned { text } => html! { "Pinned " q { (truncate_line(text, 300)) } },
            Body::Unpinned { pin } => html! { "Unpinned #" (pin) },
            Body::Decided { text } => html! { "Decided " q { (truncate_line(text, 300)) } },
            Body::Renamed {
                name: Some(name), ..
            } => html! { "Renamed to " b { (name) } },
            Body::Renamed { name: None, .. } => html! { "Removed the name" },
            Body::Described {
                description: Some(text),
            } => html! { "Described as " q { (truncate_line(text, 300)) } },
            Body::Described { description: None } => html! { "Removed the description" },
            Body::Tagged { tags } => html! { "Tagged" (names(tags)) },
            Body::Untagged { tags } => html! { "Removed tags" (names(tags)) },
            Body::Moved { workspace, .. } => html! { "Moved to " code { (workspace) } },
            Body::ContextSet {
                document,
                content: Some(_),
            } => html! { "Set the context document " code { (document) } },
            Body::ContextSet {
                document,
                content: None,
            } => html! { "Removed the context document " code { (document) } },
            Body::AgentSet(agent) => html! { "Switched to the agent " b { (agent.name) } },
            Body::Cleared => html! { "Context cleared: the model no longer sees earlier messages" },
            Body::Rewound { to } => {
                html! { "Rewound to #" (to) ": the model no longer sees the messages in between" }
            }
            Body::Forked { session, at } => {
                html! { "Forked from " a href=(entry_path(session, *at)) { (session) " at #" (at) } }
            }
            Body::Merged(merge) => html! {
                "Merged " a href=(session_path(&merge.from)) { (merge.from) }
                @match merge.mode {
                    MergeMode::Appended => { ": " (format_thousands(merge.entries)) " entries appended" },
                    MergeMode::Summarized => { ": " (truncate_line(merge.summary.as_deref().unwrap_or_default(), 500)) },
                }
            },
            Body::Archived => html! { "Archived" },
            Body::Unarchived => html! { "Unarchived" },
            Body::Erased(tombstone) => html! {
                "Erased"
                @if let Some(reason) = &tombstone.reason { ": " (truncate_line(reason, 200)) }
            },
            Body::Lost => html! { "Lost: this entry was damaged in the store" },
            Body::Remembered(remembered) => {
                html! { "Remembered " q { (truncate_line(&remembered.text, 300)) } }
            }
            other => html! { code { (other.kind()) } },
        }
    }

    fn render_message(&self, entry: &Entry, message: &Message) -> Markup {
        let seq = entry.seq;
        let mut shown = message
            .content
            .0
            .iter()
            .filter(|block| !self.is_shown_with_call(block))
            .peekable();
        if shown.peek().is_none() && !message.content.0.is_empty() {
            // Only an anchor for links: the result is shown with its call.
            return html! { span.anchor id={ "e" (seq) } data-seq=(seq) {} };
        }
        let who = match message.role {
            Role::User => "You",
            Role::Assistant => "Assistant",
            Role::System => "System",
            Role::Tool => "Tool",
        };
        html! {
            article class={ "entry " (message.role) " " (self.visibility_class(seq)) } id={ "e" (seq) } data-seq=(seq)
                tabindex="-1" data-at[self.highlighted == Some(seq)] aria-label={ (who) ", entry " (seq) } {
                header {
                    b.who { (entry.author.as_deref().unwrap_or(who)) }
                    (self.time(entry))
                    span.meta { (message_stats(message)) }
                    (self.render_menu(seq, message))
                    a.num href=(entry_path(self.id(), seq)) aria-label={ "Link to entry " (seq) } { "#" (seq) }
                }
                @for block in shown { (self.render_block(seq, block)) }
                @if message.incomplete { p.cut { "Cut off here" } }
            }
        }
    }

    fn render_menu(&self, seq: Seq, message: &Message) -> Markup {
        let here = session_path(self.id());
        html! {
            details.menu {
                summary aria-label={ "Actions for entry " (seq) } { "⋯" }
                ul {
                    li { a href={ (here) "/fork?at=" (seq) } { "Fork here…" } }
                    li { a href={ (here) "/rewind?to=" (seq) } { "Rewind to here…" } }
                    @if !message.content.to_text().is_empty() {
                        li { a href={ (here) "/pin?from=" (seq) } { "Pin a fact…" } }
                        li { a href={ (here) "/e/" (seq) "/text" } { "View as plain text" } }
                    }
                }
            }
        }
    }

    fn is_shown_with_call(&self, block: &Block) -> bool {
        matches!(block, Block::ToolResult(result) if self.results.contains_key(result.call_id.as_str()))
    }

    fn render_block(&self, seq: Seq, block: &Block) -> Markup {
        match block {
            Block::Text(text) => self.render_text(seq, text),
            Block::Thinking { text, .. } => html! {
                @if !text.is_empty() {
                    details.thinking { summary { "Thinking" } (render_markdown(truncate_text(text).0)) }
                }
            },
            Block::ToolCall(call) => self.render_tool_call(seq, call),
            Block::ToolResult(result) => html! {
                details.tool.failed[result.is_error] {
                    summary { span.tool-name { "Result" } span.muted { " of " (result.call_id) } }
                    (self.render_tool_result(seq, result))
                }
            },
            Block::Attachment(attachment) => render_attachment(attachment),
            Block::Foreign(json) => html! {
                details.tool {
                    summary { span.tool-name { (foreign_kind(json)) } }
                    pre { code { (truncate_text(&pretty_json(json.as_str())).0) } }
                }
            },
            _ => html! {},
        }
    }

    fn render_text(&self, seq: Seq, text: &str) -> Markup {
        let (start, whole) = truncate_text(text);
        html! {
            (render_markdown(start))
            @if !whole {
                p.cut { a href={ (session_path(self.id())) "/e/" (seq) "/text" } { "Show all " (format_thousands(text.len() as u64)) " bytes" } }
            }
        }
    }

    fn render_tool_call(&self, seq: Seq, call: &ToolCall) -> Markup {
        let result = self.results.get(call.id.as_str());
        let failed = result.is_some_and(|result| result.is_error);
        let input = pretty_json(call.input.as_str());
        html! {
            details.tool.failed[failed] {
                summary {
                    span.tool-name { (call.name) }
                    span.muted.args { (summarize_call(call)) }
                    @if failed { span.badge.bad { "failed" } }
                }
                pre { code { (truncate_text(&input).0) } }
                @if let Some(result) = result { (self.render_tool_result(seq, result)) }
                @else { p.muted { "No result yet" } }
            }
        }
    }

    fn render_tool_result(&self, seq: Seq, result: &ToolResult) -> Markup {
        html! {
            @for block in &result.content.0 {
                @match block {
                    Block::Text(text) => pre.result { code { (truncate_text(text).0) } },
                    other => (self.render_block(seq, other)),
                }
            }
        }
    }

    fn render_checkpoint(&self, entry: &Entry, checkpoint: &Checkpoint, hides: bool) -> Markup {
        let seq = entry.seq;
        let in_force = self
            .state()
            .checkpoint()
            .is_some_and(|mark| mark.seq == seq);
        html! {
            section.checkpoint id={ "e" (seq) } data-seq=(seq) tabindex="-1" data-at[self.highlighted == Some(seq)]
                aria-label={ "Summary, entry " (seq) } {
                header {
                    b { @if hides { "Compacted" } @else { "Summarized" } }
                    " everything up to " a href=(entry_path(self.id(), checkpoint.covers)) { "#" (checkpoint.covers) }
                    @if in_force { span.badge { "current" } }
                    span.meta { "written by " (author_name(&checkpoint.by)) " · " (pluralize(checkpoint.messages, "message")) }
                    (self.time(entry))
                    a.num href=(entry_path(self.id(), seq)) { "#" (seq) }
                }
                details open[in_force] { summary { "Summary" } (render_summary(&checkpoint.summary)) }
            }
        }
    }
}

/// A short description of a tool call.
fn summarize_call(call: &ToolCall) -> String {
    let value: Result<serde_json::Value, _> = call.input.decode();
    let text = match value {
        Ok(serde_json::Value::Object(members)) => {
            let shown = members
                .values()
                .find_map(|value| value.as_str().map(str::to_owned));
            shown.unwrap_or_else(|| call.input.to_string())
        }
        _ => call.input.to_string(),
    };
    truncate_line(&text, 80)
}

/// The kind of a foreign block.
fn foreign_kind(json: &throughline::Json) -> String {
    #[derive(serde::Deserialize)]
    struct TypeField {
        r#type: String,
    }
    let tagged: Result<TypeField, _> = json.decode();
    tagged.map_or_else(
        |_| "unknown block".to_owned(),
        |tagged| truncate_line(&tagged.r#type, 60),
    )
}

fn pretty_json(json: &str) -> String {
    let value: Result<serde_json::Value, _> = serde_json::from_str(json);
    value
        .and_then(|value| serde_json::to_string_pretty(&value))
        .unwrap_or_else(|_| json.to_owned())
}

fn render_attachment(attachment: &Attachment) -> Markup {
    let name = attachment.name.as_deref().unwrap_or("attachment");
    html! {
        p.attachment {
            a href={ "/api/blobs/" (attachment.blob) } download=(name) { (truncate_line(name, 120)) }
            span.muted { " " (attachment.media_type) ", " (format_bytes(attachment.bytes)) }
        }
    }
}

fn message_stats(message: &Message) -> Markup {
    html! {
        @if let Some(model) = &message.model { span { (model) } }
        @if let Some(usage) = &message.usage {
            span title="Input and output tokens" { (abbreviate(usage.input)) " → " (abbreviate(usage.output)) }
        }
        @if let Some(millis) = message.latency_ms {
            span title="Response time" { (format_seconds(millis)) }
        }
    }
}

fn format_seconds(millis: u64) -> String {
    format!("{}.{} s", millis / 1_000, millis % 1_000 / 100)
}

/// Renders a summary, section by section.
pub(super) fn render_summary(summary: &Summary) -> Markup {
    let parts = [
        ("In progress", &summary.in_progress),
        ("Pending", &summary.pending),
        ("Open tasks", &summary.open_tasks),
        ("Blockers", &summary.blockers),
        ("Decisions", &summary.decisions),
        ("Facts", &summary.facts),
        ("Completed", &summary.completed),
        ("Topics", &summary.topics),
        ("Files", &summary.files_touched),
    ];
    html! {
        div.summary {
            @if !summary.background.is_empty() { p { (summary.background) } }
            @for (name, items) in parts.iter().filter(|(_, items)| !items.is_empty()) {
                h4 { (name) }
                ul { @for item in *items { li { (truncate_line(item, 400)) } } }
            }
        }
    }
}

/// The readable text of a message.
pub(super) fn plain_text(content: &Content) -> String {
    content.to_text().into_owned()
}

//! Renders session headers and entries as text for the terminal.

use std::fmt::Write as _;

use anstyle::{AnsiColor, Style};
use jiff::Timestamp;
use throughline::format::{abbreviate, pluralize};
use throughline::{
    Block, Body, Entry, MergeMode, Message, Role, Seq, SessionInfo, SessionState, Status, Tag,
};

use crate::app::App;
use crate::markdown::{self, sanitize};
use crate::time::format_time;
use crate::ui::truncate;

/// Maximum lines shown of a tool's input or result.
const TOOL_LINES: usize = 12;

/// Renders the header of a session.
pub(crate) fn render_header(app: &App, info: &SessionInfo) -> String {
    let ui = &app.ui;
    let mut text = ui.bold(&sanitize(info.title()));
    let mut facts = vec![pluralize(info.messages, "message")];
    if let Some(agent) = &info.agent {
        facts.push(format!("with {}", sanitize(&agent.name)));
    }
    if info.tokens.total() > 0 {
        facts.push(format!("{} tokens", abbreviate(info.tokens.total())));
    }
    if info.status == Status::Archived {
        facts.push("archived".to_owned());
    }
    facts.extend(
        info.tags
            .iter()
            .map(|tag| format!("#{}", sanitize(tag.as_str()))),
    );
    let _ = writeln!(text, "  {}", ui.dim(&facts.join(" · ")));
    if info.name.is_some() {
        let _ = writeln!(text, "{}", ui.dim(info.id.as_str()));
    }
    if let Some(description) = &info.description {
        let _ = writeln!(text, "{}", sanitize(description));
    }
    text
}

/// Renders an entry.
pub(crate) fn render_entry(
    app: &App,
    entry: &Entry,
    state: &SessionState,
    now: Timestamp,
) -> String {
    let ui = &app.ui;
    let when = format_time(entry.at, now, &app.zone);
    match &entry.body {
        Body::Message(message) => {
            let who = render_author(app, entry, message);
            let mut facts = vec![when];
            if let Some(usage) = &message.usage {
                facts.push(format!("{} tokens", abbreviate(usage.total())));
            }
            if let Some(base) = entry.rebased {
                facts.push(format!("written after entry {base}, rebased"));
            }
            if !state.is_visible(entry.seq) {
                facts.push("the model no longer sees it".to_owned());
            }
            if message.incomplete {
                facts.push("cut off".to_owned());
            }
            let number = ui.dim(&format!("{:>4}", entry.seq));
            let facts = ui.dim(&facts.join(" · "));
            format!(
                "{number} {who}  {facts}\n{}\n",
                render_content(app, message)
            )
        }
        body => {
            let note = describe_body(body)
                .split_whitespace()
                .collect::<Vec<_>>()
                .join(" ");
            let line = format!("— {note} — {when}");
            let line = indent(&markdown::wrap_plain(&line, content_width(app)));
            let line = format!("{:>4} {}", entry.seq, line.trim());
            format!("{}\n\n", ui.dim(&line))
        }
    }
}

fn render_author(app: &App, entry: &Entry, message: &Message) -> String {
    let (color, name) = match message.role {
        Role::User => (AnsiColor::Green, "you"),
        Role::Assistant => (AnsiColor::Blue, "assistant"),
        Role::System => (AnsiColor::Magenta, "system"),
        Role::Tool => (AnsiColor::Yellow, "tool"),
    };
    let name = match (&entry.author, &message.model) {
        (Some(author), _) => format!("{} ({name})", sanitize(author)),
        (None, Some(model)) => format!("{name} ({})", sanitize(model)),
        (None, None) => name.to_owned(),
    };
    app.ui.paint(
        color
            .on_default()
            .effects(Style::new().bold().get_effects()),
        &name,
    )
}

fn render_content(app: &App, message: &Message) -> String {
    let style = markdown::Style {
        width: content_width(app),
        color: app.ui.color(),
    };
    let mut text = String::new();
    for block in &message.content.0 {
        match block {
            Block::Text(content) if message.role == Role::Assistant => {
                text.push_str(&markdown::render(content, &style));
            }
            Block::Text(content) => {
                text.push_str(&markdown::wrap_plain(content, style.width));
            }
            Block::Thinking { text: thought, .. } => {
                text.push_str(&app.ui.dim(&markdown::wrap_plain(thought, style.width)));
            }
            Block::ToolCall(call) => {
                let _ = writeln!(text, "▸ {}", app.ui.bold(&sanitize(&call.name)));
                text.push_str(&render_truncated(app, call.input.as_str()));
            }
            Block::ToolResult(result) => {
                let label = if result.is_error {
                    "▹ failed"
                } else {
                    "▹ result"
                };
                let _ = writeln!(text, "{label}");
                text.push_str(&render_truncated(app, &result.content.to_text()));
            }
            Block::Attachment(attachment) => {
                let name = attachment.name.as_deref().unwrap_or("attachment");
                let size = abbreviate(attachment.bytes);
                let _ = writeln!(
                    text,
                    "[{}: {}, {size}B]",
                    sanitize(name),
                    sanitize(&attachment.media_type)
                );
            }
            _ => {
                let _ = writeln!(text, "{}", app.ui.dim("[data of another system]"));
            }
        }
    }
    indent(&text)
}

/// Renders the first lines of a long text.
fn render_truncated(app: &App, text: &str) -> String {
    let lines: Vec<_> = text.lines().collect();
    let mut shown = String::new();
    for line in lines.iter().take(TOOL_LINES) {
        let line = truncate(&sanitize(line), app.ui.width.saturating_sub(8));
        let _ = writeln!(shown, "  {}", app.ui.dim(&line));
    }
    if lines.len() > TOOL_LINES {
        let more = format!("… {} more lines", lines.len() - TOOL_LINES);
        let _ = writeln!(shown, "  {}", app.ui.dim(&more));
    }
    shown
}

/// Returns the width available for content.
fn content_width(app: &App) -> usize {
    app.ui.width.min(100).saturating_sub(5)
}

fn indent(text: &str) -> String {
    let mut indented = String::new();
    for line in text.lines() {
        if !line.is_empty() {
            indented.push_str("     ");
            indented.push_str(line);
        }
        indented.push('\n');
    }
    indented
}

/// Describes in a few words an entry that is not a message.
fn describe_body(body: &Body) -> String {
    let tags = |tags: &[Tag]| tags.iter().map(Tag::as_str).collect::<Vec<_>>().join(", ");
    match body {
        Body::Message(_) => String::new(),
        Body::Checkpoint(checkpoint) => {
            format!(
                "summary of everything up to {} ({})",
                checkpoint.covers, checkpoint.by
            )
        }
        Body::Summarized(summary) => {
            format!("summary up to {} ({})", summary.covers, summary.by)
        }
        Body::CheckpointRetracted { checkpoint } => format!("summary {checkpoint} undone"),
        Body::Restored(restored) => format!("resumed from {}", restored.from),
        Body::Pinned { text } => format!("pinned: {text}"),
        Body::Unpinned { pin } => format!("unpinned: entry {pin}"),
        Body::Decided { text } => format!("decided: {text}"),
        Body::Renamed {
            name: Some(name), ..
        } => format!("named {name}"),
        Body::Renamed { name: None, .. } => "name removed".to_owned(),
        Body::Described { description } => {
            format!(
                "described: {}",
                description.as_deref().unwrap_or("(nothing)")
            )
        }
        Body::Tagged { tags: added } => format!("tagged {}", tags(added)),
        Body::Untagged { tags: removed } => format!("untagged {}", tags(removed)),
        Body::Moved { workspace, .. } => format!("moved to {workspace}"),
        Body::ContextSet { document, .. } => format!("context document {document} set"),
        Body::AgentSet(agent) => format!("agent {}", agent.name),
        Body::Cleared => "cleared: the model starts over".to_owned(),
        Body::Rewound { to } => format!("rewound to entry {to}"),
        Body::Forked { session, at } => format!("forked from {session} at {at}"),
        Body::Merged(merge) => match (&merge.mode, &merge.summary) {
            (MergeMode::Summarized, Some(summary)) => format!("merged {}: {summary}", merge.from),
            _ => format!("merged {} ({} appended)", merge.from, merge.entries),
        },
        Body::Archived => "archived".to_owned(),
        Body::Unarchived => "unarchived".to_owned(),
        Body::Remembered(fact) => {
            let what = if fact.proposed {
                "proposed"
            } else {
                "remembered"
            };
            let numbers = join_numbers(&fact.supersedes);
            let instead = match numbers.as_str() {
                "" => String::new(),
                numbers => format!(" (replacing {numbers})"),
            };
            format!("{what}: {}{instead}", fact.text)
        }
        Body::Accepted { fact } => format!("fact {fact} accepted"),
        Body::Forgotten { fact, reason } => match reason {
            Some(reason) => format!("fact {fact} forgotten: {reason}"),
            None => format!("fact {fact} forgotten"),
        },
        Body::Used { facts, session } => format!("used in {session}: {}", join_numbers(facts)),
        Body::Foreign { from, .. } => format!("a record of {from}"),
        Body::Erased(tombstone) => match &tombstone.reason {
            Some(reason) => format!("{} erased: {reason}", tombstone.erased_kind),
            None => format!("{} erased", tombstone.erased_kind),
        },
        Body::Lost => "lost to damage".to_owned(),
        other => format!("{} (from a later version)", other.kind()),
    }
}

fn join_numbers(seqs: &[Seq]) -> String {
    let numbers: Vec<_> = seqs.iter().map(ToString::to_string).collect();
    numbers.join(", ")
}

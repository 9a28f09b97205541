//! Notes in a transcript: one italic line per event, `*10:00:05 Pinned: 20 tools*`.

use throughline_model::{Body, MergeMode, Tag};

use super::escape::to_one_line;

/// Describes an entry that is not a message, checkpoint or restoration.
pub(super) fn describe_entry(body: &Body) -> String {
    match body {
        Body::CheckpointRetracted { checkpoint } => {
            format!("Checkpoint at entry {checkpoint} taken back")
        }
        Body::Summarized(summary) => {
            format!("Summary up to entry {} by {}", summary.covers, summary.by)
        }
        Body::Pinned { text } => format!("Pinned: {text}"),
        Body::Unpinned { pin } => format!("Unpinned entry {pin}"),
        Body::Decided { text } => format!("Decided: {text}"),
        Body::Renamed {
            name: Some(name), ..
        } => format!("Renamed to {name}"),
        Body::Renamed { name: None, .. } => "Name removed".to_owned(),
        Body::Described {
            description: Some(text),
        } => format!("Described: {text}"),
        Body::Described { description: None } => "Description removed".to_owned(),
        Body::Tagged { tags } => format!("Tagged: {}", join_tags(tags)),
        Body::Untagged { tags } => format!("Untagged: {}", join_tags(tags)),
        Body::Moved { workspace, .. } => format!("Moved to {workspace}"),
        Body::ContextSet {
            document,
            content: Some(_),
        } => format!("Context set: {document}"),
        Body::ContextSet {
            document,
            content: None,
        } => format!("Context removed: {document}"),
        Body::AgentSet(agent) => format!("Continued with {}", agent.name),
        Body::Cleared => "Cleared".to_owned(),
        Body::Rewound { to } => format!("Rewound to entry {to}"),
        Body::Forked { session, at } => format!("Forked from {session} at entry {at}"),
        Body::Merged(merge) => {
            let how = match merge.mode {
                MergeMode::Appended => format!("{} entries", merge.entries),
                MergeMode::Summarized => "its summary".to_owned(),
            };
            let text = merge.summary.as_deref().unwrap_or_default();
            let colon = if text.is_empty() { "" } else { ": " };
            format!("Merged from {}, {how}{colon}{text}", merge.from)
        }
        Body::Archived => "Archived".to_owned(),
        Body::Unarchived => "Unarchived".to_owned(),
        Body::Remembered(fact) if fact.proposed => format!("Proposed: {}", fact.text),
        Body::Remembered(fact) => format!("Remembered: {}", fact.text),
        Body::Accepted { fact } => format!("Accepted fact {fact}"),
        Body::Forgotten { fact, .. } => format!("Forgot fact {fact}"),
        Body::Used { session, .. } => format!("Facts used in {session}"),
        Body::Erased(tombstone) => format!("Erased: {}", tombstone.erased_kind),
        Body::Lost => "Lost: the entry could not be read".to_owned(),
        // Kinds of newer versions, and those without a description of their own.
        other => format!("Entry of kind {}", other.kind()),
    }
}

/// Formats a note as a line.
pub(super) fn format_note(time: &str, note: &str) -> String {
    format!("*{time} {}*", to_one_line(note).replace('*', "\\*"))
}

fn join_tags(tags: &[Tag]) -> String {
    let tags: Vec<_> = tags.iter().map(Tag::as_str).collect();
    tags.join(", ")
}

//! Converts entries to searchable passages.

use throughline_llm::OFFLINE_MODEL;
use throughline_model::{
    Block, Body, Content, Entry, Owner, Role, Seq, SessionId, extract_touched_files,
};
use throughline_recall::Passage;

/// The most bytes that are indexed of a text, of a tool's input and of its result.
const MAX_TEXT_BYTES: usize = 64_000;
const MAX_TOOL_INPUT_BYTES: usize = 2_000;
const MAX_TOOL_RESULT_BYTES: usize = 8_000;

/// Where an entry is stored.
pub(crate) struct EntryLocation<'a> {
    pub(crate) position: u64,
    pub(crate) owner: &'a Owner,
    pub(crate) session: &'a SessionId,
    /// The session it was forked from, and the last entry shared with it.
    pub(crate) origin: Option<(SessionId, Seq)>,
}

/// Returns the passage that is indexed for an entry; `None` if there is nothing to
/// search in it.
pub(crate) fn to_passage(entry: &Entry, location: EntryLocation<'_>) -> Option<Passage> {
    let (role, text) = match &entry.body {
        // The offline agent only repeats earlier messages.
        Body::Message(message) if message.model.as_deref() == Some(OFFLINE_MODEL) => return None,
        Body::Message(message) => (message.role, searchable_text(&message.content)),
        Body::Pinned { text } | Body::Decided { text } => (Role::User, text.clone()),
        Body::Merged(merge) => (Role::Assistant, merge.summary.clone()?),
        _ => return None,
    };
    if text.trim().is_empty() {
        return None;
    }
    Some(Passage {
        position: location.position,
        owner: location.owner.clone(),
        session: location.session.clone(),
        seq: entry.seq,
        role,
        author: entry.author.clone(),
        at: entry.at,
        files: extract_touched_files(std::slice::from_ref(entry)),
        external_id: entry.external_id.clone(),
        origin: location.origin,
        text,
    })
}

/// Returns the text of a message that people would search for.
fn searchable_text(content: &Content) -> String {
    let mut text = String::new();
    for block in &content.0 {
        let part = match block {
            Block::Text(text) => truncate_bytes(text, MAX_TEXT_BYTES).to_owned(),
            Block::ToolCall(call) => {
                format!(
                    "{} {}",
                    call.name,
                    truncate_bytes(call.input.as_str(), MAX_TOOL_INPUT_BYTES)
                )
            }
            Block::ToolResult(result) => {
                truncate_bytes(&result.content.to_text(), MAX_TOOL_RESULT_BYTES).to_owned()
            }
            Block::Attachment(attachment) => attachment.name.clone().unwrap_or_default(),
            _ => continue,
        };
        if !text.is_empty() && !part.is_empty() {
            text.push('\n');
        }
        text.push_str(&part);
    }
    text
}

/// Truncates a text to at most this many bytes, at a character boundary.
fn truncate_bytes(text: &str, max_bytes: usize) -> &str {
    let end = (0..=max_bytes.min(text.len())).rev();
    let end = end.into_iter().find(|end| text.is_char_boundary(*end));
    &text[..end.unwrap_or(0)]
}

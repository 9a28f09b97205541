//! What of an entry can be found.

use throughline_llm::OFFLINE_MODEL;
use throughline_model::{
    Block, Body, Content, Entry, Owner, Role, Seq, SessionId, extract_touched_files,
};
use throughline_recall::Passage;

/// How much of what was said is indexed, and of what tools were given and gave.
const MAX_TEXT_BYTES: usize = 64_000;
const MAX_TOOL_INPUT_BYTES: usize = 2_000;
const MAX_TOOL_RESULT_BYTES: usize = 8_000;

/// Where an entry is.
pub(crate) struct EntryLocation<'a> {
    pub(crate) position: u64,
    pub(crate) owner: &'a Owner,
    pub(crate) session: &'a SessionId,
    /// The session it was forked from, and the last entry shared with it.
    pub(crate) origin: Option<(SessionId, Seq)>,
}

/// The entry as the index sees it; none where there is nothing to be found in it.
pub(crate) fn to_passage(entry: &Entry, place: EntryLocation<'_>) -> Option<Passage> {
    let (role, text) = match &entry.body {
        // The offline agent only repeats what others said.
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
        position: place.position,
        owner: place.owner.clone(),
        session: place.session.clone(),
        seq: entry.seq,
        role,
        author: entry.author.clone(),
        at: entry.at,
        files: extract_touched_files(std::slice::from_ref(entry)),
        external_id: entry.external_id.clone(),
        origin: place.origin,
        text,
    })
}

/// What a person would look for in a message.
fn searchable_text(content: &Content) -> String {
    let mut text = String::new();
    for block in &content.0 {
        let piece = match block {
            Block::Text(said) => truncate_bytes(said, MAX_TEXT_BYTES).to_owned(),
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
        if !text.is_empty() && !piece.is_empty() {
            text.push('\n');
        }
        text.push_str(&piece);
    }
    text
}

/// The beginning of a text, at most so many bytes, whole characters.
fn truncate_bytes(text: &str, most: usize) -> &str {
    let end = (0..=most.min(text.len())).rev();
    let end = end.into_iter().find(|end| text.is_char_boundary(*end));
    &text[..end.unwrap_or(0)]
}

//! What of an entry can be found.

use throughline_llm::OFFLINE;
use throughline_model::{Block, Body, Content, Entry, Owner, Role, Seq, SessionId, files_touched};
use throughline_recall::Passage;

/// How much of what was said is indexed, and of what tools were given and gave.
const SAID: usize = 64_000;
const CALLED: usize = 2_000;
const RETURNED: usize = 8_000;

/// Where an entry is.
pub(crate) struct Place<'a> {
    pub(crate) position: u64,
    pub(crate) owner: &'a Owner,
    pub(crate) session: &'a SessionId,
    /// The session it was forked from, and the last entry shared with it.
    pub(crate) origin: Option<(SessionId, Seq)>,
}

/// The entry as the index sees it; none where there is nothing to be found in it.
pub(crate) fn passage(entry: &Entry, place: Place<'_>) -> Option<Passage> {
    let (role, text) = match &entry.body {
        // The offline agent only repeats what others said.
        Body::Message(message) if message.model.as_deref() == Some(OFFLINE) => return None,
        Body::Message(message) => (message.role, text_of(&message.content)),
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
        files: files_touched(std::slice::from_ref(entry)),
        external_id: entry.external_id.clone(),
        origin: place.origin,
        text,
    })
}

/// What a person would look for in a message.
fn text_of(content: &Content) -> String {
    let mut text = String::new();
    for block in &content.0 {
        let piece = match block {
            Block::Text(said) => beginning(said, SAID).to_owned(),
            Block::ToolCall(call) => {
                format!("{} {}", call.name, beginning(call.input.as_str(), CALLED))
            }
            Block::ToolResult(result) => beginning(&result.content.to_text(), RETURNED).to_owned(),
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
fn beginning(text: &str, most: usize) -> &str {
    let end = (0..=most.min(text.len())).rev();
    let end = end.into_iter().find(|end| text.is_char_boundary(*end));
    &text[..end.unwrap_or(0)]
}

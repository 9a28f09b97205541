//! Writers for other systems' session formats, and for an HTML page.
//!
//! An export for another agent contains only what is in effect: rewound entries are left
//! out, and the current summary is written where that agent expects one, so that it loads
//! the same context. Every tool call has a result and vice versa, since an unpaired one
//! would make every later request fail.

mod claude_code;
mod codex;
mod html;
mod pending_tool_calls;
mod pi;
mod reference_layouts;

use std::collections::HashMap;
use std::io;

use throughline_model::{
    Block, Digest, Entry, EntryId, Message, Seq, SessionHeader, SessionInfo, SessionState, Summary,
    Timestamp,
};

pub use claude_code::ClaudeCodeWriter;
pub use codex::CodexWriter;
pub use html::HtmlWriter;
pub use pi::PiWriter;
pub use reference_layouts::{Layout, SessionExport};

/// Attachment bytes by digest.
pub type Blobs = HashMap<Digest, Vec<u8>>;

/// What a writer needs to know about a session before its first entry.
#[derive(Clone, Debug)]
pub struct ExportMetadata {
    /// The session header.
    pub header: SessionHeader,
    /// The session info.
    pub info: SessionInfo,
    /// The session state, which determines the visible entries.
    pub state: SessionState,
    /// The current summary: the last entry it covers, its content, and when it was made.
    pub summary: Option<(Seq, Summary, Timestamp)>,
    /// The folder in which to continue.
    pub folder: String,
}

/// Writes a session, entry by entry.
pub trait SessionWriter {
    /// Writes an entry. `blobs` has the attachments it refers to.
    fn write_entry(&mut self, entry: &Entry, blobs: &Blobs) -> io::Result<()>;

    /// Ends the session.
    fn finish(&mut self) -> io::Result<()>;
}

impl ExportMetadata {
    /// Returns the id for systems that need a UUID: the session's own if it is one, otherwise
    /// one derived from it.
    pub fn uuid(&self, system: &str) -> String {
        let id = self.info.id.as_str();
        let shape = [8, 4, 4, 4, 12];
        let mut parts = id.split('-');
        let is_uuid = shape.iter().all(|length| {
            let hex = |part: &str| part.chars().all(|c| c.is_ascii_hexdigit());
            parts
                .next()
                .is_some_and(|part| part.len() == *length && hex(part))
        }) && parts.next().is_none();
        if is_uuid {
            return id.to_lowercase();
        }
        EntryId::derive(&[system.as_bytes(), id.as_bytes()]).to_string()
    }

    /// Returns the message of an entry, if the entry is visible.
    fn visible_message<'e>(&self, entry: &'e Entry) -> Option<&'e Message> {
        entry.message().filter(|_| self.state.is_visible(entry.seq))
    }

    /// Whether an entry comes after those the current summary covers.
    fn is_after_summary(&self, seq: Seq) -> bool {
        let covers = self.summary.as_ref().map(|(covers, ..)| *covers);
        covers.is_some_and(|covers| seq > covers)
    }

    /// Returns the current summary as text.
    fn summary_text(&self) -> Option<(Seq, String, Timestamp)> {
        let (covers, summary, at) = self.summary.as_ref()?;
        Some((*covers, summary_to_text(summary), *at))
    }
}

/// Renders a summary as plain text.
pub fn summary_to_text(summary: &Summary) -> String {
    let lists = [
        ("Topics", &summary.topics),
        ("Done", &summary.completed),
        ("In progress", &summary.in_progress),
        ("Pending", &summary.pending),
        ("Open tasks", &summary.open_tasks),
        ("Blocked by", &summary.blockers),
        ("Decisions", &summary.decisions),
        ("Facts", &summary.facts),
        ("Files", &summary.files_touched),
    ];
    let mut text = summary.background.clone();
    for (name, items) in lists {
        if items.is_empty() {
            continue;
        }
        if !text.is_empty() {
            text.push_str("\n\n");
        }
        text.push_str(name);
        text.push(':');
        for item in items {
            text.push_str("\n- ");
            text.push_str(item);
        }
    }
    text
}

/// Renders a block as text, for formats that do not support it.
fn block_to_text(block: &Block) -> Option<String> {
    match block {
        Block::Text(text) => Some(text.clone()).filter(|text| !text.trim().is_empty()),
        Block::Attachment(file) => {
            let name = file.name.as_deref().unwrap_or("a file");
            Some(format!(
                "[{name}: {}, {} bytes]",
                file.media_type, file.bytes
            ))
        }
        Block::Foreign(json) => Some(format!("```json\n{json}\n```")),
        _ => None,
    }
}

/// Returns the media type and bytes of an image, if models accept it.
fn image_data<'b>(block: &'b Block, blobs: &'b Blobs) -> Option<(&'b str, &'b [u8])> {
    let Block::Attachment(file) = block else {
        return None;
    };
    let known = ["image/png", "image/jpeg", "image/gif", "image/webp"];
    let bytes = blobs.get(&file.blob)?;
    known
        .contains(&file.media_type.as_str())
        .then_some((file.media_type.as_str(), bytes.as_slice()))
}

//! Writers of sessions in other systems' formats, and as a page to read.
//!
//! What is written for another agent is what stands: what was taken back is left out, and
//! the summary in force comes where that agent expects one, so that its loader builds the
//! same context from it. Calls and results are always in pairs, since an unpaired one makes
//! every later request fail.

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

/// The bytes of attachments.
pub type Blobs = HashMap<Digest, Vec<u8>>;

/// What a writer must know of a session before its first entry.
#[derive(Clone, Debug)]
pub struct ExportMetadata {
    /// How it was born.
    pub header: SessionHeader,
    /// What is known of it.
    pub info: SessionInfo,
    /// What stands.
    pub state: SessionState,
    /// The summary in force: what it covers, what it says, and when it was made.
    pub summary: Option<(Seq, Summary, Timestamp)>,
    /// The folder to go on in.
    pub folder: String,
}

/// Writes a session, entry by entry.
pub trait SessionWriter {
    /// Writes what an entry says. The blobs it names are given along.
    fn write_entry(&mut self, entry: &Entry, blobs: &Blobs) -> io::Result<()>;

    /// Ends the session.
    fn finish(&mut self) -> io::Result<()>;
}

impl ExportMetadata {
    /// What the session is called by systems that want a UUID: its own id where it is one,
    /// or one that is a function of it.
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

    /// The message of an entry, where it stands.
    fn visible_message<'e>(&self, entry: &'e Entry) -> Option<&'e Message> {
        entry.message().filter(|_| self.state.is_visible(entry.seq))
    }

    /// Whether an entry comes after what the summary in force covers.
    fn is_after_summary(&self, seq: Seq) -> bool {
        let covers = self.summary.as_ref().map(|(covers, ..)| *covers);
        covers.is_some_and(|covers| seq > covers)
    }

    /// What the summary in force says, as text.
    fn summary_text(&self) -> Option<(Seq, String, Timestamp)> {
        let (covers, summary, at) = self.summary.as_ref()?;
        Some((*covers, summary_to_text(summary), *at))
    }
}

/// A summary as plain text.
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

/// What is left of a block where a format has no place for it.
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

/// A picture's media type and bytes, where models take it.
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

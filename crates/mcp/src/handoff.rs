//! Renders a session for an agent or person who continues it: summary, notes and last
//! messages.

use throughline::{Note, Session};

use crate::McpServer;
use crate::history_view::{QUOTE_NOTICE, take_fitting};
use crate::tool_error::ToolError;

/// The number of last entries to quote.
const TAIL_ENTRIES: usize = 20;
/// The maximum number of characters of each.
const MAX_ENTRY_CHARS: usize = 2_000;

impl McpServer {
    /// Renders a session's summary, its pins and decisions, and its last messages.
    pub(crate) async fn render_handoff(&self, session: &Session) -> Result<String, ToolError> {
        let record = session.record().await?;
        let info = &record.info;
        let summary = match session.last_summary().await? {
            Some(known) => known.summary,
            None => session.summarize_now().await?,
        };
        let mut text = format!(
            "Session {} ({}), {} messages, last active {}.\n{QUOTE_NOTICE}\n\n<session-history>\n",
            info.id,
            self.redact_text(info.title()),
            info.messages,
            info.last_activity
        );
        text.push_str(&self.redact_text(&summary.to_block()));
        text.push('\n');
        self.push_notes(&mut text, "Pinned", &record.state.pins);
        self.push_notes(&mut text, "Decided", &record.state.decisions);
        let tail = session.tail(TAIL_ENTRIES).await?;
        let tail = tail.into_iter().filter(|entry| entry.message().is_some());
        let tail = tail.map(|entry| self.entry_view(entry, MAX_ENTRY_CHARS));
        text.push_str("\nLast messages:\n");
        for entry in take_fitting(tail.collect(), true) {
            text.push_str(&entry.to_transcript());
        }
        text.push_str("</session-history>\n");
        Ok(text)
    }

    fn push_notes(&self, text: &mut String, heading: &str, notes: &[Note]) {
        if notes.is_empty() {
            return;
        }
        text.push_str(&format!("\n{heading}:\n"));
        for note in notes {
            text.push_str(&format!("- {}\n", self.redact_text(&note.text)));
        }
    }
}

//! What is told of a session to whoever goes on with it.

use throughline::{Note, Session};

use crate::McpServer;
use crate::history_view::{QUOTE_NOTICE, take_fitting};
use crate::tool_error::ToolError;

/// How many of the last entries are quoted.
const TAIL_ENTRIES: usize = 20;
/// How many characters of each.
const MAX_ENTRY_CHARS: usize = 2_000;

impl McpServer {
    /// What a session came to, what stands in it, and what was said last.
    pub(crate) async fn render_handoff(&self, session: &Session) -> Result<String, ToolError> {
        let record = session.record().await?;
        let card = &record.info;
        let summary = match session.last_summary().await? {
            Some(known) => known.summary,
            None => session.summarize_now().await?,
        };
        let mut text = format!(
            "Session {} ({}), {} messages, last active {}.\n{QUOTE_NOTICE}\n\n<session-history>\n",
            card.id,
            self.redact_text(card.title()),
            card.messages,
            card.last_activity
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

    fn push_notes(&self, text: &mut String, heading: &str, noted: &[Note]) {
        if noted.is_empty() {
            return;
        }
        text.push_str(&format!("\n{heading}:\n"));
        for noted in noted {
            text.push_str(&format!("- {}\n", self.redact_text(&noted.text)));
        }
    }
}

//! What is told of a session to whoever goes on with it.

use throughline::{Noted, Session};

use crate::Mcp;
use crate::refusal::Refusal;
use crate::shown::{QUOTED, fitting};

/// How many of the last entries are quoted.
const TAIL: usize = 20;
/// How many characters of each.
const LONGEST: usize = 2_000;

impl Mcp {
    /// What a session came to, what stands in it, and what was said last.
    pub(crate) async fn passed_on(&self, session: &Session) -> Result<String, Refusal> {
        let record = session.record().await?;
        let card = &record.card;
        let summary = match session.last_summary().await? {
            Some(known) => known.summary,
            None => session.summary_now().await?,
        };
        let mut text = format!(
            "Session {} ({}), {} messages, last active {}.\n{QUOTED}\n\n<session-history>\n",
            card.id,
            self.safe(card.title()),
            card.messages,
            card.last_activity
        );
        text.push_str(&self.safe(&summary.to_block()));
        text.push('\n');
        self.noted(&mut text, "Pinned", &record.standing.pins);
        self.noted(&mut text, "Decided", &record.standing.decisions);
        let tail = session.tail(TAIL).await?;
        let tail = tail.into_iter().filter(|entry| entry.message().is_some());
        let tail = tail.map(|entry| self.entry_shown(entry, LONGEST));
        text.push_str("\nLast messages:\n");
        for entry in fitting(tail.collect(), true) {
            text.push_str(&entry.lines());
        }
        text.push_str("</session-history>\n");
        Ok(text)
    }

    fn noted(&self, text: &mut String, heading: &str, noted: &[Noted]) {
        if noted.is_empty() {
            return;
        }
        text.push_str(&format!("\n{heading}:\n"));
        for noted in noted {
            text.push_str(&format!("- {}\n", self.safe(&noted.text)));
        }
    }
}

//! Leaving: the summary, the transcript, and what a person is told at the end.

use std::time::Duration;

use anyhow::Result;
use throughline::glance::thousands;
use throughline::{Session, SessionId};

use super::Chat;
use crate::commands::export::{self, Secrets};
use crate::commands::memory::propose;
use crate::markdown::safe;
use crate::places::make_private;

/// How long a summary may take before the person is let go.
const PATIENCE: Duration = Duration::from_secs(60);
pub(super) const SUMMARIZING: &str = "📝 Generating session summary...";
const SAVED_ALL_THE_SAME: &str = "everything said is saved all the same";

impl Chat<'_> {
    /// Leaves the chat.
    pub(super) async fn leave(&mut self) -> Result<()> {
        let said_something = self.leave_session().await?;
        self.app.ui.status("Goodbye!");
        if said_something && !self.keeps {
            self.app.ui.status("None of it was kept.");
        } else if said_something && let Some(session) = self.current() {
            self.tell_what_is_saved(session).await?;
        }
        self.propose_news().await;
        self.leave_quietly();
        Ok(())
    }

    /// Tells what a summary proposes to remember, once everything else is told.
    pub(super) async fn propose_news(&mut self) {
        if let Some((session, summary)) = self.news.take() {
            propose(self.app, &session, &summary).await;
        }
    }

    /// Leaves without a word.
    pub(super) fn leave_quietly(&mut self) {
        self.mark = None;
        self.keep_counts();
    }

    /// Leaves the session that is open, with a summary of what was said in it; tells
    /// whether anything was.
    pub(super) async fn leave_session(&mut self) -> Result<bool> {
        let asked = std::mem::take(&mut self.asked);
        let Some(session) = self.current().filter(|_| asked > 0).cloned() else {
            return Ok(false);
        };
        if !self.keeps {
            return Ok(true);
        }
        let ui = &self.app.ui;
        let summarizing = tokio::time::timeout(PATIENCE, self.summarize(&session));
        let summarized = self.unless_stopped("summarizing", summarizing).await;
        match summarized {
            Some(Ok(Ok(summarized))) => {
                ui.status(format_args!("{SUMMARIZING} ✓"));
                for warning in &summarized.warnings {
                    ui.warn(safe(warning));
                }
                self.news = summarized.entry.map(|entry| (session.clone(), entry));
            }
            Some(Ok(Err(error))) => {
                ui.status(format_args!("{SUMMARIZING} ✗"));
                ui.warn(format_args!(
                    "summary generation failed ({error:#}); {SAVED_ALL_THE_SAME}"
                ));
            }
            Some(Err(_)) | None => {
                ui.status(format_args!("{SUMMARIZING} ✗"));
                ui.warn(format_args!(
                    "no summary was waited for; {SAVED_ALL_THE_SAME}"
                ));
            }
        }
        self.write_transcript(&session).await;
        Ok(true)
    }

    async fn tell_what_is_saved(&self, session: &Session) -> Result<()> {
        let ui = &self.app.ui;
        let card = session.record().await?.card;
        ui.status("✓ Conversation saved successfully!");
        ui.status(format_args!("  Session ID: {}", card.id));
        ui.status(format_args!("  Queries: {}", thousands(card.queries)));
        let (tokens, restoration) = (card.tokens.total(), card.restoration.total());
        if restoration > 0 {
            ui.status(format_args!(
                "  Restoration: {} tokens (in: {}, out: {})",
                thousands(restoration),
                thousands(card.restoration.input),
                thousands(card.restoration.output)
            ));
            ui.status(format_args!(
                "  Session Tokens: {} tokens",
                thousands(tokens)
            ));
            let all = thousands(tokens.saturating_add(restoration));
            ui.status(format_args!("  Combined Total: {all} tokens"));
        } else {
            ui.status(format_args!("  Tokens: {}", thousands(tokens)));
        }
        if let Some(transcript) = self.transcript_of(&card.id) {
            ui.status(format_args!("  Transcript: {}", safe(&transcript)));
        }
        Ok(())
    }

    /// Where the transcript of a session goes, if transcripts are written.
    fn transcript_path(&self, session: &SessionId) -> Option<std::path::PathBuf> {
        let folder = self.app.config.transcripts().filter(|_| self.keeps)?;
        let folder = self.app.places.folder.join(folder);
        Some(folder.join(format!("{session}.md")))
    }

    /// Where the transcript of a session is, if there is one.
    pub(super) fn transcript_of(&self, session: &SessionId) -> Option<String> {
        let path = self.transcript_path(session).filter(|path| path.exists())?;
        Some(path.to_string_lossy().into_owned())
    }

    /// Writes the transcript where transcripts are configured; tells where.
    pub(super) async fn write_transcript(&self, session: &Session) -> Option<String> {
        let path = self.transcript_path(session.id())?;
        let written = async {
            if let Some(folder) = path.parent() {
                make_private(folder)?;
            }
            let bytes =
                export::transcript(self.app, session, &mut Secrets::default(), Vec::new()).await?;
            crate::places::write_whole(&path, &bytes)?;
            anyhow::Ok(())
        };
        match written.await {
            Ok(()) => Some(path.to_string_lossy().into_owned()),
            Err(error) => {
                self.app.ui.warn(format_args!(
                    "the transcript {} cannot be written: {error:#}; {SAVED_ALL_THE_SAME}",
                    path.display()
                ));
                None
            }
        }
    }

    /// Names a session after what was said first in it, unless it has a name.
    pub(super) async fn give_a_title(&mut self, session: &Session) -> Result<()> {
        let Some(said) = session.nameless().await? else {
            return Ok(());
        };
        let asked = self.voice.title(&said);
        let answered = self.unless_stopped("naming this session", asked).await;
        let (title, usage) = answered.flatten().unwrap_or_default();
        self.spend(usage);
        if session.name_after(&said, title).await?.is_some() {
            self.seen = session.record().await?.card.head;
        }
        Ok(())
    }
}

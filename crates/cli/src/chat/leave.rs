//! Leaving: the summary, the transcript, and what a person is told at the end.

use std::io::{IsTerminal, Write};
use std::time::Duration;

use anyhow::Result;
use throughline::{NamedBy, Session, SessionId};

use super::Chat;
use crate::commands::export;
use crate::commands::memory::propose;
use crate::markdown::safe;
use crate::places::make_private;
use crate::ui::thousands;

/// How long a summary may take before the person is let go.
const PATIENCE: Duration = Duration::from_secs(60);
const SAVED_ALL_THE_SAME: &str = "everything said is saved all the same";

impl Chat<'_> {
    /// Leaves the chat.
    pub(super) async fn leave(&mut self) -> Result<()> {
        let said_something = self.leave_session().await?;
        self.app.ui.status("Goodbye!");
        if said_something && let Some(session) = self.current() {
            self.tell_what_is_saved(session).await?;
        }
        self.leave_quietly();
        Ok(())
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
        let ui = &self.app.ui;
        self.say_without_end("📝 Generating session summary... ");
        let summarized = tokio::select! {
            summarized = self.summarize(&session) => Some(summarized),
            () = tokio::time::sleep(PATIENCE) => None,
            _ = tokio::signal::ctrl_c() => None,
        };
        match summarized {
            Some(Ok(summary)) => {
                ui.status("✓");
                if let Some(summary) = &summary {
                    propose(self.app, &session, summary).await;
                }
            }
            Some(Err(error)) => {
                ui.status("✗");
                ui.warn(format_args!(
                    "summary generation failed ({error:#}); {SAVED_ALL_THE_SAME}"
                ));
            }
            None => {
                ui.status("✗");
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

    fn say_without_end(&self, text: &str) {
        let mut err = std::io::stderr();
        if err.is_terminal() {
            // Talk that nobody can hear is not worth failing for.
            let _ = write!(err, "{text}").and_then(|()| err.flush());
        } else {
            self.app.ui.status(text.trim_end());
        }
    }

    /// Where the transcript of a session goes, if transcripts are written.
    fn transcript_path(&self, session: &SessionId) -> Option<std::path::PathBuf> {
        let folder = self.app.config.transcripts()?;
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
            let bytes = export::transcript(self.app, session, Vec::new()).await?;
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

    /// Names a session after what was said first, unless it has a name.
    pub(super) async fn give_a_title(&mut self, session: &Session) -> Result<()> {
        let card = session.record().await?.card;
        if card.name.is_some() || card.queries == 0 || card.queries > 2 {
            return Ok(());
        }
        let title = match self.voice.model() {
            Some(model) => self.voice.title(model, session).await,
            None => None,
        };
        let title = title.or_else(|| throughline::llm::title(&card.preview));
        // A slash in it is no path.
        let name = title.map(|title| title.replace(['/', '\\', '.'], "-"));
        if let Some(name) = name.and_then(|name| name.parse().ok()) {
            let by = NamedBy::Program;
            let name = Some(name);
            session
                .append(throughline::Body::Renamed { name, by })
                .await?;
            self.seen = session.record().await?.card.head;
        }
        Ok(())
    }
}

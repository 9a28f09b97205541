//! Leaving: the summary, the transcript, and what a person is told at the end.

use std::time::Duration;

use anyhow::Result;
use throughline::format::format_thousands;
use throughline::{Session, SessionId};

use super::Chat;
use crate::commands::export::{self, SecretRedactor};
use crate::commands::memory::propose_facts;
use crate::markdown::sanitize;
use crate::paths::create_private_folder;

/// How long a summary may take before the person is let go.
const EXIT_SUMMARY_TIMEOUT: Duration = Duration::from_secs(60);
pub(super) const SUMMARIZING_STATUS: &str = "📝 Generating session summary...";
const STILL_SAVED: &str = "everything said is saved all the same";

impl Chat<'_> {
    /// Leaves the chat.
    pub(super) async fn exit(&mut self) -> Result<()> {
        let said_something = self.leave_session().await?;
        self.app.ui.status("Goodbye!");
        if said_something && !self.save {
            self.app.ui.status("None of it was kept.");
        } else if said_something && let Some(session) = self.current_session() {
            self.report_saved(session).await?;
        }
        self.propose_pending_facts().await;
        self.exit_silently();
        Ok(())
    }

    /// Tells what a summary proposes to remember, once everything else is told.
    pub(super) async fn propose_pending_facts(&mut self) {
        if let Some((session, summary)) = self.summary_to_propose.take() {
            propose_facts(self.app, &session, &summary).await;
        }
    }

    /// Leaves without a word.
    pub(super) fn exit_silently(&mut self) {
        self.marker = None;
        self.save_calibration();
    }

    /// Leaves the session that is open, with a summary of what was said in it; tells
    /// whether anything was.
    pub(super) async fn leave_session(&mut self) -> Result<bool> {
        let asked = std::mem::take(&mut self.query_count);
        let Some(session) = self.current_session().filter(|_| asked > 0).cloned() else {
            return Ok(false);
        };
        if !self.save {
            return Ok(true);
        }
        let ui = &self.app.ui;
        let summarizing = tokio::time::timeout(EXIT_SUMMARY_TIMEOUT, self.summarize(&session));
        let summarized = self.run_interruptible("summarizing", summarizing).await;
        match summarized {
            Some(Ok(Ok(summarized))) => {
                ui.status(format_args!("{SUMMARIZING_STATUS} ✓"));
                for warning in &summarized.warnings {
                    ui.warn(sanitize(warning));
                }
                self.summary_to_propose = summarized.entry.map(|entry| (session.clone(), entry));
            }
            Some(Ok(Err(error))) => {
                ui.status(format_args!("{SUMMARIZING_STATUS} ✗"));
                ui.warn(format_args!(
                    "summary generation failed ({error:#}); {STILL_SAVED}"
                ));
            }
            Some(Err(_)) | None => {
                ui.status(format_args!("{SUMMARIZING_STATUS} ✗"));
                ui.warn(format_args!("no summary was waited for; {STILL_SAVED}"));
            }
        }
        self.write_transcript(&session).await;
        Ok(true)
    }

    async fn report_saved(&self, session: &Session) -> Result<()> {
        let ui = &self.app.ui;
        let card = session.record().await?.info;
        ui.status("✓ Conversation saved successfully!");
        ui.status(format_args!("  Session ID: {}", card.id));
        ui.status(format_args!(
            "  Queries: {}",
            format_thousands(card.queries)
        ));
        let (tokens, restoration) = (card.tokens.total(), card.restoration.total());
        if restoration > 0 {
            ui.status(format_args!(
                "  Restoration: {} tokens (in: {}, out: {})",
                format_thousands(restoration),
                format_thousands(card.restoration.input),
                format_thousands(card.restoration.output)
            ));
            ui.status(format_args!(
                "  Session Tokens: {} tokens",
                format_thousands(tokens)
            ));
            let all = format_thousands(tokens.saturating_add(restoration));
            ui.status(format_args!("  Combined Total: {all} tokens"));
        } else {
            ui.status(format_args!("  Tokens: {}", format_thousands(tokens)));
        }
        if let Some(transcript) = self.existing_transcript(&card.id) {
            ui.status(format_args!("  Transcript: {}", sanitize(&transcript)));
        }
        Ok(())
    }

    /// Where the transcript of a session goes, if transcripts are written.
    fn transcript_path(&self, session: &SessionId) -> Option<std::path::PathBuf> {
        let folder = self.app.config.transcripts().filter(|_| self.save)?;
        let folder = self.app.paths.working_folder.join(folder);
        Some(folder.join(format!("{session}.md")))
    }

    /// Where the transcript of a session is, if there is one.
    pub(super) fn existing_transcript(&self, session: &SessionId) -> Option<String> {
        let path = self.transcript_path(session).filter(|path| path.exists())?;
        Some(path.to_string_lossy().into_owned())
    }

    /// Writes the transcript where transcripts are configured; tells where.
    pub(super) async fn write_transcript(&self, session: &Session) -> Option<String> {
        let path = self.transcript_path(session.id())?;
        let written = async {
            if let Some(folder) = path.parent() {
                create_private_folder(folder)?;
            }
            let bytes = export::write_transcript(
                self.app,
                session,
                &mut SecretRedactor::default(),
                Vec::new(),
            )
            .await?;
            crate::paths::write_atomically(&path, &bytes)?;
            anyhow::Ok(())
        };
        match written.await {
            Ok(()) => Some(path.to_string_lossy().into_owned()),
            Err(error) => {
                self.app.ui.warn(format_args!(
                    "the transcript {} cannot be written: {error:#}; {STILL_SAVED}",
                    path.display()
                ));
                None
            }
        }
    }

    /// Names a session after what was said first in it, unless it has a name.
    pub(super) async fn generate_title(&mut self, session: &Session) -> Result<()> {
        let Some(said) = session.needs_title().await? else {
            return Ok(());
        };
        let asked = self.responder.generate_title(&said);
        let answered = self.run_interruptible("naming this session", asked).await;
        let (title, usage) = answered.flatten().unwrap_or_default();
        self.add_usage(usage);
        if session.assign_name(&said, title).await?.is_some() {
            self.last_seen = session.record().await?.info.head;
        }
        Ok(())
    }
}

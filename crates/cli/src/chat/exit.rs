//! Leaving a session: writes the summary and the transcript and prints the final report.

use std::time::Duration;

use anyhow::Result;
use throughline::format::format_thousands;
use throughline::{Session, SessionId};

use super::Chat;
use crate::commands::export::{self, SecretRedactor};
use crate::commands::memory::propose_facts;
use crate::markdown::sanitize;
use crate::paths::create_private_folder;

/// Time limit for the summary when leaving.
const EXIT_SUMMARY_TIMEOUT: Duration = Duration::from_secs(60);
pub(super) const SUMMARIZING_STATUS: &str = "📝 Generating session summary...";
const STILL_SAVED: &str = "all messages are saved";

impl Chat<'_> {
    /// Leaves the chat.
    pub(super) async fn exit(&mut self) -> Result<()> {
        let said_something = self.leave_session().await?;
        self.app.ui.status("Goodbye!");
        if said_something && !self.save {
            self.app.ui.status("Nothing was saved.");
        } else if said_something && let Some(session) = self.current_session() {
            self.report_saved(session).await?;
        }
        self.propose_pending_facts().await;
        self.exit_silently();
        Ok(())
    }

    /// Proposes the facts of a summary after everything else is printed.
    pub(super) async fn propose_pending_facts(&mut self) {
        if let Some((session, summary)) = self.summary_to_propose.take() {
            propose_facts(self.app, &session, &summary).await;
        }
    }

    /// Leaves the chat without printing anything.
    pub(super) fn exit_silently(&mut self) {
        self.marker = None;
        self.save_calibration();
    }

    /// Leaves the open session with a summary. Returns whether there was anything to save.
    pub(super) async fn leave_session(&mut self) -> Result<bool> {
        let query_count = std::mem::take(&mut self.query_count);
        let Some(session) = self.current_session().filter(|_| query_count > 0).cloned() else {
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
                ui.warn(format_args!("skipped the summary; {STILL_SAVED}"));
            }
        }
        self.write_transcript(&session).await;
        Ok(true)
    }

    async fn report_saved(&self, session: &Session) -> Result<()> {
        let ui = &self.app.ui;
        let info = session.record().await?.info;
        ui.status("✓ Conversation saved successfully!");
        ui.status(format_args!("  Session ID: {}", info.id));
        ui.status(format_args!(
            "  Queries: {}",
            format_thousands(info.queries)
        ));
        let (tokens, restoration) = (info.tokens.total(), info.restoration.total());
        if restoration > 0 {
            ui.status(format_args!(
                "  Restoration: {} tokens (in: {}, out: {})",
                format_thousands(restoration),
                format_thousands(info.restoration.input),
                format_thousands(info.restoration.output)
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
        if let Some(transcript) = self.existing_transcript(&info.id) {
            ui.status(format_args!("  Transcript: {}", sanitize(&transcript)));
        }
        Ok(())
    }

    /// Returns the path for a session's transcript, if transcripts are configured.
    fn transcript_path(&self, session: &SessionId) -> Option<std::path::PathBuf> {
        let folder = self.app.config.transcripts().filter(|_| self.save)?;
        let folder = self.app.paths.working_folder.join(folder);
        Some(folder.join(format!("{session}.md")))
    }

    /// Returns the path of a session's transcript, if it exists.
    pub(super) fn existing_transcript(&self, session: &SessionId) -> Option<String> {
        let path = self.transcript_path(session).filter(|path| path.exists())?;
        Some(path.to_string_lossy().into_owned())
    }

    /// Writes the transcript if transcripts are configured; returns its path.
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

    /// Names an unnamed session after its first messages.
    pub(super) async fn generate_title(&mut self, session: &Session) -> Result<()> {
        let Some(messages) = session.needs_title().await? else {
            return Ok(());
        };
        let generating = self.responder.generate_title(&messages);
        let answered = self
            .run_interruptible("naming this session", generating)
            .await;
        let (title, usage) = answered.flatten().unwrap_or_default();
        self.add_usage(usage);
        if session.assign_name(&messages, title).await?.is_some() {
            self.last_seen = session.record().await?.info.head;
        }
        Ok(())
    }
}

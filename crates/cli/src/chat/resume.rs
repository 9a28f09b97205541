//! Resumes another session, in place or from its summary in a new session.
//!
//! The messages follow the reference chat loop: a session is found, its summary is restored,
//! the agent acknowledges. Missing parts are reported, and the chat continues.

use std::io::IsTerminal;

use anyhow::Result;
use jiff::tz::TimeZone;
use throughline::context::{CompactionTrigger, abbreviate_count};
use throughline::format::format_thousands;
use throughline::llm::{Delta, Model, OfflineModel};
use throughline::{
    Acknowledgement, AgentRef, CompactOptions, CompactOutcome, Entry, Error, ErrorKind, NewSession,
    ParentSession, Session, SessionId, SessionInfo, SessionSpec, StoreError, SummaryError,
};
use throughline_formats::Transcript;

use super::Chat;
use super::exit::SUMMARIZING_STATUS;
use crate::commands::memory::propose_facts;
use crate::error_report::UserError;
use crate::markdown::{self, sanitize};

/// The outcome of summarizing a session.
#[derive(Default)]
pub(super) struct SummaryOutcome {
    /// The summary's entry, if one was written.
    pub(super) entry: Option<Entry>,
    /// Warnings for the user.
    pub(super) warnings: Vec<String>,
}

impl Chat<'_> {
    /// Switches to another session: in place, or from its summary if the policy chains sessions.
    pub(super) async fn resume(&mut self, spec: &SessionSpec) -> Result<()> {
        self.app.ui.status("📋 Loading session...");
        let session = match self.app.session(spec).await {
            Ok(session) => session,
            Err(error) => return self.resume_unresolved(spec, error).await,
        };
        if self
            .current_session()
            .is_some_and(|here| here.id() == session.id())
        {
            self.app.ui.status("You are already in this session.");
            return Ok(());
        }
        let info = session.record().await?.info;
        self.report_found(&info);
        if !self.confirm_agent(&session).await? {
            self.app.ui.status("Staying here.");
            return Ok(());
        }
        if self.is_chained().await? {
            let transcript = self.existing_transcript(session.id());
            match session.as_parent(transcript).await {
                Ok(parent) => return self.restore(&parent, &session).await,
                Err(Error::NoSummary(_)) => {
                    return self
                        .start_fresh("Session can't be resumed (no summary), starting fresh")
                        .await;
                }
                Err(error) => return Err(error.into()),
            }
        }
        self.leave_session().await?;
        self.enter_session(session.clone()).await?;
        self.show_recent_messages(&session).await
    }

    /// Handles a session that does not exist or is in the trash.
    async fn resume_unresolved(&mut self, spec: &SessionSpec, error: anyhow::Error) -> Result<()> {
        let ours = error.downcast_ref::<Error>();
        if let Some(Error::Store(StoreError::InTrash(id))) = ours {
            return Err(UserError {
                what: format!("session {id} is in the trash"),
                hint: Some(format!(
                    "`tl restore {id}` restores it; the current session stays open"
                )),
                kind: ErrorKind::NotFound,
            }
            .into());
        }
        let SessionSpec::Path(path) = spec else {
            return match ours {
                Some(Error::Store(StoreError::NoSuchSession(id))) if self.is_chained().await? => {
                    let why = format!("Parent session {id} not found, starting fresh");
                    self.start_fresh(&why).await
                }
                _ => Err(error),
            };
        };
        // The transcript exists, and its summary is all that is needed.
        let file = self.app.resolve_path(std::path::Path::new(path));
        let text = match std::fs::read_to_string(&file) {
            Ok(text) => text,
            Err(gone)
                if gone.kind() == std::io::ErrorKind::NotFound && self.is_chained().await? =>
            {
                let why = format!(
                    "Parent session {} not found, starting fresh",
                    sanitize(path)
                );
                return self.start_fresh(&why).await;
            }
            Err(_) => return Err(error),
        };
        let Ok(transcript) = throughline_formats::read_transcript(&text) else {
            return Err(error);
        };
        match parent_from_transcript(&transcript, &file.to_string_lossy(), &self.app.zone) {
            Ok(parent) => {
                let who = transcript.agent.as_deref().or(transcript.title.as_deref());
                let day = parent.date.map(|date| self.format_date(date));
                self.app.ui.status(format_args!(
                    "✓ Found: {} - {} ({}, {} tokens)",
                    sanitize(who.unwrap_or(path)),
                    day.as_deref().unwrap_or("at an unknown time"),
                    format_query_count(parent.queries),
                    abbreviate_count(parent.tokens)
                ));
                let before = transcript.agent.as_ref().map(|name| AgentRef {
                    name: name.clone(),
                    path: transcript.agent_path.clone(),
                });
                if let (Some(before), Some(now)) = (before, self.responder.agent_ref())
                    && !self.confirm_agent_change(&before, &now)?
                {
                    self.app.ui.status("Staying here.");
                    return Ok(());
                }
                self.leave_session().await?;
                self.continue_in_new_session(&parent, NewSession::default())
                    .await
            }
            Err(SummaryError::Markers) => {
                self.start_fresh("Session can't be resumed (invalid summary format)")
                    .await
            }
            Err(_) => {
                self.start_fresh("Session can't be resumed (no summary), starting fresh")
                    .await
            }
        }
    }

    fn report_found(&self, info: &SessionInfo) {
        let agent = info.agent.as_ref().map(|agent| agent.name.as_str());
        let who = agent.unwrap_or_else(|| info.title());
        self.app.ui.status(format_args!(
            "✓ Found: {} - {} ({}, {} tokens)",
            sanitize(who),
            self.format_date(info.last_activity),
            format_query_count(info.queries),
            abbreviate_count(info.tokens.total())
        ));
    }

    fn format_date(&self, at: throughline::Timestamp) -> String {
        let local = at.to_zoned(self.app.zone.clone());
        local.strftime("%b %-d, %H:%M").to_string()
    }

    /// Prints a warning and starts an empty session.
    async fn start_fresh(&mut self, why: &str) -> Result<()> {
        self.app.ui.status(format_args!("⚠ {why}"));
        self.start_new_session("").await
    }

    /// Continues in a new session from another session's summary.
    async fn restore(&mut self, parent: &ParentSession, from: &Session) -> Result<()> {
        self.leave_session().await?;
        let new = from.inherit_defaults(NewSession::default()).await?;
        self.continue_in_new_session(parent, new).await
    }

    async fn continue_in_new_session(
        &mut self,
        parent: &ParentSession,
        new: NewSession,
    ) -> Result<()> {
        self.app.ui.status("🔄 Restoring context...");
        let acknowledgement = self.request_acknowledgement(parent).await;
        let mut new = new;
        if new.project.is_none() {
            crate::commands::new::assign_project(self.app, &mut new).await?;
        }
        new.agent = self.responder.agent_ref().or(new.agent);
        let session = self.tl.continue_from(parent, new, acknowledgement).await?;
        self.enter_session(session).await
    }

    /// Requests the agent's acknowledgement of the summary and shows it.
    async fn request_acknowledgement(&self, parent: &ParentSession) -> Option<Acknowledgement> {
        let offline = OfflineModel::default();
        let model: &dyn Model = self.responder.model().unwrap_or(&offline);
        let mut unheard = |_: Delta| {};
        let agent = self.responder.description();
        let requested = self
            .tl
            .request_acknowledgement(parent, agent, model, &mut unheard);
        let Some(acknowledgement) = self
            .run_interruptible("reading the summary", requested)
            .await
        else {
            self.app
                .ui
                .status("Stopped waiting for an acknowledgement.");
            return None;
        };
        match acknowledgement {
            Ok(acknowledgement) => {
                let ui = &self.app.ui;
                let style = markdown::Style {
                    width: ui.width.min(100),
                    color: ui.color(),
                };
                if std::io::stdout().is_terminal() {
                    ui.status(format_args!(
                        "\n{}:",
                        ui.bold(&sanitize(self.responder.name()))
                    ));
                }
                // A failure to print does not matter here.
                let _ = ui.data(markdown::render(&acknowledgement.text, &style).trim_end());
                Some(acknowledgement)
            }
            Err(error) => {
                self.app
                    .ui
                    .warn(format_args!("the agent did not acknowledge: {error}"));
                None
            }
        }
    }

    /// Returns whether sessions are chained: each continues from the previous one's summary.
    pub(super) async fn is_chained(&self) -> Result<bool> {
        Ok(self.policy().await?.compact_at == CompactionTrigger::OnExit)
    }

    /// `/continue`: starts a new session from the summary of this one.
    pub(super) async fn continue_from_summary(&mut self) -> Result<()> {
        let Some(session) = self.current_session().cloned() else {
            return Err(UserError::invalid("there are no messages to continue from").into());
        };
        self.app.ui.status(SUMMARIZING_STATUS);
        let summarizing = self.summarize(&session);
        let Some(summarized) = self.run_interruptible("summarizing", summarizing).await else {
            self.app.ui.status("Stopped; staying in this session.");
            return Ok(());
        };
        let summarized = summarized?;
        for warning in &summarized.warnings {
            self.app.ui.warn(sanitize(warning));
        }
        let info = session.record().await?.info;
        if self.save {
            self.app.ui.status(format_args!(
                "💾 Saved session: {} ({}, {} tokens)",
                sanitize(info.title()),
                format_query_count(info.queries),
                abbreviate_count(info.tokens.total())
            ));
        }
        self.summary_to_propose = summarized.entry.map(|entry| (session.clone(), entry));
        let transcript = self.write_transcript(&session).await;
        self.app
            .ui
            .status("🔄 Starting new session with summary...");
        let parent = session.as_parent(transcript).await?;
        let acknowledgement = self.request_acknowledgement(&parent).await;
        let mut new = session.inherit_defaults(NewSession::default()).await?;
        new.agent = self.responder.agent_ref().or(new.agent);
        let next = self.tl.continue_from(&parent, new, acknowledgement).await?;
        // Everything is summarized, so leaving again has nothing to save.
        self.query_count = 0;
        self.enter_session(next).await
    }

    /// `compact`: continues in a new session if sessions are chained, otherwise compacts in place.
    pub(super) async fn compact(&mut self, rest: &str) -> Result<()> {
        match rest {
            "" => {}
            "--undo" | "undo" => {
                let session = self.ensure_session().await?;
                let checkpoint = session.undo_compaction().await?;
                self.last_seen = session.record().await?.info.head;
                self.app
                    .ui
                    .status(format_args!("Undid the summary at entry {checkpoint}."));
                return Ok(());
            }
            other => {
                return Err(UserError::invalid(format!("unknown argument {other:?}"))
                    .with_hint("usage: /compact [--undo]")
                    .into());
            }
        }
        if self.is_chained().await? {
            return self.continue_from_summary().await;
        }
        let Some(session) = self.current_session().cloned() else {
            self.app.ui.status("Nothing to summarize.");
            return Ok(());
        };
        self.app.ui.status(SUMMARIZING_STATUS);
        let policy = self.policy().await?;
        let summarizer = self.responder.summarizer();
        let compacting = CompactOptions {
            policy: &policy,
            window: self.responder.window(self.app),
            encoding: self.responder.encoding(self.app),
            fixed_tokens: 0,
            before: None,
            force: true,
            allow_larger: false,
            summarizer: summarizer.as_deref(),
            on_event: None,
        };
        let compacting = session.compact(&compacting);
        let Some(compacted) = self.run_interruptible("summarizing", compacting).await else {
            self.app.ui.status("Stopped; no summary was written.");
            return Ok(());
        };
        let compacted = compacted?;
        self.last_seen = session.record().await?.info.head;
        crate::commands::compact::report_compaction(self.app, &compacted)?;
        if let CompactOutcome::Done(done) = &compacted {
            propose_facts(self.app, &session, &done.entry).await;
        }
        Ok(())
    }

    /// Summarizes a whole session: as a checkpoint if sessions are chained, otherwise as a
    /// summary that does not replace messages.
    pub(super) async fn summarize(&self, session: &Session) -> Result<SummaryOutcome> {
        if self.is_chained().await? {
            let policy = self.policy().await?;
            let summarizer = self.responder.summarizer();
            let compacted = session
                .compact(&CompactOptions {
                    policy: &policy,
                    window: self.responder.window(self.app),
                    encoding: self.responder.encoding(self.app),
                    fixed_tokens: 0,
                    before: None,
                    force: true,
                    allow_larger: true,
                    summarizer: summarizer.as_deref(),
                    on_event: None,
                })
                .await?;
            return Ok(match compacted {
                CompactOutcome::Done(done) => SummaryOutcome {
                    entry: Some(done.entry),
                    warnings: done.warnings,
                },
                _ => SummaryOutcome::default(),
            });
        }
        let summarizer = self.responder.summarizer();
        let exit_summary = session.append_exit_summary(summarizer.as_deref()).await?;
        Ok(
            exit_summary.map_or_else(SummaryOutcome::default, |exit_summary| SummaryOutcome {
                entry: Some(exit_summary.entry),
                warnings: exit_summary.warnings,
            }),
        )
    }
}

/// Reads the parent session from a transcript.
fn parent_from_transcript(
    transcript: &Transcript,
    path: &str,
    zone: &TimeZone,
) -> Result<ParentSession, SummaryError> {
    let summary = transcript.summary.clone()?;
    let id = |text: &Option<String>| -> Option<SessionId> { text.as_ref()?.parse().ok() };
    Ok(ParentSession {
        session: id(&transcript.session_id).ok_or(SummaryError::Missing)?,
        date: transcript.started_at(zone),
        queries: transcript
            .total_queries
            .unwrap_or(transcript.queries.len() as u64),
        tokens: transcript.total_tokens,
        resumed_from: id(&transcript.resumed_from),
        transcript: Some(path.to_owned()),
        summary,
    })
}

fn format_query_count(queries: u64) -> String {
    match queries {
        1 => "1 query".to_owned(),
        many => format!("{} queries", format_thousands(many)),
    }
}

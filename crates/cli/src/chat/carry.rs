//! Going on elsewhere: from a summary in a new session, or in an older one.
//!
//! What is said here follows the system whose users know it: a session is found, its
//! summary is restored, the agent acknowledges. Whatever is missing is told, and the
//! chat goes on.

use std::io::IsTerminal;

use anyhow::Result;
use jiff::tz::TimeZone;
use throughline::context::{CompactAt, short_count};
use throughline::glance::thousands;
use throughline::llm::{Delta, Model, Offline};
use throughline::{
    Acknowledgement, AgentRef, Card, Compacted, Compacting, Entry, Error, ErrorKind, NewSession,
    Parent, Session, SessionId, SessionSpec, StoreError, SummaryError,
};
use throughline_formats::Transcript;

use super::Chat;
use super::leave::SUMMARIZING;
use crate::commands::memory::propose;
use crate::markdown::{self, safe};
use crate::report::Refusal;

/// What came of summarizing a session.
#[derive(Default)]
pub(super) struct Summarized {
    /// Its entry, where there was something to say.
    pub(super) entry: Option<Entry>,
    /// What the person should know of it.
    pub(super) warnings: Vec<String>,
}

impl Chat<'_> {
    /// Goes to another session: in place, or from its summary where that is the policy.
    pub(super) async fn resume(&mut self, spec: &SessionSpec) -> Result<()> {
        self.app.ui.status("📋 Loading session...");
        let session = match self.app.session(spec).await {
            Ok(session) => session,
            Err(error) => return self.resume_without_session(spec, error).await,
        };
        if self.current().is_some_and(|here| here.id() == session.id()) {
            self.app.ui.status("This is the session you are in.");
            return Ok(());
        }
        let card = session.record().await?.card;
        self.found(&card);
        if !self.accepts_agent(&session).await? {
            self.app.ui.status("Staying here.");
            return Ok(());
        }
        if self.chains().await? {
            let transcript = self.transcript_of(session.id());
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
        self.enter(session.clone()).await?;
        self.welcome_back(&session).await
    }

    /// What can be done where a session is not there, or not in use.
    async fn resume_without_session(
        &mut self,
        spec: &SessionSpec,
        error: anyhow::Error,
    ) -> Result<()> {
        let ours = error.downcast_ref::<Error>();
        if let Some(Error::Store(StoreError::InTrash(id))) = ours {
            return Err(Refusal {
                what: format!("session {id} is in the trash"),
                hint: Some(format!(
                    "`tl restore {id}` brings it back; you are where you were"
                )),
                kind: ErrorKind::NotFound,
            }
            .into());
        }
        let SessionSpec::Path(path) = spec else {
            return match ours {
                Some(Error::Store(StoreError::NoSuchSession(id))) if self.chains().await? => {
                    let why = format!("Parent session {id} not found, starting fresh");
                    self.start_fresh(&why).await
                }
                _ => Err(error),
            };
        };
        // The transcript is there: its summary is all that is needed.
        let file = self.app.path(std::path::Path::new(path));
        let text = match std::fs::read_to_string(&file) {
            Ok(text) => text,
            Err(gone) if gone.kind() == std::io::ErrorKind::NotFound && self.chains().await? => {
                let why = format!("Parent session {} not found, starting fresh", safe(path));
                return self.start_fresh(&why).await;
            }
            Err(_) => return Err(error),
        };
        let Ok(transcript) = throughline_formats::read_transcript(&text) else {
            return Err(error);
        };
        match parent_of(&transcript, &file.to_string_lossy(), &self.app.zone) {
            Ok(parent) => {
                let who = transcript.agent.as_deref().or(transcript.title.as_deref());
                let day = parent.date.map(|date| self.day(date));
                self.app.ui.status(format_args!(
                    "✓ Found: {} - {} ({}, {} tokens)",
                    safe(who.unwrap_or(path)),
                    day.as_deref().unwrap_or("at an unknown time"),
                    counted_queries(parent.queries),
                    short_count(parent.tokens)
                ));
                let before = transcript.agent.as_ref().map(|name| AgentRef {
                    name: name.clone(),
                    path: transcript.agent_path.clone(),
                });
                if let (Some(before), Some(now)) = (before, self.voice.agent_ref())
                    && !self.accepts_change(&before, &now)?
                {
                    self.app.ui.status("Staying here.");
                    return Ok(());
                }
                self.leave_session().await?;
                self.continue_in_new(&parent, NewSession::default()).await
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

    fn found(&self, card: &Card) {
        let agent = card.agent.as_ref().map(|agent| agent.name.as_str());
        let who = agent.unwrap_or_else(|| card.title());
        self.app.ui.status(format_args!(
            "✓ Found: {} - {} ({}, {} tokens)",
            safe(who),
            self.day(card.last_activity),
            counted_queries(card.queries),
            short_count(card.tokens.total())
        ));
    }

    fn day(&self, at: throughline::Timestamp) -> String {
        let local = at.to_zoned(self.app.zone.clone());
        local.strftime("%b %-d, %H:%M").to_string()
    }

    /// Warns, and goes on in a session that knows nothing.
    async fn start_fresh(&mut self, why: &str) -> Result<()> {
        self.app.ui.status(format_args!("⚠ {why}"));
        self.start_another("").await
    }

    /// Goes on in a new session from another's summary.
    async fn restore(&mut self, parent: &Parent, from: &Session) -> Result<()> {
        self.leave_session().await?;
        let new = from.inherited(NewSession::default()).await?;
        self.continue_in_new(parent, new).await
    }

    async fn continue_in_new(&mut self, parent: &Parent, new: NewSession) -> Result<()> {
        self.app.ui.status("🔄 Restoring context...");
        let said = self.acknowledged(parent).await;
        let mut new = new;
        if new.project.is_none() {
            crate::commands::new::locate(self.app, &mut new).await?;
        }
        new.agent = self.voice.agent_ref().or(new.agent);
        let session = self.tl.continue_from(parent, new, said).await?;
        self.enter(session).await
    }

    /// What the agent says to the summary, which is shown; none if it says nothing.
    async fn acknowledged(&self, parent: &Parent) -> Option<Acknowledgement> {
        let offline = Offline::default();
        let model: &dyn Model = self.voice.model().unwrap_or(&offline);
        let mut unheard = |_: Delta| {};
        let agent = self.voice.description();
        let asked = self.tl.acknowledged(parent, agent, model, &mut unheard);
        let Some(said) = self.unless_stopped("reading the summary", asked).await else {
            self.app
                .ui
                .status("Stopped waiting for an acknowledgement.");
            return None;
        };
        match said {
            Ok(said) => {
                let ui = &self.app.ui;
                let style = markdown::Style {
                    width: ui.width.min(100),
                    color: ui.color(),
                };
                if std::io::stdout().is_terminal() {
                    ui.status(format_args!("\n{}:", ui.bold(&safe(self.voice.name()))));
                }
                // Shown as it is, whatever it is.
                let _ = ui.data(markdown::render(&said.text, &style).trim_end());
                Some(said)
            }
            Err(error) => {
                self.app
                    .ui
                    .warn(format_args!("the agent did not acknowledge: {error}"));
                None
            }
        }
    }

    /// Whether sessions are chained: each goes on from the summary of the one before.
    pub(super) async fn chains(&self) -> Result<bool> {
        Ok(self.policy().await?.compact_at == CompactAt::OnExit)
    }

    /// `/continue`: a new session from the summary of this one.
    pub(super) async fn carry_on(&mut self) -> Result<()> {
        let Some(session) = self.current().cloned() else {
            return Err(Refusal::invalid("nothing was said here to continue from").into());
        };
        self.app.ui.status(SUMMARIZING);
        let summarizing = self.summarize(&session);
        let Some(summarized) = self.unless_stopped("summarizing", summarizing).await else {
            self.app.ui.status("Stopped; this goes on here.");
            return Ok(());
        };
        let summarized = summarized?;
        for warning in &summarized.warnings {
            self.app.ui.warn(safe(warning));
        }
        let card = session.record().await?.card;
        if self.keeps {
            self.app.ui.status(format_args!(
                "💾 Saved session: {} ({}, {} tokens)",
                safe(card.title()),
                counted_queries(card.queries),
                short_count(card.tokens.total())
            ));
        }
        self.news = summarized.entry.map(|entry| (session.clone(), entry));
        let transcript = self.write_transcript(&session).await;
        self.app
            .ui
            .status("🔄 Starting new session with summary...");
        let parent = session.as_parent(transcript).await?;
        let said = self.acknowledged(&parent).await;
        let mut new = session.inherited(NewSession::default()).await?;
        new.agent = self.voice.agent_ref().or(new.agent);
        let next = self.tl.continue_from(&parent, new, said).await?;
        // What was asked is summarized; there is nothing new to leave behind.
        self.asked = 0;
        self.enter(next).await
    }

    /// `compact`: on to a new session where sessions are chained, in place elsewhere.
    pub(super) async fn compact(&mut self, rest: &str) -> Result<()> {
        match rest {
            "" => {}
            "--undo" | "undo" => {
                let session = self.session().await?;
                let checkpoint = session.undo_compaction().await?;
                self.seen = session.record().await?.card.head;
                self.app
                    .ui
                    .status(format_args!("Took the summary at entry {checkpoint} back."));
                return Ok(());
            }
            other => {
                return Err(Refusal::invalid(format!("compact does not know {other:?}"))
                    .hint("/compact, or /compact --undo")
                    .into());
            }
        }
        if self.chains().await? {
            return self.carry_on().await;
        }
        let Some(session) = self.current().cloned() else {
            self.app.ui.status("Nothing to summarize.");
            return Ok(());
        };
        self.app.ui.status(SUMMARIZING);
        let policy = self.policy().await?;
        let summarizer = self.voice.summarizer();
        let compacting = Compacting {
            policy: &policy,
            window: self.voice.window(self.app),
            encoding: self.voice.encoding(self.app),
            fixed: 0,
            before: None,
            force: true,
            even_if_larger: false,
            model: summarizer.as_deref(),
            tell: None,
        };
        let compacting = session.compact(&compacting);
        let Some(compacted) = self.unless_stopped("summarizing", compacting).await else {
            self.app.ui.status("Stopped; nothing is summarized.");
            return Ok(());
        };
        let compacted = compacted?;
        self.seen = session.record().await?.card.head;
        crate::commands::compact::tell(self.app, &compacted)?;
        if let Compacted::Done(done) = &compacted {
            propose(self.app, &session, &done.entry).await;
        }
        Ok(())
    }

    /// Summarizes all of a session: in a checkpoint where sessions are chained, else in a
    /// summary that hides nothing.
    pub(super) async fn summarize(&self, session: &Session) -> Result<Summarized> {
        if self.chains().await? {
            let policy = self.policy().await?;
            let summarizer = self.voice.summarizer();
            let compacted = session
                .compact(&Compacting {
                    policy: &policy,
                    window: self.voice.window(self.app),
                    encoding: self.voice.encoding(self.app),
                    fixed: 0,
                    before: None,
                    force: true,
                    even_if_larger: true,
                    model: summarizer.as_deref(),
                    tell: None,
                })
                .await?;
            return Ok(match compacted {
                Compacted::Done(done) => Summarized {
                    entry: Some(done.entry),
                    warnings: done.warnings,
                },
                _ => Summarized::default(),
            });
        }
        let summarizer = self.voice.summarizer();
        let left = session.leave_summary(summarizer.as_deref()).await?;
        Ok(left.map_or_else(Summarized::default, |left| Summarized {
            entry: Some(left.entry),
            warnings: left.warnings,
        }))
    }
}

/// What a transcript says about its session.
fn parent_of(transcript: &Transcript, path: &str, zone: &TimeZone) -> Result<Parent, SummaryError> {
    let summary = transcript.summary.clone()?;
    let id = |text: &Option<String>| -> Option<SessionId> { text.as_ref()?.parse().ok() };
    Ok(Parent {
        session: id(&transcript.session_id).ok_or(SummaryError::Missing)?,
        date: transcript.started(zone),
        queries: transcript
            .total_queries
            .unwrap_or(transcript.queries.len() as u64),
        tokens: transcript.total_tokens,
        resumed_from: id(&transcript.resumed_from),
        transcript: Some(path.to_owned()),
        summary,
    })
}

fn counted_queries(queries: u64) -> String {
    match queries {
        1 => "1 query".to_owned(),
        many => format!("{} queries", thousands(many)),
    }
}

//! A turn of the chat: saves the user's message and streams the answer.

use std::time::Duration;

use anyhow::Result;
use throughline::llm::ModelError;
use throughline::{
    ConflictPolicy, Content, Entry, Error, Expect, PostedMessage, ReadRange, Responder, Session,
    StoreError, TurnClaim, TurnOutcome, Usage,
};
use tokio::sync::Notify;

use super::Chat;
use super::answer_renderer::AnswerRenderer;
use crate::commands::context::load_session_documents;
use crate::commands::memory::remember_turn;
use crate::echo_guard::EchoGuard;
use crate::entry_text;
use crate::error_report::UserError;
use crate::markdown::sanitize;

/// Maximum number of entries of another window that are shown.
const MAX_SHOWN_ENTRIES: usize = 50;

impl Chat<'_> {
    /// Saves the user's message and requests an answer.
    pub(super) async fn send(&mut self, text: &str) -> Result<()> {
        let Some((posted, claim)) = self.post_message(text).await? else {
            return Ok(());
        };
        let claim = claim.move_to(&posted.session).await?;
        if self
            .current_session()
            .is_none_or(|session| session.id() != posted.session.id())
        {
            self.app
                .ui
                .status(format_args!("Forked: now in {}", posted.session.id()));
            self.enter_session(posted.session.clone()).await?;
        }
        self.last_seen = posted.entry.seq;
        self.query_count += 1;
        self.run_turn(claim, &posted.entry).await
    }

    /// Claims the turn once no other process is answering in the session. Returns `None` if the
    /// user stops waiting.
    async fn claim_turn(&self, session: &Session) -> Result<Option<TurnClaim>> {
        let _hush = EchoGuard::begin();
        tokio::select! {
            claim = session.claim_turn() => Ok(Some(claim?)),
            _ = tokio::signal::ctrl_c() => {
                self.app.ui.status("Stopped waiting. Nothing was sent.");
                Ok(None)
            }
        }
    }

    /// Saves the message after any new entries of other windows, or in a fork, and claims the
    /// turn. Returns `None` if the user decides against it.
    async fn post_message(&mut self, text: &str) -> Result<Option<(PostedMessage, TurnClaim)>> {
        let session = self.ensure_session().await?;
        let mut conflict = ConflictPolicy::Reject;
        loop {
            let Some(claim) = self.claim_turn(&session).await? else {
                return Ok(None);
            };
            let content = Content::text(text);
            let saying =
                claim
                    .session()
                    .post_message(content, Expect::At(self.last_seen), conflict);
            match saying.await {
                Ok(posted) => return Ok(Some((posted, claim))),
                Err(Error::Store(StoreError::Moved { found, .. })) => {
                    // Do not block others while the user decides.
                    claim.release().await;
                    let others = session
                        .read(ReadRange::between(
                            self.last_seen.next(),
                            found,
                            MAX_SHOWN_ENTRIES,
                        ))
                        .await?;
                    let record = session.record().await?;
                    let ui = &self.app.ui;
                    ui.status("Meanwhile, in another window:\n");
                    let now = self.tl.now();
                    for entry in &others {
                        let shown = entry_text::render_entry(self.app, entry, &record.state, now);
                        ui.status(shown.trim_end());
                        ui.status("");
                    }
                    let question = "Send it here anyway, send it in a fork, or cancel? (h/f/n)";
                    match self.ask(question)?.as_deref() {
                        Some("f" | "fork") => conflict = ConflictPolicy::Fork,
                        // Without a terminal, the message is sent.
                        Some("h" | "here" | "y" | "yes" | "") | None => self.last_seen = found,
                        Some(_) => {
                            self.last_seen = found;
                            return Ok(None);
                        }
                    }
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Requests an answer to the last message.
    pub(super) async fn retry(&mut self) -> Result<()> {
        let Some(session) = self.current_session().cloned() else {
            return Err(UserError::invalid("there are no messages yet").into());
        };
        let Some(claim) = self.claim_turn(&session).await? else {
            return Ok(());
        };
        match session.unanswered_message().await? {
            Some(question) => self.run_turn(claim, &question).await,
            None => Err(UserError::invalid("the last message has been answered")
                .with_hint("/rewind removes an answer")
                .into()),
        }
    }

    /// Requests an answer and shows it as it arrives.
    async fn run_turn(&mut self, claim: TurnClaim, question: &Entry) -> Result<()> {
        let answering = Box::pin(self.stream_answer(claim.session(), question));
        let (outcome, budget) = claim.run_with_renewal(answering).await?;
        let session = &self.tl.session_unchecked(claim.session().id());
        claim.release().await;
        remember_turn(self.app, session, &outcome).await;
        self.last_seen = session.record().await?.info.head;
        self.context_usage = Some((outcome.request.tokens, budget));
        self.add_usage(outcome.usage.unwrap_or_default());
        if outcome.answer.is_some() && (outcome.stopped || outcome.error.is_some()) {
            self.app.ui.status("");
        }
        if outcome.stopped {
            self.interrupted = true;
            let status = if outcome.answer.is_some() {
                "Stopped; the partial answer is saved."
            } else {
                "Stopped. Use /retry to try again."
            };
            self.app.ui.status(status);
            return Ok(());
        }
        if let Some(error) = outcome.error {
            let hint = chat_error_hint(&error, outcome.answer.is_some());
            return Err(explain_model_error(&error, hint));
        }
        self.generate_title(session).await
    }

    /// Adds to the tokens and cost of this chat.
    pub(super) fn add_usage(&mut self, usage: Usage) {
        self.usage += usage;
        self.cost += self.responder.cost(&usage).unwrap_or_default();
    }

    /// Builds the engine's responder for a session.
    pub(super) async fn build_responder(&self, session: &Session) -> Result<Responder> {
        let policy = self.policy().await?;
        Ok(Responder {
            documents: load_session_documents(self.app, session).await?,
            ..self.responder.to_engine_responder(self.app, policy)
        })
    }

    /// Runs a turn and renders its events. Returns the outcome and the budget of the request.
    async fn stream_answer(
        &self,
        session: &Session,
        question: &Entry,
    ) -> Result<(TurnOutcome, u64)> {
        let _hush = EchoGuard::begin();
        let responder = self.build_responder(session).await?;
        let stop = Notify::new();
        let mut shown = AnswerRenderer::new(&self.app.ui, self.responder.name());
        let mut tell = |event| shown.handle_event(event);
        let outcome = {
            let zone = &self.app.zone;
            let answering = responder.answer(session, question, zone, None, Some(&stop), &mut tell);
            tokio::pin!(answering);
            loop {
                tokio::select! {
                    outcome = &mut answering => break outcome?,
                    _ = tokio::signal::ctrl_c() => stop.notify_one(),
                }
            }
        };
        let budget = shown.budget.unwrap_or(outcome.request.budget);
        shown.finish()?;
        Ok((outcome, budget))
    }
}

/// Returns the remedy for a model error in the chat.
fn chat_error_hint(error: &ModelError, answered: bool) -> &'static str {
    use throughline::llm::ModelErrorKind as Kind;
    match error.kind() {
        Kind::Key => "your message is saved: set the right key, restart, then /retry",
        Kind::NotFound => "your message is saved: choose another with /model NAME, then /retry",
        Kind::TooLong => "your message is saved: shorten the context with /compact, then /retry",
        _ if answered => "the partial answer is saved; ask the model to continue",
        _ => "your message is saved: use /retry to try again",
    }
}

/// Converts a model error into one with a hint.
pub(super) fn explain_model_error(error: &ModelError, hint: &str) -> anyhow::Error {
    let mut what = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        what = format!("{what}: {error}");
        cause = error.source();
    }
    UserError {
        what,
        hint: Some(hint.to_owned()),
        kind: throughline::ErrorKind::Unavailable,
    }
    .into()
}

/// Formats the status line of a failed attempt that will be retried.
pub(super) fn format_retry(after: Duration, why: &str) -> String {
    // Do not repeat the delay that the error text may contain.
    let why = why.split(" (retry after").next().unwrap_or(why);
    format!(
        "{}; retrying in {:.1} s",
        sanitize(why),
        after.as_secs_f32()
    )
}

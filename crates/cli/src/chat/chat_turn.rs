//! Saying something, and hearing the answer as it comes.

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

/// How many entries of another window are shown.
const MAX_SHOWN_ENTRIES: usize = 50;

impl Chat<'_> {
    /// Keeps what the person says, and has it answered.
    pub(super) async fn send(&mut self, text: &str) -> Result<()> {
        let Some((said, claim)) = self.post_message(text).await? else {
            return Ok(());
        };
        let claim = claim.move_to(&said.session).await?;
        if self
            .current_session()
            .is_none_or(|session| session.id() != said.session.id())
        {
            self.app.ui.status(format_args!(
                "Forked: this goes on in {}",
                said.session.id()
            ));
            self.enter_session(said.session.clone()).await?;
        }
        self.last_seen = said.entry.seq;
        self.query_count += 1;
        self.run_turn(claim, &said.entry).await
    }

    /// Claims the turn once no other process answers in the session. None if the person
    /// would rather not wait.
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

    /// Keeps it where the person wants it, after what others have said meanwhile, and claims
    /// the turn. None if they would rather not.
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
                Ok(said) => return Ok(Some((said, claim))),
                Err(Error::Store(StoreError::Moved { found, .. })) => {
                    // Nobody else is kept waiting while the person decides.
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
                    let question = "Say it here all the same, in a fork, or not? (h/f/n)";
                    match self.ask(question)?.as_deref() {
                        Some("f" | "fork") => conflict = ConflictPolicy::Fork,
                        // Where nobody can be asked, nothing is kept back.
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

    /// Has the last message answered.
    pub(super) async fn retry(&mut self) -> Result<()> {
        let Some(session) = self.current_session().cloned() else {
            return Err(UserError::invalid("nothing was said yet").into());
        };
        let Some(claim) = self.claim_turn(&session).await? else {
            return Ok(());
        };
        match session.unanswered_message().await? {
            Some(question) => self.run_turn(claim, &question).await,
            None => Err(UserError::invalid("the last message has been answered")
                .with_hint("/rewind takes an answer back")
                .into()),
        }
    }

    /// Has a message answered, and shows the answer as it comes.
    async fn run_turn(&mut self, claim: TurnClaim, question: &Entry) -> Result<()> {
        let answering = Box::pin(self.stream_answer(claim.session(), question));
        let (turned, budget) = claim.run_with_renewal(answering).await?;
        let session = &self.tl.session_unchecked(claim.session().id());
        claim.release().await;
        remember_turn(self.app, session, &turned).await;
        self.last_seen = session.record().await?.info.head;
        self.context_usage = Some((turned.request.tokens, budget));
        self.add_usage(turned.usage.unwrap_or_default());
        if turned.answer.is_some() && (turned.stopped || turned.error.is_some()) {
            self.app.ui.status("");
        }
        if turned.stopped {
            self.interrupted = true;
            let kept = if turned.answer.is_some() {
                "Stopped; what came is kept."
            } else {
                "Stopped. /retry asks again."
            };
            self.app.ui.status(kept);
            return Ok(());
        }
        if let Some(error) = turned.error {
            let hint = chat_error_hint(&error, turned.answer.is_some());
            return Err(explain_model_error(&error, hint));
        }
        self.generate_title(session).await
    }

    /// Counts what was spent.
    pub(super) fn add_usage(&mut self, usage: Usage) {
        self.usage += usage;
        self.cost += self.responder.cost(&usage).unwrap_or_default();
    }

    /// Who answers here, as the engine knows them.
    pub(super) async fn build_responder(&self, session: &Session) -> Result<Responder> {
        let policy = self.policy().await?;
        Ok(Responder {
            documents: load_session_documents(self.app, session).await?,
            ..self.responder.to_engine_responder(self.app, policy)
        })
    }

    /// Has a message answered; tells what became of it, and what the request might have
    /// cost.
    async fn stream_answer(
        &self,
        session: &Session,
        question: &Entry,
    ) -> Result<(TurnOutcome, u64)> {
        let _hush = EchoGuard::begin();
        let voice = self.build_responder(session).await?;
        let stop = Notify::new();
        let mut shown = AnswerRenderer::new(&self.app.ui, self.responder.name());
        let mut tell = |event| shown.handle_event(event);
        let turned = {
            let zone = &self.app.zone;
            let answering = voice.answer(session, question, zone, None, Some(&stop), &mut tell);
            tokio::pin!(answering);
            loop {
                tokio::select! {
                    turned = &mut answering => break turned?,
                    _ = tokio::signal::ctrl_c() => stop.notify_one(),
                }
            }
        };
        let budget = shown.budget.unwrap_or(turned.request.budget);
        shown.finish()?;
        Ok((turned, budget))
    }
}

/// What a person in the chat can do when a model fails.
fn chat_error_hint(error: &ModelError, answered: bool) -> &'static str {
    use throughline::llm::ModelErrorKind as Kind;
    match error.kind() {
        Kind::Key => "your message is kept: set the right key, start again, then /retry",
        Kind::NotFound => "your message is kept: /model NAME chooses another, then /retry",
        Kind::TooLong => "your message is kept: /compact makes it shorter, then /retry",
        _ if answered => "what came is kept, marked as cut off; ask it to go on",
        _ => "your message is kept: /retry asks again",
    }
}

/// What a person is told when a model fails.
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

/// What is told of an attempt that failed, where another follows.
pub(super) fn format_retry(after: Duration, why: &str) -> String {
    // When to try again is said once.
    let why = why.split(": try again").next().unwrap_or(why);
    format!("{}; again in {:.1} s", sanitize(why), after.as_secs_f32())
}

//! Saying something, and hearing the answer as it comes.

use std::time::Duration;

use anyhow::Result;
use throughline::llm::ModelError;
use throughline::{
    Conflict, Content, Entry, Error, Expect, Read, Said, Session, StoreError, TurnClaim, Turned,
    Usage, Voice,
};
use tokio::sync::Notify;

use super::Chat;
use super::shown::Shown;
use crate::commands::context::documents_for;
use crate::commands::memory::after_turn;
use crate::entries;
use crate::hush::Hush;
use crate::markdown::safe;
use crate::report::Refusal;

/// How many entries of another window are shown.
const SHOWN: usize = 50;

impl Chat<'_> {
    /// Keeps what the person says, and has it answered.
    pub(super) async fn say(&mut self, text: &str) -> Result<()> {
        let Some((said, claim)) = self.keep(text).await? else {
            return Ok(());
        };
        let claim = claim.moved_to(&said.session).await?;
        if self
            .current()
            .is_none_or(|session| session.id() != said.session.id())
        {
            self.app.ui.status(format_args!(
                "Forked: this goes on in {}",
                said.session.id()
            ));
            self.enter(said.session.clone()).await?;
        }
        self.seen = said.entry.seq;
        self.asked += 1;
        self.hear(claim, &said.entry).await
    }

    /// Claims the turn once no other process answers in the session. None if the person
    /// would rather not wait.
    async fn claim(&self, session: &Session) -> Result<Option<TurnClaim>> {
        let _hush = Hush::begin();
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
    async fn keep(&mut self, text: &str) -> Result<Option<(Said, TurnClaim)>> {
        let session = self.session().await?;
        let mut conflict = Conflict::Reject;
        loop {
            let Some(claim) = self.claim(&session).await? else {
                return Ok(None);
            };
            let content = Content::text(text);
            let saying = claim
                .session()
                .say(content, Expect::At(self.seen), conflict);
            match saying.await {
                Ok(said) => return Ok(Some((said, claim))),
                Err(Error::Store(StoreError::Moved { found, .. })) => {
                    // Nobody else is kept waiting while the person decides.
                    claim.release().await;
                    let others = session
                        .read(Read::between(self.seen.next(), found, SHOWN))
                        .await?;
                    let record = session.record().await?;
                    let ui = &self.app.ui;
                    ui.status("Meanwhile, in another window:\n");
                    let now = self.tl.now();
                    for entry in &others {
                        let shown = entries::entry(self.app, entry, &record.standing, now);
                        ui.status(shown.trim_end());
                        ui.status("");
                    }
                    let question = "Say it here all the same, in a fork, or not? (h/f/n)";
                    match self.ask(question)?.as_deref() {
                        Some("f" | "fork") => conflict = Conflict::Fork,
                        // Where nobody can be asked, nothing is kept back.
                        Some("h" | "here" | "y" | "yes" | "") | None => self.seen = found,
                        Some(_) => {
                            self.seen = found;
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
        let Some(session) = self.current().cloned() else {
            return Err(Refusal::invalid("nothing was said yet").into());
        };
        let Some(claim) = self.claim(&session).await? else {
            return Ok(());
        };
        match session.unanswered().await? {
            Some(question) => self.hear(claim, &question).await,
            None => Err(Refusal::invalid("the last message has been answered")
                .hint("/rewind takes an answer back")
                .into()),
        }
    }

    /// Has a message answered, and shows the answer as it comes.
    async fn hear(&mut self, claim: TurnClaim, question: &Entry) -> Result<()> {
        let answering = Box::pin(self.answered(claim.session(), question));
        let (turned, budget) = claim.keep(answering).await?;
        let session = &self.tl.unopened(claim.session().id());
        claim.release().await;
        after_turn(self.app, session, &turned).await;
        self.seen = session.record().await?.card.head;
        self.context = Some((turned.request.tokens, budget));
        self.spend(turned.usage.unwrap_or_default());
        if turned.answer.is_some() && (turned.stopped || turned.failed.is_some()) {
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
        if let Some(error) = turned.failed {
            let hint = in_the_chat(&error, turned.answer.is_some());
            return Err(explained(&error, hint));
        }
        self.give_a_title(session).await
    }

    /// Counts what was spent.
    pub(super) fn spend(&mut self, usage: Usage) {
        self.spent += usage;
        self.cost += self.voice.cost(&usage).unwrap_or_default();
    }

    /// Who answers here, as the engine knows them.
    pub(super) async fn answering(&self, session: &Session) -> Result<Voice> {
        let policy = self.policy().await?;
        Ok(Voice {
            documents: documents_for(self.app, session).await?,
            ..self.voice.answering(self.app, policy)
        })
    }

    /// Has a message answered; tells what became of it, and what the request might have
    /// cost.
    async fn answered(&self, session: &Session, question: &Entry) -> Result<(Turned, u64)> {
        let _hush = Hush::begin();
        let voice = self.answering(session).await?;
        let stop = Notify::new();
        let mut shown = Shown::new(&self.app.ui, self.voice.name());
        let mut tell = |event| shown.event(event);
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
fn in_the_chat(error: &ModelError, answered: bool) -> &'static str {
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
pub(super) fn explained(error: &ModelError, hint: &str) -> anyhow::Error {
    let mut what = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        what = format!("{what}: {error}");
        cause = error.source();
    }
    Refusal {
        what,
        hint: Some(hint.to_owned()),
        kind: throughline::ErrorKind::Unavailable,
    }
    .into()
}

/// What is told of an attempt that failed, where another follows.
pub(super) fn retrying(after: Duration, why: &str) -> String {
    // When to try again is said once.
    let why = why.split(": try again").next().unwrap_or(why);
    format!("{}; again in {:.1} s", safe(why), after.as_secs_f32())
}

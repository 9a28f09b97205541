//! A turn from its question to its end.

use std::sync::Arc;

use async_trait::async_trait;
use serde::Serialize;
use serde_json::json;
use throughline::llm::{Delta, Terms, ToolSpec};
use throughline::{
    Body, CompactionEvent, Conflict, Content, Entry, Expect, How, Message, NewEntry, Read, Role,
    Session, SessionId, ToolCall, ToolResult, Toolbox, TurnClaim, TurnEvent, Turned, Usage, Voice,
};
use tokio::sync::oneshot;

use super::{Live, Place, TurnId, WhenBusy, busy_session};
use crate::{App, Caller, Choice, Problem};

/// What is asked.
#[derive(Clone, Debug)]
pub(crate) struct Question {
    /// What the person says; none to have the last message answered.
    pub(crate) content: Option<Content>,
    /// Who says it, of several people.
    pub(crate) author: Option<String>,
    /// The head the caller believes in.
    pub(crate) expect: Expect,
    /// What to do if it is another.
    pub(crate) conflict: Conflict,
    /// What the caller calls this turn, so that asking twice asks once.
    pub(crate) key: Option<String>,
    /// What to do where a turn is under way.
    pub(crate) when_busy: WhenBusy,
    /// How it is to be answered.
    pub(crate) manner: Manner,
}

/// How a question is to be answered, besides what the session's voice says.
#[derive(Clone, Debug, Default)]
pub(crate) struct Manner {
    /// What is said instead of `content`, as entries; the last of them is the question.
    pub(crate) entries: Vec<NewEntry>,
    /// What the agent is told besides what it is.
    pub(crate) instructions: Option<String>,
    /// What the model may call; whoever asked runs it.
    pub(crate) tools: Vec<ToolSpec>,
    /// Whether those who listen to events are told nothing of it.
    pub(crate) quiet: bool,
    /// Who is to answer.
    pub(crate) choice: Choice,
    /// On which terms; whoever sets them has asked whether they can be kept.
    pub(crate) terms: Terms,
}

/// Tools that whoever asked runs.
#[derive(Debug)]
struct Offered(Vec<ToolSpec>);

#[async_trait]
impl Toolbox for Offered {
    fn tools(&self) -> &[ToolSpec] {
        &self.0
    }

    fn run_by_asker(&self) -> bool {
        true
    }

    async fn run(&self, call: &ToolCall) -> ToolResult {
        ToolResult {
            call_id: call.id.clone(),
            content: Content::text("this tool is run by whoever asked"),
            is_error: true,
        }
    }
}

/// What became of a turn.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Outcome {
    /// The turn.
    pub(crate) turn: TurnId,
    /// The session it went on in: another one where late words became a fork.
    pub(crate) session: SessionId,
    /// What was asked.
    pub(crate) question: Entry,
    /// The answer as it was kept; none where nothing came.
    pub(crate) answer: Option<Entry>,
    /// What it cost.
    pub(crate) usage: Option<Usage>,
    /// What the request had, in tokens as counted here; none for what was answered before.
    pub(crate) request_tokens: Option<u64>,
    /// Whether it was stopped.
    pub(crate) stopped: bool,
    /// Whether it grew longer than it may, and ends there.
    pub(crate) cut: bool,
    /// Why there is no answer, or no whole one.
    pub(crate) failed: Option<Problem>,
}

/// Begins a turn, or finds the one that was begun by the same key. It goes on whether or
/// not anybody listens.
///
/// Answers once the question is kept, or the turn waits for another.
pub(crate) async fn begin(
    app: &App,
    caller: &Caller,
    session: &Session,
    question: Question,
) -> Result<Arc<Live>, Problem> {
    // What cannot be had is refused before anything waits for it.
    let choice = &question.manner.choice;
    app.serving.voices.voice(Some(session), choice).await?;
    let reference = caller.owner().session(session.id());
    let id = session.entry(Body::Cleared).id;
    let key = question.key.clone();
    let place = app
        .turns
        .enter(&reference, key.as_deref(), question.when_busy, || {
            Live::new(id, key.clone())
        })?;
    let (live, after) = match place {
        Place::Same(live) => return Ok(live),
        Place::New { live, after } => (live, after),
    };
    let (started, begun) = oneshot::channel();
    let task = Task {
        app: app.clone(),
        session: session.clone(),
        question,
        live: Arc::clone(&live),
    };
    tokio::spawn(task.run(after, started));
    match begun.await {
        Ok(Ok(())) => Ok(live),
        Ok(Err(problem)) => Err(problem),
        Err(_) => Err(Problem::new(
            axum::http::StatusCode::INTERNAL_SERVER_ERROR,
            "turn_broke",
            "the turn ended unexpectedly; what was said is kept",
        )),
    }
}

struct Task {
    app: App,
    session: Session,
    question: Question,
    live: Arc<Live>,
}

/// Told of each event, under these names.
const STARTED: &str = "turn:started";
const QUEUED: &str = "turn:queued";
pub(super) const COMPLETE: &str = "turn:complete";
const STOPPED: &str = "turn:stopped";
pub(super) const FAILED: &str = "turn:failed";

impl Task {
    async fn run(self, after: Option<Arc<Live>>, started: oneshot::Sender<Result<(), Problem>>) {
        // However this ends, the turn ends with it and nobody waits for it in vain.
        let guard = Ended {
            live: Arc::clone(&self.live),
        };
        let mut started = Some(started);
        if let Some(before) = after {
            self.live.tell(
                QUEUED,
                &json!({"turn": self.live.id(), "after": before.id()}),
            );
            tell(&mut started, Ok(()));
            before.wait().await;
        }
        let room = Arc::clone(&self.app.turns.room).acquire_owned().await;
        self.app.metrics.turns.inc();
        let outcome = match self.claimed(&mut started).await {
            Ok(claim) => self.answered(claim, &mut started).await,
            Err(problem) => Err(problem),
        };
        self.app.metrics.turns.dec();
        drop(room);
        match outcome {
            Ok(outcome) => {
                let name = match &outcome {
                    Outcome {
                        failed: Some(_), ..
                    } => FAILED,
                    Outcome { stopped: true, .. } => STOPPED,
                    _ => COMPLETE,
                };
                if outcome.failed.is_some() {
                    self.app.metrics.failed_turns.inc();
                }
                self.live.end(name, &outcome, Ok(outcome.clone()));
            }
            Err(problem) => {
                self.app.metrics.failed_turns.inc();
                self.live.end(
                    FAILED,
                    &json!({"turn": self.live.id(), "failed": problem}),
                    Err(problem.clone()),
                );
                tell(&mut started, Err(problem));
            }
        }
        self.app.hub.wake();
        drop(guard);
    }

    /// Waits until no other server answers in the session, or refuses, as asked. Nobody else
    /// knows of a session that is not kept.
    async fn claimed(
        &self,
        started: &mut Option<oneshot::Sender<Result<(), Problem>>>,
    ) -> Result<Option<TurnClaim>, Problem> {
        if self.question.manner.quiet {
            return Ok(None);
        }
        let (session, turn) = (&self.session, self.live.id());
        if let Some(claim) = session.try_claim_turn_as(*turn).await? {
            return Ok(Some(claim));
        }
        match self.question.when_busy {
            WhenBusy::Refuse => Err(busy_session()),
            WhenBusy::Queue => {
                let holder = session.turn_holder().await?.map(|holder| holder.id);
                let told = json!({"turn": turn, "after": holder});
                self.live.tell(QUEUED, &told);
                tell(started, Ok(()));
                Ok(Some(session.claim_turn_as(*turn).await?))
            }
        }
    }

    /// Keeps the question and has it answered, under the claim.
    async fn answered(
        &self,
        claim: Option<TurnClaim>,
        started: &mut Option<oneshot::Sender<Result<(), Problem>>>,
    ) -> Result<Outcome, Problem> {
        let voice = self.voice().await?;
        let session = claim.as_ref().map_or(&self.session, TurnClaim::session);
        let (session, question, how) = kept(claim.as_ref(), self.asked(session)).await?;
        let claim = match claim {
            Some(claim) => Some(claim.moved_to(&session).await?),
            None => None,
        };
        let session = claim.as_ref().map_or(&session, TurnClaim::session);
        let answering = Box::pin(self.respond(session, question, how, &voice, started));
        let outcome = kept(claim.as_ref(), answering).await;
        if let Some(claim) = claim {
            claim.release().await;
        }
        outcome
    }

    /// Who answers.
    async fn voice(&self) -> Result<Voice, Problem> {
        let Manner {
            choice,
            terms,
            instructions,
            quiet,
            ..
        } = &self.question.manner;
        let voices = &self.app.serving.voices;
        let mut voice = voices.voice(Some(&self.session), choice).await?;
        voice.terms = terms.clone();
        // There is nothing to recall in a session that is not kept.
        voice.policy.recall &= !quiet;
        if let Some(more) = instructions {
            voice.agent = Some(match voice.agent {
                Some(agent) => format!("{agent}\n\n{more}"),
                None => more.clone(),
            });
        }
        Ok(voice)
    }

    /// Answers the question that was kept, unless it has been.
    async fn respond(
        &self,
        session: &Session,
        question: Entry,
        how: How,
        voice: &Voice,
        started: &mut Option<oneshot::Sender<Result<(), Problem>>>,
    ) -> Result<Outcome, Problem> {
        self.app.hub.wake();
        self.live.tell(
            STARTED,
            &json!({
                "turn": self.live.id(),
                "session": session.id(),
                "question": question,
                "model": voice.model_name(),
            }),
        );
        tell(started, Ok(()));
        if how == How::Repeated
            && let Some(answer) = answer_to(session, &question).await?
        {
            let usage = answer.message().and_then(|message| message.usage);
            return Ok(Outcome {
                turn: *self.live.id(),
                session: session.id().clone(),
                question,
                answer: Some(answer),
                usage,
                request_tokens: None,
                stopped: false,
                cut: false,
                failed: None,
            });
        }
        if !self.question.manner.quiet
            && let Err(error) = session.name_plainly().await
        {
            tracing::warn!(%error, "a session cannot be named");
        }
        let turned = self.heard(session, &question, voice).await?;
        if let Err(error) = session.remember_turn(&turned, voice.proposing).await {
            tracing::warn!(%error, "what a turn leaves in memory cannot be kept");
        }
        Ok(Outcome {
            turn: *self.live.id(),
            session: session.id().clone(),
            question,
            answer: turned.answer,
            usage: turned.usage,
            request_tokens: Some(turned.request.tokens),
            stopped: turned.stopped,
            cut: turned.cut,
            failed: turned.failed.as_ref().map(Problem::from),
        })
    }

    /// The question, kept; or the last message, where that is to be answered.
    async fn asked(&self, session: &Session) -> Result<(Session, Entry, How), Problem> {
        let Question {
            content,
            author,
            expect,
            conflict,
            key,
            manner,
            ..
        } = &self.question;
        if !manner.entries.is_empty() {
            let entries = manner.entries.clone();
            let appended = session.append_all(entries, *expect, *conflict).await?;
            let mut entries = appended.entries;
            let question = entries
                .pop()
                .ok_or(throughline::StoreError::NothingToAppend)?;
            return Ok((session.of(&appended.session), question, appended.how));
        }
        let Some(content) = content else {
            let waiting = session.unanswered().await?;
            let question = waiting.ok_or_else(|| {
                Problem::new(
                    axum::http::StatusCode::CONFLICT,
                    "nothing_to_answer",
                    "the last message has an answer; send a `message` to ask something else",
                )
            })?;
            return Ok((session.clone(), question, How::Appended));
        };
        let message = Message::new(Role::User, content.clone());
        let mut entry = session.entry(message);
        if let Some(key) = key {
            entry.id = crate::api::entry_id(session.id(), key, 0);
        }
        let entry = NewEntry {
            author: author.clone(),
            ..entry
        };
        let body = entry.body.clone();
        let appended = session.append_all(vec![entry], *expect, *conflict).await?;
        let mut entries = appended.entries;
        let question = entries
            .pop()
            .ok_or(throughline::StoreError::NothingToAppend)?;
        if appended.how == How::Repeated && question.body != body {
            return Err(crate::api::key_reused());
        }
        Ok((session.of(&appended.session), question, appended.how))
    }

    async fn heard(
        &self,
        session: &Session,
        question: &Entry,
        voice: &Voice,
    ) -> Result<Turned, Problem> {
        let reference = session.reference().clone();
        let (live, app) = (Arc::clone(&self.live), self.app.clone());
        let Manner { tools, quiet, .. } = &self.question.manner;
        let quiet = *quiet;
        let offered = (!tools.is_empty()).then(|| Offered(tools.clone()));
        let tools = offered.as_ref().map(|offered| offered as &dyn Toolbox);
        let mut tell = move |event: TurnEvent| {
            let Some((name, data)) = shown(&event) else {
                return;
            };
            live.tell(name, &data);
            if quiet {
                return;
            }
            let data = with_turn(data, live.id(), &reference.id);
            app.hub.pass(&reference, name, &data);
            if matches!(event, TurnEvent::Called(_) | TurnEvent::Returned(_)) {
                app.hub.wake();
            }
        };
        let zone = &self.app.serving.zone;
        let stop = Some(&self.live.stop);
        let turned = voice.answer(session, question, zone, tools, stop, &mut tell);
        Ok(turned.await?)
    }
}

/// Runs something of a turn under its claim, where it has one.
async fn kept<T>(
    claim: Option<&TurnClaim>,
    work: impl Future<Output = Result<T, Problem>>,
) -> Result<T, Problem> {
    match claim {
        Some(claim) => claim.keep(work).await,
        None => work.await,
    }
}

fn tell(started: &mut Option<oneshot::Sender<Result<(), Problem>>>, how: Result<(), Problem>) {
    if let Some(started) = started.take() {
        // Whoever asked may have left.
        let _ = started.send(how);
    }
}

/// Ends a turn whose task is gone.
struct Ended {
    live: Arc<Live>,
}

impl Drop for Ended {
    fn drop(&mut self) {
        if self.live.ended().is_none() {
            let problem = Problem::new(
                axum::http::StatusCode::INTERNAL_SERVER_ERROR,
                "turn_broke",
                "the turn ended unexpectedly; what was said is kept",
            );
            self.live
                .end(FAILED, &json!({"failed": problem}), Err(problem.clone()));
        }
    }
}

fn with_turn(mut data: serde_json::Value, turn: &TurnId, session: &SessionId) -> serde_json::Value {
    if let Some(members) = data.as_object_mut() {
        members.insert("turn".to_owned(), json!(turn));
        members.insert("session".to_owned(), json!(session));
    }
    data
}

/// What is told of an event of the engine's.
fn shown(event: &TurnEvent) -> Option<(&'static str, serde_json::Value)> {
    Some(match event {
        TurnEvent::Asked(entry) => ("message:started", json!({"entry": entry})),
        TurnEvent::Delta(Delta::Text(text)) => ("message:delta", json!({"text": text})),
        TurnEvent::Delta(Delta::Thinking(text)) => ("message:thinking", json!({"text": text})),
        TurnEvent::Delta(Delta::Retrying {
            after,
            why,
            attempt,
        }) => (
            "turn:retrying",
            json!({"after_ms": after.as_millis(), "why": why, "attempt": attempt}),
        ),
        TurnEvent::Called(call) => ("message:tool_call", json!({"call": call})),
        TurnEvent::Returned(result) => ("message:tool_result", json!({"result": result})),
        TurnEvent::Warning(text) => ("turn:warning", json!({"text": text})),
        TurnEvent::Sent { tokens, budget } => {
            ("turn:sent", json!({"tokens": tokens, "budget": budget}))
        }
        TurnEvent::Shortened => ("turn:shortened", json!({})),
        TurnEvent::Compaction(event) => (event.name(), compaction(event)),
        _ => return None,
    })
}

/// What is told of a compaction.
pub(crate) fn compaction(event: &CompactionEvent) -> serde_json::Value {
    match event {
        CompactionEvent::Start { covers } => json!({"covers": covers}),
        CompactionEvent::Complete { checkpoint } => json!({"checkpoint": checkpoint}),
        CompactionEvent::Error { why } => json!({"why": why}),
    }
}

/// The answer that followed a question, where there is one.
pub(super) async fn answer_to(
    session: &Session,
    question: &Entry,
) -> Result<Option<Entry>, Problem> {
    const AMONG: usize = 200;
    let after = session.read(Read::from(question.seq.next(), AMONG)).await?;
    let turn = after.into_iter().take_while(|entry| {
        let role = entry.message().map(|message| message.role);
        role != Some(Role::User)
    });
    let answers = turn.filter(|entry| {
        let role = entry.message().map(|message| message.role);
        role == Some(Role::Assistant)
    });
    Ok(answers.last())
}

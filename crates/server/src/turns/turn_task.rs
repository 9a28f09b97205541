//! A turn from its question to its end.

use std::sync::Arc;

use async_trait::async_trait;
use serde::Serialize;
use serde_json::json;
use throughline::llm::{Delta, SamplingOptions, ToolSpec};
use throughline::{
    AppendKind, Body, CompactionEvent, ConflictPolicy, Content, Entry, Expect, Message, NewEntry,
    ReadRange, Responder, Role, Session, SessionId, ToolCall, ToolResult, Toolbox, TurnClaim,
    TurnEvent, TurnOutcome, Usage,
};
use tokio::sync::oneshot;

use super::{TurnId, TurnSlot, TurnStream, WhenBusy, session_busy};
use crate::{App, Caller, Problem, ResponderChoice};

/// What is asked.
#[derive(Clone, Debug)]
pub(crate) struct TurnRequest {
    /// What the person says; none to have the last message answered.
    pub(crate) content: Option<Content>,
    /// Who says it, of several people.
    pub(crate) author: Option<String>,
    /// The head the caller believes in.
    pub(crate) expect: Expect,
    /// What to do if it is another.
    pub(crate) conflict: ConflictPolicy,
    /// What the caller calls this turn, so that asking twice asks once.
    pub(crate) key: Option<String>,
    /// What to do where a turn is under way.
    pub(crate) when_busy: WhenBusy,
    /// How it is to be answered.
    pub(crate) options: TurnOptions,
}

/// How a question is to be answered, besides what the session's voice says.
#[derive(Clone, Debug, Default)]
pub(crate) struct TurnOptions {
    /// What is said instead of `content`, as entries; the last of them is the question.
    pub(crate) entries: Vec<NewEntry>,
    /// What the agent is told besides what it is.
    pub(crate) instructions: Option<String>,
    /// What the model may call; whoever asked runs it.
    pub(crate) tools: Vec<ToolSpec>,
    /// Whether those who listen to events are told nothing of it.
    pub(crate) ephemeral: bool,
    /// Who is to answer.
    pub(crate) choice: ResponderChoice,
    /// On which terms; whoever sets them has asked whether they can be kept.
    pub(crate) sampling: SamplingOptions,
}

/// Tools that whoever asked runs.
#[derive(Debug)]
struct CallerTools(Vec<ToolSpec>);

#[async_trait]
impl Toolbox for CallerTools {
    fn tools(&self) -> &[ToolSpec] {
        &self.0
    }

    fn is_run_by_caller(&self) -> bool {
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
pub(crate) struct TurnReport {
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
pub(crate) async fn start_turn(
    app: &App,
    caller: &Caller,
    session: &Session,
    question: TurnRequest,
) -> Result<Arc<TurnStream>, Problem> {
    // What cannot be had is refused before anything waits for it.
    let choice = &question.options.choice;
    app.config
        .responders
        .responder(Some(session), choice)
        .await?;
    let reference = caller.owner().session(session.id());
    let id = session.new_entry(Body::Cleared).id;
    let key = question.key.clone();
    let place = app
        .turns
        .reserve(&reference, key.as_deref(), question.when_busy, || {
            TurnStream::new(id, key.clone())
        })?;
    let (live, after) = match place {
        TurnSlot::Existing(live) => return Ok(live),
        TurnSlot::New { turn: live, after } => (live, after),
    };
    let (started, begun) = oneshot::channel();
    let task = TurnTask {
        app: app.clone(),
        session: session.clone(),
        request: question,
        stream: Arc::clone(&live),
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

struct TurnTask {
    app: App,
    session: Session,
    request: TurnRequest,
    stream: Arc<TurnStream>,
}

/// Told of each event, under these names.
const TURN_STARTED: &str = "turn:started";
const TURN_QUEUED: &str = "turn:queued";
pub(super) const TURN_COMPLETE: &str = "turn:complete";
const TURN_STOPPED: &str = "turn:stopped";
pub(super) const TURN_FAILED: &str = "turn:failed";

impl TurnTask {
    async fn run(
        self,
        after: Option<Arc<TurnStream>>,
        started: oneshot::Sender<Result<(), Problem>>,
    ) {
        // However this ends, the turn ends with it and nobody waits for it in vain.
        let guard = EndOnDrop {
            stream: Arc::clone(&self.stream),
        };
        let mut started = Some(started);
        if let Some(before) = after {
            self.stream.emit(
                TURN_QUEUED,
                &json!({"turn": self.stream.id(), "after": before.id()}),
            );
            notify_started(&mut started, Ok(()));
            before.wait().await;
        }
        let room = Arc::clone(&self.app.turns.permits).acquire_owned().await;
        self.app.metrics.turns.inc();
        let outcome = match self.claim_turn(&mut started).await {
            Ok(claim) => self.run_with_claim(claim, &mut started).await,
            Err(problem) => Err(problem),
        };
        self.app.metrics.turns.dec();
        drop(room);
        match outcome {
            Ok(outcome) => {
                let name = match &outcome {
                    TurnReport {
                        failed: Some(_), ..
                    } => TURN_FAILED,
                    TurnReport { stopped: true, .. } => TURN_STOPPED,
                    _ => TURN_COMPLETE,
                };
                if outcome.failed.is_some() {
                    self.app.metrics.failed_turns.inc();
                }
                self.stream.finish(name, &outcome, Ok(outcome.clone()));
            }
            Err(problem) => {
                self.app.metrics.failed_turns.inc();
                self.stream.finish(
                    TURN_FAILED,
                    &json!({"turn": self.stream.id(), "failed": problem}),
                    Err(problem.clone()),
                );
                notify_started(&mut started, Err(problem));
            }
        }
        self.app.hub.wake();
        drop(guard);
    }

    /// Waits until no other server answers in the session, or refuses, as asked. Nobody else
    /// knows of a session that is not kept.
    async fn claim_turn(
        &self,
        started: &mut Option<oneshot::Sender<Result<(), Problem>>>,
    ) -> Result<Option<TurnClaim>, Problem> {
        if self.request.options.ephemeral {
            return Ok(None);
        }
        let (session, turn) = (&self.session, self.stream.id());
        if let Some(claim) = session.try_claim_turn_as(*turn).await? {
            return Ok(Some(claim));
        }
        match self.request.when_busy {
            WhenBusy::Refuse => Err(session_busy()),
            WhenBusy::Queue => {
                let holder = session.turn_holder().await?.map(|holder| holder.id);
                let told = json!({"turn": turn, "after": holder});
                self.stream.emit(TURN_QUEUED, &told);
                notify_started(started, Ok(()));
                Ok(Some(session.claim_turn_as(*turn).await?))
            }
        }
    }

    /// Keeps the question and has it answered, under the claim.
    async fn run_with_claim(
        &self,
        claim: Option<TurnClaim>,
        started: &mut Option<oneshot::Sender<Result<(), Problem>>>,
    ) -> Result<TurnReport, Problem> {
        let voice = self.responder().await?;
        let session = claim.as_ref().map_or(&self.session, TurnClaim::session);
        let (session, question, how) =
            keep_claim(claim.as_ref(), self.append_question(session)).await?;
        let claim = match claim {
            Some(claim) => Some(claim.move_to(&session).await?),
            None => None,
        };
        let session = claim.as_ref().map_or(&session, TurnClaim::session);
        let answering = Box::pin(self.respond(session, question, how, &voice, started));
        let outcome = keep_claim(claim.as_ref(), answering).await;
        if let Some(claim) = claim {
            claim.release().await;
        }
        outcome
    }

    /// Who answers.
    async fn responder(&self) -> Result<Responder, Problem> {
        let TurnOptions {
            choice,
            sampling: terms,
            instructions,
            ephemeral: quiet,
            ..
        } = &self.request.options;
        let voices = &self.app.config.responders;
        let mut voice = voices.responder(Some(&self.session), choice).await?;
        voice.sampling = terms.clone();
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
        how: AppendKind,
        voice: &Responder,
        started: &mut Option<oneshot::Sender<Result<(), Problem>>>,
    ) -> Result<TurnReport, Problem> {
        self.app.hub.wake();
        self.stream.emit(
            TURN_STARTED,
            &json!({
                "turn": self.stream.id(),
                "session": session.id(),
                "question": question,
                "model": voice.model_name(),
            }),
        );
        notify_started(started, Ok(()));
        if how == AppendKind::Repeated
            && let Some(answer) = find_answer(session, &question).await?
        {
            let usage = answer.message().and_then(|message| message.usage);
            return Ok(TurnReport {
                turn: *self.stream.id(),
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
        if !self.request.options.ephemeral
            && let Err(error) = session.name_from_first_message().await
        {
            tracing::warn!(%error, "a session cannot be named");
        }
        let turned = self.run_model(session, &question, voice).await?;
        if let Err(error) = session.remember_turn(&turned, voice.fact_proposals).await {
            tracing::warn!(%error, "what a turn leaves in memory cannot be kept");
        }
        Ok(TurnReport {
            turn: *self.stream.id(),
            session: session.id().clone(),
            question,
            answer: turned.answer,
            usage: turned.usage,
            request_tokens: Some(turned.request.tokens),
            stopped: turned.stopped,
            cut: turned.truncated,
            failed: turned.error.as_ref().map(Problem::from),
        })
    }

    /// The question, kept; or the last message, where that is to be answered.
    async fn append_question(
        &self,
        session: &Session,
    ) -> Result<(Session, Entry, AppendKind), Problem> {
        let TurnRequest {
            content,
            author,
            expect,
            conflict,
            key,
            options: manner,
            ..
        } = &self.request;
        if !manner.entries.is_empty() {
            let entries = manner.entries.clone();
            let appended = session.append_all(entries, *expect, *conflict).await?;
            let mut entries = appended.entries;
            let question = entries
                .pop()
                .ok_or(throughline::StoreError::NothingToAppend)?;
            return Ok((
                session.other_session(&appended.session),
                question,
                appended.kind,
            ));
        }
        let Some(content) = content else {
            let waiting = session.unanswered_message().await?;
            let question = waiting.ok_or_else(|| {
                Problem::new(
                    axum::http::StatusCode::CONFLICT,
                    "nothing_to_answer",
                    "the last message has an answer; send a `message` to ask something else",
                )
            })?;
            return Ok((session.clone(), question, AppendKind::Appended));
        };
        let message = Message::new(Role::User, content.clone());
        let mut entry = session.new_entry(message);
        if let Some(key) = key {
            entry.id = crate::api::idempotent_entry_id(session.id(), key, 0);
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
        if appended.kind == AppendKind::Repeated && question.body != body {
            return Err(crate::api::key_reused());
        }
        Ok((
            session.other_session(&appended.session),
            question,
            appended.kind,
        ))
    }

    async fn run_model(
        &self,
        session: &Session,
        question: &Entry,
        voice: &Responder,
    ) -> Result<TurnOutcome, Problem> {
        let reference = session.reference().clone();
        let (live, app) = (Arc::clone(&self.stream), self.app.clone());
        let TurnOptions {
            tools,
            ephemeral: quiet,
            ..
        } = &self.request.options;
        let quiet = *quiet;
        let offered = (!tools.is_empty()).then(|| CallerTools(tools.clone()));
        let tools = offered.as_ref().map(|offered| offered as &dyn Toolbox);
        let mut tell = move |event: TurnEvent| {
            let Some((name, data)) = stream_event(&event) else {
                return;
            };
            live.emit(name, &data);
            if quiet {
                return;
            }
            let data = add_turn_ids(data, live.id(), &reference.id);
            app.hub.publish_transient(&reference, name, &data);
            if matches!(event, TurnEvent::ToolCalled(_) | TurnEvent::ToolReturned(_)) {
                app.hub.wake();
            }
        };
        let zone = &self.app.config.time_zone;
        let stop = Some(&self.stream.stop);
        let turned = voice.answer(session, question, zone, tools, stop, &mut tell);
        Ok(turned.await?)
    }
}

/// Runs something of a turn under its claim, where it has one.
async fn keep_claim<T>(
    claim: Option<&TurnClaim>,
    work: impl Future<Output = Result<T, Problem>>,
) -> Result<T, Problem> {
    match claim {
        Some(claim) => claim.run_with_renewal(work).await,
        None => work.await,
    }
}

fn notify_started(
    started: &mut Option<oneshot::Sender<Result<(), Problem>>>,
    how: Result<(), Problem>,
) {
    if let Some(started) = started.take() {
        // Whoever asked may have left.
        let _ = started.send(how);
    }
}

/// Ends a turn whose task is gone.
struct EndOnDrop {
    stream: Arc<TurnStream>,
}

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        if self.stream.ended_at().is_none() {
            let problem = Problem::new(
                axum::http::StatusCode::INTERNAL_SERVER_ERROR,
                "turn_broke",
                "the turn ended unexpectedly; what was said is kept",
            );
            self.stream.finish(
                TURN_FAILED,
                &json!({"failed": problem}),
                Err(problem.clone()),
            );
        }
    }
}

fn add_turn_ids(
    mut data: serde_json::Value,
    turn: &TurnId,
    session: &SessionId,
) -> serde_json::Value {
    if let Some(members) = data.as_object_mut() {
        members.insert("turn".to_owned(), json!(turn));
        members.insert("session".to_owned(), json!(session));
    }
    data
}

/// What is told of an event of the engine's.
fn stream_event(event: &TurnEvent) -> Option<(&'static str, serde_json::Value)> {
    Some(match event {
        TurnEvent::AnswerStarted(entry) => ("message:started", json!({"entry": entry})),
        TurnEvent::Delta(Delta::Text(text)) => ("message:delta", json!({"text": text})),
        TurnEvent::Delta(Delta::Thinking(text)) => ("message:thinking", json!({"text": text})),
        TurnEvent::Delta(Delta::Retry {
            after,
            reason: why,
            attempt,
        }) => (
            "turn:retrying",
            json!({"after_ms": after.as_millis(), "why": why, "attempt": attempt}),
        ),
        TurnEvent::ToolCalled(call) => ("message:tool_call", json!({"call": call})),
        TurnEvent::ToolReturned(result) => ("message:tool_result", json!({"result": result})),
        TurnEvent::Warning(text) => ("turn:warning", json!({"text": text})),
        TurnEvent::RequestSent { tokens, budget } => {
            ("turn:sent", json!({"tokens": tokens, "budget": budget}))
        }
        TurnEvent::RequestShortened => ("turn:shortened", json!({})),
        TurnEvent::Compaction(event) => (event.name(), compaction_event_data(event)),
        _ => return None,
    })
}

/// What is told of a compaction.
pub(crate) fn compaction_event_data(event: &CompactionEvent) -> serde_json::Value {
    match event {
        CompactionEvent::Start { covers } => json!({"covers": covers}),
        CompactionEvent::Complete { checkpoint } => json!({"checkpoint": checkpoint}),
        CompactionEvent::Error { why } => json!({"why": why}),
    }
}

/// The answer that followed a question, where there is one.
pub(super) async fn find_answer(
    session: &Session,
    question: &Entry,
) -> Result<Option<Entry>, Problem> {
    const AMONG: usize = 200;
    let after = session
        .read(ReadRange::starting_at(question.seq.next(), AMONG))
        .await?;
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

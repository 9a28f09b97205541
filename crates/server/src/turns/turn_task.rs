//! Runs a turn from its question to its end.

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

/// A question to answer.
#[derive(Clone, Debug)]
pub(crate) struct TurnRequest {
    /// The user's message; `None` to answer the last message.
    pub(crate) content: Option<Content>,
    /// Who wrote it, if there are several people.
    pub(crate) author: Option<String>,
    /// The head the caller expects.
    pub(crate) expect: Expect,
    /// What to do if the head is different.
    pub(crate) conflict: ConflictPolicy,
    /// Idempotency key: a repeated request does not ask twice.
    pub(crate) key: Option<String>,
    /// What to do if a turn is running.
    pub(crate) when_busy: WhenBusy,
    /// How to answer.
    pub(crate) options: TurnOptions,
}

/// How to answer a question, in addition to the session's responder.
#[derive(Clone, Debug, Default)]
pub(crate) struct TurnOptions {
    /// Entries to append instead of `content`; the last one is the question.
    pub(crate) entries: Vec<NewEntry>,
    /// Additional instructions for the agent.
    pub(crate) instructions: Option<String>,
    /// Tools the model may call; the caller runs them.
    pub(crate) tools: Vec<ToolSpec>,
    /// Whether to publish no events about the turn.
    pub(crate) ephemeral: bool,
    /// The chosen model and agent.
    pub(crate) choice: ResponderChoice,
    /// Sampling options; the caller has checked that the model supports them.
    pub(crate) sampling: SamplingOptions,
}

/// Tools that the caller runs.
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

/// Result of a turn.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct TurnReport {
    /// The turn's id.
    pub(crate) turn: TurnId,
    /// The session the turn ran in; a new one if a conflict created a fork.
    pub(crate) session: SessionId,
    /// The question, as stored.
    pub(crate) question: Entry,
    /// The answer, as stored; `None` if there is none.
    pub(crate) answer: Option<Entry>,
    /// Token usage.
    pub(crate) usage: Option<Usage>,
    /// Tokens in the request, as counted here; `None` for a question that was answered earlier.
    pub(crate) request_tokens: Option<u64>,
    /// Whether the turn was stopped.
    pub(crate) stopped: bool,
    /// Whether the answer reached its maximum length and was cut off.
    pub(crate) cut: bool,
    /// Why there is no answer, or an incomplete one.
    pub(crate) failed: Option<Problem>,
}

/// Starts a turn, or finds the one that was started with the same key. It runs to its end whether
/// or not any client follows it.
///
/// Returns once the question is stored or the turn waits for another one.
pub(crate) async fn start_turn(
    app: &App,
    caller: &Caller,
    session: &Session,
    question: TurnRequest,
) -> Result<Arc<TurnStream>, Problem> {
    // Unavailable models and agents are refused before waiting.
    let choice = &question.options.choice;
    app.config
        .responders
        .responder(Some(session), choice)
        .await?;
    let reference = caller.owner().session(session.id());
    let id = session.new_entry(Body::Cleared).id;
    let key = question.key.clone();
    let slot = app
        .turns
        .reserve(&reference, key.as_deref(), question.when_busy, || {
            TurnStream::new(id, key.clone())
        })?;
    let (live, after) = match slot {
        TurnSlot::Existing(live) => return Ok(live),
        TurnSlot::New { turn: live, after } => (live, after),
    };
    let (started, ready) = oneshot::channel();
    let task = TurnTask {
        app: app.clone(),
        session: session.clone(),
        request: question,
        stream: Arc::clone(&live),
    };
    tokio::spawn(task.run(after, started));
    match ready.await {
        Ok(Ok(())) => Ok(live),
        Ok(Err(problem)) => Err(problem),
        Err(_) => Err(Problem::new(
            axum::http::StatusCode::INTERNAL_SERVER_ERROR,
            "turn_broke",
            "the turn ended unexpectedly; the message is stored",
        )),
    }
}

struct TurnTask {
    app: App,
    session: Session,
    request: TurnRequest,
    stream: Arc<TurnStream>,
}

/// Names of the emitted events.
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
        // However the task ends, the turn ends with it, so that nobody waits forever.
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

    /// Waits until no other server runs a turn in the session, or refuses, as requested. A session
    /// that is not stored is not visible to other servers.
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
                let data = json!({"turn": turn, "after": holder});
                self.stream.emit(TURN_QUEUED, &data);
                notify_started(started, Ok(()));
                Ok(Some(session.claim_turn_as(*turn).await?))
            }
        }
    }

    /// Stores the question and answers it, under the claim.
    async fn run_with_claim(
        &self,
        claim: Option<TurnClaim>,
        started: &mut Option<oneshot::Sender<Result<(), Problem>>>,
    ) -> Result<TurnReport, Problem> {
        let responder = self.responder().await?;
        let session = claim.as_ref().map_or(&self.session, TurnClaim::session);
        let (session, question, kind) =
            keep_claim(claim.as_ref(), self.append_question(session)).await?;
        let claim = match claim {
            Some(claim) => Some(claim.move_to(&session).await?),
            None => None,
        };
        let session = claim.as_ref().map_or(&session, TurnClaim::session);
        let answering = Box::pin(self.respond(session, question, kind, &responder, started));
        let outcome = keep_claim(claim.as_ref(), answering).await;
        if let Some(claim) = claim {
            claim.release().await;
        }
        outcome
    }

    /// Returns the responder for the turn.
    async fn responder(&self) -> Result<Responder, Problem> {
        let TurnOptions {
            choice,
            sampling,
            instructions,
            ephemeral: quiet,
            ..
        } = &self.request.options;
        let responders = &self.app.config.responders;
        let mut responder = responders.responder(Some(&self.session), choice).await?;
        responder.sampling = sampling.clone();
        // A session that is not stored has nothing to recall.
        responder.policy.recall &= !quiet;
        if let Some(more) = instructions {
            responder.agent = Some(match responder.agent {
                Some(agent) => format!("{agent}\n\n{more}"),
                None => more.clone(),
            });
        }
        Ok(responder)
    }

    /// Answers the stored question, unless it has an answer already.
    async fn respond(
        &self,
        session: &Session,
        question: Entry,
        kind: AppendKind,
        responder: &Responder,
        started: &mut Option<oneshot::Sender<Result<(), Problem>>>,
    ) -> Result<TurnReport, Problem> {
        self.app.hub.wake();
        self.stream.emit(
            TURN_STARTED,
            &json!({
                "turn": self.stream.id(),
                "session": session.id(),
                "question": question,
                "model": responder.model_name(),
            }),
        );
        notify_started(started, Ok(()));
        if kind == AppendKind::Repeated
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
            tracing::warn!(%error, "cannot generate a session name");
        }
        let outcome = self.run_model(session, &question, responder).await?;
        if let Err(error) = session
            .remember_turn(&outcome, responder.fact_proposals)
            .await
        {
            tracing::warn!(%error, "cannot update the memory after a turn");
        }
        Ok(TurnReport {
            turn: *self.stream.id(),
            session: session.id().clone(),
            question,
            answer: outcome.answer,
            usage: outcome.usage,
            request_tokens: Some(outcome.request.tokens),
            stopped: outcome.stopped,
            cut: outcome.truncated,
            failed: outcome.error.as_ref().map(Problem::from),
        })
    }

    /// Appends the question and returns it; or the last message, if that is to be answered.
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
            options,
            ..
        } = &self.request;
        if !options.entries.is_empty() {
            let entries = options.entries.clone();
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
                    "the last message already has an answer; send a `message` to ask something else",
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
        responder: &Responder,
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
        let mut on_event = move |event: TurnEvent| {
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
        let outcome = responder.answer(session, question, zone, tools, stop, &mut on_event);
        Ok(outcome.await?)
    }
}

/// Runs a future while renewing the turn's claim, if it has one.
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
    result: Result<(), Problem>,
) {
    if let Some(started) = started.take() {
        // The caller may have disconnected.
        let _ = started.send(result);
    }
}

/// Ends a turn whose task was dropped.
struct EndOnDrop {
    stream: Arc<TurnStream>,
}

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        if self.stream.ended_at().is_none() {
            let problem = Problem::new(
                axum::http::StatusCode::INTERNAL_SERVER_ERROR,
                "turn_broke",
                "the turn ended unexpectedly; the message is stored",
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

/// The stream event for an event of the engine.
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

/// Event data of a compaction.
pub(crate) fn compaction_event_data(event: &CompactionEvent) -> serde_json::Value {
    match event {
        CompactionEvent::Start { covers } => json!({"covers": covers}),
        CompactionEvent::Complete { checkpoint } => json!({"checkpoint": checkpoint}),
        CompactionEvent::Error { why } => json!({"why": why}),
    }
}

/// Finds the answer that follows a question, if there is one.
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

//! One exchange: what the person says and what the model answers, kept as they happen.
//!
//! The question is durable before the model is asked ([`Session::say`]); the answer as
//! soon as it ends, and what came of it if it breaks off or is stopped
//! ([`Session::answer`]). A model that fails is no error here: the question stands, and
//! can be answered later.

use std::fmt::Debug;

use async_trait::async_trait;
use throughline_context::{Encoding, Policy, Request};
use throughline_llm::{
    Answer, Delta, FinishReason, Model, ModelError, ModelErrorKind, ModelRequest, PartialAnswer,
    SamplingOptions, Summarizer, ToolSpec,
};
use throughline_model::{
    Block, Body, Content, Entry, EntryId, Message, NewEntry, Role, Seq, ToolCall, ToolResult, Usage,
};
use throughline_store::{AppendKind, Expect, ReadRange};
use tokio::sync::Notify;

use crate::{
    CompactOptions, CompactOutcome, CompactionEvent, ConflictPolicy, Error, RequestOptions,
    Session, context::ContextDocument,
};

/// How often a model may call tools before it has to answer.
const MAX_TOOL_ROUNDS: usize = 24;
/// How far back the last message of a stretch is looked for, over notes that came after.
const LAST_MESSAGE_SCAN: usize = 50;
/// What of a request that was too long is tried next, in percent.
const RETRY_BUDGET_PERCENT: u64 = 75;

/// What an answer is made with.
#[derive(Clone, Copy)]
pub struct AnswerOptions<'a> {
    /// Whom to ask.
    pub model: &'a dyn Model,
    /// By which policy.
    pub policy: &'a Policy,
    /// The model's window.
    pub window: u64,
    /// How tokens are counted.
    pub encoding: Encoding,
    /// What the agent is and does.
    pub agent: Option<&'a str>,
    /// Project context, besides what was set in the session.
    pub documents: &'a [ContextDocument],
    /// Who summarizes where the policy calls for it; none for the extractive summarizer.
    pub summarizer: Option<&'a dyn Summarizer>,
    /// What the model may do besides talking.
    pub tools: Option<&'a dyn Toolbox>,
    /// On which terms the model answers.
    pub sampling: &'a SamplingOptions,
    /// Notified when the answer is no longer wanted.
    pub stop: Option<&'a Notify>,
}

impl Debug for AnswerOptions<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Turn")
            .field("model", &self.model.name())
            .field("policy", &self.policy.name)
            .finish_non_exhaustive()
    }
}

/// What a model may do besides talking.
#[async_trait]
pub trait Toolbox: Debug + Send + Sync {
    /// What there is.
    fn tools(&self) -> &[ToolSpec];

    /// Whether whoever asked runs the tools: a turn then ends with the calls, and
    /// [`run`](Self::run) is not called.
    fn is_run_by_caller(&self) -> bool {
        false
    }

    /// Does one thing. A failure is a result too.
    async fn run(&self, call: &ToolCall) -> ToolResult;
}

/// How a turn goes, as it goes.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum TurnEvent {
    /// A compaction, where the policy calls for one.
    Compaction(CompactionEvent),
    /// What the person should know of it.
    Warning(String),
    /// The request is on its way.
    RequestSent {
        /// What it costs, as counted here.
        tokens: u64,
        /// What it may cost.
        budget: u64,
    },
    /// The model is asked, and its answer will be kept under this id, if any comes.
    AnswerStarted(EntryId),
    /// A piece of the answer.
    Delta(Delta),
    /// The model calls a tool, and that is kept.
    ToolCalled(ToolCall),
    /// The tool answered, and that is kept.
    ToolReturned(ToolResult),
    /// The request was too long for the model; a shorter one follows.
    RequestShortened,
}

/// What became of a turn.
#[derive(Debug)]
pub struct TurnOutcome {
    /// The answer as it was kept; none where nothing came.
    pub answer: Option<Entry>,
    /// What it cost, over all requests of the turn.
    pub usage: Option<Usage>,
    /// Why there is no answer, or no whole one.
    pub error: Option<ModelError>,
    /// Whether it was stopped.
    pub stopped: bool,
    /// Whether it grew longer than it may, and ends there.
    pub truncated: bool,
    /// The checkpoints that were made on the way.
    pub checkpoints: Vec<Entry>,
    /// The last request that was sent.
    pub request: Request,
}

/// Whoever wants to know how a turn goes.
pub type EventSink<'a> = &'a mut (dyn FnMut(TurnEvent) + Send);

/// What was said, and where it went.
#[derive(Clone, Debug)]
pub struct PostedMessage {
    /// The session it is in: another one where late words became a fork.
    pub session: Session,
    /// Its entry.
    pub entry: Entry,
    /// How it was appended.
    pub append_kind: AppendKind,
}

/// How one asking of the model ended.
enum ModelReply {
    Answer(Answer),
    Partial(PartialAnswer),
    Stopped(Content),
}

impl Session {
    /// Keeps what a person says. It is durable when this returns.
    pub async fn post_message(
        &self,
        content: Content,
        expect: Expect,
        conflict: ConflictPolicy,
    ) -> Result<PostedMessage, Error> {
        let entry = self.new_entry(Message::new(Role::User, content));
        let appended = self.append_all(vec![entry], expect, conflict).await?;
        let session = self.tl.handle(&appended.session);
        let how = appended.kind;
        let mut entries = appended.entries;
        match entries.pop() {
            Some(entry) => Ok(PostedMessage {
                session,
                entry,
                append_kind: how,
            }),
            None => Err(throughline_store::StoreError::NothingToAppend.into()),
        }
    }

    /// Answers what was said at an entry, the last message of the log.
    pub async fn answer(
        &self,
        question: &Entry,
        turn: &AnswerOptions<'_>,
        tell: EventSink<'_>,
    ) -> Result<TurnOutcome, Error> {
        // What neither a person nor a tool said is no new message: it stands in the log.
        let new = question.message().filter(|message| match message.role {
            Role::User | Role::Tool => true,
            Role::Assistant | Role::System => false,
        });
        let content = new.map(|message| &message.content);
        let mut usage: Option<Usage> = None;
        let mut asking = RequestOptions {
            policy: turn.policy,
            budget: None,
            window: turn.window,
            encoding: turn.encoding,
            agent: turn.agent,
            documents: turn.documents,
            message: content,
            before: new.map(|_| question.seq),
            model: Some(turn.model.name()),
        };
        let mut checkpoints = Vec::new();
        let mut request = self
            .prepare_request(&asking, turn, &mut checkpoints, tell)
            .await?;
        if let Some(rebuild) = self.tl.take_index_rebuild() {
            tell(TurnEvent::Warning(rebuild.to_string()));
        }
        if let Some(trouble) = self.tl.take_reranker_failure() {
            tell(TurnEvent::Warning(trouble));
        }
        let mut shortened = false;
        for round in 0.. {
            let asked_at = self.tl.now();
            let id = self.tl.environment.new_entry_id();
            tell(TurnEvent::AnswerStarted(id));
            let heard = self
                .call_model(&request, turn, round < MAX_TOOL_ROUNDS, tell)
                .await;
            let latency = self.tl.now().duration_since(asked_at).as_millis();
            let latency = u64::try_from(latency).unwrap_or_default();
            let (mut cut, mut calls) = (false, false);
            let (content, cost, failed, stopped) = match heard {
                ModelReply::Answer(answer) => {
                    self.calibrate_from_usage(turn, &request, answer.usage);
                    calls =
                        answer.finish_reason == FinishReason::ToolUse && round < MAX_TOOL_ROUNDS;
                    cut = answer.finish_reason == FinishReason::Length;
                    (answer.content, answer.usage, None, false)
                }
                ModelReply::Partial(broken)
                    if broken.error.kind() == ModelErrorKind::TooLong && !shortened =>
                {
                    shortened = true;
                    tell(TurnEvent::RequestShortened);
                    let made = self
                        .compact_for_retry(&asking, turn, &request, tell)
                        .await?;
                    checkpoints.extend(made);
                    asking.budget = Some(request.tokens * RETRY_BUDGET_PERCENT / 100);
                    request = self.request(&asking).await?;
                    continue;
                }
                ModelReply::Partial(broken) => {
                    let PartialAnswer {
                        error,
                        content: so_far,
                        usage,
                    } = broken;
                    (so_far, usage, Some(error), false)
                }
                ModelReply::Stopped(content) => (content, None, None, true),
            };
            if let Some(cost) = cost {
                *usage.get_or_insert_default() += cost;
            }
            if content.0.is_empty() {
                return Ok(TurnOutcome {
                    answer: None,
                    usage,
                    error: failed,
                    stopped,
                    truncated: cut,
                    checkpoints,
                    request,
                });
            }
            let message = Message {
                model: Some(turn.model.name().to_owned()),
                provider: Some(turn.model.provider().to_owned()),
                usage: cost,
                latency_ms: Some(latency),
                incomplete: failed.is_some() || stopped || cut,
                ..Message::new(Role::Assistant, content)
            };
            let wanted: Vec<ToolCall> = if calls {
                message.content.tool_calls().cloned().collect()
            } else {
                Vec::new()
            };
            let answer = self.append_answer(id, message).await?;
            let runs = |toolbox: &&dyn Toolbox| !wanted.is_empty() && !toolbox.is_run_by_caller();
            let Some(toolbox) = turn.tools.filter(runs) else {
                return Ok(TurnOutcome {
                    answer: Some(answer),
                    usage,
                    error: failed,
                    stopped,
                    truncated: cut,
                    checkpoints,
                    request,
                });
            };
            self.run_tools(toolbox, &wanted, tell).await?;
            // From here on the question is part of the log like everything else.
            (asking.message, asking.before) = (None, None);
            request = self
                .prepare_request(&asking, turn, &mut checkpoints, tell)
                .await?;
        }
        unreachable!("the rounds end with an answer")
    }

    /// Keeps an answer under the id it was announced by.
    async fn append_answer(&self, id: EntryId, answer: Message) -> Result<Entry, Error> {
        let new = NewEntry::new(id, self.tl.now(), Body::Message(answer));
        self.append_entry(new).await
    }

    /// What to send, after a compaction where the policy calls for one.
    async fn prepare_request(
        &self,
        asking: &RequestOptions<'_>,
        turn: &AnswerOptions<'_>,
        checkpoints: &mut Vec<Entry>,
        tell: EventSink<'_>,
    ) -> Result<Request, Error> {
        let (request, compacted) = {
            let tell = std::sync::Mutex::new(&mut *tell);
            let note = |event| {
                if let Ok(mut tell) = tell.lock() {
                    tell(TurnEvent::Compaction(event));
                }
            };
            self.compact_and_build_request(asking, turn.summarizer, Some(&note))
                .await?
        };
        match compacted {
            CompactOutcome::Done(done) => {
                emit_warnings(&done.warnings, tell);
                checkpoints.push(done.entry);
            }
            CompactOutcome::NotSmaller(warnings) => emit_warnings(&warnings, tell),
            CompactOutcome::NotNeeded | CompactOutcome::Superseded => {}
        }
        Ok(request)
    }

    /// Asks the model, and listens until it has answered or is told to stop.
    async fn call_model(
        &self,
        request: &Request,
        turn: &AnswerOptions<'_>,
        may_call: bool,
        tell: EventSink<'_>,
    ) -> ModelReply {
        tell(TurnEvent::RequestSent {
            tokens: request.tokens,
            budget: request.budget,
        });
        let tools = turn.tools.filter(|_| may_call);
        let ask = ModelRequest {
            messages: &request.messages,
            tools: tools.map_or(&[], |toolbox| toolbox.tools()),
            options: turn.sampling,
        };
        let mut so_far = Content::default();
        let mut listen = |delta: Delta| {
            if let Delta::Text(text) = &delta {
                match so_far.0.last_mut() {
                    Some(Block::Text(said)) => said.push_str(text),
                    _ => so_far.0.push(Block::Text(text.clone())),
                }
            }
            tell(TurnEvent::Delta(delta));
        };
        let stopped = async {
            match turn.stop {
                Some(stop) => stop.notified().await,
                None => std::future::pending().await,
            }
        };
        let answered = tokio::select! {
            biased;
            () = stopped => None,
            answered = turn.model.answer(&ask, &mut listen) => Some(answered),
        };
        match answered {
            Some(Ok(answer)) => ModelReply::Answer(answer),
            Some(Err(broken)) => ModelReply::Partial(broken),
            None => ModelReply::Stopped(so_far),
        }
    }

    /// Runs tools one after the other, and keeps each result as it comes.
    async fn run_tools(
        &self,
        toolbox: &dyn Toolbox,
        calls: &[ToolCall],
        tell: EventSink<'_>,
    ) -> Result<(), Error> {
        for call in calls {
            tell(TurnEvent::ToolCalled(call.clone()));
            let result = toolbox.run(call).await;
            let block = Block::ToolResult(result.clone());
            self.append(Message::new(Role::Tool, Content(vec![block])))
                .await?;
            tell(TurnEvent::ToolReturned(result));
        }
        Ok(())
    }

    /// Summarizes what can be, for a model that would not take all of it; answers with the
    /// checkpoint, where one was made.
    async fn compact_for_retry(
        &self,
        asking: &RequestOptions<'_>,
        turn: &AnswerOptions<'_>,
        request: &Request,
        tell: EventSink<'_>,
    ) -> Result<Option<Entry>, Error> {
        let compacted = self
            .compact(&CompactOptions {
                policy: turn.policy,
                window: request.tokens * RETRY_BUDGET_PERCENT / 100,
                encoding: turn.encoding,
                fixed_tokens: 0,
                before: asking.before,
                force: true,
                allow_larger: false,
                // The model has just refused as much.
                summarizer: None,
                on_event: None,
            })
            .await?;
        // Where nothing is gained by it, the next request is made shorter all the same.
        match compacted {
            CompactOutcome::Done(done) => {
                emit_warnings(&done.warnings, tell);
                Ok(Some(done.entry))
            }
            _ => Ok(None),
        }
    }

    fn calibrate_from_usage(
        &self,
        turn: &AnswerOptions<'_>,
        request: &Request,
        usage: Option<Usage>,
    ) {
        if let Some(usage) = usage {
            self.tl
                .record_token_usage(turn.model.name(), usage.input, request.tokens);
        }
    }

    /// The last message, where it is a question that nobody has answered.
    pub async fn unanswered_message(&self) -> Result<Option<Entry>, Error> {
        let record = self.record().await?;
        // Newest first: what was rewound or cleared away is no answer.
        for span in record.state.visible.iter().rev() {
            let to = span.to.unwrap_or(record.info.head);
            let from = span
                .from
                .max(Seq(to.0.saturating_sub(LAST_MESSAGE_SCAN as u64)));
            if from > to {
                continue;
            }
            let read = ReadRange::between(from, to, LAST_MESSAGE_SCAN + 1);
            let mut entries = self.read(read).await?.into_iter();
            if let Some(last) = entries.rfind(|entry| entry.message().is_some()) {
                let asks = last.message().is_some_and(|message| {
                    message.role == Role::User && message.content.tool_results().next().is_none()
                });
                return Ok(asks.then_some(last));
            }
        }
        Ok(None)
    }
}

fn emit_warnings(warnings: &[String], tell: EventSink<'_>) {
    for warning in warnings {
        tell(TurnEvent::Warning(warning.clone()));
    }
}

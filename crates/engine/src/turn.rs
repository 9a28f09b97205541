//! Runs a turn: stores the user's message, asks the model, and stores its answer.
//!
//! The question is durable before the model is called ([`Session::post_message`]). The
//! answer is stored as soon as it is complete, and a partial one if it fails or is
//! stopped ([`Session::answer`]). A failure of the model is not an error here: the
//! question remains in the log and can be answered later.

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

/// The most rounds of tool calls before the model has to answer.
const MAX_TOOL_ROUNDS: usize = 24;
/// How many entries are searched backward for the last message of a span.
const LAST_MESSAGE_SCAN: usize = 50;
/// The budget for retrying a request that was too long, in percent of its tokens.
const RETRY_BUDGET_PERCENT: u64 = 75;

/// Options for answering a message.
#[derive(Clone, Copy)]
pub struct AnswerOptions<'a> {
    /// The model that answers.
    pub model: &'a dyn Model,
    /// The policy by which requests are built.
    pub policy: &'a Policy,
    /// The model's context window, in tokens.
    pub window: u64,
    /// The encoding that tokens are counted with.
    pub encoding: Encoding,
    /// The agent's instructions.
    pub agent: Option<&'a str>,
    /// Project context, in addition to the session's own documents.
    pub documents: &'a [ContextDocument],
    /// The summarizer for compactions; `None` for the extractive one.
    pub summarizer: Option<&'a dyn Summarizer>,
    /// The tools that the model may call.
    pub tools: Option<&'a dyn Toolbox>,
    /// The sampling options for the model.
    pub sampling: &'a SamplingOptions,
    /// Notified when the answer should stop.
    pub stop: Option<&'a Notify>,
}

impl Debug for AnswerOptions<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AnswerOptions")
            .field("model", &self.model.name())
            .field("policy", &self.policy.name)
            .finish_non_exhaustive()
    }
}

/// The tools that a model may call.
#[async_trait]
pub trait Toolbox: Debug + Send + Sync {
    /// The specifications of the tools.
    fn tools(&self) -> &[ToolSpec];

    /// Whether the caller runs the tools: the turn then ends with the calls, and
    /// [`run`](Self::run) is not called.
    fn is_run_by_caller(&self) -> bool {
        false
    }

    /// Runs one tool call. A failure is returned as a result too.
    async fn run(&self, call: &ToolCall) -> ToolResult;
}

/// Progress of a turn.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum TurnEvent {
    /// Progress of a compaction, if the policy requires one.
    Compaction(CompactionEvent),
    /// A warning for the user.
    Warning(String),
    /// A request was sent.
    RequestSent {
        /// Its tokens, as counted here.
        tokens: u64,
        /// Its token limit.
        budget: u64,
    },
    /// The model was called; its answer will be stored under this id, if there is one.
    AnswerStarted(EntryId),
    /// A part of the answer.
    Delta(Delta),
    /// The model calls a tool; the call has been stored.
    ToolCalled(ToolCall),
    /// The tool returned; the result has been stored.
    ToolReturned(ToolResult),
    /// The request was too long for the model; a shorter one follows.
    RequestShortened,
}

/// The result of a turn.
#[derive(Debug)]
pub struct TurnOutcome {
    /// The answer as stored; `None` if there was none.
    pub answer: Option<Entry>,
    /// The token usage of all requests in the turn.
    pub usage: Option<Usage>,
    /// Why there is no answer, or only a partial one.
    pub error: Option<ModelError>,
    /// Whether the turn was stopped.
    pub stopped: bool,
    /// Whether the answer reached its length limit and ends there.
    pub truncated: bool,
    /// The checkpoints that were made during the turn.
    pub checkpoints: Vec<Entry>,
    /// The last request that was sent.
    pub request: Request,
}

/// A callback for the progress of a turn.
pub type EventSink<'a> = &'a mut (dyn FnMut(TurnEvent) + Send);

/// A message that was stored, and where.
#[derive(Clone, Debug)]
pub struct PostedMessage {
    /// The session that holds it: a new fork if the append conflicted.
    pub session: Session,
    /// The message's entry.
    pub entry: Entry,
    /// How it was appended.
    pub append_kind: AppendKind,
}

/// How one call of the model ended.
enum ModelReply {
    Answer(Answer),
    Partial(PartialAnswer),
    Stopped(Content),
}

impl Session {
    /// Stores a user's message. It is durable when this returns.
    pub async fn post_message(
        &self,
        content: Content,
        expect: Expect,
        conflict: ConflictPolicy,
    ) -> Result<PostedMessage, Error> {
        let entry = self.new_entry(Message::new(Role::User, content));
        let appended = self.append_all(vec![entry], expect, conflict).await?;
        let session = self.tl.handle(&appended.session);
        let append_kind = appended.kind;
        let mut entries = appended.entries;
        match entries.pop() {
            Some(entry) => Ok(PostedMessage {
                session,
                entry,
                append_kind,
            }),
            None => Err(throughline_store::StoreError::NothingToAppend.into()),
        }
    }

    /// Answers a message, which must be the last one in the log.
    pub async fn answer(
        &self,
        question: &Entry,
        turn: &AnswerOptions<'_>,
        events: EventSink<'_>,
    ) -> Result<TurnOutcome, Error> {
        // Only user messages and tool results are new messages; others are just part of
        // the log.
        let new = question.message().filter(|message| match message.role {
            Role::User | Role::Tool => true,
            Role::Assistant | Role::System => false,
        });
        let content = new.map(|message| &message.content);
        let mut usage: Option<Usage> = None;
        let mut options = RequestOptions {
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
            .prepare_request(&options, turn, &mut checkpoints, events)
            .await?;
        if let Some(rebuild) = self.tl.take_index_rebuild() {
            events(TurnEvent::Warning(rebuild.to_string()));
        }
        if let Some(trouble) = self.tl.take_reranker_failure() {
            events(TurnEvent::Warning(trouble));
        }
        let mut shortened = false;
        for round in 0.. {
            let asked_at = self.tl.now();
            let id = self.tl.environment.new_entry_id();
            events(TurnEvent::AnswerStarted(id));
            let reply = self
                .call_model(&request, turn, round < MAX_TOOL_ROUNDS, events)
                .await;
            let latency = self.tl.now().duration_since(asked_at).as_millis();
            let latency = u64::try_from(latency).unwrap_or_default();
            let (mut cut, mut calls) = (false, false);
            let (content, cost, failed, stopped) = match reply {
                ModelReply::Answer(answer) => {
                    self.calibrate_from_usage(turn, &request, answer.usage);
                    calls =
                        answer.finish_reason == FinishReason::ToolUse && round < MAX_TOOL_ROUNDS;
                    cut = answer.finish_reason == FinishReason::Length;
                    (answer.content, answer.usage, None, false)
                }
                ModelReply::Partial(partial)
                    if partial.error.kind() == ModelErrorKind::TooLong && !shortened =>
                {
                    shortened = true;
                    events(TurnEvent::RequestShortened);
                    let checkpoint = self
                        .compact_for_retry(&options, turn, &request, events)
                        .await?;
                    checkpoints.extend(checkpoint);
                    options.budget = Some(request.tokens * RETRY_BUDGET_PERCENT / 100);
                    request = self.request(&options).await?;
                    continue;
                }
                ModelReply::Partial(partial) => {
                    let PartialAnswer {
                        error,
                        content: so_far,
                        usage,
                    } = partial;
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
            let requested_calls: Vec<ToolCall> = if calls {
                message.content.tool_calls().cloned().collect()
            } else {
                Vec::new()
            };
            let answer = self.append_answer(id, message).await?;
            let runs =
                |toolbox: &&dyn Toolbox| !requested_calls.is_empty() && !toolbox.is_run_by_caller();
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
            self.run_tools(toolbox, &requested_calls, events).await?;
            // From now on the question is part of the log like every other entry.
            (options.message, options.before) = (None, None);
            request = self
                .prepare_request(&options, turn, &mut checkpoints, events)
                .await?;
        }
        unreachable!("the rounds end with an answer")
    }

    /// Stores an answer under the id that was announced for it.
    async fn append_answer(&self, id: EntryId, answer: Message) -> Result<Entry, Error> {
        let new = NewEntry::new(id, self.tl.now(), Body::Message(answer));
        self.append_entry(new).await
    }

    /// Builds the next request, compacting first if the policy requires it.
    async fn prepare_request(
        &self,
        options: &RequestOptions<'_>,
        turn: &AnswerOptions<'_>,
        checkpoints: &mut Vec<Entry>,
        events: EventSink<'_>,
    ) -> Result<Request, Error> {
        let (request, compacted) = {
            let events = std::sync::Mutex::new(&mut *events);
            let note = |event| {
                if let Ok(mut events) = events.lock() {
                    events(TurnEvent::Compaction(event));
                }
            };
            self.compact_and_build_request(options, turn.summarizer, Some(&note))
                .await?
        };
        match compacted {
            CompactOutcome::Done(done) => {
                emit_warnings(&done.warnings, events);
                checkpoints.push(done.entry);
            }
            CompactOutcome::NotSmaller(warnings) => emit_warnings(&warnings, events),
            CompactOutcome::NotNeeded | CompactOutcome::Superseded => {}
        }
        Ok(request)
    }

    /// Calls the model and forwards its output until it has answered or is stopped.
    async fn call_model(
        &self,
        request: &Request,
        turn: &AnswerOptions<'_>,
        may_call: bool,
        events: EventSink<'_>,
    ) -> ModelReply {
        events(TurnEvent::RequestSent {
            tokens: request.tokens,
            budget: request.budget,
        });
        let tools = turn.tools.filter(|_| may_call);
        let model_request = ModelRequest {
            messages: &request.messages,
            tools: tools.map_or(&[], |toolbox| toolbox.tools()),
            options: turn.sampling,
        };
        let mut so_far = Content::default();
        let mut listen = |delta: Delta| {
            if let Delta::Text(text) = &delta {
                match so_far.0.last_mut() {
                    Some(Block::Text(last)) => last.push_str(text),
                    _ => so_far.0.push(Block::Text(text.clone())),
                }
            }
            events(TurnEvent::Delta(delta));
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
            answered = turn.model.answer(&model_request, &mut listen) => Some(answered),
        };
        match answered {
            Some(Ok(answer)) => ModelReply::Answer(answer),
            Some(Err(partial)) => ModelReply::Partial(partial),
            None => ModelReply::Stopped(so_far),
        }
    }

    /// Runs tools one after the other and stores each result as it arrives.
    async fn run_tools(
        &self,
        toolbox: &dyn Toolbox,
        calls: &[ToolCall],
        events: EventSink<'_>,
    ) -> Result<(), Error> {
        for call in calls {
            events(TurnEvent::ToolCalled(call.clone()));
            let result = toolbox.run(call).await;
            let block = Block::ToolResult(result.clone());
            self.append(Message::new(Role::Tool, Content(vec![block])))
                .await?;
            events(TurnEvent::ToolReturned(result));
        }
        Ok(())
    }

    /// Compacts the session for a model that rejected the request as too long; returns
    /// the checkpoint, if one was made.
    async fn compact_for_retry(
        &self,
        options: &RequestOptions<'_>,
        turn: &AnswerOptions<'_>,
        request: &Request,
        events: EventSink<'_>,
    ) -> Result<Option<Entry>, Error> {
        let compacted = self
            .compact(&CompactOptions {
                policy: turn.policy,
                window: request.tokens * RETRY_BUDGET_PERCENT / 100,
                encoding: turn.encoding,
                fixed_tokens: 0,
                before: options.before,
                force: true,
                allow_larger: false,
                // The model has just rejected a text of this length.
                summarizer: None,
                on_event: None,
            })
            .await?;
        // If compaction does not help, the next request is shortened anyway.
        match compacted {
            CompactOutcome::Done(done) => {
                emit_warnings(&done.warnings, events);
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

    /// Returns the last message if it is a question without an answer.
    pub async fn unanswered_message(&self) -> Result<Option<Entry>, Error> {
        let record = self.record().await?;
        // Newest first: rewound or cleared messages do not count as answers.
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
                let is_question = last.message().is_some_and(|message| {
                    message.role == Role::User && message.content.tool_results().next().is_none()
                });
                return Ok(is_question.then_some(last));
            }
        }
        Ok(None)
    }
}

fn emit_warnings(warnings: &[String], events: EventSink<'_>) {
    for warning in warnings {
        events(TurnEvent::Warning(warning.clone()));
    }
}

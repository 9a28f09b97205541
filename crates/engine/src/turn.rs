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
    Answer, Ask, Broken, Delta, Model, ModelError, ModelErrorKind, Stop, Summarizer, Terms,
    ToolSpec,
};
use throughline_model::{
    Block, Body, Content, Entry, EntryId, Message, NewEntry, Role, Seq, ToolCall, ToolResult, Usage,
};
use throughline_store::{Expect, How, Read};
use tokio::sync::Notify;

use crate::{
    Asking, Compacted, Compacting, CompactionEvent, Conflict, Error, Session, context::Document,
};

/// How often a model may call tools before it has to answer.
const ROUNDS: usize = 24;
/// How far back the last message of a stretch is looked for, over notes that came after.
const LOOKED_AT: usize = 50;
/// What of a request that was too long is tried next, in percent.
const SHORTER: u64 = 75;

/// What an answer is made with.
#[derive(Clone, Copy)]
pub struct Turn<'a> {
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
    pub documents: &'a [Document],
    /// Who summarizes where the policy calls for it; none for the extractive summarizer.
    pub summarizer: Option<&'a dyn Summarizer>,
    /// What the model may do besides talking.
    pub tools: Option<&'a dyn Toolbox>,
    /// On which terms the model answers.
    pub terms: &'a Terms,
    /// Notified when the answer is no longer wanted.
    pub stop: Option<&'a Notify>,
}

impl Debug for Turn<'_> {
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
    fn run_by_asker(&self) -> bool {
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
    Sent {
        /// What it costs, as counted here.
        tokens: u64,
        /// What it may cost.
        budget: u64,
    },
    /// The model is asked, and its answer will be kept under this id, if any comes.
    Asked(EntryId),
    /// A piece of the answer.
    Delta(Delta),
    /// The model calls a tool, and that is kept.
    Called(ToolCall),
    /// The tool answered, and that is kept.
    Returned(ToolResult),
    /// The request was too long for the model; a shorter one follows.
    Shortened,
}

/// What became of a turn.
#[derive(Debug)]
pub struct Turned {
    /// The answer as it was kept; none where nothing came.
    pub answer: Option<Entry>,
    /// What it cost, over all requests of the turn.
    pub usage: Option<Usage>,
    /// Why there is no answer, or no whole one.
    pub failed: Option<ModelError>,
    /// Whether it was stopped.
    pub stopped: bool,
    /// Whether it grew longer than it may, and ends there.
    pub cut: bool,
    /// The checkpoints that were made on the way.
    pub checkpoints: Vec<Entry>,
    /// The last request that was sent.
    pub request: Request,
}

/// Whoever wants to know how a turn goes.
pub type Tell<'a> = &'a mut (dyn FnMut(TurnEvent) + Send);

/// What was said, and where it went.
#[derive(Clone, Debug)]
pub struct Said {
    /// The session it is in: another one where late words became a fork.
    pub session: Session,
    /// Its entry.
    pub entry: Entry,
    /// How it was appended.
    pub how: How,
}

/// How one asking of the model ended.
enum Heard {
    Answer(Answer),
    Broken(Broken),
    Stopped(Content),
}

impl Session {
    /// Keeps what a person says. It is durable when this returns.
    pub async fn say(
        &self,
        content: Content,
        expect: Expect,
        conflict: Conflict,
    ) -> Result<Said, Error> {
        let entry = self.entry(Message::new(Role::User, content));
        let appended = self.append_all(vec![entry], expect, conflict).await?;
        let session = self.tl.handle(&appended.session);
        let how = appended.how;
        let mut entries = appended.entries;
        match entries.pop() {
            Some(entry) => Ok(Said {
                session,
                entry,
                how,
            }),
            None => Err(throughline_store::StoreError::NothingToAppend.into()),
        }
    }

    /// Answers what was said at an entry, the last message of the log.
    pub async fn answer(
        &self,
        question: &Entry,
        turn: &Turn<'_>,
        tell: Tell<'_>,
    ) -> Result<Turned, Error> {
        // What neither a person nor a tool said is no new message: it stands in the log.
        let new = question.message().filter(|message| match message.role {
            Role::User | Role::Tool => true,
            Role::Assistant | Role::System => false,
        });
        let content = new.map(|message| &message.content);
        let mut usage: Option<Usage> = None;
        let mut asking = Asking {
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
        let mut request = self.prepared(&asking, turn, &mut checkpoints, tell).await?;
        if let Some(rebuild) = self.tl.take_index_rebuild() {
            tell(TurnEvent::Warning(rebuild.to_string()));
        }
        if let Some(trouble) = self.tl.trouble_comparing() {
            tell(TurnEvent::Warning(trouble));
        }
        let mut shortened = false;
        for round in 0.. {
            let asked_at = self.tl.now();
            let id = self.tl.world.entry_id();
            tell(TurnEvent::Asked(id));
            let heard = self.heard(&request, turn, round < ROUNDS, tell).await;
            let latency = self.tl.now().duration_since(asked_at).as_millis();
            let latency = u64::try_from(latency).unwrap_or_default();
            let (mut cut, mut calls) = (false, false);
            let (content, cost, failed, stopped) = match heard {
                Heard::Answer(answer) => {
                    self.learn_from(turn, &request, answer.usage);
                    calls = answer.stop == Stop::ToolUse && round < ROUNDS;
                    cut = answer.stop == Stop::Length;
                    (answer.content, answer.usage, None, false)
                }
                Heard::Broken(broken)
                    if broken.error.kind() == ModelErrorKind::TooLong && !shortened =>
                {
                    shortened = true;
                    tell(TurnEvent::Shortened);
                    let made = self.make_shorter(&asking, turn, &request, tell).await?;
                    checkpoints.extend(made);
                    asking.budget = Some(request.tokens * SHORTER / 100);
                    request = self.request(&asking).await?;
                    continue;
                }
                Heard::Broken(broken) => {
                    let Broken {
                        error,
                        so_far,
                        usage,
                    } = broken;
                    (so_far, usage, Some(error), false)
                }
                Heard::Stopped(content) => (content, None, None, true),
            };
            if let Some(cost) = cost {
                *usage.get_or_insert_default() += cost;
            }
            if content.0.is_empty() {
                return Ok(Turned {
                    answer: None,
                    usage,
                    failed,
                    stopped,
                    cut,
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
            let answer = self.kept(id, message).await?;
            let runs = |toolbox: &&dyn Toolbox| !wanted.is_empty() && !toolbox.run_by_asker();
            let Some(toolbox) = turn.tools.filter(runs) else {
                return Ok(Turned {
                    answer: Some(answer),
                    usage,
                    failed,
                    stopped,
                    cut,
                    checkpoints,
                    request,
                });
            };
            self.run_tools(toolbox, &wanted, tell).await?;
            // From here on the question is part of the log like everything else.
            (asking.message, asking.before) = (None, None);
            request = self.prepared(&asking, turn, &mut checkpoints, tell).await?;
        }
        unreachable!("the rounds end with an answer")
    }

    /// Keeps an answer under the id it was announced by.
    async fn kept(&self, id: EntryId, answer: Message) -> Result<Entry, Error> {
        let new = NewEntry::new(id, self.tl.now(), Body::Message(answer));
        self.append_new(new).await
    }

    /// What to send, after a compaction where the policy calls for one.
    async fn prepared(
        &self,
        asking: &Asking<'_>,
        turn: &Turn<'_>,
        checkpoints: &mut Vec<Entry>,
        tell: Tell<'_>,
    ) -> Result<Request, Error> {
        let (request, compacted) = {
            let tell = std::sync::Mutex::new(&mut *tell);
            let note = |event| {
                if let Ok(mut tell) = tell.lock() {
                    tell(TurnEvent::Compaction(event));
                }
            };
            self.request_compacted(asking, turn.summarizer, Some(&note))
                .await?
        };
        match compacted {
            Compacted::Done(done) => {
                warn(&done.warnings, tell);
                checkpoints.push(done.entry);
            }
            Compacted::NotWorthIt(warnings) => warn(&warnings, tell),
            Compacted::NotNeeded | Compacted::Overtaken => {}
        }
        Ok(request)
    }

    /// Asks the model, and listens until it has answered or is told to stop.
    async fn heard(
        &self,
        request: &Request,
        turn: &Turn<'_>,
        may_call: bool,
        tell: Tell<'_>,
    ) -> Heard {
        tell(TurnEvent::Sent {
            tokens: request.tokens,
            budget: request.budget,
        });
        let tools = turn.tools.filter(|_| may_call);
        let ask = Ask {
            messages: &request.messages,
            tools: tools.map_or(&[], |toolbox| toolbox.tools()),
            terms: turn.terms,
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
            Some(Ok(answer)) => Heard::Answer(answer),
            Some(Err(broken)) => Heard::Broken(broken),
            None => Heard::Stopped(so_far),
        }
    }

    /// Runs tools one after the other, and keeps each result as it comes.
    async fn run_tools(
        &self,
        toolbox: &dyn Toolbox,
        calls: &[ToolCall],
        tell: Tell<'_>,
    ) -> Result<(), Error> {
        for call in calls {
            tell(TurnEvent::Called(call.clone()));
            let result = toolbox.run(call).await;
            let block = Block::ToolResult(result.clone());
            self.append(Message::new(Role::Tool, Content(vec![block])))
                .await?;
            tell(TurnEvent::Returned(result));
        }
        Ok(())
    }

    /// Summarizes what can be, for a model that would not take all of it; answers with the
    /// checkpoint, where one was made.
    async fn make_shorter(
        &self,
        asking: &Asking<'_>,
        turn: &Turn<'_>,
        request: &Request,
        tell: Tell<'_>,
    ) -> Result<Option<Entry>, Error> {
        let compacted = self
            .compact(&Compacting {
                policy: turn.policy,
                window: request.tokens * SHORTER / 100,
                encoding: turn.encoding,
                fixed: 0,
                before: asking.before,
                force: true,
                even_if_larger: false,
                // The model has just refused as much.
                model: None,
                tell: None,
            })
            .await?;
        // Where nothing is gained by it, the next request is made shorter all the same.
        match compacted {
            Compacted::Done(done) => {
                warn(&done.warnings, tell);
                Ok(Some(done.entry))
            }
            _ => Ok(None),
        }
    }

    fn learn_from(&self, turn: &Turn<'_>, request: &Request, usage: Option<Usage>) {
        if let Some(usage) = usage {
            self.tl
                .learn(turn.model.name(), usage.input, request.tokens);
        }
    }

    /// The last message, where it is a question that nobody has answered.
    pub async fn unanswered(&self) -> Result<Option<Entry>, Error> {
        let record = self.record().await?;
        // Newest first: what was rewound or cleared away is no answer.
        for span in record.standing.visible.iter().rev() {
            let to = span.to.unwrap_or(record.card.head);
            let from = span.from.max(Seq(to.0.saturating_sub(LOOKED_AT as u64)));
            if from > to {
                continue;
            }
            let read = Read::between(from, to, LOOKED_AT + 1);
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

fn warn(warnings: &[String], tell: Tell<'_>) {
    for warning in warnings {
        tell(TurnEvent::Warning(warning.clone()));
    }
}

//! Tests of turns: what is stored when a model answers, fails, breaks off, is stopped, calls tools.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may panic")]

use std::sync::Mutex;

use async_trait::async_trait;
use throughline::context::{Encoding, Policy};
use throughline::llm::{
    Answer, Delta, FinishReason, Model, ModelError, ModelRequest, PartialAnswer, SamplingOptions,
    ToolSpec,
};
use throughline::{
    Acknowledgement, AnswerOptions, Block, Body, ConflictPolicy, Content, Entry, ErrorKind, Expect,
    Json, Message, NewSession, Role, Session, Throughline, ToolCall, ToolResult, Toolbox,
    TurnEvent, TurnOutcome, Usage,
};
use tokio::sync::Notify;

/// What a scripted model does next.
enum ScriptStep {
    Say(&'static str),
    Call(&'static str),
    Break(&'static str),
    Fail(ModelError),
    /// Sends this text, then hangs.
    Hang(&'static str),
}

/// A model that follows a script and records its requests.
struct ScriptedModel {
    script: Mutex<Vec<ScriptStep>>,
    sent: Mutex<Vec<Vec<String>>>,
}

impl std::fmt::Debug for ScriptedModel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Scripted")
    }
}

impl ScriptedModel {
    fn new(script: Vec<ScriptStep>) -> Self {
        Self {
            script: Mutex::new(script),
            sent: Mutex::default(),
        }
    }

    fn sent(&self) -> Vec<Vec<String>> {
        self.sent.lock().unwrap().clone()
    }
}

#[async_trait]
impl Model for ScriptedModel {
    fn name(&self) -> &'static str {
        "scripted"
    }

    fn provider(&self) -> &'static str {
        "test"
    }

    async fn answer(
        &self,
        request: &ModelRequest<'_>,
        on_delta: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<Answer, PartialAnswer> {
        let shown = |message: &throughline::context::RequestMessage| {
            format!("{}: {}", message.role, message.content.to_text())
        };
        self.sent
            .lock()
            .unwrap()
            .push(request.messages.iter().map(shown).collect());
        let next = self.script.lock().unwrap().remove(0);
        let complete_answer = |content, stop| {
            Ok(Answer {
                content,
                usage: Some(Usage {
                    input: 100,
                    output: 10,
                    ..Usage::default()
                }),
                model: None,
                finish_reason: stop,
            })
        };
        match next {
            ScriptStep::Say(text) => {
                on_delta(Delta::Text(text.to_owned()));
                complete_answer(Content::text(text), FinishReason::Completed)
            }
            ScriptStep::Call(name) => {
                let call = ToolCall {
                    id: "call-1".into(),
                    name: name.into(),
                    input: Json::parse("{}").unwrap(),
                };
                complete_answer(Content(vec![Block::ToolCall(call)]), FinishReason::ToolUse)
            }
            ScriptStep::Break(text) => Err(PartialAnswer {
                error: ModelError::Truncated,
                content: Content::text(text),
                usage: None,
            }),
            ScriptStep::Fail(error) => Err(error.into()),
            ScriptStep::Hang(text) => {
                on_delta(Delta::Text(text.to_owned()));
                std::future::pending().await
            }
        }
    }
}

/// A toolbox with one tool.
#[derive(Debug)]
struct OneTool(Vec<ToolSpec>);

#[async_trait]
impl Toolbox for OneTool {
    fn tools(&self) -> &[ToolSpec] {
        &self.0
    }

    async fn run(&self, call: &ToolCall) -> ToolResult {
        ToolResult {
            call_id: call.id.clone(),
            content: Content::text("three files"),
            is_error: false,
        }
    }
}

fn block_on<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    runtime.unwrap().block_on(work)
}

async fn session() -> Session {
    let tl = Throughline::open("memory:").await.unwrap();
    tl.create(NewSession::default()).await.unwrap()
}

async fn ask(session: &Session, text: &str) -> Entry {
    let posted = session.post_message(Content::text(text), Expect::Any, ConflictPolicy::Reject);
    posted.await.unwrap().entry
}

fn answer_options<'a>(model: &'a ScriptedModel, policy: &'a Policy) -> AnswerOptions<'a> {
    AnswerOptions {
        model,
        policy,
        window: 10_000,
        encoding: Encoding::Rough,
        agent: Some("You help."),
        documents: &[],
        summarizer: None,
        tools: None,
        sampling: &SamplingOptions::NONE,
        stop: None,
    }
}

async fn ask_and_answer(session: &Session, text: &str, turn: &AnswerOptions<'_>) -> TurnOutcome {
    let question = ask(session, text).await;
    session.answer(&question, turn, &mut |_| {}).await.unwrap()
}

async fn log_messages(session: &Session) -> Vec<(Role, String, bool)> {
    let entries = session.tail(100).await.unwrap();
    let messages = entries.iter().filter_map(Entry::message);
    messages
        .map(|m| (m.role, m.content.to_text().into_owned(), m.incomplete))
        .collect()
}

#[test]
fn the_question_is_stored_before_the_model_is_called() {
    block_on(async {
        let session = session().await;
        let model = ScriptedModel::new(vec![ScriptStep::Fail(ModelError::TimedOut)]);
        let policy = Policy::default();

        let outcome = ask_and_answer(&session, "Hello?", &answer_options(&model, &policy)).await;

        assert!(outcome.answer.is_none());
        assert!(matches!(outcome.error, Some(ModelError::TimedOut)));
        assert_eq!(
            log_messages(&session).await,
            [(Role::User, "Hello?".into(), false)]
        );
        let question = session.unanswered_message().await.unwrap().unwrap();
        assert_eq!(question.message().unwrap().content.to_text(), "Hello?");
    });
}

#[test]
fn an_answer_is_stored_with_its_usage_and_model() {
    block_on(async {
        let session = session().await;
        let model = ScriptedModel::new(vec![ScriptStep::Say("Hi!")]);
        let policy = Policy::default();

        let outcome = ask_and_answer(&session, "Hello?", &answer_options(&model, &policy)).await;

        let answer = outcome.answer.unwrap();
        let message = answer.message().unwrap();
        assert_eq!(message.model.as_deref(), Some("scripted"));
        assert_eq!(message.provider.as_deref(), Some("test"));
        assert_eq!(message.usage.unwrap().total(), 110);
        assert!(message.latency_ms.is_some());
        assert_eq!(model.sent()[0], ["system: You help.", "user: Hello?"]);
        assert!(session.unanswered_message().await.unwrap().is_none());
        let info = session.record().await.unwrap().info;
        assert_eq!((info.queries, info.tokens.total()), (1, 110));
    });
}

#[test]
fn a_rewound_answer_does_not_count() {
    block_on(async {
        let session = session().await;
        let model = ScriptedModel::new(vec![
            ScriptStep::Say("A poor answer."),
            ScriptStep::Say("A better one."),
        ]);
        let policy = Policy::default();
        let turn = answer_options(&model, &policy);
        let question = ask(&session, "Why?").await;
        session.answer(&question, &turn, &mut |_| {}).await.unwrap();
        assert!(session.unanswered_message().await.unwrap().is_none());

        session.rewind(question.seq).await.unwrap();

        let unanswered = session.unanswered_message().await.unwrap().unwrap();
        assert_eq!(unanswered.seq, question.seq);
        session
            .answer(&unanswered, &turn, &mut |_| {})
            .await
            .unwrap();
        assert!(session.unanswered_message().await.unwrap().is_none());
        assert_eq!(model.sent()[1].len(), model.sent()[0].len());
        session.clear().await.unwrap();
        assert!(session.unanswered_message().await.unwrap().is_none());
    });
}

#[test]
fn a_partial_answer_is_stored_and_marked() {
    block_on(async {
        let session = session().await;
        let model = ScriptedModel::new(vec![
            ScriptStep::Break("The first step"),
            ScriptStep::Say("Right."),
        ]);
        let policy = Policy::default();
        let turn = answer_options(&model, &policy);

        let outcome = ask_and_answer(&session, "How?", &turn).await;
        assert!(matches!(outcome.error, Some(ModelError::Truncated)));
        ask_and_answer(&session, "Go on", &turn).await;

        let messages = log_messages(&session).await;
        assert_eq!(
            messages[1],
            (Role::Assistant, "The first step".into(), true)
        );
        assert!(model.sent()[1].contains(&"assistant: The first step".to_owned()));
    });
}

#[test]
fn a_stopped_answer_is_stored_as_far_as_it_came() {
    block_on(async {
        let session = session().await;
        let model = ScriptedModel::new(vec![ScriptStep::Hang("So far")]);
        let policy = Policy::default();
        let stop = Notify::new();
        let turn = AnswerOptions {
            stop: Some(&stop),
            ..answer_options(&model, &policy)
        };
        let question = ask(&session, "Tell me everything").await;

        let outcome = session
            .answer(&question, &turn, &mut |event| {
                if matches!(event, TurnEvent::Delta(_)) {
                    stop.notify_one();
                }
            })
            .await
            .unwrap();

        assert!(outcome.stopped);
        let messages = log_messages(&session).await;
        assert_eq!(messages[1], (Role::Assistant, "So far".into(), true));
    });
}

#[test]
fn tool_calls_and_results_are_stored_as_they_happen_and_sent_back() {
    block_on(async {
        let session = session().await;
        let model = ScriptedModel::new(vec![
            ScriptStep::Call("look"),
            ScriptStep::Say("There are three."),
        ]);
        let policy = Policy::default();
        let tools = OneTool(vec![ToolSpec {
            name: "look".into(),
            description: "Looks around".into(),
            schema: Json::parse("{}").unwrap(),
        }]);
        let turn = AnswerOptions {
            tools: Some(&tools),
            ..answer_options(&model, &policy)
        };

        let outcome = ask_and_answer(&session, "How many files?", &turn).await;

        assert_eq!(outcome.usage.unwrap().total(), 220);
        let roles: Vec<_> = log_messages(&session)
            .await
            .into_iter()
            .map(|m| m.0)
            .collect();
        let expected = [Role::User, Role::Assistant, Role::Tool, Role::Assistant];
        assert_eq!(roles, expected);
        let last = model.sent().pop().unwrap();
        assert_eq!(last[1], "user: How many files?");
        assert_eq!(last.len(), 4, "{last:?}");
    });
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

    async fn run(&self, _: &ToolCall) -> ToolResult {
        panic!("it is not run here")
    }
}

#[test]
fn a_turn_ends_with_calls_that_the_caller_runs_and_continues_with_their_results() {
    block_on(async {
        let session = session().await;
        let model = ScriptedModel::new(vec![
            ScriptStep::Call("look"),
            ScriptStep::Say("There are three."),
        ]);
        let policy = Policy::default();
        let tools = CallerTools(vec![ToolSpec {
            name: "look".into(),
            description: "Looks around".into(),
            schema: Json::parse("{}").unwrap(),
        }]);
        let turn = AnswerOptions {
            tools: Some(&tools),
            ..answer_options(&model, &policy)
        };
        let mut announced = Vec::new();
        let mut note = |event| {
            if let TurnEvent::AnswerStarted(id) = event {
                announced.push(id);
            }
        };

        let question = ask(&session, "How many files?").await;
        let outcome = session.answer(&question, &turn, &mut note).await.unwrap();
        let called = outcome.answer.unwrap();
        let call = called.message().unwrap().content.tool_calls().next();
        let result = ToolResult {
            call_id: call.unwrap().id.clone(),
            content: Content::text("three files"),
            is_error: false,
        };
        let result = Message::new(Role::Tool, Content(vec![Block::ToolResult(result)]));
        let result = session.append(result).await.unwrap();
        let outcome = session.answer(&result, &turn, &mut note).await.unwrap();

        let answer = outcome.answer.unwrap();
        assert_eq!(
            answer.message().unwrap().content.to_text(),
            "There are three."
        );
        assert_eq!(announced, [called.id, answer.id]);
        let last = model.sent().pop().unwrap();
        assert_eq!(last.len(), 4, "{last:?}");
        assert!(last[3].starts_with("tool: "), "{last:?}");
    });
}

#[test]
fn a_request_that_was_too_long_is_made_shorter_once() {
    block_on(async {
        let session = session().await;
        for number in 0..40 {
            let text = format!("We decided on option {number}. {}", "Words. ".repeat(50));
            session
                .append(Message::text(Role::User, &text))
                .await
                .unwrap();
            session
                .append(Message::text(Role::Assistant, "Noted."))
                .await
                .unwrap();
        }
        let too_long = || {
            ScriptStep::Fail(ModelError::TooLong {
                model: "scripted".into(),
                tokens: None,
                window: None,
            })
        };
        let model = ScriptedModel::new(vec![
            too_long(),
            ScriptStep::Say("Yes."),
            too_long(),
            too_long(),
        ]);
        let policy = Policy::default();
        let turn = answer_options(&model, &policy);

        let first = ask_and_answer(&session, "And now?", &turn).await;
        assert!(first.error.is_none(), "{:?}", first.error);
        let lengths: Vec<_> = model
            .sent()
            .iter()
            .map(|messages| messages.concat().len())
            .collect();
        assert!(lengths[1] < lengths[0], "{lengths:?}");
        assert_eq!(model.sent()[1].last().unwrap(), "user: And now?");

        let second = ask_and_answer(&session, "Again?", &turn).await;
        assert!(matches!(second.error, Some(ModelError::TooLong { .. })));
    });
}

#[test]
fn a_compaction_before_an_answer_does_not_cover_the_question() {
    block_on(async {
        let session = session().await;
        for _ in 0..60 {
            let text = "We talked about many things at great length. ".repeat(20);
            session
                .append(Message::text(Role::User, &text))
                .await
                .unwrap();
            session
                .append(Message::text(Role::Assistant, &text))
                .await
                .unwrap();
        }
        let model = ScriptedModel::new(vec![ScriptStep::Say("It is 7.")]);
        let policy = Policy::preset("dagent").unwrap();
        let question = ask(&session, "What is the number?").await;
        let mut events = Vec::new();
        session
            .answer(&question, &answer_options(&model, &policy), &mut |event| {
                if let TurnEvent::Compaction(event) = event {
                    events.push(event.name());
                }
            })
            .await
            .unwrap();

        assert_eq!(
            events,
            ["session:compaction-start", "session:compaction-complete"]
        );
        let (_, checkpoint) = session.checkpoint().await.unwrap().unwrap();
        assert!(checkpoint.covers < question.seq);
        let sent = model.sent().pop().unwrap();
        let questions = sent.iter().filter(|m| m.contains("What is the number?"));
        assert_eq!(questions.count(), 1);
    });
}

#[test]
fn reported_usage_calibrates_the_next_budget() {
    block_on(async {
        let session = session().await;
        let tl = Throughline::open("memory:").await.unwrap();
        let model = ScriptedModel::new((0..3).map(|_| ScriptStep::Say("Yes.")).collect());
        let policy = Policy::default();
        let turn = answer_options(&model, &policy);
        for _ in 0..3 {
            ask_and_answer(&session, "Is it so?", &turn).await;
        }
        let question = ask(&session, "Is it so?").await;
        model.script.lock().unwrap().push(ScriptStep::Say("Yes."));
        let outcome = session.answer(&question, &turn, &mut |_| {}).await.unwrap();

        // The model counts more tokens than the estimate, so the budget shrinks.
        assert!(
            outcome.request.budget < 10_000,
            "{}",
            outcome.request.budget
        );
        assert!((tl.calibration().factor("scripted") - 1.0).abs() < 1e-9);
    });
}

#[test]
fn a_conflicting_message_can_become_a_fork() {
    block_on(async {
        let session = session().await;
        let seen = ask(&session, "one").await.seq;
        ask(&session, "two, from another window").await;

        let refused = session
            .post_message(
                Content::text("late"),
                Expect::At(seen),
                ConflictPolicy::Reject,
            )
            .await
            .unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Conflict);

        let forked = session
            .post_message(
                Content::text("late"),
                Expect::At(seen),
                ConflictPolicy::Fork,
            )
            .await
            .unwrap();
        assert_ne!(forked.session.id(), session.id());
        let messages = log_messages(&forked.session).await;
        let texts: Vec<_> = messages.into_iter().map(|message| message.1).collect();
        assert_eq!(texts, ["one", "late"]);
    });
}

#[test]
fn an_acknowledgement_is_counted_in_tokens_and_not_as_a_query() {
    block_on(async {
        let parent = session().await;
        ask(&parent, "Let's use JWT for the sessions.").await;
        parent.append_exit_summary(None).await.unwrap();
        let tl = Throughline::open("memory:").await.unwrap();
        let known = parent
            .as_parent(Some("/transcripts/one.md".into()))
            .await
            .unwrap();
        let model = ScriptedModel::new(vec![ScriptStep::Say("I have reviewed it.")]);
        let acknowledgement = tl
            .request_acknowledgement(&known, Some("You help."), &model, &mut |_| {})
            .await
            .unwrap();
        assert_eq!(acknowledgement.text, "I have reviewed it.");
        assert!(model.sent()[0][1].contains("Previous session file: /transcripts/one.md"));

        let next = tl
            .continue_from(&known, NewSession::default(), Some(acknowledgement))
            .await
            .unwrap();

        let info = next.record().await.unwrap().info;
        assert_eq!((info.queries, info.tokens.total()), (0, 0));
        assert_eq!(info.restoration.total(), 110);
        let first = next.entries(throughline::Seq(1), 1).await.unwrap();
        let Body::Restored(restored) = &first[0].body else {
            panic!("{first:?}");
        };
        assert_eq!(
            restored.acknowledgement.as_deref(),
            Some("I have reviewed it.")
        );
        assert_eq!(restored.from, *parent.id());
    });
}

#[test]
fn an_empty_acknowledgement_does_not_prevent_continuing() {
    block_on(async {
        let parent = session().await;
        ask(&parent, "Let's use JWT.").await;
        parent.append_exit_summary(None).await.unwrap();
        let tl = Throughline::open("memory:").await.unwrap();
        let known = parent.as_parent(None).await.unwrap();
        let model = ScriptedModel::new(vec![
            ScriptStep::Fail(ModelError::TimedOut),
            ScriptStep::Break("I have"),
        ]);

        let failed = tl
            .request_acknowledgement(&known, None, &model, &mut |_| {})
            .await;
        assert!(matches!(failed, Err(ModelError::TimedOut)));
        let half = tl
            .request_acknowledgement(&known, None, &model, &mut |_| {})
            .await;
        assert_eq!(
            half.unwrap(),
            Acknowledgement {
                text: "I have".into(),
                usage: None,
                latency_ms: Some(0)
            }
        );
    });
}

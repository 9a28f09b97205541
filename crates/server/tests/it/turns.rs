//! Turns over HTTP, answered by a mock provider.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Value, json};
use throughline::context::Policy;
use throughline::llm::{
    Answer, ApiKeys, Delta, FinishReason, Model, ModelRequest, ModelSpec, ModelSummarizer,
    PartialAnswer, Provider, TimeoutPolicy, resolve_endpoint,
};
use throughline::{Content, Responder, Session};
use throughline_mock_provider::{Fault, MockProvider, Reply, Script};
use throughline_server::{ResponderChoice, ResponderError, ResponderRegistry};

use crate::harness::{EventReader, Server, ServerOptions, send};
use crate::mock_provider::MockResponderRegistry;

/// A registry with one model of the mock provider for every session.
#[derive(Debug)]
pub(crate) struct SingleModelRegistry {
    model: Arc<Provider>,
    policy: Policy,
}

#[async_trait]
impl ResponderRegistry for SingleModelRegistry {
    async fn responder(
        &self,
        _: Option<&Session>,
        _: &ResponderChoice,
    ) -> Result<Responder, ResponderError> {
        Ok(Responder {
            model: Some(self.model.clone()),
            policy: self.policy.clone(),
            summarizer: Some(Arc::new(ModelSummarizer::new(self.model.clone()))),
            ..Responder::offline()
        })
    }

    fn models(&self) -> Vec<String> {
        vec!["stand-in".to_owned()]
    }
}

async fn start_with_script(script: Script) -> (Server, MockProvider) {
    start_with_policy(script, Policy::default()).await
}

async fn start_with_policy(script: Script, policy: Policy) -> (Server, MockProvider) {
    let mock = MockProvider::start(script).unwrap();
    let spec = ModelSpec::parse(&format!("base_url={}/v1 model=m", mock.url())).unwrap();
    let connection = resolve_endpoint(&spec, &ApiKeys::default(), &|_| None)
        .unwrap()
        .unwrap();
    let model = Provider::new(connection, TimeoutPolicy::default(), 1).unwrap();
    let voices = SingleModelRegistry {
        model: Arc::new(model),
        policy,
    };
    let server = Server::start_with(ServerOptions {
        responders: Arc::new(voices),
        ..ServerOptions::default()
    })
    .await;
    (server, mock)
}

fn slow_script(text: &str) -> Script {
    let text = text.to_owned();
    Script::from_fn(move |_| Reply::text(text.clone()).with_delay(Duration::from_millis(30)))
}

fn deltas(events: &[(String, Value)]) -> String {
    let texts = events.iter().filter(|(name, _)| name == "message:delta");
    texts
        .map(|(_, data)| data["text"].as_str().unwrap())
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_is_streamed_and_stored() {
    let (server, _model) =
        start_with_script(slow_script("In Redis, for now, with a prefix.")).await;
    let id = server.create_session(&[]).await;
    let ask = json!({"message": "Where are sessions?"});
    let mut events =
        EventReader::open(server.post(&format!("/api/sessions/{id}/turns"), &ask)).await;
    let received = events.read_to_end().await;
    assert_eq!(received[0].0, "turn:started");
    assert_eq!(received[0].1["question"]["content"], "Where are sessions?");
    assert_eq!(deltas(&received), "In Redis, for now, with a prefix.");
    let pieces = received.iter().filter(|(name, _)| name == "message:delta");
    assert!(pieces.count() > 1, "it came in one piece");
    let (name, last) = received.last().unwrap();
    assert_eq!(name, "turn:complete");
    assert_eq!(
        last["answer"]["content"],
        "In Redis, for now, with a prefix."
    );
    assert!(last["usage"]["output"].as_u64().unwrap() > 0);
    let (_, page) = send(server.get(&format!("/api/sessions/{id}/entries"))).await;
    assert_eq!(page["entries"][2], last["answer"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_is_named_after_its_first_question() {
    let (server, model) = start_with_script(Script::default()).await;
    let id = server.create_session(&[]).await;
    let path = format!("/api/sessions/{id}/turns");
    let ask = json!({"message": "How should we rotate the API keys?", "stream": false});
    let (_, turn) = send(server.post(&path, &ask)).await;
    let (_, session) = send(server.get(&format!("/api/sessions/{id}"))).await;
    assert_eq!(session["name"], "rotate-api-keys");
    // The answer is the last entry, and naming the session makes no request.
    assert_eq!(session["head"], turn["answer"]["seq"]);
    assert_eq!(model.requests().len(), 1);

    let ask = json!({"message": "And the database's password?", "stream": false});
    send(server.post(&path, &ask)).await;
    let (_, session) = send(server.get(&format!("/api/sessions/{id}"))).await;
    assert_eq!(session["name"], "rotate-api-keys");

    let body = json!({"name": "mine"});
    let (_, named) = send(server.post("/api/sessions", &body)).await;
    let path = format!("/api/sessions/{}/turns", named["id"].as_str().unwrap());
    send(server.post(&path, &ask)).await;
    let (_, session) = send(server.get(path.trim_end_matches("/turns"))).await;
    assert_eq!(session["name"], "mine");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_chooses_its_model_and_its_agent() {
    let mock = MockProvider::start(Script::default()).unwrap();
    let server = Server::start_with(ServerOptions {
        responders: MockResponderRegistry::with_named_models(&mock),
        ..ServerOptions::default()
    })
    .await;
    let (_, voices) = send(server.get("/api/voices")).await;
    assert_eq!(voices["models"][1], "openai/model-mini");
    assert_eq!(voices["agents"], json!(["poet"]));
    let id = server.create_session(&[]).await;
    let path = format!("/api/sessions/{id}/turns");
    let ask = json!({
        "message": "Hi.", "model": "openai/model-mini", "agent": "poet", "stream": false,
    });
    let (status, turn) = send(server.post(&path, &ask)).await;
    assert_eq!(status, 200, "{turn}");
    assert_eq!(turn["answer"]["model"], "model-mini");
    let sent = mock.requests().pop().unwrap();
    assert!(sent.system().contains("in verse"), "{}", sent.system());
    // The choice applies to this turn only.
    let ask = json!({"message": "And now?", "stream": false});
    let (_, turn) = send(server.post(&path, &ask)).await;
    assert_eq!(turn["answer"]["model"], "model-max");

    let head = send(server.get(&format!("/api/sessions/{id}"))).await.1["head"].clone();
    for (member, code) in [
        ("model", "model_not_offered"),
        ("agent", "agent_not_offered"),
    ] {
        let ask = json!({"message": "Hi.", member: "nobody"});
        let (status, problem) = send(server.post(&path, &ask)).await;
        assert_eq!((status.as_u16(), &problem["code"]), (422, &json!(code)));
        let detail = problem["detail"].as_str().unwrap();
        assert!(
            detail.contains("nobody") && detail.contains("available: "),
            "{detail}"
        );
    }
    let (_, after) = send(server.get(&format!("/api/sessions/{id}"))).await;
    assert_eq!(after["head"], head);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_can_be_returned_without_streaming() {
    let (server, _model) = start_with_script(Script::replies([Reply::text("Yes.")])).await;
    let id = server.create_session(&[]).await;
    let ask = json!({"message": "Really?", "stream": false});
    let (status, turn) = send(server.post(&format!("/api/sessions/{id}/turns"), &ask)).await;
    assert_eq!(status, 200, "{turn}");
    assert_eq!(turn["answer"]["content"], "Yes.");
    assert_eq!(turn["stopped"], false);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_can_disconnect_and_resume_a_turn() {
    let (server, _model) =
        start_with_script(slow_script("one two three four five six seven eight")).await;
    let id = server.create_session(&[]).await;
    let path = format!("/api/sessions/{id}/turns");
    let mut events = EventReader::open(server.post(&path, &json!({"message": "Count."}))).await;
    let (_, started) = events.next().await.unwrap();
    let turn = started["turn"].as_str().unwrap().to_owned();
    while events.next().await.unwrap().0 != "message:delta" {}
    drop(events);

    let mut again = EventReader::open(server.get(&format!("{path}/current"))).await;
    let received = again.read_to_end().await;
    assert_eq!(received[0].0, "turn:started");
    assert_eq!(deltas(&received), "one two three four five six seven eight");
    assert_eq!(received.last().unwrap().0, "turn:complete");

    // Also after the turn has ended, and from the middle.
    let later = server
        .get(&format!("{path}/{turn}"))
        .header("last-event-id", "3");
    let received_later = EventReader::open(later).await.read_to_end().await;
    assert_eq!(received_later, received[3..]);
    let (_, page) = send(server.get(&format!("/api/sessions/{id}/entries"))).await;
    assert_eq!(page["head"], 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn another_server_reports_the_answer_once_it_is_stored() {
    let (server, _model) =
        start_with_script(slow_script("one two three four five six seven eight")).await;
    let other = server.start_peer(ServerOptions::default()).await;
    let id = server.create_session(&[]).await;
    let path = format!("/api/sessions/{id}/turns");
    let current = format!("{path}/current");
    let (status, problem) = send(other.get(&current)).await;
    assert_eq!(
        (status.as_u16(), &problem["code"]),
        (404, &json!("turn_not_found"))
    );

    let mut events = EventReader::open(server.post(&path, &json!({"message": "Count."}))).await;
    let (_, started) = events.next().await.unwrap();
    let mut elsewhere = EventReader::open(other.get(&current)).await;
    let (name, received) = elsewhere.next().await.unwrap();
    assert_eq!(name, "turn:elsewhere");
    assert_eq!(received["question"], started["question"]);
    assert_eq!(received["turn"], started["turn"]);
    let received = elsewhere.read_to_end().await;
    let (name, complete) = events.read_to_end().await.pop().unwrap();
    assert_eq!(name, "turn:complete");
    assert_eq!(received.len(), 1, "{received:?}");
    assert_eq!(received[0].0, "turn:complete");
    assert_eq!(received[0].1["answer"], complete["answer"]);
    assert_eq!(received[0].1["usage"], complete["usage"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_on_another_server_queues_or_refuses_as_requested() {
    let (server, _model) =
        start_with_script(slow_script("a long answer that takes a while to say")).await;
    let other = server.start_peer(ServerOptions::default()).await;
    let id = server.create_session(&[]).await;
    let path = format!("/api/sessions/{id}/turns");
    let mut first = EventReader::open(server.post(&path, &json!({"message": "First."}))).await;
    let (_, started) = first.next().await.unwrap();
    let refuse = json!({"message": "Refused.", "when_busy": "refuse"});
    let (status, problem) = send(other.post(&path, &refuse)).await;
    assert_eq!(
        (status.as_u16(), &problem["code"]),
        (409, &json!("session_busy"))
    );
    let mut second = EventReader::open(other.post(&path, &json!({"message": "Second."}))).await;
    let (name, queued) = second.next().await.unwrap();
    assert_eq!(
        (name.as_str(), &queued["after"]),
        ("turn:queued", &started["turn"])
    );
    assert_eq!(first.read_to_end().await.last().unwrap().0, "turn:complete");
    assert_eq!(
        second.read_to_end().await.last().unwrap().0,
        "turn:complete"
    );
    let (_, page) = send(server.get(&format!("/api/sessions/{id}/entries"))).await;
    let entries = page["entries"].as_array().unwrap().iter();
    let roles: Vec<_> = entries.filter_map(|e| e["role"].as_str()).collect();
    assert_eq!(roles, ["user", "assistant", "user", "assistant"]);
}

/// A model that reports when it is called, and then blocks its server's thread until released.
#[derive(Debug)]
struct StallingModel {
    asked: Sender<()>,
    resume: Mutex<Receiver<()>>,
}

#[async_trait]
impl Model for StallingModel {
    fn name(&self) -> &'static str {
        "stalling"
    }

    fn provider(&self) -> &'static str {
        "test"
    }

    async fn answer(
        &self,
        _: &ModelRequest<'_>,
        _: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<Answer, PartialAnswer> {
        self.asked.send(()).unwrap();
        self.resume.lock().unwrap().recv().unwrap();
        Ok(Answer {
            content: Content::text("late"),
            usage: None,
            model: None,
            finish_reason: FinishReason::Completed,
        })
    }
}

#[derive(Debug)]
struct StallingRegistry(Arc<StallingModel>);

#[async_trait]
impl ResponderRegistry for StallingRegistry {
    async fn responder(
        &self,
        _: Option<&Session>,
        _: &ResponderChoice,
    ) -> Result<Responder, ResponderError> {
        Ok(Responder {
            model: Some(self.0.clone()),
            ..Responder::offline()
        })
    }

    fn models(&self) -> Vec<String> {
        vec!["stalling".to_owned()]
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_stalls_appends_no_second_answer() {
    let server = Arc::new(Server::start().await);
    let id = server.create_session(&[]).await;
    let path = format!("/api/sessions/{id}/turns");
    let (asked, was_asked) = channel();
    let (release, resume_signal) = channel();
    let voices = StallingRegistry(Arc::new(StallingModel {
        asked,
        resume: Mutex::new(resume_signal),
    }));
    let options = ServerOptions {
        responders: Arc::new(voices),
        replaced_after: Some(Duration::from_millis(200)),
        ..ServerOptions::default()
    };
    // The server has one thread, which its model blocks.
    let beside = Arc::clone(&server);
    let (tell_url, url) = tokio::sync::oneshot::channel();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let thread = std::thread::spawn(move || {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().build().unwrap();
        runtime.block_on(async {
            let stalled = beside.start_peer(options).await;
            tell_url.send(stalled.url.clone()).unwrap();
            let _ = stopped.await;
        });
    });
    let question = json!({"message": "Well?", "stream": false});
    let ask = |url: &str| {
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        let post = client.post(format!("{url}{path}")).json(&question);
        post.header("idempotency-key", "q1")
    };
    let late = tokio::spawn(send(ask(&url.await.unwrap())));
    tokio::task::block_in_place(|| was_asked.recv().unwrap());

    let (status, turn) = send(ask(&server.url)).await;

    assert_eq!(status, 200, "{turn}");
    release.send(()).unwrap();
    let (status, problem) = late.await.unwrap();
    assert_eq!(
        (status.as_u16(), &problem["code"]),
        (409, &json!("lease_lost")),
        "{problem}"
    );
    let (_, page) = send(server.get(&format!("/api/sessions/{id}/entries"))).await;
    let entries = page["entries"].as_array().unwrap().iter();
    let answers: Vec<_> = entries.filter(|e| e["role"] == "assistant").collect();
    assert_eq!(answers, [&turn["answer"]]);
    drop(stop);
    thread.join().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_turn_on_another_server_is_reported() {
    let (server, _model) = start_with_script(Script::replies([Reply::fault(Fault::Hang)])).await;
    let other = server.start_peer(ServerOptions::default()).await;
    let id = server.create_session(&[]).await;
    let path = format!("/api/sessions/{id}/turns");
    let mut first = EventReader::open(server.post(&path, &json!({"message": "Well?"}))).await;
    let (_, started) = first.next().await.unwrap();
    let mut waiting = EventReader::open(other.get(&format!("{path}/current"))).await;
    assert_eq!(waiting.next().await.unwrap().0, "turn:elsewhere");
    let turn = started["turn"].as_str().unwrap();
    let stop = server.request("DELETE", &format!("{path}/{turn}"));
    assert_eq!(send(stop).await.0, 202);
    assert_eq!(first.read_to_end().await.last().unwrap().0, "turn:stopped");
    let received = waiting.read_to_end().await;
    assert_eq!(received.len(), 1, "{received:?}");
    assert_eq!(received[0].0, "turn:failed");
    // No server runs the turn any more, and that is reported.
    let (status, _) = send(other.get(&format!("{path}/current"))).await;
    assert_eq!(status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_turn_waits_or_is_refused_as_requested() {
    let (server, _model) =
        start_with_script(slow_script("a long answer that takes a while to say")).await;
    let id = server.create_session(&[]).await;
    let path = format!("/api/sessions/{id}/turns");
    let mut first = EventReader::open(server.post(&path, &json!({"message": "First."}))).await;
    first.next().await.unwrap();
    let refuse = json!({"message": "Refused.", "when_busy": "refuse"});
    let (status, problem) = send(server.post(&path, &refuse)).await;
    assert_eq!(
        (status.as_u16(), &problem["code"]),
        (409, &json!("session_busy"))
    );
    let second = json!({"message": "Second.", "when_busy": "queue"});
    let mut second = EventReader::open(server.post(&path, &second)).await;
    assert_eq!(second.next().await.unwrap().0, "turn:queued");
    assert_eq!(first.read_to_end().await.last().unwrap().0, "turn:complete");
    assert_eq!(
        second.read_to_end().await.last().unwrap().0,
        "turn:complete"
    );
    let (_, page) = send(server.get(&format!("/api/sessions/{id}/entries"))).await;
    let entries = page["entries"].as_array().unwrap().iter();
    let roles: Vec<_> = entries.filter_map(|e| e["role"].as_str()).collect();
    assert_eq!(roles, ["user", "assistant", "user", "assistant"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_turn_stores_the_partial_answer() {
    let words = "word ".repeat(400);
    let (server, _model) = start_with_script(slow_script(&words)).await;
    let id = server.create_session(&[]).await;
    let path = format!("/api/sessions/{id}/turns");
    let mut events = EventReader::open(server.post(&path, &json!({"message": "Go on."}))).await;
    let (_, started) = events.next().await.unwrap();
    while events.next().await.unwrap().0 != "message:delta" {}
    let turn = started["turn"].as_str().unwrap();
    let stop = server.request("DELETE", &format!("{path}/{turn}"));
    assert_eq!(send(stop).await.0, 202);
    let (name, last) = events.read_to_end().await.pop().unwrap();
    assert_eq!(name, "turn:stopped");
    let stored = last["answer"]["content"].as_str().unwrap();
    assert!(stored.starts_with("word") && stored.len() < words.len());
    assert_eq!(last["answer"]["incomplete"], true);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_key_asks_once() {
    let (server, model) = start_with_script(slow_script("once and only once")).await;
    let id = server.create_session(&[]).await;
    let path = format!("/api/sessions/{id}/turns");
    let ask = |text: &str, stream: bool| {
        let body = json!({"message": text, "stream": stream});
        server.post(&path, &body).header("idempotency-key", "q1")
    };
    let mut first = EventReader::open(ask("Once?", true)).await;
    first.next().await.unwrap();
    let (status, same) = send(ask("Once?", false)).await;
    assert_eq!(status, 200);
    assert_eq!(same["answer"]["content"], "once and only once");
    assert_eq!(
        first.read_to_end().await.last().unwrap().1["answer"],
        same["answer"]
    );
    assert_eq!(model.requests().len(), 1);
    let (_, page) = send(server.get(&format!("/api/sessions/{id}/entries"))).await;
    assert_eq!(page["head"], 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_model_failure_the_question_can_be_answered_later() {
    let replies = [Reply::fault(Fault::WrongKey), Reply::text("Now it works.")];
    let (server, _model) = start_with_script(Script::replies(replies)).await;
    let id = server.create_session(&[]).await;
    let path = format!("/api/sessions/{id}/turns");
    let ask = json!({"message": "Anybody there?", "stream": false});
    let (status, turn) = send(server.post(&path, &ask)).await;
    assert_eq!(status, 200, "{turn}");
    assert_eq!(turn["failed"]["code"], "model_key_refused");
    assert_eq!(turn["answer"], Value::Null);
    let (status, turn) = send(server.post(&path, &json!({"stream": false}))).await;
    assert_eq!(status, 200, "{turn}");
    assert_eq!(turn["answer"]["content"], "Now it works.");
    let (status, problem) = send(server.post(&path, &json!({"stream": false}))).await;
    assert_eq!(
        (status.as_u16(), &problem["code"]),
        (409, &json!("nothing_to_answer"))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_turn_can_be_retried_with_the_same_key() {
    let replies = [Reply::fault(Fault::WrongKey), Reply::text("Now it works.")];
    let (server, _model) = start_with_script(Script::replies(replies)).await;
    let id = server.create_session(&[]).await;
    let path = format!("/api/sessions/{id}/turns");
    let ask = || {
        let body = json!({"message": "Anybody there?", "stream": false});
        server.post(&path, &body).header("idempotency-key", "once")
    };
    assert_eq!(send(ask()).await.1["answer"], Value::Null);
    assert_eq!(send(ask()).await.1["answer"]["content"], "Now it works.");
    let (_, page) = send(server.get(&format!("/api/sessions/{id}/entries"))).await;
    assert_eq!(page["head"], 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stale_head_refuses_a_turn_before_anything_is_asked() {
    let (server, model) = start_with_script(Script::default()).await;
    let id = server.create_session(&["one", "two"]).await;
    let path = format!("/api/sessions/{id}/turns");
    let late = server
        .post(&path, &json!({"message": "late"}))
        .header("if-match", "\"1\"");
    let (status, problem) = send(late).await;
    assert_eq!((status.as_u16(), &problem["head"]), (409, &json!(2)));
    assert!(model.requests().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_compaction_during_a_turn_is_reported() {
    let policy = Policy::default()
        .with_spec("window=3000; compact_at=50%")
        .unwrap();
    let (server, _model) = start_with_policy(Script::default(), policy).await;
    let project = "123e4567-e89b-42d3-a456-426614174000";
    let (_, made) = send(server.post("/api/sessions", &json!({"project": project}))).await;
    let id = made["id"].as_str().unwrap().to_owned();
    for n in 0..30 {
        let text = format!("We decided that service {n} stores its sessions in Redis. ");
        server.post_message(&id, &text.repeat(6)).await;
    }
    let ask = json!({"message": "And what now?"});
    let mut events =
        EventReader::open(server.post(&format!("/api/sessions/{id}/turns"), &ask)).await;
    let received = events.read_to_end().await;
    let names: Vec<&str> = received.iter().map(|(name, _)| name.as_str()).collect();
    let at = |name| names.iter().position(|known| *known == name);
    let start = at("session:compaction-start").unwrap_or_else(|| panic!("{names:?}"));
    assert!(at("session:compaction-complete").unwrap() > start);
    assert!(at("turn:sent").unwrap() > start);
    assert_eq!(names.last(), Some(&"turn:complete"));

    // A fact found in the summary waits for acceptance.
    let path = format!("/api/memory?all=true&project={project}");
    let (_, memory) = send(server.get(&path)).await;
    let fact = &memory["facts"][0];
    assert_eq!(
        fact["text"], "This was summarized by the stand-in.",
        "{memory}"
    );
    assert_eq!(fact["source"]["session"], id);
    let (_, counts) = send(server.get(&path.replace("all=true&", ""))).await;
    assert_eq!(counts["facts"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_model_the_offline_agent_answers() {
    let server = Server::start().await;
    let id = server
        .create_session(&["We store sessions in Redis."])
        .await;
    let ask = json!({"message": "Where do we store sessions?", "stream": false});
    let (status, turn) = send(server.post(&format!("/api/sessions/{id}/turns"), &ask)).await;
    assert_eq!(status, 200, "{turn}");
    assert!(turn["answer"]["content"].is_string(), "{turn}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopping_server_finishes_its_turns() {
    let (mut server, _model) =
        start_with_script(slow_script("an answer of some length, in the end")).await;
    let id = server.create_session(&[]).await;
    let path = format!("/api/sessions/{id}/turns");
    let mut events = EventReader::open(server.post(&path, &json!({"message": "Well?"}))).await;
    events.next().await.unwrap();
    drop(events);
    server.stop().await;
    let session = server.tl.session(&id.parse().unwrap()).await.unwrap();
    let last = session.tail(1).await.unwrap().pop().unwrap();
    let text = last.message().unwrap().content.to_text().into_owned();
    assert_eq!(text, "an answer of some length, in the end");
}

//! Test stores with a manual clock, and helpers for memory tests.

use std::sync::Mutex;

use throughline::context::{Encoding, Policy, Request, SectionName};
use throughline::llm::{OfflineModel, SamplingOptions};
use throughline::{
    AnswerOptions, ConflictPolicy, Content, Environment, Expect, Memory, MemoryScope, NewFact,
    NewSession, OpenOptions, RequestOptions, Seq, Session, Throughline, Timestamp,
};

#[derive(Debug)]
pub(crate) struct ManualClock(Mutex<(Timestamp, u64)>);

impl ManualClock {
    pub(crate) fn advance_days(&self, days: i64) {
        let mut state = self.0.lock().unwrap();
        state.0 += jiff::SignedDuration::from_hours(24 * days);
    }
}

impl Environment for ManualClock {
    fn now(&self) -> Timestamp {
        self.0.lock().unwrap().0
    }

    fn fill_random(&self, bytes: &mut [u8]) {
        let mut state = self.0.lock().unwrap();
        state.1 += 1;
        let count = state.1.to_le_bytes();
        bytes
            .iter_mut()
            .zip(count.iter().cycle())
            .for_each(|(byte, value)| *byte = *value);
    }
}

/// An empty store with a manual clock.
pub(crate) struct TestStore {
    pub(crate) tl: Throughline,
    pub(crate) environment: std::sync::Arc<ManualClock>,
    _folder: tempfile::TempDir,
}

pub(crate) async fn all_stores() -> Vec<TestStore> {
    let mut stores = Vec::new();
    for kind in ["memory", "sqlite"] {
        let folder = tempfile::tempdir().unwrap();
        let address = match kind {
            "memory" => "memory:".to_owned(),
            _ => format!("sqlite:{}", folder.path().join("tl.db").display()),
        };
        let start = Timestamp::from_second(1_800_000_000).unwrap();
        let environment = std::sync::Arc::new(ManualClock(Mutex::new((start, 0))));
        let open_options = OpenOptions {
            environment: environment.clone(),
            ..OpenOptions::default()
        };
        let tl = Throughline::open_with(&address.parse().unwrap(), open_options)
            .await
            .unwrap();
        stores.push(TestStore {
            tl,
            environment,
            _folder: folder,
        });
    }
    stores
}

pub(crate) fn project_memory(tl: &Throughline, project: &str) -> Memory {
    tl.memory(MemoryScope::Project(project.parse().unwrap()))
}

pub(crate) async fn add(memory: &Memory, text: &str) -> Seq {
    memory
        .add(NewFact::from_person(text))
        .await
        .unwrap()
        .fact
        .seq
}

pub(crate) async fn texts(memory: &Memory) -> Vec<String> {
    let facts = memory.list().await.unwrap();
    facts.into_iter().map(|fact| fact.text).collect()
}

pub(crate) async fn session_of(tl: &Throughline, project: &str) -> Session {
    let new = NewSession {
        project: Some(project.parse().unwrap()),
        workspace: Some("/app".into()),
        ..NewSession::default()
    };
    tl.create(new).await.unwrap()
}

pub(crate) async fn request(session: &Session, message: &str) -> Request {
    let message = Content::text(message);
    request_within(session, &message, None).await
}

pub(crate) async fn request_within(
    session: &Session,
    message: &Content,
    budget: Option<u64>,
) -> Request {
    let policy = Policy::default();
    let options = RequestOptions {
        policy: &policy,
        budget,
        window: 100_000,
        encoding: Encoding::Rough,
        agent: None,
        documents: &[],
        message: Some(message),
        before: None,
        model: None,
    };
    session.request(&options).await.unwrap()
}

pub(crate) async fn facts_in_request(session: &Session, message: &str) -> Vec<String> {
    let request = request(session, message).await;
    let text = &request.section(SectionName::Memory).unwrap().text;
    let lines = text.lines().filter_map(|line| line.strip_prefix("- "));
    lines.map(ToOwned::to_owned).collect()
}

pub(crate) async fn ask(session: &Session, question: &str) {
    let policy = Policy::default();
    let offline = OfflineModel::default();
    let turn = AnswerOptions {
        model: &offline,
        policy: &policy,
        window: 100_000,
        encoding: Encoding::Rough,
        agent: None,
        documents: &[],
        summarizer: None,
        tools: None,
        sampling: &SamplingOptions::NONE,
        stop: None,
    };
    let posted = session
        .post_message(Content::text(question), Expect::Any, ConflictPolicy::Reject)
        .await
        .unwrap();
    let outcome = session
        .answer(&posted.entry, &turn, &mut |_| {})
        .await
        .unwrap();
    session.record_fact_use(&outcome).await.unwrap();
}

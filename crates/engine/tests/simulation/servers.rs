//! Server processes that answer questions over one store.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use jiff::tz::TimeZone;
use throughline::context::{Encoding, Policy};
use throughline::llm::{
    Answer, Delta, FinishReason, Model, ModelError, ModelRequest, PartialAnswer, SamplingOptions,
};
use throughline::recall::Mode;
use throughline::{
    AnswerOptions, Body, CompactOptions, ConflictPolicy, Content, Entry, EntryId, Error, Expect,
    IndexWait, Message, NewSession, OpenOptions, ReadRange, Role, SearchOptions, Seq, Session,
    SessionId, Throughline,
};
use throughline_store::MemoryStore;
use tokio::sync::oneshot;

use crate::executor::{ProcessId, SimulatedEnvironment, Simulation};
use crate::store::SimulatedStore;
use crate::writer::{Disk, Queue, Writer};

/// After this many refusals of a lease, the wait must have been reported.
const REFUSALS: usize = 20;

/// A question sent to a server.
pub(crate) struct Request {
    session: SessionId,
    key: String,
    reply: oneshot::Sender<Result<(), String>>,
}

impl Request {
    pub(crate) fn new(
        session: &SessionId,
        key: &str,
    ) -> (Self, oneshot::Receiver<Result<(), String>>) {
        let (reply, answer) = oneshot::channel();
        let request = Self {
            session: session.clone(),
            key: key.to_owned(),
            reply,
        };
        (request, answer)
    }
}

/// A running server process.
struct Server {
    tl: Throughline,
    store: Arc<SimulatedStore>,
}

/// All server processes and the store they share.
pub(crate) struct Cluster {
    pub(crate) simulation: Simulation,
    pub(crate) store: Arc<MemoryStore>,
    disk: Arc<Mutex<Disk>>,
    servers: Mutex<Vec<Option<Server>>>,
    /// The folder of the index, if there is one.
    index: Option<tempfile::TempDir>,
    acknowledged: Mutex<BTreeMap<SessionId, Vec<String>>>,
    expected: Mutex<Vec<(SessionId, Seq, String)>>,
}

impl Cluster {
    pub(crate) fn new(simulation: &Simulation, servers: usize, indexed: bool) -> Self {
        let clock = simulation.clone();
        let store = MemoryStore::with_clock(move || clock.time_of_day());
        let cluster = Self {
            simulation: simulation.clone(),
            store: Arc::new(store),
            disk: Arc::default(),
            servers: Mutex::new((0..servers).map(|_| None).collect()),
            index: indexed.then(|| tempfile::tempdir().unwrap()),
            acknowledged: Mutex::default(),
            expected: Mutex::default(),
        };
        for process in 0..servers {
            cluster.start(ProcessId(process));
        }
        cluster
    }

    fn engine(&self, store: Arc<SimulatedStore>) -> Throughline {
        let opening = OpenOptions {
            environment: Arc::new(SimulatedEnvironment(self.simulation.clone())),
            cache_dir: self.index.as_ref().map(|folder| folder.path().to_owned()),
            ..OpenOptions::default()
        };
        Throughline::with_store(store, opening)
    }

    fn connect(&self, process: ProcessId) -> Arc<SimulatedStore> {
        let simulation = self.simulation.clone();
        let queue = Queue::default();
        let writer = Writer {
            simulation: simulation.clone(),
            process,
            queue: queue.clone(),
            store: Arc::clone(&self.store),
            disk: Arc::clone(&self.disk),
        };
        simulation.spawn(process, writer.run());
        Arc::new(SimulatedStore {
            simulation,
            process,
            queue,
            store: Arc::clone(&self.store),
            refusals_by_holder: Mutex::default(),
        })
    }

    pub(crate) fn start(&self, process: ProcessId) {
        let store = self.connect(process);
        let tl = self.engine(Arc::clone(&store));
        let tl = tl.with_description(&format!("server {}", process.0));
        if self.index.is_some() {
            let indexing = keep_indexing(self.simulation.clone(), tl.clone());
            self.simulation.spawn(process, indexing);
        }
        self.servers.lock().unwrap()[process.0] = Some(Server { tl, store });
    }

    pub(crate) fn kill(&self, process: ProcessId) {
        self.simulation.kill(process);
        self.servers.lock().unwrap()[process.0] = None;
    }

    pub(crate) fn any_process(&self) -> ProcessId {
        let count = self.servers.lock().unwrap().len();
        ProcessId(usize::try_from(self.simulation.random(count as u64)).unwrap())
    }

    /// Sends a question to a server, which may be down.
    pub(crate) fn send(&self, request: Request) -> ProcessId {
        let process = self.any_process();
        let servers = self.servers.lock().unwrap();
        if let Some(server) = &servers[process.0] {
            let turn = ServedTurn {
                simulation: self.simulation.clone(),
                tl: server.tl.clone(),
                store: Arc::clone(&server.store),
            };
            self.simulation.spawn(process, turn.answer(request));
        }
        process
    }

    pub(crate) fn lock_disk(&self, duration: Duration) {
        self.simulation
            .log(&format!("the file is locked for {duration:?}"));
        self.disk.lock().unwrap().locked_until = self.simulation.elapsed() + duration;
    }

    pub(crate) fn break_disk(&self, duration: Duration) {
        self.simulation
            .log(&format!("the disk fails for {duration:?}"));
        self.disk.lock().unwrap().failing_until = self.simulation.elapsed() + duration;
    }

    /// Records that a client received an answer.
    pub(crate) fn acknowledge(&self, session: &SessionId, key: &str) {
        let mut acknowledged = self.acknowledged.lock().unwrap();
        acknowledged
            .entry(session.clone())
            .or_default()
            .push(key.to_owned());
    }

    pub(crate) fn acknowledged(&self, session: &SessionId) -> Vec<String> {
        let acknowledged = self.acknowledged.lock().unwrap();
        acknowledged.get(session).cloned().unwrap_or_default()
    }

    pub(crate) fn expect_found(&self, session: &SessionId, seq: Seq, text: &str) {
        let expected = (session.clone(), seq, text.to_owned());
        self.expected.lock().unwrap().push(expected);
    }

    /// Checks that a search finds each expected entry.
    pub(crate) async fn check_search(&self) {
        if self.index.is_none() {
            return;
        }
        let tl = self.engine(self.connect(crate::CHECKER));
        let expected = self.expected.lock().unwrap().clone();
        for (session, seq, text) in expected {
            let options = SearchOptions {
                query: &format!("\"{text}\""),
                mode: Mode::Text,
                limit: 10,
                typing: false,
                project: None,
                listing: &[],
                zone: &TimeZone::UTC,
                index_wait: IndexWait::Unlimited,
            };
            let results = tl.search(&options).await.unwrap();
            let hits = results.found.hits.iter();
            let locations: Vec<_> = hits.map(|hit| (&hit.session, hit.seq)).collect();
            if locations != [(&session, seq)] {
                let what = format!("{session} {seq} should be found, not {locations:?}");
                self.simulation.record_violation(what);
            }
        }
    }
}

async fn keep_indexing(simulation: Simulation, tl: Throughline) {
    loop {
        simulation.sleep(simulation.random_duration(60_000)).await;
        if let Err(error) = tl.catch_up(IndexWait::Unlimited, &mut |_, _| {}).await {
            simulation.record_violation(format!("the index cannot be updated: {error}"));
        }
    }
}

/// One turn at a server, as `crates/server/src/turns/run.rs` runs it.
struct ServedTurn {
    simulation: Simulation,
    tl: Throughline,
    store: Arc<SimulatedStore>,
}

impl ServedTurn {
    async fn answer(self, request: Request) {
        let answered = Box::pin(self.run(&request.session, &request.key)).await;
        // The client may have switched to another server.
        let _ = request
            .reply
            .send(answered.map_err(|error| error.to_string()));
    }

    async fn run(&self, session: &SessionId, key: &str) -> Result<(), Error> {
        let reported = Arc::new(AtomicBool::new(false));
        let report = Arc::clone(&reported);
        let tl = self.tl.clone();
        let tl = tl.on_lease_wait(move |_| report.store(true, Ordering::Relaxed));
        let new = NewSession {
            id: Some(session.clone()),
            at: Some(throughline::Timestamp::UNIX_EPOCH),
            ..NewSession::default()
        };
        let session = tl.create(new).await?;
        let id = session.new_entry(Body::Cleared).id;
        let claim = session.claim_turn_as(id).await?;
        if self.store.refusals(&id) > REFUSALS && !reported.load(Ordering::Relaxed) {
            let what = format!("{key} waited for another server and that was not reported");
            self.simulation.record_violation(what);
        }
        let turn = self.turn(claim.session(), key);
        let outcome = Box::pin(claim.run_with_renewal(turn)).await;
        claim.release().await;
        outcome
    }

    async fn turn(&self, session: &Session, key: &str) -> Result<(), Error> {
        let mut question = session.new_entry(Message::text(Role::User, key));
        question.id = EntryId::derive(&[key.as_bytes()]);
        let appended = session
            .append_all(vec![question], Expect::Any, ConflictPolicy::Reject)
            .await?;
        let question = appended.entries.first().unwrap();
        if is_answered(session, question).await? {
            return Ok(());
        }
        let model = SlowModel {
            simulation: self.simulation.clone(),
            answer: format!("answer {} to {key}", self.simulation.random(1 << 40)),
        };
        let policy = Policy {
            recall: false,
            ..Policy::default()
        };
        let turn = AnswerOptions {
            model: &model,
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
        let outcome = session.answer(question, &turn, &mut |_| {}).await?;
        if outcome.answer.is_none() {
            return Err(Error::Store(throughline::StoreError::Closed));
        }
        if self.simulation.chance(20) {
            self.compact(session, &policy).await?;
        }
        Ok(())
    }

    async fn compact(&self, session: &Session, policy: &Policy) -> Result<(), Error> {
        let options = CompactOptions {
            policy,
            window: 100_000,
            encoding: Encoding::Rough,
            fixed_tokens: 0,
            before: None,
            force: true,
            allow_larger: true,
            summarizer: None,
            on_event: None,
        };
        session.compact(&options).await.map(drop)
    }
}

/// Returns whether a question has been answered.
async fn is_answered(session: &Session, question: &Entry) -> Result<bool, Error> {
    let after = session
        .read(ReadRange::starting_at(question.seq.next(), 100))
        .await?;
    let roles = after
        .iter()
        .filter_map(|entry| entry.message())
        .map(|message| message.role);
    let mut turn = roles.take_while(|role| *role != Role::User);
    Ok(turn.any(|role| role == Role::Assistant))
}

/// A slow model that sometimes fails or breaks off.
#[derive(Debug)]
struct SlowModel {
    simulation: Simulation,
    answer: String,
}

#[async_trait]
impl Model for SlowModel {
    fn name(&self) -> &'static str {
        "slow"
    }

    fn provider(&self) -> &'static str {
        "simulation"
    }

    async fn answer(
        &self,
        _: &ModelRequest<'_>,
        on_delta: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<Answer, PartialAnswer> {
        let simulation = &self.simulation;
        for word in self.answer.split(' ') {
            simulation.sleep(simulation.random_duration(6_000)).await;
            on_delta(Delta::Text(format!("{word} ")));
        }
        let content = Content::text(&self.answer);
        if simulation.chance(5) {
            return Err(PartialAnswer {
                error: ModelError::Truncated,
                content,
                usage: None,
            });
        }
        if simulation.chance(5) {
            return Err(ModelError::Truncated.into());
        }
        Ok(Answer {
            content,
            usage: None,
            model: None,
            finish_reason: FinishReason::Completed,
        })
    }
}

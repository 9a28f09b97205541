//! Tests of leases: work that only one of several engines on a store may do.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use throughline::context::{Encoding, Policy};
use throughline::llm::{
    Answer, Delta, ExtractiveSummarizer, FinishReason, GeneratedSummary, Model, ModelRequest,
    PartialAnswer, SamplingOptions, SummarizeError, Summarizer, SummaryRequest,
};
use throughline::{
    AnswerOptions, CompactOptions, CompactOutcome, Content, Error, Message, NewSession,
    PurgeOptions, RequestOptions, Role, Session, SessionFilter, SessionId, StoreError, Throughline,
};
use throughline_postgres::test_database::TestDatabase;

const WINDOW: u64 = 2_000;
const SOON: Duration = Duration::from_millis(200);

/// A temporary store, removed when dropped.
enum TestStore {
    File(tempfile::TempDir),
    Database(TestDatabase),
}

impl TestStore {
    fn all() -> Vec<Self> {
        let file = Self::File(tempfile::tempdir().unwrap());
        let database = TestDatabase::new().map(Self::Database);
        std::iter::once(file).chain(database).collect()
    }

    async fn open(&self) -> Throughline {
        let url = match self {
            Self::File(folder) => format!("sqlite:{}", folder.path().join("s.db").display()),
            Self::Database(database) => database.url(),
        };
        Throughline::open(&url).await.unwrap()
    }
}

fn compact_options(model: &dyn Summarizer) -> CompactOptions<'_> {
    static POLICY: std::sync::LazyLock<Policy> =
        std::sync::LazyLock::new(|| Policy::preset("default").unwrap());
    CompactOptions {
        policy: &POLICY,
        window: WINDOW,
        encoding: Encoding::Rough,
        fixed_tokens: 0,
        before: None,
        force: true,
        allow_larger: false,
        summarizer: Some(model),
        on_event: None,
    }
}

/// Creates a session that is longer than the model's window.
async fn create_long_session(tl: &Throughline) -> SessionId {
    let session = tl.create(NewSession::default()).await.unwrap();
    for n in 0..60 {
        let question = format!("Step {n}: look at src/part_{n}.rs and tell me what it does there");
        let answer = format!("It parses part {n}. We decided to keep {n} retries. TODO: test it.");
        for (role, text) in [(Role::User, question), (Role::Assistant, answer)] {
            session.append(Message::text(role, text)).await.unwrap();
        }
    }
    session.id().clone()
}

/// Opens a long session in two engines.
async fn two_engines(test_store: &TestStore) -> [Session; 2] {
    let (one, two) = (test_store.open().await, test_store.open().await);
    let id = create_long_session(&one).await;
    [one.session_unchecked(&id), two.session_unchecked(&id)]
}

async fn checkpoints(session: &Session) -> usize {
    session.record().await.unwrap().state.checkpoints.len()
}

fn block_on<T>(test: impl Future<Output = T>) -> T {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_all().build().unwrap().block_on(test)
}

/// A slow summarizer that counts its calls.
#[derive(Debug, Default)]
struct CountingSummarizer(AtomicUsize);

#[async_trait::async_trait]
impl Summarizer for CountingSummarizer {
    fn name(&self) -> &'static str {
        "counting"
    }

    async fn summarize(
        &self,
        request: &SummaryRequest<'_>,
    ) -> Result<GeneratedSummary, SummarizeError> {
        self.0.fetch_add(1, Ordering::Relaxed);
        tokio::time::sleep(SOON).await;
        ExtractiveSummarizer.summarize(request).await
    }
}

#[test]
fn of_concurrent_compactions_only_one_calls_the_model() {
    for test_store in TestStore::all() {
        block_on(async {
            let [one, two] = two_engines(&test_store).await;
            let model = CountingSummarizer::default();

            let options = compact_options(&model);
            let (a, b) = tokio::join!(one.compact(&options), two.compact(&options));

            let (a, b) = (a.unwrap(), b.unwrap());
            let succeeded = [&a, &b].map(|c| matches!(c, CompactOutcome::Done(_)));
            assert!(
                succeeded == [true, false] || succeeded == [false, true],
                "{a:?} {b:?}"
            );
            assert_eq!(model.0.load(Ordering::Relaxed), 1);
            assert_eq!(checkpoints(&one).await, 1);
        });
    }
}

#[test]
fn a_superseded_compaction_uses_the_other_checkpoint() {
    for test_store in TestStore::all() {
        block_on(async {
            let [one, two] = two_engines(&test_store).await;
            let model = CountingSummarizer::default();
            let options = compact_options(&model);
            let request_options = RequestOptions::new(options.policy, WINDOW, Encoding::Rough);
            let (done, built) = tokio::join!(
                one.compact(&options),
                two.compact_and_build_request(&request_options, Some(&model), None)
            );

            let (done, (request, overtaken)) = (done.unwrap(), built.unwrap());
            assert_eq!(model.0.load(Ordering::Relaxed), 1);
            assert_ne!(
                matches!(done, CompactOutcome::Done(_)),
                matches!(overtaken, CompactOutcome::Done(_))
            );
            let again = two.request(&request_options).await.unwrap();
            assert_eq!(request.messages, again.messages);
        });
    }
}

#[test]
fn a_process_that_dies_is_replaced() {
    for test_store in TestStore::all() {
        block_on(async {
            let tl = test_store.open().await;
            let id = create_long_session(&tl).await;
            let name = format!("compact {id}");
            let dead = tl.store().acquire_lease(tl.owner(), &name, "dead", SOON);
            dead.await.unwrap();

            let model = CountingSummarizer::default();
            let session = tl.session_unchecked(&id);
            let compacted = session.compact(&compact_options(&model)).await.unwrap();

            assert!(
                matches!(compacted, CompactOutcome::Done(_)),
                "{compacted:?}"
            );
            assert_eq!(checkpoints(&session).await, 1);
        });
    }
}

#[test]
fn a_cancelled_compaction_releases_its_lease() {
    #[derive(Debug)]
    struct NeverEndingSummarizer(tokio::sync::Notify);

    #[async_trait::async_trait]
    impl Summarizer for NeverEndingSummarizer {
        fn name(&self) -> &'static str {
            "endless"
        }

        async fn summarize(
            &self,
            _: &SummaryRequest<'_>,
        ) -> Result<GeneratedSummary, SummarizeError> {
            self.0.notify_one();
            std::future::pending().await
        }
    }

    for test_store in TestStore::all() {
        block_on(async {
            let tl = test_store
                .open()
                .await
                .with_lease_term(Duration::from_secs(3_600));
            let session = tl.session_unchecked(&create_long_session(&tl).await);
            let endless = NeverEndingSummarizer(tokio::sync::Notify::new());
            let options = compact_options(&endless);
            tokio::select! {
                _ = session.compact(&options) => panic!("it ended"),
                () = endless.0.notified() => {}
            }

            let model = CountingSummarizer::default();
            let compacted = session.compact(&compact_options(&model)).await.unwrap();

            assert!(
                matches!(compacted, CompactOutcome::Done(_)),
                "{compacted:?}"
            );
        });
    }
}

/// A summarizer that signals its start and blocks until it is resumed.
#[derive(Debug)]
struct BlockingSummarizer {
    started: Sender<()>,
    resume: std::sync::Mutex<Receiver<()>>,
}

impl BlockingSummarizer {
    fn new() -> (Self, Receiver<()>, Sender<()>) {
        let (started, has_started) = channel();
        let (resume_sender, resume) = channel();
        let resume = std::sync::Mutex::new(resume);
        (Self { started, resume }, has_started, resume_sender)
    }
}

#[async_trait::async_trait]
impl Summarizer for BlockingSummarizer {
    fn name(&self) -> &'static str {
        "held"
    }

    async fn summarize(
        &self,
        request: &SummaryRequest<'_>,
    ) -> Result<GeneratedSummary, SummarizeError> {
        self.started.send(()).unwrap();
        // Blocks the whole engine, so the lease is not renewed.
        self.resume.lock().unwrap().recv().unwrap();
        ExtractiveSummarizer.summarize(request).await
    }
}

#[test]
fn a_process_that_lost_its_lease_is_refused() {
    for test_store in TestStore::all() {
        let test_store = Arc::new(test_store);
        let id = block_on(async { create_long_session(&test_store.open().await).await });
        let compact = |model: BlockingSummarizer, term: Duration| {
            let (test_store, id) = (Arc::clone(&test_store), id.clone());
            std::thread::spawn(move || {
                block_on(async {
                    let tl = test_store.open().await.with_lease_term(term);
                    tl.session_unchecked(&id)
                        .compact(&compact_options(&model))
                        .await
                        .unwrap()
                })
            })
        };
        let (slow, slow_started, resume_slow) = BlockingSummarizer::new();
        let (next, next_started, resume_next) = BlockingSummarizer::new();
        let slow = compact(slow, SOON);
        slow_started.recv().unwrap();
        let next = compact(next, Duration::from_secs(3_600));
        next_started.recv().unwrap();

        // The next one has not appended yet, so the log is unchanged for the slow one.
        resume_slow.send(()).unwrap();
        let slow = slow.join().unwrap();
        assert!(matches!(slow, CompactOutcome::Superseded), "{slow:?}");
        resume_next.send(()).unwrap();
        let next = next.join().unwrap();
        assert!(matches!(next, CompactOutcome::Done(_)), "{next:?}");
        block_on(async {
            let tl = test_store.open().await;
            assert_eq!(checkpoints(&tl.session_unchecked(&id)).await, 1);
        });
    }
}

/// A model that signals its start and answers when it is resumed.
#[derive(Debug)]
struct BlockingModel {
    answer: &'static str,
    started: Sender<()>,
    resume: std::sync::Mutex<Receiver<()>>,
}

impl BlockingModel {
    fn new(answer: &'static str) -> (Self, Receiver<()>, Sender<()>) {
        let (started, has_started) = channel();
        let (resume_sender, resume) = channel();
        let resume = std::sync::Mutex::new(resume);
        let model = Self {
            answer,
            started,
            resume,
        };
        (model, has_started, resume_sender)
    }
}

#[async_trait::async_trait]
impl Model for BlockingModel {
    fn name(&self) -> &'static str {
        "held"
    }

    fn provider(&self) -> &'static str {
        "test"
    }

    async fn answer(
        &self,
        _: &ModelRequest<'_>,
        _: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<Answer, PartialAnswer> {
        self.started.send(()).unwrap();
        // Blocks the whole engine, so the claim is not renewed.
        self.resume.lock().unwrap().recv().unwrap();
        Ok(Answer {
            content: Content::text(self.answer),
            usage: None,
            model: None,
            finish_reason: FinishReason::Completed,
        })
    }
}

/// Claims a turn and answers the last message.
async fn answer_last(session: &Session, model: &BlockingModel) -> Result<(), Error> {
    let claim = session.claim_turn().await?;
    let policy = Policy::default();
    let turn = AnswerOptions {
        model,
        policy: &policy,
        window: 10_000,
        encoding: Encoding::Rough,
        agent: None,
        documents: &[],
        summarizer: None,
        tools: None,
        sampling: &SamplingOptions::NONE,
        stop: None,
    };
    let answering = async {
        let question = claim.session().unanswered_message().await?.unwrap();
        claim.session().answer(&question, &turn, &mut |_| {}).await
    };
    let answered = Box::pin(claim.run_with_renewal(answering)).await;
    claim.release().await;
    answered.map(drop)
}

async fn answers(session: &Session) -> Vec<String> {
    let entries = session.tail(100).await.unwrap();
    let messages = entries.iter().filter_map(|entry| entry.message());
    messages
        .filter(|message| message.role == Role::Assistant)
        .map(|message| message.content.to_text().into_owned())
        .collect()
}

#[test]
fn a_process_that_stalls_in_a_turn_appends_no_second_answer() {
    for test_store in TestStore::all() {
        let test_store = Arc::new(test_store);
        let id = block_on(async {
            let tl = test_store.open().await;
            let session = tl.create(NewSession::default()).await.unwrap();
            let question = Message::text(Role::User, "What now?");
            session.append(question).await.unwrap();
            session.id().clone()
        });
        let answer = |model: BlockingModel, term: Duration| {
            let (test_store, id) = (Arc::clone(&test_store), id.clone());
            std::thread::spawn(move || {
                block_on(async {
                    let tl = test_store.open().await.with_lease_term(term);
                    Box::pin(answer_last(&tl.session_unchecked(&id), &model)).await
                })
            })
        };
        let (stalled, stalled_started, resume_stalled) = BlockingModel::new("late");
        let (next, next_started, resume_next) = BlockingModel::new("in time");
        let stalled = answer(stalled, SOON);
        stalled_started.recv().unwrap();
        let next = answer(next, Duration::from_secs(3_600));
        next_started.recv().unwrap();

        // The next one has not answered yet, so the log is unchanged for the stalled one.
        resume_stalled.send(()).unwrap();
        let stalled = stalled.join().unwrap().unwrap_err();
        let is_lost = matches!(stalled, Error::Store(StoreError::LeaseLost { .. }));
        assert!(is_lost, "{stalled:?}");
        resume_next.send(()).unwrap();
        next.join().unwrap().unwrap();
        block_on(async {
            let tl = test_store.open().await;
            assert_eq!(answers(&tl.session_unchecked(&id)).await, ["in time"]);
        });
    }
}

#[test]
fn a_wait_reports_the_lease_holder() {
    for test_store in TestStore::all() {
        block_on(async {
            let (one, two) = (test_store.open().await, test_store.open().await);
            let session = one.create(NewSession::default()).await.unwrap();
            let one = one.with_description("tl serve, process 12 on host");
            let claim = one
                .session_unchecked(session.id())
                .claim_turn()
                .await
                .unwrap();
            let (report, reported) = channel();
            let two = two.on_lease_wait(move |wait| report.send(wait.clone()).unwrap());
            let waiting = two.session_unchecked(session.id());
            let give_back = async {
                loop {
                    if let Ok(wait) = reported.try_recv() {
                        claim.release().await;
                        return wait;
                    }
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
            };

            let (claimed, wait) = tokio::join!(waiting.claim_turn(), give_back);

            claimed.unwrap().release().await;
            assert_eq!(wait.holder.name(), "tl serve, process 12 on host");
            assert_eq!(wait.name, format!("turn in {}", session.id()));
            assert!(wait.until > two.now());
        });
    }
}

#[test]
fn concurrent_purges_do_everything_once() {
    for test_store in TestStore::all() {
        block_on(async {
            let (one, two) = (test_store.open().await, test_store.open().await);
            for _ in 0..6 {
                let old = one.create(NewSession::default()).await.unwrap();
                one.trash(old.id()).await.unwrap();
                one.create(NewSession::default()).await.unwrap();
            }
            let purge = PurgeOptions {
                grace: Some(jiff::SignedDuration::from_secs(-60)),
                max_sessions: Some(2),
                dry_run: false,
            };

            let (a, b) = tokio::join!(one.purge(purge), two.purge(purge));

            let (a, b) = (a.unwrap(), b.unwrap());
            assert_eq!(a.removed.len() + b.removed.len(), 10, "{a:?} {b:?}");
            assert_eq!(
                one.list_all(&SessionFilter::default()).await.unwrap().len(),
                2
            );
        });
    }
}

//! Work that must happen once, with several engines over one store.

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

/// A place for a store, which goes with it.
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
            Self::Database(trial) => trial.url(),
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

/// A session with more in it than a model is to be sent.
async fn create_long_session(tl: &Throughline) -> SessionId {
    let session = tl.create(NewSession::default()).await.unwrap();
    for n in 0..60 {
        let said = format!("Step {n}: look at src/part_{n}.rs and tell me what it does there");
        let answer = format!("It parses part {n}. We decided to keep {n} retries. TODO: test it.");
        for (role, text) in [(Role::User, said), (Role::Assistant, answer)] {
            session.append(Message::text(role, text)).await.unwrap();
        }
    }
    session.id().clone()
}

/// Such a session, as two engines know it.
async fn two_engines(place: &TestStore) -> [Session; 2] {
    let (one, two) = (place.open().await, place.open().await);
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

/// Counts how often it is asked, and takes its time.
#[derive(Debug, Default)]
struct CountingSummarizer(AtomicUsize);

#[async_trait::async_trait]
impl Summarizer for CountingSummarizer {
    fn name(&self) -> &'static str {
        "counting"
    }

    async fn summarize(
        &self,
        brief: &SummaryRequest<'_>,
    ) -> Result<GeneratedSummary, SummarizeError> {
        self.0.fetch_add(1, Ordering::Relaxed);
        tokio::time::sleep(SOON).await;
        ExtractiveSummarizer.summarize(brief).await
    }
}

#[test]
fn of_engines_that_compact_at_once_one_asks_the_model() {
    for place in TestStore::all() {
        block_on(async {
            let [one, two] = two_engines(&place).await;
            let model = CountingSummarizer::default();

            let compacting = compact_options(&model);
            let (a, b) = tokio::join!(one.compact(&compacting), two.compact(&compacting));

            let (a, b) = (a.unwrap(), b.unwrap());
            let went = [&a, &b].map(|c| matches!(c, CompactOutcome::Done(_)));
            assert!(
                went == [true, false] || went == [false, true],
                "{a:?} {b:?}"
            );
            assert_eq!(model.0.load(Ordering::Relaxed), 1);
            assert_eq!(checkpoints(&one).await, 1);
        });
    }
}

#[test]
fn a_turn_that_was_overtaken_is_sent_what_the_other_left() {
    for place in TestStore::all() {
        block_on(async {
            let [one, two] = two_engines(&place).await;
            let model = CountingSummarizer::default();
            let compacting = compact_options(&model);
            let asking = RequestOptions::new(compacting.policy, WINDOW, Encoding::Rough);
            let (done, asked) = tokio::join!(
                one.compact(&compacting),
                two.compact_and_build_request(&asking, Some(&model), None)
            );

            let (done, (request, overtaken)) = (done.unwrap(), asked.unwrap());
            assert_eq!(model.0.load(Ordering::Relaxed), 1);
            assert_ne!(
                matches!(done, CompactOutcome::Done(_)),
                matches!(overtaken, CompactOutcome::Done(_))
            );
            let again = two.request(&asking).await.unwrap();
            assert_eq!(request.messages, again.messages);
        });
    }
}

#[test]
fn whoever_dies_at_it_is_replaced() {
    for place in TestStore::all() {
        block_on(async {
            let tl = place.open().await;
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
fn whoever_stops_in_the_middle_keeps_nobody_waiting() {
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

    for place in TestStore::all() {
        block_on(async {
            let tl = place
                .open()
                .await
                .with_lease_term(Duration::from_secs(3_600));
            let session = tl.session_unchecked(&create_long_session(&tl).await);
            let endless = NeverEndingSummarizer(tokio::sync::Notify::new());
            let compacting_endlessly = compact_options(&endless);
            tokio::select! {
                _ = session.compact(&compacting_endlessly) => panic!("it ended"),
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

/// Says that it was asked, and does nothing more until it is told to.
#[derive(Debug)]
struct BlockingSummarizer {
    started: Sender<()>,
    go_on: std::sync::Mutex<Receiver<()>>,
}

impl BlockingSummarizer {
    fn new() -> (Self, Receiver<()>, Sender<()>) {
        let (asked, was_asked) = channel();
        let (tell, go_on) = channel();
        let go_on = std::sync::Mutex::new(go_on);
        (
            Self {
                started: asked,
                go_on,
            },
            was_asked,
            tell,
        )
    }
}

#[async_trait::async_trait]
impl Summarizer for BlockingSummarizer {
    fn name(&self) -> &'static str {
        "held"
    }

    async fn summarize(
        &self,
        brief: &SummaryRequest<'_>,
    ) -> Result<GeneratedSummary, SummarizeError> {
        self.started.send(()).unwrap();
        // In the way of everything else this engine does: the lease is not renewed.
        self.go_on.lock().unwrap().recv().unwrap();
        ExtractiveSummarizer.summarize(brief).await
    }
}

#[test]
fn whoever_was_only_slow_is_refused() {
    for place in TestStore::all() {
        let place = Arc::new(place);
        let id = block_on(async { create_long_session(&place.open().await).await });
        let compact = |model: BlockingSummarizer, term: Duration| {
            let (place, id) = (Arc::clone(&place), id.clone());
            std::thread::spawn(move || {
                block_on(async {
                    let tl = place.open().await.with_lease_term(term);
                    tl.session_unchecked(&id)
                        .compact(&compact_options(&model))
                        .await
                        .unwrap()
                })
            })
        };
        let (slow, slow_was_asked, go_on_slow) = BlockingSummarizer::new();
        let (next, next_was_asked, go_on_next) = BlockingSummarizer::new();
        let slow = compact(slow, SOON);
        slow_was_asked.recv().unwrap();
        let next = compact(next, Duration::from_secs(3_600));
        next_was_asked.recv().unwrap();

        // The next one has not appended yet: the log is as the slow one knows it.
        go_on_slow.send(()).unwrap();
        let slow = slow.join().unwrap();
        assert!(matches!(slow, CompactOutcome::Superseded), "{slow:?}");
        go_on_next.send(()).unwrap();
        let next = next.join().unwrap();
        assert!(matches!(next, CompactOutcome::Done(_)), "{next:?}");
        block_on(async {
            let tl = place.open().await;
            assert_eq!(checkpoints(&tl.session_unchecked(&id)).await, 1);
        });
    }
}

/// A model that says that it was asked, and answers when it is told to.
#[derive(Debug)]
struct BlockingModel {
    answer: &'static str,
    started: Sender<()>,
    go_on: std::sync::Mutex<Receiver<()>>,
}

impl BlockingModel {
    fn new(answer: &'static str) -> (Self, Receiver<()>, Sender<()>) {
        let (asked, was_asked) = channel();
        let (tell, go_on) = channel();
        let go_on = std::sync::Mutex::new(go_on);
        let model = Self {
            answer,
            started: asked,
            go_on,
        };
        (model, was_asked, tell)
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
        // In the way of everything else this engine does: the claim is not renewed.
        self.go_on.lock().unwrap().recv().unwrap();
        Ok(Answer {
            content: Content::text(self.answer),
            usage: None,
            model: None,
            finish_reason: FinishReason::Completed,
        })
    }
}

/// Answers the last message, as whoever is asked to.
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
fn whoever_stalls_in_a_turn_appends_no_second_answer() {
    for place in TestStore::all() {
        let place = Arc::new(place);
        let id = block_on(async {
            let tl = place.open().await;
            let session = tl.create(NewSession::default()).await.unwrap();
            let question = Message::text(Role::User, "What now?");
            session.append(question).await.unwrap();
            session.id().clone()
        });
        let answer = |model: BlockingModel, term: Duration| {
            let (place, id) = (Arc::clone(&place), id.clone());
            std::thread::spawn(move || {
                block_on(async {
                    let tl = place.open().await.with_lease_term(term);
                    Box::pin(answer_last(&tl.session_unchecked(&id), &model)).await
                })
            })
        };
        let (stalled, stalled_was_asked, go_on_stalled) = BlockingModel::new("late");
        let (next, next_was_asked, go_on_next) = BlockingModel::new("in time");
        let stalled = answer(stalled, SOON);
        stalled_was_asked.recv().unwrap();
        let next = answer(next, Duration::from_secs(3_600));
        next_was_asked.recv().unwrap();

        // The next one has not answered yet: nothing in the log is in the way.
        go_on_stalled.send(()).unwrap();
        let stalled = stalled.join().unwrap().unwrap_err();
        let is_lost = matches!(stalled, Error::Store(StoreError::LeaseLost { .. }));
        assert!(is_lost, "{stalled:?}");
        go_on_next.send(()).unwrap();
        next.join().unwrap().unwrap();
        block_on(async {
            let tl = place.open().await;
            assert_eq!(answers(&tl.session_unchecked(&id)).await, ["in time"]);
        });
    }
}

#[test]
fn a_wait_says_whom_it_is_for() {
    for place in TestStore::all() {
        block_on(async {
            let (one, two) = (place.open().await, place.open().await);
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
fn purges_at_once_do_everything_once() {
    for place in TestStore::all() {
        block_on(async {
            let (one, two) = (place.open().await, place.open().await);
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

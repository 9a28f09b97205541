//! Work that must happen once, with several engines over one store.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use throughline::context::{Encoding, Policy};
use throughline::llm::{
    Answer, Ask, Brief, Broken, Delta, Extractive, Model, Stop, SummarizeError, Summarizer, Terms,
    Written,
};
use throughline::{
    Asking, Compacted, Compacting, Content, Error, Filter, Message, NewSession, Purge, Role,
    Session, SessionId, StoreError, Throughline, Turn,
};
use throughline_postgres::trial::Trial;

const WINDOW: u64 = 2_000;
const SOON: Duration = Duration::from_millis(200);

/// A place for a store, which goes with it.
enum Place {
    File(tempfile::TempDir),
    Database(Trial),
}

impl Place {
    fn all() -> Vec<Self> {
        let file = Self::File(tempfile::tempdir().unwrap());
        let database = Trial::new().map(Self::Database);
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

fn compacting(model: &dyn Summarizer) -> Compacting<'_> {
    static POLICY: std::sync::LazyLock<Policy> =
        std::sync::LazyLock::new(|| Policy::preset("default").unwrap());
    Compacting {
        policy: &POLICY,
        window: WINDOW,
        encoding: Encoding::Rough,
        fixed: 0,
        before: None,
        force: true,
        even_if_larger: false,
        model: Some(model),
        tell: None,
    }
}

/// A session with more in it than a model is to be sent.
async fn long(tl: &Throughline) -> SessionId {
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
async fn two_engines(place: &Place) -> [Session; 2] {
    let (one, two) = (place.open().await, place.open().await);
    let id = long(&one).await;
    [one.unopened(&id), two.unopened(&id)]
}

async fn checkpoints(session: &Session) -> usize {
    session.record().await.unwrap().standing.checkpoints.len()
}

fn run<T>(test: impl Future<Output = T>) -> T {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_all().build().unwrap().block_on(test)
}

/// Counts how often it is asked, and takes its time.
#[derive(Debug, Default)]
struct Counting(AtomicUsize);

#[async_trait::async_trait]
impl Summarizer for Counting {
    fn name(&self) -> &'static str {
        "counting"
    }

    async fn summarize(&self, brief: &Brief<'_>) -> Result<Written, SummarizeError> {
        self.0.fetch_add(1, Ordering::Relaxed);
        tokio::time::sleep(SOON).await;
        Extractive.summarize(brief).await
    }
}

#[test]
fn of_engines_that_compact_at_once_one_asks_the_model() {
    for place in Place::all() {
        run(async {
            let [one, two] = two_engines(&place).await;
            let model = Counting::default();

            let compacting = compacting(&model);
            let (a, b) = tokio::join!(one.compact(&compacting), two.compact(&compacting));

            let (a, b) = (a.unwrap(), b.unwrap());
            let went = [&a, &b].map(|c| matches!(c, Compacted::Done(_)));
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
    for place in Place::all() {
        run(async {
            let [one, two] = two_engines(&place).await;
            let model = Counting::default();
            let compacting = compacting(&model);
            let asking = Asking::new(compacting.policy, WINDOW, Encoding::Rough);
            let (done, asked) = tokio::join!(
                one.compact(&compacting),
                two.request_compacted(&asking, Some(&model), None)
            );

            let (done, (request, overtaken)) = (done.unwrap(), asked.unwrap());
            assert_eq!(model.0.load(Ordering::Relaxed), 1);
            assert_ne!(
                matches!(done, Compacted::Done(_)),
                matches!(overtaken, Compacted::Done(_))
            );
            let again = two.request(&asking).await.unwrap();
            assert_eq!(request.messages, again.messages);
        });
    }
}

#[test]
fn whoever_dies_at_it_is_replaced() {
    for place in Place::all() {
        run(async {
            let tl = place.open().await;
            let id = long(&tl).await;
            let name = format!("compact {id}");
            let dead = tl.store().take_lease(tl.owner(), &name, "dead", SOON);
            dead.await.unwrap();

            let model = Counting::default();
            let session = tl.unopened(&id);
            let compacted = session.compact(&compacting(&model)).await.unwrap();

            assert!(matches!(compacted, Compacted::Done(_)), "{compacted:?}");
            assert_eq!(checkpoints(&session).await, 1);
        });
    }
}

#[test]
fn whoever_stops_in_the_middle_keeps_nobody_waiting() {
    #[derive(Debug)]
    struct Endless(tokio::sync::Notify);

    #[async_trait::async_trait]
    impl Summarizer for Endless {
        fn name(&self) -> &'static str {
            "endless"
        }

        async fn summarize(&self, _: &Brief<'_>) -> Result<Written, SummarizeError> {
            self.0.notify_one();
            std::future::pending().await
        }
    }

    for place in Place::all() {
        run(async {
            let tl = place
                .open()
                .await
                .replacing_after(Duration::from_secs(3_600));
            let session = tl.unopened(&long(&tl).await);
            let endless = Endless(tokio::sync::Notify::new());
            let compacting_endlessly = compacting(&endless);
            tokio::select! {
                _ = session.compact(&compacting_endlessly) => panic!("it ended"),
                () = endless.0.notified() => {}
            }

            let model = Counting::default();
            let compacted = session.compact(&compacting(&model)).await.unwrap();

            assert!(matches!(compacted, Compacted::Done(_)), "{compacted:?}");
        });
    }
}

/// Says that it was asked, and does nothing more until it is told to.
#[derive(Debug)]
struct Held {
    asked: Sender<()>,
    go_on: std::sync::Mutex<Receiver<()>>,
}

impl Held {
    fn new() -> (Self, Receiver<()>, Sender<()>) {
        let (asked, was_asked) = channel();
        let (tell, go_on) = channel();
        let go_on = std::sync::Mutex::new(go_on);
        (Self { asked, go_on }, was_asked, tell)
    }
}

#[async_trait::async_trait]
impl Summarizer for Held {
    fn name(&self) -> &'static str {
        "held"
    }

    async fn summarize(&self, brief: &Brief<'_>) -> Result<Written, SummarizeError> {
        self.asked.send(()).unwrap();
        // In the way of everything else this engine does: the lease is not renewed.
        self.go_on.lock().unwrap().recv().unwrap();
        Extractive.summarize(brief).await
    }
}

#[test]
fn whoever_was_only_slow_is_refused() {
    for place in Place::all() {
        let place = Arc::new(place);
        let id = run(async { long(&place.open().await).await });
        let compact = |model: Held, term: Duration| {
            let (place, id) = (Arc::clone(&place), id.clone());
            std::thread::spawn(move || {
                run(async {
                    let tl = place.open().await.replacing_after(term);
                    tl.unopened(&id).compact(&compacting(&model)).await.unwrap()
                })
            })
        };
        let (slow, slow_was_asked, go_on_slow) = Held::new();
        let (next, next_was_asked, go_on_next) = Held::new();
        let slow = compact(slow, SOON);
        slow_was_asked.recv().unwrap();
        let next = compact(next, Duration::from_secs(3_600));
        next_was_asked.recv().unwrap();

        // The next one has not appended yet: the log is as the slow one knows it.
        go_on_slow.send(()).unwrap();
        let slow = slow.join().unwrap();
        assert!(matches!(slow, Compacted::Overtaken), "{slow:?}");
        go_on_next.send(()).unwrap();
        let next = next.join().unwrap();
        assert!(matches!(next, Compacted::Done(_)), "{next:?}");
        run(async {
            let tl = place.open().await;
            assert_eq!(checkpoints(&tl.unopened(&id)).await, 1);
        });
    }
}

/// A model that says that it was asked, and answers when it is told to.
#[derive(Debug)]
struct HeldModel {
    answer: &'static str,
    asked: Sender<()>,
    go_on: std::sync::Mutex<Receiver<()>>,
}

impl HeldModel {
    fn new(answer: &'static str) -> (Self, Receiver<()>, Sender<()>) {
        let (asked, was_asked) = channel();
        let (tell, go_on) = channel();
        let go_on = std::sync::Mutex::new(go_on);
        let model = Self {
            answer,
            asked,
            go_on,
        };
        (model, was_asked, tell)
    }
}

#[async_trait::async_trait]
impl Model for HeldModel {
    fn name(&self) -> &'static str {
        "held"
    }

    fn provider(&self) -> &'static str {
        "test"
    }

    async fn answer(
        &self,
        _: &Ask<'_>,
        _: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<Answer, Broken> {
        self.asked.send(()).unwrap();
        // In the way of everything else this engine does: the claim is not renewed.
        self.go_on.lock().unwrap().recv().unwrap();
        Ok(Answer {
            content: Content::text(self.answer),
            usage: None,
            model: None,
            stop: Stop::Finished,
        })
    }
}

/// Answers the last message, as whoever is asked to.
async fn answer_last(session: &Session, model: &HeldModel) -> Result<(), Error> {
    let claim = session.claim_turn().await?;
    let policy = Policy::default();
    let turn = Turn {
        model,
        policy: &policy,
        window: 10_000,
        encoding: Encoding::Rough,
        agent: None,
        documents: &[],
        summarizer: None,
        tools: None,
        terms: &Terms::NONE,
        stop: None,
    };
    let answering = async {
        let question = claim.session().unanswered().await?.unwrap();
        claim.session().answer(&question, &turn, &mut |_| {}).await
    };
    let answered = Box::pin(claim.keep(answering)).await;
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
    for place in Place::all() {
        let place = Arc::new(place);
        let id = run(async {
            let tl = place.open().await;
            let session = tl.create(NewSession::default()).await.unwrap();
            let question = Message::text(Role::User, "What now?");
            session.append(question).await.unwrap();
            session.id().clone()
        });
        let answer = |model: HeldModel, term: Duration| {
            let (place, id) = (Arc::clone(&place), id.clone());
            std::thread::spawn(move || {
                run(async {
                    let tl = place.open().await.replacing_after(term);
                    Box::pin(answer_last(&tl.unopened(&id), &model)).await
                })
            })
        };
        let (stalled, stalled_was_asked, go_on_stalled) = HeldModel::new("late");
        let (next, next_was_asked, go_on_next) = HeldModel::new("in time");
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
        run(async {
            let tl = place.open().await;
            assert_eq!(answers(&tl.unopened(&id)).await, ["in time"]);
        });
    }
}

#[test]
fn a_wait_says_whom_it_is_for() {
    for place in Place::all() {
        run(async {
            let (one, two) = (place.open().await, place.open().await);
            let session = one.create(NewSession::default()).await.unwrap();
            let one = one.described_as("tl serve, process 12 on host");
            let claim = one.unopened(session.id()).claim_turn().await.unwrap();
            let (report, reported) = channel();
            let two = two.reporting_waits(move |wait| report.send(wait.clone()).unwrap());
            let waiting = two.unopened(session.id());
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
    for place in Place::all() {
        run(async {
            let (one, two) = (place.open().await, place.open().await);
            for _ in 0..6 {
                let old = one.create(NewSession::default()).await.unwrap();
                one.trash(old.id()).await.unwrap();
                one.create(NewSession::default()).await.unwrap();
            }
            let purge = Purge {
                grace: Some(jiff::SignedDuration::from_secs(-60)),
                max_sessions: Some(2),
                dry_run: false,
            };

            let (a, b) = tokio::join!(one.purge(purge), two.purge(purge));

            let (a, b) = (a.unwrap(), b.unwrap());
            assert_eq!(a.removed.len() + b.removed.len(), 10, "{a:?} {b:?}");
            assert_eq!(one.list_all(&Filter::default()).await.unwrap().len(), 2);
        });
    }
}

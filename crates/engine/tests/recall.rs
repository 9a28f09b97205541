//! Tests of search and recall: across sessions, per owner, after appends and erasures.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::time::Duration;

use jiff::tz::TimeZone;
use throughline::context::{Encoding, Policy, SectionName};
use throughline::recall::Mode;
use throughline::{
    ConflictPolicy, Content, Expect, IndexWait, Message, NewSession, Owner, Position, ProjectId,
    RequestOptions, Role, SearchOptions, Seq, Session, Throughline,
};
use throughline_postgres::test_database::TestDatabase;
use throughline_recall::{FolderIndex, Index as _};

fn block_on<T>(work: impl Future<Output = T>) -> T {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_all().build().unwrap().block_on(work)
}

/// Runs each case on a store in memory, whose index is in a folder, and on a database, which
/// contains its index.
macro_rules! on_every_store {
    ($($case:ident),+ $(,)?) => {
        mod in_memory {
            $(#[test]
            fn $case() {
                super::block_on(async {
                    super::$case(super::Throughline::open("memory:").await.unwrap()).await;
                });
            })+
        }

        mod in_postgres {
            $(#[test]
            fn $case() {
                let Some(trial) = super::TestDatabase::new() else {
                    return;
                };
                super::block_on(async {
                    super::$case(super::Throughline::open(&trial.url()).await.unwrap()).await;
                });
            })+
        }
    };
}

on_every_store!(
    what_was_just_said_is_found,
    nobody_finds_what_is_anothers,
    filters_narrow_by_session_tag_project_and_role,
    trashed_and_erased_entries_are_not_found,
    a_fork_finds_what_it_shares,
    a_search_that_does_not_wait_reports_the_index_lag,
    a_request_recalls_what_is_relevant_to_the_message,
    what_the_model_sees_is_not_recalled,
    the_offline_agent_quotes_another_session,
    a_question_asked_a_hundred_times_does_not_hide_its_answer,
    a_request_waits_for_messages_of_another_process,
    the_offline_agent_quotes_the_previous_messages,
    large_entries_are_indexed_in_small_batches,
);

fn project(id: &str) -> ProjectId {
    id.parse().unwrap()
}

async fn session(
    tl: &Throughline,
    name: &str,
    of: impl Into<Option<ProjectId>>,
    texts: &[&str],
) -> Session {
    let new = NewSession {
        project: of.into(),
        ..NewSession::named(name).unwrap()
    };
    let session = tl.create(new).await.unwrap();
    for text in texts {
        say(&session, text).await;
    }
    session
}

async fn say(session: &Session, text: &str) {
    let message = Message::text(Role::User, text);
    session.append(message).await.unwrap();
}

const UTC: &TimeZone = &TimeZone::UTC;

fn search_options(typed: &str) -> SearchOptions<'_> {
    SearchOptions {
        query: typed,
        mode: Mode::Hybrid,
        limit: 10,
        typing: false,
        project: None,
        listing: &[],
        zone: UTC,
        index_wait: IndexWait::Unlimited,
    }
}

/// Returns the hits that contain the first word, best first. Neighbouring passages are found
/// as well, with lower scores.
async fn search_texts(tl: &Throughline, typed: &str) -> Vec<String> {
    let word = typed.split(' ').next().unwrap().to_owned();
    let results = tl.search(&search_options(typed)).await.unwrap();
    let hits = results.found.hits.into_iter();
    let texts = hits.map(|hit| hit.text);
    texts
        .filter(|text| text.to_lowercase().contains(&word))
        .collect()
}

/// Returns the excerpts that a message recalls in a session.
async fn recalled_entries(session: &Session, message: &str, policy: &str) -> Vec<Seq> {
    let policy = Policy::preset(policy).unwrap();
    let message = Content::text(message);
    let options = RequestOptions {
        budget: Some(2_000),
        message: Some(&message),
        ..RequestOptions::new(&policy, 100_000, Encoding::Rough)
    };
    let request = session.request(&options).await.unwrap();
    let section = request.section(SectionName::Recalled).unwrap();
    section.entries.iter().map(|entry| entry.seq).collect()
}

async fn what_was_just_said_is_found(tl: Throughline) {
    let one = session(&tl, "one", None, &["Redis listens on port 6380"]).await;
    assert_eq!(
        search_texts(&tl, "redis port").await,
        ["Redis listens on port 6380"]
    );

    say(&one, "The Kafka broker is called heron").await;
    assert_eq!(
        search_texts(&tl, "heron").await[0],
        "The Kafka broker is called heron"
    );
}

async fn nobody_finds_what_is_anothers(tl: Throughline) {
    session(&tl, "mine", None, &["the secret harbour"]).await;
    let other: Owner = "telegram:7".parse().unwrap();
    let theirs = tl.on_behalf_of(other);
    assert!(search_texts(&theirs, "harbour").await.is_empty());
    assert_eq!(search_texts(&tl, "harbour").await.len(), 1);
}

async fn filters_narrow_by_session_tag_project_and_role(tl: Throughline) {
    let one = session(&tl, "one", project("p1"), &["apples are red"]).await;
    session(&tl, "two", project("p2"), &["apples are green"]).await;
    one.tag(vec!["fruit".parse().unwrap()]).await.unwrap();

    assert_eq!(search_texts(&tl, "apples").await.len(), 2);
    assert_eq!(
        search_texts(&tl, "apples session:two").await,
        ["apples are green"]
    );
    assert_eq!(
        search_texts(&tl, "apples tag:fruit").await,
        ["apples are red"]
    );
    assert!(search_texts(&tl, "apples role:tool").await.is_empty());
    let in_p2 = project("p2");
    let narrowed = SearchOptions {
        project: Some(&in_p2),
        ..search_options("apples")
    };
    let hits = tl.search(&narrowed).await.unwrap().found.hits;
    assert_eq!(hits.len(), 1);
    let unknown = tl.search(&search_options("apples project:nowhere")).await;
    assert!(unknown.unwrap_err().to_string().contains("nowhere"));
}

async fn trashed_and_erased_entries_are_not_found(tl: Throughline) {
    let one = session(&tl, "one", None, &["the walrus sings", "the otter dances"]).await;
    let two = session(&tl, "two", None, &["a walrus swims"]).await;
    assert_eq!(search_texts(&tl, "walrus").await.len(), 2);

    one.erase(&[Seq(1)], None).await.unwrap();
    assert_eq!(search_texts(&tl, "walrus").await, ["a walrus swims"]);
    tl.trash(two.id()).await.unwrap();
    assert!(search_texts(&tl, "walrus").await.is_empty());
    tl.restore(two.id()).await.unwrap();
    assert_eq!(search_texts(&tl, "walrus").await, ["a walrus swims"]);
}

async fn a_fork_finds_what_it_shares(tl: Throughline) {
    let one = session(&tl, "one", None, &["the heron nests here", "and leaves"]).await;
    let fork = one.fork(Some(Seq(1)), NewSession::default()).await.unwrap();
    say(&fork.session, "a fork in the road").await;
    let typed = format!("heron session:{}", fork.session.id());
    assert_eq!(search_texts(&tl, &typed).await[0], "the heron nests here");
}

async fn a_search_that_does_not_wait_reports_the_index_lag(tl: Throughline) {
    session(&tl, "one", None, &["the heron nests here"]).await;
    let hasty = SearchOptions {
        index_wait: IndexWait::For(Duration::ZERO),
        ..search_options("heron")
    };
    let results = tl.search(&hasty).await.unwrap();
    assert_eq!((results.found.hits.len(), results.lag), (0, 2));
}

async fn a_request_recalls_what_is_relevant_to_the_message(tl: Throughline) {
    session(
        &tl,
        "old",
        project("p"),
        &["Redis listens on port 6380 in staging", "Lunch was good"],
    )
    .await;
    session(&tl, "other", project("q"), &["Redis listens on port 7777"]).await;
    let new = session(&tl, "new", project("p"), &[]).await;

    let seqs = recalled_entries(&new, "Which port does Redis listen on?", "default").await;
    assert_eq!(seqs[0], Seq(1));
    // Nothing from another project, and nothing if the policy disables recall.
    assert!(seqs.len() <= 2, "{seqs:?}");
    assert!(
        recalled_entries(&new, "Which port does Redis listen on?", "bot")
            .await
            .is_empty()
    );
}

async fn what_the_model_sees_is_not_recalled(tl: Throughline) {
    let one = session(&tl, "one", project("p"), &["Redis listens on port 6380"]).await;
    assert!(
        recalled_entries(&one, "Which port does Redis listen on?", "default")
            .await
            .is_empty()
    );
}

async fn the_offline_agent_quotes_another_session(tl: Throughline) {
    session(
        &tl,
        "old",
        project("p"),
        &["Redis listens on port 6380 in staging"],
    )
    .await;
    let new = session(&tl, "new", project("p"), &[]).await;
    let message = Content::text("Which port does Redis listen on?");
    let offline = new.offline_agent(&message, &TimeZone::UTC).await.unwrap();
    let shown = format!("{offline:?}");
    assert!(shown.contains("6380"), "{shown}");
    assert!(shown.contains("old, entry 1"), "{shown}");
}

async fn a_question_asked_a_hundred_times_does_not_hide_its_answer(tl: Throughline) {
    let session = session(&tl, "daily", None, &[]).await;
    say(&session, "The gateway listens on port 8443.").await;
    let question = "Which port does the gateway listen on?";
    for _ in 0..100 {
        say(&session, question).await;
    }
    let agent = session
        .offline_agent(&Content::text(question), &TimeZone::UTC)
        .await
        .unwrap();
    assert!(format!("{agent:?}").contains("8443"), "{agent:?}");
}

async fn a_request_waits_for_messages_of_another_process(tl: Throughline) {
    let new = session(&tl, "new", project("p"), &["Hello"]).await;
    wait_for_index(&tl).await;
    session(&tl, "other", project("p"), &["Redis listens on port 6380"]).await;
    let question = "Which port does Redis listen on?";
    assert_eq!(recalled_entries(&new, question, "default").await, [Seq(1)]);
}

async fn the_offline_agent_quotes_the_previous_messages(tl: Throughline) {
    let new = session(&tl, "new", project("p"), &["Hello"]).await;
    wait_for_index(&tl).await;
    say(&new, "Redis listens on port 6380").await;
    let message = Content::text("Which port does Redis listen on?");
    let agent = new.offline_agent(&message, &TimeZone::UTC).await.unwrap();
    assert!(format!("{agent:?}").contains("6380"), "{agent:?}");
}

async fn large_entries_are_indexed_in_small_batches(tl: Throughline) {
    let log = session(&tl, "log", None, &[]).await;
    let much = format!("Redis listens on port 6380{}", " ".repeat(36_000));
    let read = |_| log.new_entry(Message::text(Role::User, much.clone()));
    let read = (0..300).map(read).collect();
    log.append_all(read, Expect::Any, ConflictPolicy::Reject)
        .await
        .unwrap();
    let mut done = Vec::new();
    let mut progress = |so_far, _| done.push(so_far);
    let caught = tl
        .catch_up(IndexWait::Unlimited, &mut progress)
        .await
        .unwrap();
    assert_eq!(caught.lag, 0);
    done.dedup();
    assert_eq!(done.len(), 2, "{done:?}");
}

/// Waits until the index is up to date.
async fn wait_for_index(tl: &Throughline) -> Position {
    let caught = tl.catch_up(IndexWait::Unlimited, &mut |_, _| {}).await;
    caught.unwrap().watermark
}

#[test]
fn a_request_does_not_wait_for_the_indexing_of_visible_messages() {
    block_on(async {
        let folder = tempfile::tempdir().unwrap();
        let store = format!("sqlite:{}", folder.path().join("s.db").display());
        let tl = Throughline::open(&store).await.unwrap();
        let old = session(&tl, "old", project("p"), &["Redis listens on port 6380"]).await;
        // A small index is updated quickly, so the request waits for it.
        let talk = |number| old.new_entry(Message::text(Role::User, format!("Step {number}")));
        let talk = (0..1_000).map(talk).collect();
        old.append_all(talk, Expect::Any, ConflictPolicy::Reject)
            .await
            .unwrap();
        let new = session(&tl, "new", project("p"), &[]).await;
        let indexed = wait_for_index(&tl).await;
        let index = FolderIndex::open(&folder.path().join("s.index")).unwrap();
        let feeder = loop {
            // The index may still be merging its files.
            if let Some(feeder) = index.indexer().unwrap() {
                break feeder;
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        say(&new, "Let us look at the cache.").await;

        // The index cannot be updated now, but its content is still found.
        let question = "Which port does Redis listen on?";
        assert_eq!(recalled_entries(&new, question, "default").await[0], Seq(1));
        assert_eq!(tl.watermark().await.unwrap(), indexed);

        drop(feeder);
        tl.close().await.unwrap();
        assert!(index.watermark().unwrap() > indexed.0);
    });
}

#[test]
fn a_deleted_or_damaged_index_is_rebuilt() {
    block_on(async {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sessions.db");
        let url = format!("sqlite:{}", path.display());
        let tl = Throughline::open(&url).await.unwrap();
        session(&tl, "one", None, &["the heron nests here"]).await;
        assert_eq!(search_texts(&tl, "heron").await.len(), 1);
        tl.close().await.unwrap();
        let index = path.with_extension("index");
        assert!(index.is_dir());

        std::fs::remove_dir_all(&index).unwrap();
        let tl = Throughline::open(&url).await.unwrap();
        assert_eq!(search_texts(&tl, "heron").await.len(), 1);
        tl.close().await.unwrap();

        std::fs::write(index.join("meta.json"), b"{ not json").unwrap();
        let tl = Throughline::open(&url).await.unwrap();
        assert_eq!(search_texts(&tl, "heron").await.len(), 1);
    });
}

#[test]
fn servers_over_one_database_share_its_index() {
    let Some(trial) = TestDatabase::new() else {
        return;
    };
    block_on(async {
        let tl = Throughline::open(&trial.url()).await.unwrap();
        let other = Throughline::open(&trial.url()).await.unwrap();
        session(&tl, "one", None, &["the heron nests here"]).await;
        let elsewhere = session(&other, "two", None, &["a heron flies"]).await;
        let (here, there) = tokio::join!(search_texts(&tl, "heron"), search_texts(&other, "heron"));
        assert_eq!((here.len(), there.len()), (2, 2));

        elsewhere.erase(&[Seq(1)], None).await.unwrap();
        assert_eq!(search_texts(&tl, "heron").await, ["the heron nests here"]);
    });
}

#[test]
fn an_index_in_a_database_is_rebuilt_on_request_or_after_a_version_change() {
    let Some(trial) = TestDatabase::new() else {
        return;
    };
    block_on(async {
        let tl = Throughline::open(&trial.url()).await.unwrap();
        session(&tl, "one", None, &["the heron nests here"]).await;
        assert_eq!(search_texts(&tl, "heron").await.len(), 1);
        let admin = trial.connect().await;
        let words = "DELETE FROM throughline.passage";
        admin.batch_execute(words).await.unwrap();
        assert!(search_texts(&tl, "heron").await.is_empty());
        let mut reports = Vec::new();
        let caught = tl.reindex(&mut |done, all| reports.push((done, all))).await;
        assert_eq!(caught.unwrap().lag, 0);
        assert_eq!(reports.first(), Some(&(0, 2)));
        assert_eq!(search_texts(&tl, "heron").await.len(), 1);

        let older = "UPDATE throughline.watermark SET made = '0 another'";
        admin.batch_execute(older).await.unwrap();
        assert_eq!(search_texts(&tl, "heron").await.len(), 1);
        let newer = "UPDATE throughline.watermark SET made = '999 another'";
        admin.batch_execute(newer).await.unwrap();
        let error = tl.search(&search_options("heron")).await.unwrap_err();
        let shown = format!("{error:?}");
        assert!(shown.contains("a newer version"), "{shown}");
    });
}

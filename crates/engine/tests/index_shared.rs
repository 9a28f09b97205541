//! Tests of several processes and stores that share an index: each finds only its own entries.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::path::Path;

use jiff::SignedDuration;
use jiff::tz::TimeZone;
use throughline::recall::Mode;
use throughline::{
    HealthOptions, IndexWait, Message, NewSession, PurgeOptions, Role, SearchOptions, Throughline,
};

fn block_on<T>(work: impl Future<Output = T>) -> T {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(work)
}

async fn open(folder: &Path, name: &str) -> Throughline {
    let store = format!("sqlite:{}", folder.join(name).display());
    Throughline::open(&store).await.unwrap()
}

async fn search(tl: &Throughline, typed: &str) -> Vec<String> {
    let options = SearchOptions {
        query: typed,
        mode: Mode::Text,
        limit: 1_000,
        typing: false,
        project: None,
        listing: &[],
        zone: &TimeZone::UTC,
        index_wait: IndexWait::Unlimited,
    };
    let results = tl.search(&options).await.unwrap();
    let hits = results.found.hits.into_iter();
    let mut found: Vec<String> = hits.map(|hit| hit.text).collect();
    found.sort();
    found
}

async fn say(tl: &Throughline, name: &str, texts: &[String]) {
    let session = tl.create(NewSession::named(name).unwrap()).await.unwrap();
    for text in texts {
        let message = Message::text(Role::User, text.as_str());
        session.append(message).await.unwrap();
    }
}

async fn purge(tl: &Throughline, name: &str) {
    let session = tl.resolve(&name.parse().unwrap(), &[]).await.unwrap();
    tl.trash(session.id()).await.unwrap();
    let all = PurgeOptions {
        grace: Some(SignedDuration::ZERO),
        ..PurgeOptions::default()
    };
    tl.purge(all).await.unwrap();
}

async fn assert_healthy(tl: &Throughline) {
    let report = tl.check_health(&HealthOptions::default()).await.unwrap();
    assert_eq!(report.findings, []);
}

/// `a.db` and `a.sqlite` both have `a.index`.
#[test]
fn two_stores_with_the_same_index_name_find_only_their_own_entries() {
    let folder = tempfile::tempdir().unwrap();
    block_on(async {
        let one = open(folder.path(), "a.db").await;
        let other = open(folder.path(), "a.sqlite").await;
        for round in 0..4 {
            let (name, heron) = (format!("s{round}"), format!("heron one {round}"));
            say(&one, &name, &[heron]).await;
            say(&other, &name, &[format!("heron other {round}")]).await;
            if round == 2 {
                // Removed entries cannot be compared with what the index contains.
                purge(&one, "s2").await;
            }
            for (tl, which) in [(&one, "one"), (&other, "other"), (&one, "one")] {
                let rounds = (0..=round).filter(|at| *at != 2 || which == "other");
                let expected: Vec<String> =
                    rounds.map(|at| format!("heron {which} {at}")).collect();
                assert_eq!(search(tl, "heron").await, expected, "round {round}");
                assert_healthy(tl).await;
            }
        }
    });
}

/// Two servers append, purge and search concurrently, sharing a file and its index.
#[test]
fn entries_purged_during_indexing_are_never_found_again() {
    let folder = tempfile::tempdir().unwrap();
    block_on(async {
        let one = open(folder.path(), "a.db").await;
        let other = open(folder.path(), "a.db").await;
        let writing = async {
            for round in 0..30 {
                let name = format!("s{round}");
                let texts: Vec<String> = (0..5).map(|at| format!("heron {round} {at}")).collect();
                say(&one, &name, &texts).await;
                if round % 2 == 0 {
                    purge(&one, &name).await;
                    let gone = format!("heron {round} ");
                    let found = search(&one, "heron").await;
                    assert!(
                        !found.iter().any(|text| text.starts_with(&gone)),
                        "{found:?}"
                    );
                }
            }
        };
        let searching = async {
            for _ in 0..60 {
                search(&other, "heron").await;
            }
        };
        tokio::join!(writing, searching);
        let mut expected: Vec<String> = (0..30)
            .filter(|round| round % 2 == 1)
            .flat_map(|round| (0..5).map(move |at| format!("heron {round} {at}")))
            .collect();
        expected.sort();
        for tl in [&one, &other] {
            assert_eq!(search(tl, "heron").await, expected);
            assert_eq!(tl.take_index_rebuild(), None);
            assert_healthy(tl).await;
        }
    });
}

//! The search index in the database: the conformance suite with and without pgvector, one
//! writer at a time, interrupted batches, and isolation of owners.

#![allow(clippy::unwrap_used, reason = "a test")]

mod common;

use common::run;
use throughline_postgres::test_database::TestDatabase;
use throughline_postgres::{Options, PostgresIndex, PostgresStore};
use throughline_recall::conformance::{
    IndexFixture, hit_positions, hybrid_query, owner, passage, text_query, unique_word,
};
use throughline_recall::{Batch, FolderIndex, Index, Passage, RecallError};

/// Runs a blocking index call on a thread that may block.
async fn run_blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(panicked) => std::panic::resume_unwind(panicked.into_panic()),
    }
}

/// The index of a store, and its cache folder.
fn index(store: &PostgresStore) -> (PostgresIndex, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    (PostgresIndex::new(store, folder.path()), folder)
}

/// Runs a case on an empty index in a database.
fn run_case(database: &TestDatabase, case: fn(&mut IndexFixture)) {
    run(async {
        let store = database.open(Options::default()).await;
        run_blocking(move || {
            let (index, folder) = index(&store);
            case(&mut IndexFixture::new(Box::new(index), folder));
        })
        .await;
    });
}

mod without_pgvector {
    use super::*;

    fn run(case: fn(&mut IndexFixture)) {
        let Some(database) = TestDatabase::new() else {
            return;
        };
        common::run(async {
            let admin = database.connect().await;
            let bytes = "ALTER TABLE throughline.passage ALTER vector TYPE bytea USING NULL";
            admin.batch_execute(bytes).await.unwrap();
        });
        run_case(&database, case);
    }

    throughline_recall::conformance!(run);
}

mod with_pgvector {
    use super::*;

    fn run(case: fn(&mut IndexFixture)) {
        let Some(database) = TestDatabase::with_pgvector() else {
            return;
        };
        common::run(async {
            let admin = database.connect().await;
            let kind = "SELECT atttypid::regtype::text FROM pg_attribute
                WHERE attrelid = 'throughline.passage'::regclass AND attname = 'vector'";
            let row = admin.query_one(kind, &[]).await.unwrap();
            assert_eq!(row.get::<_, String>(0), "halfvec");
        });
        run_case(&database, case);
    }

    throughline_recall::conformance!(run);
}

/// The passage at a position: generated words, in interleaved sessions.
fn passage_at(position: u64) -> Passage {
    let words = [
        "apple", "river", "stone", "cloud", "engine", "paper", "winter",
    ];
    let mut seed = position.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut next = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let at = usize::try_from(seed >> 33).unwrap();
        // Some words are rarer than others.
        words[(at % 7).min((at / 7) % 7)]
    };
    let text = format!(
        "{} {} {} {} {}",
        next(),
        next(),
        next(),
        next(),
        unique_word(position)
    );
    Passage {
        position,
        ..passage(&format!("s{}", position % 5), position / 5 + 1, &text)
    }
}

/// The next batch of the same passages, whichever process writes it.
fn next_batch(after: u64, upto: u64) -> Batch {
    let upto = upto.min(after + 37);
    Batch {
        passages: (after + 1..=upto).map(passage_at).collect(),
        removed: Vec::new(),
        after,
        upto,
        anchors: Vec::new(),
    }
}

fn index_all(index: &dyn Index, upto: u64) {
    loop {
        let after = index.watermark().unwrap();
        if after == upto {
            return;
        }
        match index.indexer().unwrap() {
            Some(mut indexer) => {
                indexer.index_batch(next_batch(after, upto)).unwrap();
            }
            None => std::thread::yield_now(),
        }
    }
}

/// Counts how many of the first ten hits of each query both indexes share; returns that and
/// the total.
fn compare_results(one: &dyn Index, other: &dyn Index) -> (usize, usize) {
    let (mut same, mut all) = (0, 0);
    for words in [
        "apple",
        "winter river",
        "paper engine cloud",
        &unique_word(300),
        "stone apple",
    ] {
        for query in [text_query(words), hybrid_query(words)] {
            let (here, there) = (one.search(&query).unwrap(), other.search(&query).unwrap());
            let (here, there) = (hit_positions(&here), hit_positions(&there));
            let ten = &here[..10.min(here.len())];
            all += ten.len();
            same += ten
                .iter()
                .filter(|place| there[..10.min(there.len())].contains(place))
                .count();
        }
    }
    (same, all)
}

#[test]
fn of_several_indexers_one_indexes_at_a_time_and_nothing_comes_twice() {
    let Some(database) = TestDatabase::new() else {
        return;
    };
    run(async {
        let mut indexers = Vec::new();
        for _ in 0..4 {
            let store = database.open(Options::default()).await;
            indexers.push(run_blocking(move || {
                let (index, _folder) = index(&store);
                index_all(&index, 700);
                index.passage_count().unwrap()
            }));
        }
        for done in futures_util::future::join_all(indexers).await {
            assert_eq!(done, 700);
        }
        let store = database.open(Options::default()).await;
        run_blocking(move || {
            let (index, _folder) = index(&store);
            let folder = tempfile::tempdir().unwrap();
            let other = FolderIndex::open(folder.path()).unwrap();
            index_all(&other, 700);
            // Both rank by the same formula; the embedded index rounds passage lengths.
            let (same, all) = compare_results(&index, &other);
            assert!(same * 10 >= all * 9, "{same} of {all}");
        })
        .await;
    });
}

#[test]
fn a_batch_that_is_cut_off_leaves_the_index_behind_and_not_wrong() {
    let Some(database) = TestDatabase::new() else {
        return;
    };
    run(async {
        let admin = database.connect().await;
        let store = database.open(Options::default()).await;
        let again = store.clone();
        run_blocking(move || index_all(&index(&again).0, 300)).await;
        // The connection is cut when half of a batch is written.
        let cut =
            "CREATE FUNCTION public.cut() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS
                $$ BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NEW; END $$;
            CREATE TRIGGER cut BEFORE INSERT ON throughline.passage_text
                FOR EACH ROW EXECUTE FUNCTION public.cut()";
        admin.batch_execute(cut).await.unwrap();
        let again = store.clone();
        let failed = run_blocking(move || {
            let (index, _folder) = index(&again);
            let mut indexer = index.indexer().unwrap().unwrap();
            indexer.index_batch(next_batch(300, 400)).unwrap_err()
        })
        .await;
        assert!(matches!(failed, RecallError::Database { .. }), "{failed:?}");
        let heal = "DROP TRIGGER cut ON throughline.passage_text";
        admin.batch_execute(heal).await.unwrap();
        run_blocking(move || {
            let (index, _folder) = index(&store);
            assert_eq!(
                (index.watermark().unwrap(), index.passage_count().unwrap()),
                (300, 300)
            );
            let found = hit_positions(&index.search(&text_query(&unique_word(320))).unwrap());
            assert!(!found.contains(&"s0/65".to_owned()), "{found:?}");
            // The lock is free again.
            index_all(&index, 400);
            assert_eq!(index.passage_count().unwrap(), 400);
            assert_eq!(
                hit_positions(&index.search(&text_query(&unique_word(320))).unwrap())[0],
                "s0/65"
            );
        })
        .await;
    });
}

#[test]
fn an_indexer_that_is_gone_holds_nobody_up() {
    let Some(database) = TestDatabase::new() else {
        return;
    };
    run(async {
        let admin = database.connect().await;
        let store = database.open(Options::default()).await;
        let again = store.clone();
        let mut indexer = run_blocking(move || index(&again).0.indexer().unwrap().unwrap()).await;
        let again = store.clone();
        let other = run_blocking(move || index(&again).0.indexer().unwrap().is_none()).await;
        assert!(other, "one feeds");
        let kill = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
            WHERE state = 'idle in transaction' AND datname = current_database()";
        assert_eq!(admin.query(kill, &[]).await.unwrap().len(), 1);
        run_blocking(move || {
            // Its transaction was terminated while it was slow, so the write fails.
            indexer.index_batch(next_batch(0, 20)).unwrap_err();
            let (index, _folder) = index(&store);
            index_all(&index, 50);
            // The batch it had prepared is discarded.
            assert_eq!(indexer.index_batch(next_batch(0, 20)).unwrap(), 50);
            assert_eq!(index.passage_count().unwrap(), 50);
        })
        .await;
    });
}

#[test]
fn of_what_is_erased_no_word_is_left_in_any_table() {
    let Some(database) = TestDatabase::new() else {
        return;
    };
    run(async {
        let store = database.open(Options::default()).await;
        let admin = database.connect().await;
        let left = "SELECT (SELECT count(*) FROM throughline.word WHERE term LIKE '%hunter%')
            + (SELECT count(*) FROM throughline.passage_text
                WHERE kept LIKE '%hunter%' OR terms LIKE '%hunter%')";
        let (told, heard) = std::sync::mpsc::channel();
        let (go, wait) = std::sync::mpsc::channel::<()>();
        let indexing = run_blocking(move || {
            let (index, folder) = index(&store);
            let mut fed = IndexFixture::new(Box::new(index), folder);
            let many = |id: &str| {
                (1..=200)
                    .map(|seq| passage(id, seq, "plain words"))
                    .collect()
            };
            let mut first: Vec<Passage> = many("s");
            first[199].text = "the password is hunter2".to_owned();
            fed.index_passages(first);
            // It leaves its block and enters another.
            fed.index_passages(vec![passage("s", 201, "and another thing")]);
            fed.index_passages(many("t"));
            told.send(()).unwrap();
            wait.recv().unwrap();
            fed.remove("s", Some(200));
            assert_eq!(fed.find_text("plain").len(), 20);
        });
        let indexing = tokio::spawn(indexing);
        tokio::task::spawn_blocking(move || heard.recv().unwrap())
            .await
            .unwrap();
        let blocks = "SELECT count(DISTINCT block) FROM throughline.word WHERE term = 'hunter2'";
        let row = admin.query_one(blocks, &[]).await.unwrap();
        assert_eq!(
            row.get::<_, i64>(0),
            2,
            "the test is about words left behind"
        );
        go.send(()).unwrap();
        indexing.await.unwrap();
        let row = admin.query_one(left, &[]).await.unwrap();
        assert_eq!(row.get::<_, i64>(0), 0);
    });
}

#[test]
fn a_forgotten_filter_shows_nobody_elses_words() {
    let Some(database) = TestDatabase::new() else {
        return;
    };
    run(async {
        let store = database.open(Options::default()).await;
        run_blocking(move || {
            let (index, folder) = index(&store);
            let mut fed = IndexFixture::new(Box::new(index), folder);
            for name in ["alice", "bob"] {
                let all = (1..=300).map(|number| Passage {
                    owner: owner(name),
                    ..passage_at(number)
                });
                fed.index_passages(all.collect());
            }
        })
        .await;
        let admin = database.connect().await;
        let begin = "SET ROLE throughline; BEGIN;
            SELECT set_config('throughline.owners', '{alice}', true)";
        for table in ["passage", "passage_text", "block", "word"] {
            let owners = format!("SELECT DISTINCT owner FROM throughline.{table} ORDER BY 1");
            let read = |rows: Vec<tokio_postgres::Row>| -> Vec<String> {
                rows.iter().map(|row| row.get(0)).collect()
            };
            let all = admin.query(&owners, &[]).await.unwrap();
            assert_eq!(read(all), ["alice", "bob"], "{table}");
            admin.batch_execute(begin).await.unwrap();
            let some = admin.query(&owners, &[]).await.unwrap();
            admin.batch_execute("COMMIT; RESET ROLE").await.unwrap();
            assert_eq!(read(some), ["alice"], "{table}");
        }
        // The lookups of a search use the key indexes, even under row-level security.
        admin.batch_execute("ANALYZE").await.unwrap();
        admin.batch_execute(begin).await.unwrap();
        let plan = "EXPLAIN SELECT postings FROM throughline.word
            WHERE owner = 'alice' AND block = ANY ('{0}') AND term = ANY ('{appl}')";
        let plan = admin.query(plan, &[]).await.unwrap();
        let plan: Vec<String> = plan.iter().map(|row| row.get(0)).collect();
        let plan = plan.join("\n");
        assert!(
            plan.contains("word_pkey") && plan.contains("term = ANY"),
            "{plan}"
        );
        admin.batch_execute("COMMIT; RESET ROLE").await.unwrap();
    });
}

//! Opening databases of other versions, of other programs, and without a store.

#![allow(clippy::unwrap_used, reason = "a test")]

mod common;

use std::path::Path;

use common::{append, header, named_entry, open, owner, run, session};
use throughline_postgres::test_database::TestDatabase;
use throughline_postgres::{Options, PostgresStore};
use throughline_store::{ErrorKind, LogStore, Maintenance, StoreError};

/// The names of a store's migrations, from its files.
fn migrations(store: &str) -> Vec<String> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let files = std::fs::read_dir(crates.join(store).join("migrations")).unwrap();
    let name =
        |file: std::io::Result<std::fs::DirEntry>| file.unwrap().file_name().into_string().unwrap();
    let mut names: Vec<_> = files.map(name).collect();
    names.sort();
    names
}

#[test]
fn both_stores_have_the_same_migrations() {
    assert_eq!(migrations("postgres"), migrations("sqlite"));
}

async fn open_error(url: &str) -> StoreError {
    PostgresStore::open(url, Options::default())
        .await
        .expect_err("it opened")
}

#[test]
fn a_store_of_every_earlier_schema_opens_and_works() {
    let migrations = migrations("postgres");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations");
    for known in 0..=migrations.len() {
        let Some(database) = TestDatabase::new() else {
            return;
        };
        run(async {
            let admin = database.connect().await;
            admin
                .batch_execute("DROP SCHEMA throughline CASCADE")
                .await
                .unwrap();
            if known > 0 {
                let make = "CREATE SCHEMA throughline; CREATE TABLE throughline.migration
                    (name text PRIMARY KEY, applied_at timestamptz NOT NULL DEFAULT now())";
                admin.batch_execute(make).await.unwrap();
            }
            for file in &migrations[..known] {
                let sql = std::fs::read_to_string(folder.join(file)).unwrap();
                admin.batch_execute(&sql).await.unwrap();
                let name = file.trim_end_matches(".sql");
                let note = "INSERT INTO throughline.migration (name) VALUES ($1)";
                admin.execute(note, &[&name]).await.unwrap();
            }
            let store = open(&database.url()).await;
            store.create(&owner(), header("s")).await.unwrap();
            append(&store, &session("s"), named_entry("one", "hello")).await;
            let report = store.check(&|_, _| ()).await.unwrap();
            assert_eq!(report.findings, [], "from schema {known}");
        });
    }
}

#[test]
fn many_may_make_the_store_at_once() {
    let Some(database) = TestDatabase::new() else {
        return;
    };
    run(async {
        let admin = database.connect().await;
        let drop = "DROP SCHEMA throughline CASCADE";
        admin.batch_execute(drop).await.unwrap();
        let opening: Vec<_> = (0..6)
            .map(|_| {
                let url = database.url();
                tokio::spawn(async move { open(&url).await })
            })
            .collect();
        for one in opening {
            one.await.unwrap();
        }
    });
}

#[test]
fn a_store_of_a_later_version_is_left_alone() {
    let Some(database) = TestDatabase::new() else {
        return;
    };
    run(async {
        let admin = database.connect().await;
        let later = "INSERT INTO throughline.migration (name) VALUES ('20990101000000_later')";
        admin.batch_execute(later).await.unwrap();
        let error = open_error(&database.url()).await;
        assert!(matches!(error, StoreError::SchemaTooNew { .. }), "{error}");
        assert!(error.to_string().contains("20990101000000_later"));
    });
}

#[test]
fn a_schema_of_another_program_is_left_alone() {
    let Some(database) = TestDatabase::new() else {
        return;
    };
    run(async {
        let admin = database.connect().await;
        let other = "DROP SCHEMA throughline CASCADE; CREATE SCHEMA throughline;
            CREATE TABLE throughline.plants (name text)";
        admin.batch_execute(other).await.unwrap();
        let error = open_error(&database.url()).await;
        assert_eq!(error.kind(), ErrorKind::Damaged);
    });
}

#[test]
fn what_is_no_address_is_reported_without_the_password() {
    run(async {
        let error = open_error("postgres://me:hunter2@host/db?no_such_option=1").await;
        assert_eq!(error.kind(), ErrorKind::Invalid);
        let said = error.to_string();
        assert!(said.contains("no_such_option"), "{said}");
        assert!(!said.contains("hunter2"), "{said}");
        let away = open_error("postgres://me:hunter2@127.0.0.1:1/db").await;
        assert_eq!(away.kind(), ErrorKind::Unavailable);
        assert!(!format!("{away:?}").contains("hunter2"));
    });
}

#[test]
fn nothing_is_counted_of_who_owns_rows() {
    let Some(database) = TestDatabase::new() else {
        return;
    };
    run(async {
        let _store = open(&database.url()).await;
        let admin = database.connect().await;
        let counted =
            "SELECT attrelid::regclass::text FROM pg_attribute JOIN pg_class c ON c.oid = attrelid
            WHERE c.relnamespace = 'throughline'::regnamespace AND c.relkind IN ('r', 'p')
                AND attname = 'owner' AND attstattarget <> 0";
        let rows = admin.query(counted, &[]).await.unwrap();
        let tables: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
        assert_eq!(tables, [""; 0]);
    });
}

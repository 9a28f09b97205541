//! Row-level security isolates owners even if a statement does not name the owner.

#![allow(clippy::unwrap_used, reason = "a test")]

mod common;

use common::{append, header, named_entry, open, run};
use throughline_model::Owner;
use throughline_postgres::PostgresStore;
use throughline_postgres::test_database::TestDatabase;
use throughline_store::{
    BlobStore, Catalog, ChangeFeed, LogStore, Maintenance, Position, SessionFilter,
};
use tokio_postgres::{Client, NoTls};

async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

async fn count(client: &Client, sql: &str) -> i64 {
    client.query_one(sql, &[]).await.unwrap().get(0)
}

/// Gives alice and bob a session each, with one entry and one attachment.
async fn fill(store: &PostgresStore) {
    for name in ["alice", "bob"] {
        let owner: Owner = name.parse().unwrap();
        store.create(&owner, header("s")).await.unwrap();
        let session = owner.session(&"s".parse().unwrap());
        append(
            store,
            &session,
            named_entry(name, &format!("{name}'s secret")),
        )
        .await;
        let bytes = name.as_bytes().to_vec();
        store.put_blob(&owner, bytes).await.unwrap();
    }
}

/// A role that may log in and use the store, and nothing else.
async fn application_role(database: &TestDatabase) -> String {
    let admin = database.connect().await;
    let name = format!("tl_app_{}", std::process::id());
    let make = format!(
        "DROP ROLE IF EXISTS {name};
         CREATE ROLE {name} LOGIN PASSWORD 'pass';
         GRANT throughline TO {name}"
    );
    admin.batch_execute(&make).await.unwrap();
    name
}

async fn drop_role(database: &TestDatabase, name: &str) {
    let admin = database.connect().await;
    let drop = format!("DROP OWNED BY {name}; DROP ROLE {name}");
    let _ = admin.batch_execute(&drop).await;
}

#[test]
fn a_statement_that_forgets_the_owner_gets_nothing() {
    let Some(database) = TestDatabase::new() else {
        return;
    };
    run(async {
        let role = application_role(&database).await;
        let url = database.url_for(&role, "pass");
        // The store works for such a role, although it could not have created it.
        let store = open(&url).await;
        fill(&store).await;

        let client = connect(&url).await;
        for table in ["entry", "session", "head", "blob", "change", "owner"] {
            let all = format!("SELECT count(*) FROM throughline.{table}");
            assert_eq!(count(&client, &all).await, 0, "{table}");
        }
        let deleted = client.execute("DELETE FROM throughline.entry", &[]).await;
        assert_eq!(deleted.unwrap(), 0);
        let changed = "UPDATE throughline.session SET name = 'mine'";
        assert_eq!(client.execute(changed, &[]).await.unwrap(), 0);

        let alice: Owner = "alice".parse().unwrap();
        let listed = store.list(&alice, &SessionFilter::default(), None, 9).await;
        assert_eq!(listed.unwrap().items.len(), 1);
        drop((client, store));
        drop_role(&database, &role).await;
    });
}

#[test]
fn on_behalf_of_one_owner_anothers_rows_are_neither_seen_nor_made() {
    let Some(database) = TestDatabase::new() else {
        return;
    };
    run(async {
        let role = application_role(&database).await;
        let url = database.url_for(&role, "pass");
        fill(&open(&url).await).await;

        let client = connect(&url).await;
        let begin = "BEGIN; SELECT set_config('throughline.owners', '{alice}', true)";
        client.batch_execute(begin).await.unwrap();
        let entries = "SELECT count(*) FROM throughline.entry";
        assert_eq!(count(&client, entries).await, 1);
        let bobs = "SELECT count(*) FROM throughline.entry WHERE owner = 'bob'";
        assert_eq!(count(&client, bobs).await, 0);
        let forged = "INSERT INTO throughline.project (owner, id, json)
            VALUES ('bob', 'x', '{}')";
        let refused = client.batch_execute(forged).await.unwrap_err();
        let why = refused.as_db_error().unwrap().message().to_owned();
        assert!(why.contains("row-level security"), "{why}");
        client.batch_execute("ROLLBACK").await.unwrap();

        // The settings of one transaction do not carry over to the next on the same
        // connection.
        client.batch_execute(begin).await.unwrap();
        client.batch_execute("COMMIT").await.unwrap();
        assert_eq!(count(&client, entries).await, 0);
        drop(client);
        drop_role(&database, &role).await;
    });
}

#[test]
fn whoever_owns_the_tables_is_held_to_it_too() {
    let Some(database) = TestDatabase::new() else {
        return;
    };
    run(async {
        let admin = database.connect().await;
        let name = format!("tl_owner_{}", std::process::id());
        let database_name: String = admin
            .query_one("SELECT current_database()", &[])
            .await
            .unwrap()
            .get(0);
        let make = format!(
            "DROP SCHEMA throughline CASCADE;
             DROP ROLE IF EXISTS {name};
             CREATE ROLE {name} LOGIN PASSWORD 'pass';
             GRANT CREATE ON DATABASE {database_name} TO {name}"
        );
        admin.batch_execute(&make).await.unwrap();
        let url = database.url_for(&name, "pass");
        // It creates the store itself, and needs no right to create roles.
        let store = open(&url).await;
        fill(&store).await;
        let client = connect(&url).await;
        assert_eq!(
            count(&client, "SELECT count(*) FROM throughline.entry").await,
            0
        );
        assert_eq!(store.owners().await.unwrap().len(), 2);
        drop((client, store));
        drop_role(&database, &name).await;
    });
}

#[test]
fn even_a_superuser_acts_in_a_role_that_is_held_to_it() {
    let Some(database) = TestDatabase::new() else {
        return;
    };
    run(async {
        let store = open(&database.url()).await;
        fill(&store).await;
        // A table that records which role wrote to it.
        let admin = database.connect().await;
        let watch = "CREATE TABLE public.seen (who name);
            GRANT INSERT ON public.seen TO PUBLIC;
            CREATE FUNCTION public.see() RETURNS trigger LANGUAGE plpgsql AS
                $$ BEGIN INSERT INTO public.seen VALUES (current_user); RETURN NEW; END $$;
            CREATE TRIGGER see AFTER INSERT ON throughline.entry
                FOR EACH ROW EXECUTE FUNCTION public.see()";
        admin.batch_execute(watch).await.unwrap();
        let alice: Owner = "alice".parse().unwrap();
        let session = alice.session(&"s".parse().unwrap());
        append(&store, &session, named_entry("more", "more")).await;
        let who: Vec<String> = admin
            .query("SELECT DISTINCT who::text FROM public.seen", &[])
            .await
            .unwrap()
            .iter()
            .map(|row| row.get(0))
            .collect();
        assert_eq!(who, ["throughline"]);
    });
}

#[test]
fn every_table_is_guarded() {
    let Some(database) = TestDatabase::new() else {
        return;
    };
    run(async {
        let admin = database.connect().await;
        let unguarded = "SELECT relname::text FROM pg_class
            WHERE relnamespace = 'throughline'::regnamespace AND relkind IN ('r', 'p')
            AND NOT (relrowsecurity AND relforcerowsecurity
                AND EXISTS (SELECT FROM pg_policy WHERE polrelid = pg_class.oid))
            ORDER BY relname";
        let rows = admin.query(unguarded, &[]).await.unwrap();
        let names: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
        assert_eq!(names, ["migration"]);
    });
}

#[test]
fn the_feed_and_upkeep_see_every_owner() {
    let Some(database) = TestDatabase::new() else {
        return;
    };
    run(async {
        let store = open(&database.url()).await;
        fill(&store).await;
        let changes = store.changes(Position(0), 10).await.unwrap();
        assert_eq!(changes.len(), 4);
        let report = store.check(&|_, _| ()).await.unwrap();
        assert_eq!((report.sessions, report.entries, report.blobs), (2, 2, 2));
    });
}

//! Creates a separate database for each test.
//!
//! `TL_TEST_POSTGRES` is the URL of a server on which databases may be created and dropped;
//! `cargo xtask test` starts one and sets it. Without it, tests that need a database print
//! a note and are skipped; in CI they fail.

use std::str::FromStr;
use std::sync::atomic::{AtomicU32, Ordering};

use tokio_postgres::{Client, Config, NoTls};

use crate::{Options, PostgresStore};

/// The environment variable with the server's URL.
pub const SERVER_VARIABLE: &str = "TL_TEST_POSTGRES";

/// The environment variable with the URL of a server that has pgvector; may be the same
/// server.
const PGVECTOR_VARIABLE: &str = "TL_TEST_PGVECTOR";

/// The advisory lock held while the template is created.
const TEMPLATE_LOCK: i64 = 0x54_4c69_6e66;

/// A database that is dropped with this value.
#[derive(Debug)]
pub struct TestDatabase {
    server: String,
    name: String,
}

impl TestDatabase {
    /// Creates a database with an empty store; returns `None` if there is no server.
    ///
    /// # Panics
    /// If there is no server in CI, or if the server fails.
    pub fn new() -> Option<Self> {
        Some(Self::create_on(server_url()?))
    }

    /// The same on a server that has pgvector; returns `None` if there is none.
    ///
    /// # Panics
    /// As [`TestDatabase::new`].
    pub fn with_pgvector() -> Option<Self> {
        Some(Self::create_on(server_url_from(
            PGVECTOR_VARIABLE,
            "PostgreSQL with pgvector",
        )?))
    }

    #[allow(clippy::expect_used, clippy::unwrap_used, reason = "for tests")]
    fn create_on(server: String) -> Self {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let made = MADE.fetch_add(1, Ordering::Relaxed);
        let name = format!("tl_trial_{}_{made}", std::process::id());
        let database = Self { server, name };
        let (server, name) = (database.server.clone(), database.name.clone());
        run_blocking(async move {
            let template = ensure_template(&server).await;
            let client = connect(&server).await;
            let make = format!("CREATE DATABASE {name} TEMPLATE {template}");
            drop_database(&client, &name).await;
            // Copying fails while another copy of the template is in progress; retry.
            for _ in 0..200 {
                match client.batch_execute(&make).await {
                    Ok(()) => return,
                    Err(error)
                        if error.code()
                            == Some(&tokio_postgres::error::SqlState::OBJECT_IN_USE) =>
                    {
                        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
                    }
                    Err(error) => panic!("{name} cannot be made: {error:?}"),
                }
            }
            panic!("{name} cannot be made: its template is in use");
        });
        database
    }

    /// Empties the store, for a test that needs many.
    ///
    /// # Panics
    /// If it cannot be emptied.
    #[allow(clippy::expect_used, reason = "for tests")]
    pub fn truncate(&self) {
        let url = self.url();
        run_blocking(async move {
            let client = connect(&url).await;
            let tables = "SELECT string_agg(oid::regclass::text, ', ') FROM pg_class
                WHERE relnamespace = 'throughline'::regnamespace AND relkind = 'r'
                AND relname <> 'migration'";
            let row = client.query_one(tables, &[]).await.expect("asked");
            let empty = format!("TRUNCATE {}", row.get::<_, String>(0));
            client.batch_execute(&empty).await.expect("emptied");
        });
    }

    /// Runs a statement directly, bypassing the store.
    ///
    /// # Panics
    /// If it fails.
    #[allow(clippy::expect_used, reason = "for tests")]
    pub fn execute(&self, sql: &str) {
        let (url, sql) = (self.url(), sql.to_owned());
        run_blocking(async move {
            let client = connect(&url).await;
            client.batch_execute(&sql).await.expect("executed");
        });
    }

    /// The URL of the database.
    pub fn url(&self) -> String {
        with_database(&self.server, &self.name)
    }

    /// The URL of the database for another role with this password.
    pub fn url_for(&self, role: &str, password: &str) -> String {
        let url = self.url();
        let (scheme, rest) = url.split_once("://").unwrap_or(("postgres", &url));
        let host = rest.split_once('@').map_or(rest, |(_, host)| host);
        format!("{scheme}://{role}:{password}@{host}")
    }

    /// Opens the store.
    ///
    /// # Panics
    /// If it cannot be opened.
    #[allow(clippy::expect_used, reason = "for tests")]
    pub async fn open(&self, options: Options) -> PostgresStore {
        PostgresStore::open(&self.url(), options)
            .await
            .expect("the store opens")
    }

    /// Connects to the database directly, bypassing the store.
    pub async fn connect(&self) -> Client {
        connect(&self.url()).await
    }
}

impl Drop for TestDatabase {
    fn drop(&mut self) {
        let (server, name) = (self.server.clone(), self.name.clone());
        run_blocking(async move {
            let client = connect(&server).await;
            drop_database(&client, &name).await;
        });
    }
}

/// The URL of the server, if there is one.
///
/// # Panics
/// If there is none in CI.
pub fn server_url() -> Option<String> {
    server_url_from(SERVER_VARIABLE, "PostgreSQL")
}

#[expect(clippy::disallowed_methods, reason = "how a test learns of it")]
fn server_url_from(variable: &str, what: &str) -> Option<String> {
    if let Ok(url) = std::env::var(variable) {
        return Some(url);
    }
    assert!(
        std::env::var("CI").is_err(),
        "there is no {what}: in CI that is a failure; run `cargo xtask test`"
    );
    eprintln!("SKIPPED: there is no {what} ({variable} is not set); run `cargo xtask test`");
    None
}

/// The same URL with another database name.
fn with_database(url: &str, name: &str) -> String {
    let (before, options) = match url.split_once('?') {
        Some((before, options)) => (before, format!("?{options}")),
        None => (url, String::new()),
    };
    let start = before.find("://").map_or(0, |at| at + 3);
    let end = before[start..]
        .find('/')
        .map_or(before.len(), |at| start + at);
    format!("{}/{name}{options}", &before[..end])
}

/// Runs a future to completion on a separate thread, independent of the current runtime.
#[allow(clippy::expect_used, reason = "for tests")]
fn run_blocking(work: impl Future<Output = ()> + Send + 'static) {
    let running = std::thread::spawn(|| {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime")
            .block_on(work);
    });
    if let Err(panic) = running.join()
        && !std::thread::panicking()
    {
        std::panic::resume_unwind(panic);
    }
}

#[allow(clippy::expect_used, reason = "for tests")]
async fn connect(url: &str) -> Client {
    let config = Config::from_str(url).expect("the address of a server");
    let (client, connection) = config.connect(NoTls).await.expect("the server answers");
    tokio::spawn(connection);
    client
}

async fn drop_database(client: &Client, name: &str) {
    let drop = format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)");
    // A leftover database does no harm.
    let _ = client.batch_execute(&drop).await;
}

/// Returns the name of a template database with an empty store of this version, which the
/// first test to need it creates.
#[allow(clippy::expect_used, reason = "for tests")]
async fn ensure_template(server: &str) -> String {
    let all: String = crate::migrate::MIGRATIONS
        .iter()
        .map(|(name, sql)| format!("{name}{sql}"))
        .collect();
    let digest = throughline_model::Digest::of(all.as_bytes());
    let name = format!("tl_template_{}", digest.short());
    let client = connect(server).await;
    let is_there = "SELECT FROM pg_database WHERE datname = $1";
    let done = |rows: Vec<_>| !rows.is_empty();
    if done(client.query(is_there, &[&name]).await.expect("asked")) {
        return name;
    }
    let lock = "SELECT pg_advisory_lock($1)";
    client.query(lock, &[&TEMPLATE_LOCK]).await.expect("locked");
    if !done(client.query(is_there, &[&name]).await.expect("asked")) {
        let making = format!("{name}_making");
        drop_database(&client, &making).await;
        let make = format!("CREATE DATABASE {making}");
        client.batch_execute(&make).await.expect("made");
        let url = with_database(server, &making);
        let store = PostgresStore::open(&url, Options::default()).await;
        let store = store.expect("the store opens");
        throughline_store::Maintenance::close(&store)
            .await
            .expect("closed");
        drop(store);
        let rename = format!("ALTER DATABASE {making} RENAME TO {name}");
        // Connections to it take a moment to close.
        let mut renamed = client.batch_execute(&rename).await;
        for _ in 0..200 {
            if renamed.is_ok() {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            renamed = client.batch_execute(&rename).await;
        }
        renamed.expect("renamed");
    }
    name
}

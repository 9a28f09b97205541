//! Opens a store: parses the URL, sets up the connection pool and the role, and migrates.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use deadpool_postgres::{Manager, ManagerConfig, Pool, RecyclingMethod, Runtime, Timeouts};
use throughline_model::Owner;
use throughline_store::StoreError;
use tokio_postgres::Config;

use crate::change_notifier::ChangeNotifier;
use crate::error::{Fault, during};
use crate::migrate::migrate;
use crate::tls::{Tls, TlsOptions};
use crate::tx::{LOCK_TIMEOUT, OwnerScope, Tx, TxMode, TxSettings};
use crate::writer::Writer;

/// How long a call waits for a pooled connection.
pub(crate) const POOL_TIMEOUT: Duration = Duration::from_secs(30);

/// How durable an acknowledged write is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// On disk, and on the replicas that the server is configured to wait for.
    #[default]
    Full,
    /// Received by the database server: survives a crash of this program, not of the
    /// server.
    Normal,
}

/// Options for opening a store.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// How durable an acknowledged write is.
    pub durability: Durability,
    /// Pooled connections, besides the writer's.
    pub connections: usize,
    /// How long operations are retried while the database is unavailable.
    pub time_limit: Duration,
    /// How long a call waits for a connection when all are in use.
    pub pool_timeout: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            durability: Durability::default(),
            connections: 8,
            time_limit: Duration::from_secs(30),
            pool_timeout: POOL_TIMEOUT,
        }
    }
}

/// A store of sessions in a PostgreSQL database. Cheap to clone.
#[derive(Clone)]
pub struct PostgresStore {
    pub(crate) inner: Arc<StoreInner>,
}

/// State shared by all clones of a store.
pub(crate) struct StoreInner {
    /// Connections for everything but appends.
    pub(crate) pool: Pool,
    pub(crate) writer: Writer,
    pub(crate) notifier: Arc<ChangeNotifier>,
    pub(crate) settings: TxSettings,
    pub(crate) time_limit: Duration,
    pub(crate) config: Config,
    identity: String,
}

impl fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not the URL: it may contain a password.
        f.debug_struct("PostgresStore")
            .field("database", &self.inner.config.get_dbname())
            .finish_non_exhaustive()
    }
}

impl PostgresStore {
    /// Opens the store in a database; creates it if there is none.
    ///
    /// Must be called, and the store used, inside a tokio runtime.
    pub async fn open(url: &str, options: Options) -> Result<Self, StoreError> {
        let connection = parse_url(url)?;
        let pool = build_pool(
            &connection,
            options.connections.max(1),
            options.pool_timeout,
        )?;
        let lane = build_writer_pool(&connection, options.pool_timeout)?;
        let DatabaseInfo {
            role,
            identity,
            syncs_on_commit: syncs,
        } = prepare_database(&pool).await?;
        let settings = TxSettings {
            role,
            synchronous_commit: match options.durability {
                // The server's setting, unless it would not wait for the disk.
                Durability::Full if syncs => "",
                Durability::Full => "on",
                Durability::Normal => "off",
            },
            lock_timeout: LOCK_TIMEOUT,
        };
        let wake = ChangeNotifier::new(pool.clone(), connection.clone());
        Ok(Self {
            inner: Arc::new(StoreInner {
                writer: Writer::new(
                    lane,
                    settings.clone(),
                    options.time_limit,
                    Arc::clone(&wake),
                ),
                notifier: wake,
                pool,
                settings,
                time_limit: options.time_limit,
                config: connection.config,
                identity,
            }),
        })
    }

    /// An identifier unique to this store, even among stores at the same address over time.
    pub fn identity(&self) -> &str {
        &self.inner.identity
    }

    /// Begins a read transaction of one owner.
    pub(crate) async fn begin_read(&self, owner: &Owner) -> Result<Tx, Fault> {
        self.begin(TxMode::Read, OwnerScope::Owner(owner)).await
    }

    /// Begins a write transaction of one owner.
    pub(crate) async fn begin_write(&self, owner: &Owner) -> Result<Tx, Fault> {
        self.begin(TxMode::Write, OwnerScope::Owner(owner)).await
    }

    /// Begins a transaction that is not limited to one owner.
    pub(crate) async fn begin_system(&self, purpose: TxMode) -> Result<Tx, Fault> {
        self.begin(purpose, OwnerScope::SystemRole).await
    }

    async fn begin(&self, purpose: TxMode, scope: OwnerScope<'_>) -> Result<Tx, Fault> {
        let shared = &self.inner;
        Tx::begin(&shared.pool, &shared.settings, purpose, scope).await
    }
}

/// How to connect to a database.
#[derive(Clone)]
pub(crate) struct ConnectionConfig {
    pub(crate) config: Config,
    pub(crate) tls: Tls,
}

/// Parses a PostgreSQL connection URL, including its TLS parameters.
fn parse_url(url: &str) -> Result<ConnectionConfig, StoreError> {
    let wrong = |why: String| StoreError::InvalidUrl {
        url: redact_url(url),
        why,
    };
    let (plain, tls_options) = TlsOptions::extract_from_url(url).map_err(wrong)?;
    let mut config = Config::from_str(&plain).map_err(|error| wrong(error_chain(&error)))?;
    config.ssl_mode(tls_options.ssl_mode(config.get_hosts()));
    let tls = tls_options.build_tls().map_err(wrong)?;
    if config.get_application_name().is_none() {
        config.application_name("throughline");
    }
    if config.get_connect_timeout().is_none() {
        config.connect_timeout(Duration::from_secs(10));
    }
    // Do not wait forever for a server that vanished without closing the connection.
    if config.get_tcp_user_timeout().is_none() {
        config.tcp_user_timeout(Duration::from_secs(30));
    }
    Ok(ConnectionConfig { config, tls })
}

/// Returns a URL without its password, for display.
pub fn redact_url(url: &str) -> String {
    let url = &match url.find("password=") {
        None => url.to_owned(),
        Some(at) => {
            let end = url[at..].find('&').map_or(url.len(), |end| at + end);
            format!("{}password=…{}", &url[..at], &url[end..])
        }
    };
    let Some((scheme, rest)) = url.split_once("://") else {
        return url.to_owned();
    };
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    match rest[..end].rfind('@') {
        None => url.to_owned(),
        Some(at) => {
            let user = rest[..at].split(':').next().unwrap_or_default();
            format!("{scheme}://{user}{}", &rest[at..])
        }
    }
}

/// Formats an error and its causes on one line.
pub(crate) fn error_chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        let message = inner.to_string();
        if !text.ends_with(&message) {
            text.push_str(": ");
            text.push_str(&message);
        }
        cause = inner.source();
    }
    text
}

fn build_pool(
    connection: &ConnectionConfig,
    connections: usize,
    wait: Duration,
) -> Result<Pool, StoreError> {
    let manager = Manager::from_config(
        connection.config.clone(),
        connection.tls.clone(),
        ManagerConfig {
            recycling_method: RecyclingMethod::Fast,
        },
    );
    Pool::builder(manager)
        .max_size(connections)
        .runtime(Runtime::Tokio1)
        .timeouts(Timeouts {
            wait: Some(wait),
            create: Some(Duration::from_secs(30)),
            recycle: Some(Duration::from_secs(30)),
        })
        .build()
        .map_err(|error| StoreError::Backend {
            during: "preparing connections",
            source: error.into(),
        })
}

fn build_writer_pool(connection: &ConnectionConfig, wait: Duration) -> Result<Pool, StoreError> {
    build_pool(connection, 1, wait)
}

/// What opening finds out about a database.
struct DatabaseInfo {
    /// The role to switch to in transactions.
    role: &'static str,
    /// The store's identity.
    identity: String,
    /// Whether the server's `synchronous_commit` waits for the disk.
    syncs_on_commit: bool,
}

/// Migrates the schema and reads the settings of the database.
///
/// Row-level security does not apply to superusers and roles with BYPASSRLS; connections
/// that log in as one switch to the restricted role.
async fn prepare_database(pool: &Pool) -> Result<DatabaseInfo, StoreError> {
    let failed = during("opening the store");
    let connected = pool.get().await;
    let mut client =
        connected.map_err(|error| Fault::from_pool_error("connecting to the database", error))?;
    let row = client
        .query_one(
            "SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user",
            &[],
        )
        .await
        .map_err(failed)?;
    let bypasses_rls: bool = row.get(0);
    migrate(&mut client, bypasses_rls).await?;
    let row = client
        .query_one(
            "SELECT (SELECT oid::text FROM pg_database WHERE datname = current_database())
                 || ' ' || min(applied_at)::text,
                 current_setting('synchronous_commit') <> 'off'
             FROM throughline.migration",
            &[],
        )
        .await
        .map_err(failed)?;
    let role = if bypasses_rls { "throughline" } else { "none" };
    Ok(DatabaseInfo {
        role,
        identity: crate::rows::get(&row, 0)?,
        syncs_on_commit: crate::rows::get(&row, 1)?,
    })
}

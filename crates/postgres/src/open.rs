//! Opening a store: the address, the connections, the role to act in.

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

/// How long a call waits for one of our own connections.
pub(crate) const POOL_TIMEOUT: Duration = Duration::from_secs(30);

/// How sure an acknowledgement is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// On the disk, and with the replicas that the database is told to wait for.
    #[default]
    Full,
    /// With the database: it survives this program's going down.
    Normal,
}

/// How to open a store.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// How sure an acknowledgement is.
    pub durability: Durability,
    /// Connections besides the writer's.
    pub connections: usize,
    /// How long something is tried again while the database is away.
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

/// Sessions in a PostgreSQL database.
#[derive(Clone)]
pub struct PostgresStore {
    pub(crate) inner: Arc<StoreInner>,
}

/// What everybody who works on a store shares.
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
        // Not the address: there may be a password in it.
        f.debug_struct("PostgresStore")
            .field("database", &self.inner.config.get_dbname())
            .finish_non_exhaustive()
    }
}

impl PostgresStore {
    /// Opens the store in a database, and makes it if there is none.
    ///
    /// Must be called, and the store used, inside a tokio runtime.
    pub async fn open(url: &str, options: Options) -> Result<Self, StoreError> {
        let way = parse_url(url)?;
        let pool = build_pool(&way, options.connections.max(1), options.pool_timeout)?;
        let lane = build_writer_pool(&way, options.pool_timeout)?;
        let DatabaseInfo {
            role,
            identity,
            syncs_on_commit: syncs,
        } = prepare_database(&pool).await?;
        let manner = TxSettings {
            role,
            synchronous_commit: match options.durability {
                // As the database is set, except where it would not wait for the disk.
                Durability::Full if syncs => "",
                Durability::Full => "on",
                Durability::Normal => "off",
            },
            lock_timeout: LOCK_TIMEOUT,
        };
        let wake = ChangeNotifier::new(pool.clone(), way.clone());
        Ok(Self {
            inner: Arc::new(StoreInner {
                writer: Writer::new(lane, manner.clone(), options.time_limit, Arc::clone(&wake)),
                notifier: wake,
                pool,
                settings: manner,
                time_limit: options.time_limit,
                config: way.config,
                identity,
            }),
        })
    }

    /// What tells this store from any other that was or will be at its address.
    pub fn identity(&self) -> &str {
        &self.inner.identity
    }

    /// Starts reading on behalf of an owner.
    pub(crate) async fn begin_read(&self, owner: &Owner) -> Result<Tx, Fault> {
        self.begin(TxMode::Read, OwnerScope::Owner(owner)).await
    }

    /// Starts writing on behalf of an owner.
    pub(crate) async fn begin_write(&self, owner: &Owner) -> Result<Tx, Fault> {
        self.begin(TxMode::Write, OwnerScope::Owner(owner)).await
    }

    /// Starts the store's own work.
    pub(crate) async fn begin_system(&self, purpose: TxMode) -> Result<Tx, Fault> {
        self.begin(purpose, OwnerScope::SystemRole).await
    }

    async fn begin(&self, purpose: TxMode, behalf: OwnerScope<'_>) -> Result<Tx, Fault> {
        let shared = &self.inner;
        Tx::begin(&shared.pool, &shared.settings, purpose, behalf).await
    }
}

/// How a database is reached.
#[derive(Clone)]
pub(crate) struct ConnectionConfig {
    pub(crate) config: Config,
    pub(crate) tls: Tls,
}

/// The address of a database, as every program of PostgreSQL's writes it.
fn parse_url(url: &str) -> Result<ConnectionConfig, StoreError> {
    let wrong = |why: String| StoreError::InvalidUrl {
        url: redact_url(url),
        why,
    };
    let (plain, wanted) = TlsOptions::extract_from_url(url).map_err(wrong)?;
    let mut config = Config::from_str(&plain).map_err(|error| wrong(error_chain(&error)))?;
    config.ssl_mode(wanted.ssl_mode(config.get_hosts()));
    let tls = wanted.build_tls().map_err(wrong)?;
    if config.get_application_name().is_none() {
        config.application_name("throughline");
    }
    if config.get_connect_timeout().is_none() {
        config.connect_timeout(Duration::from_secs(10));
    }
    // A server that vanished without a word must not be waited for for ever.
    if config.get_tcp_user_timeout().is_none() {
        config.tcp_user_timeout(Duration::from_secs(30));
    }
    Ok(ConnectionConfig { config, tls })
}

/// An address without its password, to be shown.
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

/// An error and what caused it, on one line.
pub(crate) fn error_chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        let said = inner.to_string();
        if !text.ends_with(&said) {
            text.push_str(": ");
            text.push_str(&said);
        }
        cause = inner.source();
    }
    text
}

fn build_pool(
    way: &ConnectionConfig,
    connections: usize,
    wait: Duration,
) -> Result<Pool, StoreError> {
    let manager = Manager::from_config(
        way.config.clone(),
        way.tls.clone(),
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

fn build_writer_pool(way: &ConnectionConfig, wait: Duration) -> Result<Pool, StoreError> {
    build_pool(way, 1, wait)
}

/// What is known of a store once it is ready for use.
struct DatabaseInfo {
    /// The role to act in.
    role: &'static str,
    /// Which store it is.
    identity: String,
    /// Whether the database waits for the disk when it commits, as it is set.
    syncs_on_commit: bool,
}

/// Brings the schema up to date.
///
/// Row-level security does not hold for superusers and their like: whoever logs in as one
/// acts in the role that the schema's rights are given to.
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
    let above_the_law: bool = row.get(0);
    migrate(&mut client, above_the_law).await?;
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
    let role = if above_the_law { "throughline" } else { "none" };
    Ok(DatabaseInfo {
        role,
        identity: crate::rows::get(&row, 0)?,
        syncs_on_commit: crate::rows::get(&row, 1)?,
    })
}

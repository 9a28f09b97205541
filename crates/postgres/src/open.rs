//! Opening a store: the address, the connections, the role to act in.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use deadpool_postgres::{Manager, ManagerConfig, Pool, RecyclingMethod, Runtime, Timeouts};
use throughline_model::Owner;
use throughline_store::StoreError;
use tokio_postgres::Config;

use crate::error::{Fault, during};
use crate::migrate::migrate;
use crate::tls::{Tls, Wanted};
use crate::tx::{Behalf, LOCK_TIMEOUT, Manner, Purpose, Tx};
use crate::wake::Wake;
use crate::writer::Writer;

/// How long a call waits for one of our own connections.
pub(crate) const POOL_WAIT: Duration = Duration::from_secs(30);

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
    pub patience: Duration,
    /// How long a call waits for a connection when all are in use.
    pub wait: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            durability: Durability::default(),
            connections: 8,
            patience: Duration::from_secs(30),
            wait: POOL_WAIT,
        }
    }
}

/// Sessions in a PostgreSQL database.
#[derive(Clone)]
pub struct PostgresStore {
    pub(crate) shared: Arc<Shared>,
}

/// What everybody who works on a store shares.
pub(crate) struct Shared {
    /// Connections for everything but appends.
    pub(crate) pool: Pool,
    pub(crate) writer: Writer,
    pub(crate) wake: Arc<Wake>,
    pub(crate) manner: Manner,
    pub(crate) patience: Duration,
    pub(crate) config: Config,
    identity: String,
}

impl fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not the address: there may be a password in it.
        f.debug_struct("PostgresStore")
            .field("database", &self.shared.config.get_dbname())
            .finish_non_exhaustive()
    }
}

impl PostgresStore {
    /// Opens the store in a database, and makes it if there is none.
    ///
    /// Must be called, and the store used, inside a tokio runtime.
    pub async fn open(url: &str, options: Options) -> Result<Self, StoreError> {
        let way = read_address(url)?;
        let pool = pool(&way, options.connections.max(1), options.wait)?;
        let lane = pool_of_one(&way, options.wait)?;
        let Prepared {
            role,
            identity,
            syncs,
        } = prepare(&pool).await?;
        let manner = Manner {
            role,
            synchronous: match options.durability {
                // As the database is set, except where it would not wait for the disk.
                Durability::Full if syncs => "",
                Durability::Full => "on",
                Durability::Normal => "off",
            },
            lock_timeout: LOCK_TIMEOUT,
        };
        let wake = Wake::new(pool.clone(), way.clone());
        Ok(Self {
            shared: Arc::new(Shared {
                writer: Writer::new(lane, manner.clone(), options.patience, Arc::clone(&wake)),
                wake,
                pool,
                manner,
                patience: options.patience,
                config: way.config,
                identity,
            }),
        })
    }

    /// What tells this store from any other that was or will be at its address.
    pub fn identity(&self) -> &str {
        &self.shared.identity
    }

    /// Starts reading on behalf of an owner.
    pub(crate) async fn read(&self, owner: &Owner) -> Result<Tx, Fault> {
        self.begin(Purpose::Read, Behalf::Owner(owner)).await
    }

    /// Starts writing on behalf of an owner.
    pub(crate) async fn write(&self, owner: &Owner) -> Result<Tx, Fault> {
        self.begin(Purpose::Write, Behalf::Owner(owner)).await
    }

    /// Starts the store's own work.
    pub(crate) async fn serve(&self, purpose: Purpose) -> Result<Tx, Fault> {
        self.begin(purpose, Behalf::Servant).await
    }

    async fn begin(&self, purpose: Purpose, behalf: Behalf<'_>) -> Result<Tx, Fault> {
        let shared = &self.shared;
        Tx::begin(&shared.pool, &shared.manner, purpose, behalf).await
    }
}

/// How a database is reached.
#[derive(Clone)]
pub(crate) struct Way {
    pub(crate) config: Config,
    pub(crate) tls: Tls,
}

/// The address of a database, as every program of PostgreSQL's writes it.
fn read_address(url: &str) -> Result<Way, StoreError> {
    let wrong = |why: String| StoreError::Address {
        url: redacted(url),
        why,
    };
    let (plain, wanted) = Wanted::take_from(url).map_err(wrong)?;
    let mut config = Config::from_str(&plain).map_err(|error| wrong(chain(&error)))?;
    config.ssl_mode(wanted.mode(config.get_hosts()));
    let tls = wanted.tls().map_err(wrong)?;
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
    Ok(Way { config, tls })
}

/// An address without its password, to be shown.
pub fn redacted(url: &str) -> String {
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
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
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

fn pool(way: &Way, connections: usize, wait: Duration) -> Result<Pool, StoreError> {
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

fn pool_of_one(way: &Way, wait: Duration) -> Result<Pool, StoreError> {
    pool(way, 1, wait)
}

/// What is known of a store once it is ready for use.
struct Prepared {
    /// The role to act in.
    role: &'static str,
    /// Which store it is.
    identity: String,
    /// Whether the database waits for the disk when it commits, as it is set.
    syncs: bool,
}

/// Brings the schema up to date.
///
/// Row-level security does not hold for superusers and their like: whoever logs in as one
/// acts in the role that the schema's rights are given to.
async fn prepare(pool: &Pool) -> Result<Prepared, StoreError> {
    let failed = during("opening the store");
    let connected = pool.get().await;
    let mut client =
        connected.map_err(|error| Fault::no_connection("connecting to the database", error))?;
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
    Ok(Prepared {
        role,
        identity: crate::rows::get(&row, 0)?,
        syncs: crate::rows::get(&row, 1)?,
    })
}

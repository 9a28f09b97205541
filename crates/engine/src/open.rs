//! Parses store addresses and opens stores.

use std::path::PathBuf;
use std::sync::Arc;

use throughline_model::{Digest, Owner};
use throughline_postgres::PostgresStore;
use throughline_remote::{BearerToken, RemoteStore, ServerUrl, Timeouts};
use throughline_sqlite::{Durability, Options, SqliteStore};
use throughline_store::{MemoryStore, Store, StoreError};

use crate::retrieval::IndexHandle;
use crate::{Environment, SystemEnvironment};

/// The supported addresses, for error messages.
const SUPPORTED_ADDRESSES: &str = "sqlite:PATH, postgres://…, https://… or memory:";

/// The address of a store: `sqlite:PATH`, `postgres://…`, `https://…` or `memory:`.
#[derive(Clone, PartialEq, Eq)]
pub enum StoreAddress {
    /// A SQLite file.
    Sqlite(PathBuf),
    /// A PostgreSQL connection string. It may contain a password, which is never
    /// displayed.
    Postgres(String),
    /// A Throughline server.
    Server(ServerUrl),
    /// In memory, for the lifetime of the process.
    Memory,
}

impl std::str::FromStr for StoreAddress {
    type Err = StoreError;

    fn from_str(url: &str) -> Result<Self, StoreError> {
        let wrong = |why: &str| StoreError::InvalidUrl {
            url: url.to_owned(),
            why: why.to_owned(),
        };
        match url.split_once(':') {
            Some(("sqlite", path)) => {
                // Other programs write `sqlite:///absolute`.
                let path = path.strip_prefix("//").unwrap_or(path);
                if path.is_empty() {
                    return Err(wrong("there is no path after `sqlite:`"));
                }
                Ok(Self::Sqlite(PathBuf::from(path)))
            }
            Some(("memory", "")) => Ok(Self::Memory),
            Some(("memory", _)) => Err(wrong("nothing may follow `memory:`")),
            Some(("postgres" | "postgresql", rest)) if rest.starts_with("//") => {
                Ok(Self::Postgres(url.to_owned()))
            }
            Some(("postgres" | "postgresql", _)) => {
                Err(wrong("write it as postgres://USER@HOST/DATABASE"))
            }
            Some(("https" | "http", _)) => url.parse().map(Self::Server),
            Some((scheme, _)) => Err(wrong(&format!(
                "{scheme:?} is not a supported store type; use {SUPPORTED_ADDRESSES}"
            ))),
            None => Err(wrong(&format!(
                "it has no scheme; use {SUPPORTED_ADDRESSES}"
            ))),
        }
    }
}

impl std::fmt::Display for StoreAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Sqlite(path) => write!(f, "sqlite:{}", path.display()),
            Self::Postgres(url) => f.write_str(&throughline_postgres::redact_url(url)),
            Self::Server(server) => server.fmt(f),
            Self::Memory => f.write_str("memory:"),
        }
    }
}

impl std::fmt::Debug for StoreAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "StoreAddress({self})")
    }
}

/// Options for opening a store.
#[derive(Clone, Debug)]
pub struct OpenOptions {
    /// The owner to act as. By default the local owner or, with a server, the token's
    /// owner.
    pub owner: Option<Owner>,
    /// The token to authenticate with; `None` for a server on this machine that
    /// requires none.
    pub token: Option<BearerToken>,
    /// How durable an acknowledged write is.
    pub durability: Durability,
    /// The clock and source of randomness.
    pub environment: Arc<dyn Environment>,
    /// A folder for the index of a store that is not a local file. Without it, the
    /// index is temporary.
    pub cache_dir: Option<PathBuf>,
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self {
            owner: None,
            token: None,
            durability: Durability::Full,
            environment: Arc::new(SystemEnvironment),
            cache_dir: None,
        }
    }
}

impl OpenOptions {
    /// The owner to act as, for stores that do not determine it.
    fn owner_or_local(&self) -> Owner {
        self.owner.clone().unwrap_or_else(Owner::local)
    }

    /// The folder for the index of a store that has none beside it. Different stores at
    /// the same address get different folders.
    fn index_dir(&self, address: &StoreAddress, identity: &str) -> Option<PathBuf> {
        let digest = Digest::of(format!("{address} {identity}").as_bytes()).short();
        let cache = self.cache_dir.as_ref()?;
        Some(cache.join(format!("index-{digest}")))
    }
}

/// An open store.
pub(crate) struct OpenedStore {
    pub(crate) store: Arc<dyn Store>,
    /// The search index of the store.
    pub(crate) index: Arc<IndexHandle>,
    /// The owner to act as.
    pub(crate) owner: Owner,
}

/// Opens the store at an address.
pub(crate) async fn open_store(
    address: &StoreAddress,
    options: &OpenOptions,
) -> Result<OpenedStore, StoreError> {
    let durability = options.durability;
    let (store, index): (Arc<dyn Store>, _) = match address {
        StoreAddress::Memory => (Arc::new(MemoryStore::new()), IndexHandle::temporary()),
        StoreAddress::Sqlite(path) => {
            let store = SqliteStore::open(
                path,
                Options {
                    durability,
                    ..Options::default()
                },
            )?;
            (Arc::new(store), IndexHandle::beside_store(path))
        }
        StoreAddress::Server(server) => {
            let (token, owner) = (options.token.as_ref(), options.owner.as_ref());
            let store = RemoteStore::open(server, token, owner, Timeouts::default()).await?;
            let index = match store.identity() {
                // Several people may use one machine, each with access to their own
                // sessions.
                Some(identity) => IndexHandle::in_folder(
                    options.index_dir(address, &format!("{} {identity}", store.owner())),
                ),
                // The store is new and has nothing to index yet.
                None => IndexHandle::temporary(),
            };
            return Ok(OpenedStore {
                index,
                owner: store.owner().clone(),
                store: Arc::new(store),
            });
        }
        StoreAddress::Postgres(url) => {
            let postgres_options = throughline_postgres::Options {
                durability: match durability {
                    Durability::Full => throughline_postgres::Durability::Full,
                    Durability::Normal => throughline_postgres::Durability::Normal,
                },
                ..throughline_postgres::Options::default()
            };
            let store = PostgresStore::open(url, postgres_options).await?;
            let index =
                IndexHandle::in_postgres(&store, options.index_dir(address, store.identity()));
            (Arc::new(store), index)
        }
    };
    Ok(OpenedStore {
        store,
        index,
        owner: options.owner_or_local(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_parsed() {
        let read = |url: &str| url.parse::<StoreAddress>();
        assert_eq!(read("memory:").unwrap(), StoreAddress::Memory);
        assert_eq!(
            read("sqlite:a/b.db").unwrap(),
            StoreAddress::Sqlite("a/b.db".into())
        );
        assert_eq!(
            read("sqlite:///a.db").unwrap(),
            StoreAddress::Sqlite("/a.db".into())
        );
        let server = read("https://example.org/tl/").unwrap();
        assert_eq!(server.to_string(), "https://example.org/tl");
        for url in [
            "postgres://me:secret@host/db",
            "postgresql://me:secret@host/db",
        ] {
            let address = read(url).unwrap();
            assert_eq!(address, StoreAddress::Postgres(url.to_owned()));
            assert!(!format!("{address} {address:?}").contains("secret"));
        }
    }

    #[test]
    fn an_invalid_address_says_why() {
        for url in [
            "",
            "x.db",
            "sqlite:",
            "mysql://x",
            "memory:x",
            "postgres:db",
            "http://example.org",
            "https://token@example.org",
        ] {
            let error = url.parse::<StoreAddress>().unwrap_err().to_string();
            assert!(error.contains("is not a valid store address"), "{error}");
        }
    }
}

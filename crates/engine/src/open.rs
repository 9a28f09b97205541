//! The address of a store, and opening it.

use std::path::PathBuf;
use std::sync::Arc;

use throughline_model::{Digest, Owner};
use throughline_postgres::PostgresStore;
use throughline_remote::{BearerToken, RemoteStore, ServerUrl, Timeouts};
use throughline_sqlite::{Durability, Options, SqliteStore};
use throughline_store::{MemoryStore, Store, StoreError};

use crate::retrieval::IndexHandle;
use crate::{Environment, SystemEnvironment};

/// What an address may be, for whoever wrote another.
const SUPPORTED_ADDRESSES: &str = "sqlite:PATH, postgres://…, https://… or memory:";

/// Where a store is: `sqlite:PATH`, `postgres://…`, `https://…` or `memory:`.
#[derive(Clone, PartialEq, Eq)]
pub enum StoreAddress {
    /// One SQLite file.
    Sqlite(PathBuf),
    /// A PostgreSQL database, as its own programs write it. There may be a password in it,
    /// which is not shown.
    Postgres(String),
    /// A server that keeps it.
    Server(ServerUrl),
    /// Nowhere: it lasts as long as the program.
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
                // `sqlite:///absolute` is how other programs write it.
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
                Err(wrong("it is written postgres://USER@HOST/DATABASE"))
            }
            Some(("https" | "http", _)) => url.parse().map(Self::Server),
            Some((scheme, _)) => Err(wrong(&format!(
                "{scheme:?} is not a kind of store; use {SUPPORTED_ADDRESSES}"
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
        write!(f, "Address({self})")
    }
}

/// How to open a store, where the defaults will not do.
#[derive(Clone, Debug)]
pub struct OpenOptions {
    /// On whose behalf. Without it, of the local owner, or of whoever a server takes us for.
    pub owner: Option<Owner>,
    /// What is shown to a server. None for one on this machine that asks for none.
    pub token: Option<BearerToken>,
    /// How sure an acknowledgement is.
    pub durability: Durability,
    /// Where time and chance come from.
    pub environment: Arc<dyn Environment>,
    /// A folder for what models make of what is in a store elsewhere. Without it, that goes
    /// with the program.
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
    /// On whose behalf, where the store does not tell.
    fn owner_or_local(&self) -> Owner {
        self.owner.clone().unwrap_or_else(Owner::local)
    }

    /// A folder for the index of a store that has none beside it, where there may be one.
    /// Another store at the same address has another.
    fn index_dir(&self, address: &StoreAddress, identity: &str) -> Option<PathBuf> {
        let digest = Digest::of(format!("{address} {identity}").as_bytes()).short();
        let cache = self.cache_dir.as_ref()?;
        Some(cache.join(format!("index-{digest}")))
    }
}

/// A store that was opened.
pub(crate) struct OpenedStore {
    pub(crate) store: Arc<dyn Store>,
    /// Where its index is.
    pub(crate) index: Arc<IndexHandle>,
    /// On whose behalf.
    pub(crate) owner: Owner,
}

/// Opens a store.
pub(crate) async fn open_store(
    address: &StoreAddress,
    opening: &OpenOptions,
) -> Result<OpenedStore, StoreError> {
    let durability = opening.durability;
    let (store, shelf): (Arc<dyn Store>, _) = match address {
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
            let (token, wanted) = (opening.token.as_ref(), opening.owner.as_ref());
            let store = RemoteStore::open(server, token, wanted, Timeouts::default()).await?;
            let shelf = match store.identity() {
                // Several people may use one machine, and each reaches what is theirs.
                Some(which) => IndexHandle::in_folder(
                    opening.index_dir(address, &format!("{} {which}", store.owner())),
                ),
                // There is nothing to be found yet.
                None => IndexHandle::temporary(),
            };
            return Ok(OpenedStore {
                index: shelf,
                owner: store.owner().clone(),
                store: Arc::new(store),
            });
        }
        StoreAddress::Postgres(url) => {
            let options = throughline_postgres::Options {
                durability: match durability {
                    Durability::Full => throughline_postgres::Durability::Full,
                    Durability::Normal => throughline_postgres::Durability::Normal,
                },
                ..throughline_postgres::Options::default()
            };
            let store = PostgresStore::open(url, options).await?;
            let shelf =
                IndexHandle::in_postgres(&store, opening.index_dir(address, store.identity()));
            (Arc::new(store), shelf)
        }
    };
    Ok(OpenedStore {
        store,
        index: shelf,
        owner: opening.owner_or_local(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read() {
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
            assert!(error.contains("is not the address of a store"), "{error}");
        }
    }
}

//! The address of a store, and opening it.

use std::path::PathBuf;
use std::sync::Arc;

use throughline_model::{Digest, Owner};
use throughline_postgres::PostgresStore;
use throughline_remote::{RemoteStore, ServerUrl, Timing, TokenText};
use throughline_sqlite::{Durability, Options, SqliteStore};
use throughline_store::{MemoryStore, Store, StoreError};

use crate::recall::Shelf;
use crate::{SystemWorld, World};

/// What an address may be, for whoever wrote another.
const KINDS: &str = "sqlite:PATH, postgres://…, https://… or memory:";

/// Where a store is: `sqlite:PATH`, `postgres://…`, `https://…` or `memory:`.
#[derive(Clone, PartialEq, Eq)]
pub enum Address {
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

impl std::str::FromStr for Address {
    type Err = StoreError;

    fn from_str(url: &str) -> Result<Self, StoreError> {
        let wrong = |why: &str| StoreError::Address {
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
                "{scheme:?} is not a kind of store; use {KINDS}"
            ))),
            None => Err(wrong(&format!("it has no scheme; use {KINDS}"))),
        }
    }
}

impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Sqlite(path) => write!(f, "sqlite:{}", path.display()),
            Self::Postgres(url) => f.write_str(&throughline_postgres::redacted(url)),
            Self::Server(server) => server.fmt(f),
            Self::Memory => f.write_str("memory:"),
        }
    }
}

impl std::fmt::Debug for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Address({self})")
    }
}

/// How to open a store, where the defaults will not do.
#[derive(Clone, Debug)]
pub struct Opening {
    /// On whose behalf. Without it, of the local owner, or of whoever a server takes us for.
    pub owner: Option<Owner>,
    /// What is shown to a server. None for one on this machine that asks for none.
    pub token: Option<TokenText>,
    /// How sure an acknowledgement is.
    pub durability: Durability,
    /// Where time and chance come from.
    pub world: Arc<dyn World>,
    /// A folder for what models make of what is in a store elsewhere. Without it, that goes
    /// with the program.
    pub cache: Option<PathBuf>,
}

impl Default for Opening {
    fn default() -> Self {
        Self {
            owner: None,
            token: None,
            durability: Durability::Full,
            world: Arc::new(SystemWorld),
            cache: None,
        }
    }
}

impl Opening {
    /// On whose behalf, where the store does not tell.
    fn owner(&self) -> Owner {
        self.owner.clone().unwrap_or_else(Owner::local)
    }

    /// A folder for the index of a store that has none beside it, where there may be one.
    /// Another store at the same address has another.
    fn folder(&self, address: &Address, identity: &str) -> Option<PathBuf> {
        let digest = Digest::of(format!("{address} {identity}").as_bytes()).short();
        let cache = self.cache.as_ref()?;
        Some(cache.join(format!("index-{digest}")))
    }
}

/// A store that was opened.
pub(crate) struct Opened {
    pub(crate) store: Arc<dyn Store>,
    /// Where its index is.
    pub(crate) shelf: Arc<Shelf>,
    /// On whose behalf.
    pub(crate) owner: Owner,
}

/// Opens a store.
pub(crate) async fn store(address: &Address, opening: &Opening) -> Result<Opened, StoreError> {
    let durability = opening.durability;
    let (store, shelf): (Arc<dyn Store>, _) = match address {
        Address::Memory => (Arc::new(MemoryStore::new()), Shelf::passing()),
        Address::Sqlite(path) => {
            let store = SqliteStore::open(
                path,
                Options {
                    durability,
                    ..Options::default()
                },
            )?;
            (Arc::new(store), Shelf::beside(path))
        }
        Address::Server(server) => {
            let (token, wanted) = (opening.token.as_ref(), opening.owner.as_ref());
            let store = RemoteStore::open(server, token, wanted, Timing::default()).await?;
            let shelf = match store.identity() {
                // Several people may use one machine, and each reaches what is theirs.
                Some(which) => {
                    Shelf::apart(opening.folder(address, &format!("{} {which}", store.owner())))
                }
                // There is nothing to be found yet.
                None => Shelf::passing(),
            };
            return Ok(Opened {
                shelf,
                owner: store.owner().clone(),
                store: Arc::new(store),
            });
        }
        Address::Postgres(url) => {
            let options = throughline_postgres::Options {
                durability: match durability {
                    Durability::Full => throughline_postgres::Durability::Full,
                    Durability::Normal => throughline_postgres::Durability::Normal,
                },
                ..throughline_postgres::Options::default()
            };
            let store = PostgresStore::open(url, options).await?;
            let shelf = Shelf::within(&store, opening.folder(address, store.identity()));
            (Arc::new(store), shelf)
        }
    };
    Ok(Opened {
        store,
        shelf,
        owner: opening.owner(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read() {
        let read = |url: &str| url.parse::<Address>();
        assert_eq!(read("memory:").unwrap(), Address::Memory);
        assert_eq!(
            read("sqlite:a/b.db").unwrap(),
            Address::Sqlite("a/b.db".into())
        );
        assert_eq!(
            read("sqlite:///a.db").unwrap(),
            Address::Sqlite("/a.db".into())
        );
        let server = read("https://example.org/tl/").unwrap();
        assert_eq!(server.to_string(), "https://example.org/tl");
        for url in [
            "postgres://me:secret@host/db",
            "postgresql://me:secret@host/db",
        ] {
            let address = read(url).unwrap();
            assert_eq!(address, Address::Postgres(url.to_owned()));
            assert!(!format!("{address} {address:?}").contains("secret"));
        }
    }

    #[test]
    fn what_is_no_address_is_told_why() {
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
            let error = url.parse::<Address>().unwrap_err().to_string();
            assert!(error.contains("is not the address of a store"), "{error}");
        }
    }
}

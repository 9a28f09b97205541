//! The address of a store, and opening it.

use std::path::PathBuf;
use std::sync::Arc;

use throughline_model::{Digest, Owner};
use throughline_postgres::PostgresStore;
use throughline_sqlite::{Durability, Options, SqliteStore};
use throughline_store::{MemoryStore, Store, StoreError};

use crate::recall::Shelf;
use crate::{SystemWorld, World};

/// What an address may be, for whoever wrote another.
const KINDS: &str = "sqlite:PATH, postgres://… or memory:";

/// Where a store is: `sqlite:PATH`, `postgres://…` or `memory:`.
#[derive(Clone, PartialEq, Eq)]
pub enum Address {
    /// One SQLite file.
    Sqlite(PathBuf),
    /// A PostgreSQL database, as its own programs write it. There may be a password in it,
    /// which is not shown.
    Postgres(String),
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
    /// On whose behalf.
    pub owner: Owner,
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
            owner: Owner::local(),
            durability: Durability::Full,
            world: Arc::new(SystemWorld),
            cache: None,
        }
    }
}

/// Opens a store; tells where its index is.
pub(crate) async fn store(
    address: &Address,
    opening: &Opening,
) -> Result<(Arc<dyn Store>, Arc<Shelf>), StoreError> {
    let durability = opening.durability;
    Ok(match address {
        Address::Memory => (Arc::new(MemoryStore::new()), Shelf::passing()),
        Address::Sqlite(path) => {
            let store = SqliteStore::open(path, Options { durability })?;
            (Arc::new(store), Shelf::beside(path))
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
            let folder = opening.cache.as_ref().map(|cache| {
                // Another store at the same address has other passages.
                let which = format!("{address} {}", store.identity());
                let digest = Digest::of(which.as_bytes()).short();
                cache.join(format!("index-{digest}"))
            });
            let shelf = Shelf::within(&store, folder);
            (Arc::new(store), shelf)
        }
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
        ] {
            let error = url.parse::<Address>().unwrap_err().to_string();
            assert!(error.contains("is not the address of a store"), "{error}");
        }
    }
}

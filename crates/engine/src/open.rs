//! The address of a store, and opening it.

use std::path::PathBuf;
use std::sync::Arc;

use throughline_model::Owner;
use throughline_sqlite::{Durability, Options, SqliteStore};
use throughline_store::{MemoryStore, Store, StoreError};

use crate::{SystemWorld, World};

/// Where a store is: `sqlite:PATH` or `memory:`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// One SQLite file.
    Sqlite(PathBuf),
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
            Some((scheme, _)) => Err(wrong(&format!(
                "{scheme:?} is not a kind of store; use sqlite:PATH or memory:"
            ))),
            None => Err(wrong("it has no scheme; use sqlite:PATH or memory:")),
        }
    }
}

impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Sqlite(path) => write!(f, "sqlite:{}", path.display()),
            Self::Memory => f.write_str("memory:"),
        }
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
}

impl Default for Opening {
    fn default() -> Self {
        Self {
            owner: Owner::local(),
            durability: Durability::Full,
            world: Arc::new(SystemWorld),
        }
    }
}

pub(crate) fn store(
    address: &Address,
    durability: Durability,
) -> Result<Arc<dyn Store>, StoreError> {
    Ok(match address {
        Address::Memory => Arc::new(MemoryStore::new()),
        Address::Sqlite(path) => Arc::new(SqliteStore::open(path, Options { durability })?),
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
    }

    #[test]
    fn what_is_no_address_is_told_why() {
        for url in ["", "x.db", "sqlite:", "mysql://x", "memory:x"] {
            let error = url.parse::<Address>().unwrap_err().to_string();
            assert!(error.contains("is not the address of a store"), "{error}");
        }
    }
}

//! Whose sessions these are.

use std::str::FromStr;
use std::sync::Arc;

use crate::name::serde_via_str;
use crate::{IdError, SessionId};

/// Whose sessions these are. Every question to a store is asked on behalf of one.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Owner(Arc<str>);

impl Owner {
    /// The owner of everything on a machine that serves one person.
    pub fn local() -> Self {
        Self("local".into())
    }

    /// The owner as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// This owner's session of that id, whether or not it exists.
    pub fn session(&self, id: &SessionId) -> SessionRef {
        SessionRef {
            owner: self.clone(),
            id: id.clone(),
        }
    }
}

impl FromStr for Owner {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        // The same limits as a key: both name something outside, for a machine.
        text.parse::<crate::Key>()
            .map(|key| Self(key.as_str().into()))
    }
}

serde_via_str!(Owner);

/// One session of one owner: how stores are told which one is meant.
///
/// There is no way to name a session without saying whose it is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SessionRef {
    /// Whose.
    pub owner: Owner,
    /// Which.
    pub id: SessionId,
}

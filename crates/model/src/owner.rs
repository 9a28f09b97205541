//! The owner of a set of sessions.

use std::str::FromStr;
use std::sync::Arc;

use crate::name::serde_via_str;
use crate::{IdError, SessionId};

/// The owner of a set of sessions. Every store operation is scoped to one owner.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Owner(Arc<str>);

impl Owner {
    /// The owner of all sessions on a single-user machine.
    pub fn local() -> Self {
        Self("local".into())
    }

    /// The owner as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Refers to this owner's session with the given id, whether or not it exists.
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
        // The same limits as for a key: both are external identifiers.
        text.parse::<crate::Key>()
            .map(|key| Self(key.as_str().into()))
    }
}

serde_via_str!(Owner);

/// A reference to one session of one owner, as store operations take it.
///
/// A session cannot be referred to without its owner.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SessionRef {
    /// The session's owner.
    pub owner: Owner,
    /// The session's id.
    pub id: SessionId,
}

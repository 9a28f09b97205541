//! The relation of a session to the session it derives from.

use serde::{Deserialize, Serialize};

use crate::{Seq, SessionId};

/// How a session came into being.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "from", rename_all = "snake_case")]
pub enum Lineage {
    /// Started empty.
    #[default]
    Root,
    /// Forked: shares another session's entries up to `at`.
    Forked {
        /// The session forked from.
        session: SessionId,
        /// The last shared entry.
        at: Seq,
    },
    /// Continued from another session's last summary (a summary chain).
    Continued {
        /// The session continued from.
        session: SessionId,
    },
}

impl Lineage {
    /// The parent session, if any.
    pub fn parent(&self) -> Option<&SessionId> {
        match self {
            Self::Root => None,
            Self::Forked { session, .. } | Self::Continued { session } => Some(session),
        }
    }
}

//! Where a session came from.

use serde::{Deserialize, Serialize};

use crate::{Seq, SessionId};

/// Where a session came from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "from", rename_all = "snake_case")]
pub enum Lineage {
    /// From nothing.
    #[default]
    Root,
    /// From another session's entries up to `at`, which it shares.
    Forked {
        /// The session forked from.
        session: SessionId,
        /// The last entry shared.
        at: Seq,
    },
    /// From another session's last summary: the n−1 chain.
    Continued {
        /// The session continued from.
        session: SessionId,
    },
}

impl Lineage {
    /// The session this one came from, if any.
    pub fn parent(&self) -> Option<&SessionId> {
        match self {
            Self::Root => None,
            Self::Forked { session, .. } | Self::Continued { session } => Some(session),
        }
    }
}

//! The errors of the session API.

use throughline_model::{IdError, Key, NameError, Owner, Seq, SessionId, SessionInfo, SessionSpec};
use throughline_store::{ErrorKind, StoreError};

use crate::MemoryError;

/// An error of the session API. Nothing that was acknowledged is lost by any of them.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The store failed or refused the operation.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// No session matches what the user typed.
    #[error("no session matches {0:?}")]
    NoMatch(String),
    /// There are no sessions.
    #[error("there are no sessions yet")]
    NoSessions,
    /// The number is not in the last listing.
    #[error("there is no number {number} in the last listing, which had {listed}")]
    NotListed {
        /// The number typed.
        number: usize,
        /// How many sessions were listed.
        listed: usize,
    },
    /// Several sessions match what the user typed.
    #[error("{0}")]
    Ambiguous(Box<AmbiguousMatch>),
    /// The specification is the path of a transcript, which the caller must read
    /// itself.
    #[error("{0} is the path of a transcript; use the session id in that file")]
    IsTranscriptPath(SessionSpec),
    /// Invalid name or tag.
    #[error(transparent)]
    Name(#[from] NameError),
    /// Invalid id or key.
    #[error(transparent)]
    Id(#[from] IdError),
    /// The key has the prefix reserved for internal sessions.
    #[error("the key {0:?} is reserved: keys that begin with {own:?} are for internal use", own = Key::INTERNAL_PREFIX)]
    ReservedKey(Key),
    /// The owner is a user of a service, which cannot have a token of its own.
    #[error("a token cannot be issued for {0:?}: {sep:?} separates a service from its users", sep = Owner::SERVICE_SEPARATOR)]
    OwnerOfService(Owner),
    /// A fact is invalid or does not exist.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// There is no such pin.
    #[error("nothing is pinned under {0:?}")]
    NoSuchPin(String),
    /// There is no checkpoint to undo.
    #[error("session {0} has no checkpoint to undo")]
    NoCheckpoint(SessionId),
    /// The session is not a fork, so there is no session to merge it into.
    #[error("session {0} is not a fork")]
    NoOrigin(SessionId),
    /// There is no summary to continue from.
    #[error("session {0} has no summary to continue from")]
    NoSummary(SessionId),
    /// The request cannot be built.
    #[error(transparent)]
    Request(#[from] throughline_context::RequestError),
    /// The policy is invalid.
    #[error(transparent)]
    Policy(#[from] throughline_context::PolicyError),
    /// The session is not a fork of this one.
    #[error("session {fork} was not forked from {into}")]
    NotAFork {
        /// The session to merge.
        fork: SessionId,
        /// The session to merge it into.
        into: SessionId,
    },
    /// Both sessions have changed since the fork.
    #[error("session {into} has changed since {fork} was forked from it at entry {at}")]
    Diverged {
        /// The session to merge.
        fork: SessionId,
        /// The session to merge it into.
        into: SessionId,
        /// The entry at which they forked.
        at: Seq,
    },
    /// The search index failed.
    #[error(transparent)]
    Recall(#[from] throughline_recall::RecallError),
    /// The search query is invalid.
    #[error(transparent)]
    Search(#[from] throughline_recall::ParseError),
    /// There is no project with this name.
    #[error("unknown project {0:?}")]
    NoSuchProject(String),
    /// A session cannot be merged into itself.
    #[error("session {0} cannot be merged into itself")]
    MergeIntoSelf(SessionId),
}

/// Several sessions match what the user typed.
#[derive(Debug, thiserror::Error)]
#[error("{text:?} matches {} sessions", .candidates.len())]
pub struct AmbiguousMatch {
    /// What the user typed.
    pub text: String,
    /// The matching sessions, latest activity first.
    pub candidates: Vec<SessionInfo>,
}

impl Error {
    /// Returns the kind of the failure.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Store(error) => error.kind(),
            Self::Memory(error) => error.kind(),
            Self::NoMatch(_)
            | Self::NoSessions
            | Self::NotListed { .. }
            | Self::NoSuchPin(_)
            | Self::NoSuchProject(_)
            | Self::NoSummary(_)
            | Self::NoCheckpoint(_) => ErrorKind::NotFound,
            Self::Diverged { .. } => ErrorKind::Conflict,
            Self::Recall(error) => match error.kind() {
                throughline_recall::ErrorKind::Invalid => ErrorKind::Invalid,
                throughline_recall::ErrorKind::Rebuild => ErrorKind::Damaged,
                throughline_recall::ErrorKind::Unavailable => ErrorKind::Unavailable,
            },
            Self::Ambiguous(_)
            | Self::IsTranscriptPath(_)
            | Self::Name(_)
            | Self::Id(_)
            | Self::ReservedKey(_)
            | Self::OwnerOfService(_)
            | Self::NoOrigin(_)
            | Self::NotAFork { .. }
            | Self::Request(_)
            | Self::Search(_)
            | Self::Policy(_)
            | Self::MergeIntoSelf(_) => ErrorKind::Invalid,
        }
    }
}

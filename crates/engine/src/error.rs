//! What can go wrong for whoever uses sessions.

use throughline_model::{IdError, Key, NameError, Owner, Seq, SessionId, SessionInfo, SessionSpec};
use throughline_store::{ErrorKind, StoreError};

use crate::MemoryError;

/// What can go wrong. Nothing that was acknowledged is lost by any of it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The store's own word.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Nothing answers to what was typed.
    #[error("no session answers to {0:?}")]
    NoMatch(String),
    /// There is no session at all.
    #[error("there are no sessions yet")]
    NoSessions,
    /// The last listing is shorter.
    #[error("there is no number {number} in the last listing, which had {listed}")]
    NotListed {
        /// The number typed.
        number: usize,
        /// How many sessions were listed.
        listed: usize,
    },
    /// Several sessions answer to what was typed.
    #[error("{0}")]
    Ambiguous(Box<AmbiguousMatch>),
    /// What was typed names a transcript, which only a program can read.
    #[error("{0} is a transcript's path; read it and use the session id in it")]
    IsTranscriptPath(SessionSpec),
    /// A bad name or tag.
    #[error(transparent)]
    Name(#[from] NameError),
    /// A bad id or key.
    #[error(transparent)]
    Id(#[from] IdError),
    /// A key that only the program itself may use.
    #[error("the key {0:?} is reserved: keys that begin with {own:?} are the program's own", own = Key::INTERNAL_PREFIX)]
    ReservedKey(Key),
    /// A name that could be a user of a service.
    #[error("{0:?} cannot have a token: a {sep:?} stands between a service and its users", sep = Owner::SERVICE_SEPARATOR)]
    OwnerOfService(Owner),
    /// Something is wrong with a fact.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// Nothing is pinned there.
    #[error("nothing is pinned under {0:?}")]
    NoSuchPin(String),
    /// There is nothing to undo.
    #[error("session {0} has no checkpoint to take back")]
    NoCheckpoint(SessionId),
    /// There is no session to merge it into.
    #[error("session {0} is not a fork")]
    NoOrigin(SessionId),
    /// There is nothing to continue from.
    #[error("session {0} has no summary to continue from")]
    NoSummary(SessionId),
    /// The request cannot be built.
    #[error(transparent)]
    Request(#[from] throughline_context::RequestError),
    /// The policy makes no sense.
    #[error(transparent)]
    Policy(#[from] throughline_context::PolicyError),
    /// The fork is not one of this session.
    #[error("session {fork} was not forked from {into}")]
    NotAFork {
        /// The session to merge.
        fork: SessionId,
        /// The session to merge it into.
        into: SessionId,
    },
    /// Both have gone on since the fork.
    #[error("session {into} has moved since {fork} was forked from it at entry {at}")]
    Diverged {
        /// The session to merge.
        fork: SessionId,
        /// The session to merge it into.
        into: SessionId,
        /// Where they parted.
        at: Seq,
    },
    /// The index cannot serve.
    #[error(transparent)]
    Recall(#[from] throughline_recall::RecallError),
    /// What was searched for cannot be understood.
    #[error(transparent)]
    Search(#[from] throughline_recall::ParseError),
    /// No project is called that.
    #[error("no project is called {0:?}")]
    NoSuchProject(String),
    /// A session cannot be merged into itself.
    #[error("session {0} cannot be merged into itself")]
    MergeIntoSelf(SessionId),
}

/// Several sessions answer to what was typed.
#[derive(Debug, thiserror::Error)]
#[error("{text:?} may mean {} sessions", .candidates.len())]
pub struct AmbiguousMatch {
    /// What was typed.
    pub text: String,
    /// The sessions it may mean, latest activity first.
    pub candidates: Vec<SessionInfo>,
}

impl Error {
    /// What kind of failure this is.
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

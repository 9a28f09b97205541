//! What can go wrong between a client and its server.

use throughline_model::Owner;
use throughline_store::{BoxError, ErrorKind, StoreError};

/// What can go wrong between a client and its server.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RemoteError {
    /// Nobody answers there.
    #[error("the server {server} cannot be reached")]
    Unreachable {
        /// The server.
        server: String,
        /// Why.
        source: BoxError,
    },
    /// The connection broke, as often as it was tried.
    #[error("the server {server} gave no answer")]
    NoResponse {
        /// The server.
        server: String,
        /// Why.
        source: BoxError,
    },
    /// There is no token to show.
    #[error("the server {server} asks for a token")]
    TokenRequired {
        /// The server.
        server: String,
    },
    /// The token counts for nothing there.
    #[error(
        "the server {server} does not know the token: it is another's, has ended or was taken back"
    )]
    TokenRefused {
        /// The server.
        server: String,
    },
    /// The token is not for whom it was to be used.
    #[error("the token for {server} is {holder}'s and not {wanted}'s")]
    WrongOwner {
        /// The server.
        server: String,
        /// Whose it is.
        holder: Owner,
        /// On whose behalf it was to be used.
        wanted: Owner,
    },
    /// It is something else that answers there.
    #[error("what answers at {server} is not a Throughline server: {what}")]
    NotThroughline {
        /// The server.
        server: String,
        /// What it said.
        what: String,
    },
    /// It speaks another version.
    #[error(
        "the server {server} (Throughline {program}) speaks another version than this one does"
    )]
    UnsupportedVersion {
        /// The server.
        server: String,
        /// The version of its program.
        program: String,
    },
    /// It takes less at once.
    #[error("{bytes} bytes are too much for the server {server}, which takes {max} at once")]
    TooLarge {
        /// The server.
        server: String,
        /// How much it is.
        bytes: u64,
        /// How much it may be.
        max: u64,
    },
    /// It refuses, in its own words.
    #[error("the server {server} refuses: {detail}")]
    Refused {
        /// The server.
        server: String,
        /// Why.
        detail: String,
        /// What kind of refusal it is.
        kind: ErrorKind,
    },
    /// What it answered makes no sense.
    #[error("what the server {server} answered to {call} cannot be understood")]
    InvalidResponse {
        /// The server.
        server: String,
        /// What it was asked.
        call: String,
        /// Why.
        source: BoxError,
    },
    /// The client cannot be set up.
    #[error("no connection can be made from here")]
    ClientSetup(#[source] BoxError),
}

impl RemoteError {
    /// What kind of failure this is.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Unreachable { .. } | Self::NoResponse { .. } | Self::ClientSetup(_) => {
                ErrorKind::Unavailable
            }
            Self::TokenRequired { .. }
            | Self::TokenRefused { .. }
            | Self::WrongOwner { .. }
            | Self::NotThroughline { .. }
            | Self::TooLarge { .. }
            | Self::UnsupportedVersion { .. } => ErrorKind::Invalid,
            Self::InvalidResponse { .. } => ErrorKind::Damaged,
            Self::Refused { kind, .. } => *kind,
        }
    }
}

impl From<RemoteError> for StoreError {
    fn from(error: RemoteError) -> Self {
        Self::Remote {
            kind: error.kind(),
            message: error.to_string(),
            source: Some(error.into()),
        }
    }
}

//! Errors between a client and its server.

use throughline_model::Owner;
use throughline_store::{BoxError, ErrorKind, StoreError};

/// Errors between a client and its server.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RemoteError {
    /// The server cannot be reached.
    #[error("the server {server} cannot be reached")]
    Unreachable {
        /// The server.
        server: String,
        /// The cause.
        source: BoxError,
    },
    /// The connection broke on every attempt.
    #[error("the server {server} did not respond")]
    NoResponse {
        /// The server.
        server: String,
        /// The cause.
        source: BoxError,
    },
    /// No token was given, and the server requires one.
    #[error("the server {server} requires a token")]
    TokenRequired {
        /// The server.
        server: String,
    },
    /// The server does not accept the token.
    #[error("the server {server} does not accept the token: it is unknown, expired or revoked")]
    TokenRefused {
        /// The server.
        server: String,
    },
    /// The token belongs to another owner than the requested one.
    #[error("the token for {server} belongs to {holder}, not to {wanted}")]
    WrongOwner {
        /// The server.
        server: String,
        /// The owner of the token.
        holder: Owner,
        /// The owner that was requested.
        wanted: Owner,
    },
    /// Another program answers at the address.
    #[error("{server} is not a Throughline server: {what}")]
    NotThroughline {
        /// The server.
        server: String,
        /// How it responded.
        what: String,
    },
    /// The server supports no protocol version that this client knows.
    #[error(
        "the server {server} (Throughline {program}) does not support this version of the client"
    )]
    UnsupportedVersion {
        /// The server.
        server: String,
        /// The version of the server program.
        program: String,
    },
    /// The request is larger than the server accepts.
    #[error(
        "{bytes} bytes are too large for the server {server}, which accepts up to {max} per request"
    )]
    TooLarge {
        /// The server.
        server: String,
        /// The size of the request.
        bytes: u64,
        /// The largest size accepted.
        max: u64,
    },
    /// The server refused the request.
    #[error("the server {server} refused the request: {detail}")]
    Refused {
        /// The server.
        server: String,
        /// The server's explanation.
        detail: String,
        /// The kind of refusal.
        kind: ErrorKind,
    },
    /// The answer could not be decoded.
    #[error("the response of the server {server} to {call} cannot be decoded")]
    InvalidResponse {
        /// The server.
        server: String,
        /// The call.
        call: String,
        /// The cause.
        source: BoxError,
    },
    /// The HTTP client could not be set up.
    #[error("the HTTP client could not be set up")]
    ClientSetup(#[source] BoxError),
}

impl RemoteError {
    /// Returns the kind of the failure.
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

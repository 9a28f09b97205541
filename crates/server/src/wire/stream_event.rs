//! OpenAPI schema of server-sent events, which are written by hand elsewhere.

use utoipa::ToSchema;

/// One event of a stream.
#[derive(Debug, ToSchema)]
#[allow(dead_code, reason = "exists only for its OpenAPI schema")]
pub(crate) struct StreamedEvent {
    /// Position in the stream: the value for `Last-Event-ID`.
    id: Option<String>,
    /// Event name.
    event: Option<String>,
    /// Event data, as JSON.
    data: Option<String>,
}

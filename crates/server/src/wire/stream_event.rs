//! Events as they are described; they are written by hand.

use utoipa::ToSchema;

/// One event of a stream.
#[derive(Debug, ToSchema)]
#[allow(dead_code, reason = "only described")]
pub(crate) struct StreamedEvent {
    /// Where in the stream it is: what `Last-Event-ID` takes.
    id: Option<String>,
    /// What it is called.
    event: Option<String>,
    /// What it says, as JSON.
    data: Option<String>,
}

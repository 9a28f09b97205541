//! One event, encoded once for all its subscribers.

use bytes::Bytes;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use throughline::{Body, Change, ChangeKind, Entry, Position, SessionId};

/// Maximum size of an entry included in its event; larger ones must be fetched.
const MAX_INLINE_ENTRY: usize = 64 * 1024;

/// An encoded event.
#[derive(Debug)]
pub(crate) struct EventFrame {
    /// Position in the feed; `None` for transient events.
    pub(crate) position: Option<Position>,
    /// Event name, such as `session:updated`.
    pub(crate) name: &'static str,
    /// Action, such as `message_added`, or the event name.
    pub(crate) action: String,
    /// Encoded as a server-sent event.
    pub(crate) sse: Bytes,
    /// Encoded as a WebSocket message.
    pub(crate) json: String,
}

#[derive(Serialize)]
struct SocketMessage<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<Position>,
    event: &'a str,
    data: &'a RawValue,
}

/// Event data of a change.
#[derive(Serialize)]
struct ChangeEvent<'a> {
    session: &'a SessionId,
    action: &'a str,
    position: Position,
    #[serde(skip_serializing_if = "Option::is_none")]
    seq: Option<throughline::Seq>,
    #[serde(skip_serializing_if = "Option::is_none")]
    entry: Option<&'a RawValue>,
    /// Whether the entry is too large to be included and must be fetched.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    fetch: bool,
}

impl EventFrame {
    /// Creates a transient event, which is not stored.
    pub(crate) fn transient(name: &'static str, data: &impl Serialize) -> Self {
        Self::new(None, name, name.to_owned(), data)
    }

    /// Creates an event at a feed position that is not itself a change.
    pub(crate) fn at_position(
        position: Position,
        name: &'static str,
        data: &impl Serialize,
    ) -> Self {
        Self::new(Some(position), name, name.to_owned(), data)
    }

    /// Creates the event of a change.
    pub(crate) fn from_change(change: &Change) -> Self {
        let mut entry = None;
        let mut seq = None;
        let (name, action) = match &change.kind {
            ChangeKind::Created => (SESSION_UPDATED, "created".to_owned()),
            ChangeKind::Erased(at) => {
                seq = Some(*at);
                (SESSION_UPDATED, "erased".to_owned())
            }
            ChangeKind::Trashed => (SESSION_UPDATED, "deleted".to_owned()),
            ChangeKind::Restored => (SESSION_UPDATED, "restored".to_owned()),
            ChangeKind::Removed => (SESSION_UPDATED, "removed".to_owned()),
            ChangeKind::Appended(stored) => {
                seq = Some(stored.seq);
                match stored.decode() {
                    Ok(decoded) => {
                        let naming = event_name_and_action(&decoded);
                        entry = Some(decoded);
                        naming
                    }
                    Err(_) => (SESSION_UPDATED, "damaged".to_owned()),
                }
            }
            _ => (SESSION_UPDATED, "changed".to_owned()),
        };
        let written = entry.as_ref().and_then(|entry| to_raw_value(entry).ok());
        let fetch = written
            .as_ref()
            .is_some_and(|raw| raw.get().len() > MAX_INLINE_ENTRY);
        let event = ChangeEvent {
            session: &change.session,
            action: &action,
            position: change.position,
            seq,
            entry: written.as_deref().filter(|_| !fetch),
            fetch,
        };
        Self::new(Some(change.position), name, action.clone(), &event)
    }

    fn new(
        position: Option<Position>,
        name: &'static str,
        action: String,
        data: &impl Serialize,
    ) -> Self {
        let data = to_raw_value(data).unwrap_or_else(|_| RawValue::NULL.to_owned());
        let message = SocketMessage {
            id: position,
            event: name,
            data: &data,
        };
        let json = serde_json::to_string(&message).unwrap_or_default();
        let id = position.map_or_else(String::new, |at| format!("id: {at}\n"));
        let sse = format!("{id}event: {name}\ndata: {data}\n\n");
        Self {
            position,
            name,
            action,
            sse: sse.into(),
            json,
        }
    }
}

/// The event for everything without a more specific name.
const SESSION_UPDATED: &str = "session:updated";

/// The event name and action for an entry.
fn event_name_and_action(entry: &Entry) -> (&'static str, String) {
    match &entry.body {
        Body::Message(_) => (SESSION_UPDATED, "message_added".to_owned()),
        Body::Checkpoint(_) => ("session:compaction-complete", "compacted".to_owned()),
        Body::CheckpointRetracted { .. } => (SESSION_UPDATED, "compaction_undone".to_owned()),
        body => (SESSION_UPDATED, body.kind().to_owned()),
    }
}

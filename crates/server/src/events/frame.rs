//! One event, written once for all who read it.

use bytes::Bytes;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use throughline::{Body, Change, ChangeKind, Entry, Position, SessionId};

/// The largest entry that is part of its event; larger ones have to be fetched.
const MAX_INLINE_ENTRY: usize = 64 * 1024;

/// An event.
#[derive(Debug)]
pub(crate) struct EventFrame {
    /// Where in the feed it is; none for what is not kept.
    pub(crate) position: Option<Position>,
    /// Its name: `session:updated`.
    pub(crate) name: &'static str,
    /// What it tells of: `message_added`, or its name again.
    pub(crate) action: String,
    /// As server-sent events write it.
    pub(crate) sse: Bytes,
    /// As a message of a WebSocket.
    pub(crate) json: String,
}

#[derive(Serialize)]
struct SocketMessage<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<Position>,
    event: &'a str,
    data: &'a RawValue,
}

/// What is told of a change.
#[derive(Serialize)]
struct ChangeEvent<'a> {
    session: &'a SessionId,
    action: &'a str,
    position: Position,
    #[serde(skip_serializing_if = "Option::is_none")]
    seq: Option<throughline::Seq>,
    #[serde(skip_serializing_if = "Option::is_none")]
    entry: Option<&'a RawValue>,
    /// Whether the entry is too large to be part of this.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    fetch: bool,
}

impl EventFrame {
    /// An event that is not kept.
    pub(crate) fn transient(name: &'static str, data: &impl Serialize) -> Self {
        Self::new(None, name, name.to_owned(), data)
    }

    /// An event at a place in the feed that is no change itself.
    pub(crate) fn at_position(
        position: Position,
        name: &'static str,
        data: &impl Serialize,
    ) -> Self {
        Self::new(Some(position), name, name.to_owned(), data)
    }

    /// The event of a change.
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
                        let told = event_name_and_action(&decoded);
                        entry = Some(decoded);
                        told
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
        let told = ChangeEvent {
            session: &change.session,
            action: &action,
            position: change.position,
            seq,
            entry: written.as_deref().filter(|_| !fetch),
            fetch,
        };
        Self::new(Some(change.position), name, action.clone(), &told)
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

/// The event of everything that is not named otherwise.
const SESSION_UPDATED: &str = "session:updated";

/// What the event of an entry is called, and what it tells of.
fn event_name_and_action(entry: &Entry) -> (&'static str, String) {
    match &entry.body {
        Body::Message(_) => (SESSION_UPDATED, "message_added".to_owned()),
        Body::Checkpoint(_) => ("session:compaction-complete", "compacted".to_owned()),
        Body::CheckpointRetracted { .. } => (SESSION_UPDATED, "compaction_undone".to_owned()),
        body => (SESSION_UPDATED, body.kind().to_owned()),
    }
}

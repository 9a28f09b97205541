//! An imported record, optionally with its encoded payload.

use throughline_model::{EntryIdentity, ImportEvent, IncomingEntry, IncomingItem, IncomingSession};
use throughline_store::{EncodedPayload, encode_body};

/// A record to import.
///
/// Readers may encode its payload in advance: that needs no store and can be done in
/// parallel with the import.
#[derive(Clone, Debug)]
pub struct ImportRecord {
    pub(super) incoming: IncomingItem,
    pub(super) encoded: Option<EncodedPayload>,
}

impl ImportRecord {
    /// Creates a record and encodes its payload.
    pub fn with_encoding(incoming: IncomingItem) -> Self {
        let encoded = match &incoming {
            IncomingItem::Entry(entry) => encode_entry(entry),
            IncomingItem::Session(_) | IncomingItem::Blob(_) | IncomingItem::Skipped(_) => None,
        };
        Self { incoming, encoded }
    }

    /// The item to import.
    pub fn incoming(&self) -> &IncomingItem {
        &self.incoming
    }

    /// The session, if the record is one, so that callers can add what the reader does
    /// not know.
    pub fn session_mut(&mut self) -> Option<&mut IncomingSession> {
        match &mut self.incoming {
            IncomingItem::Session(session) => Some(session),
            IncomingItem::Entry(_) | IncomingItem::Blob(_) | IncomingItem::Skipped(_) => None,
        }
    }
}

impl From<IncomingItem> for ImportRecord {
    fn from(incoming: IncomingItem) -> Self {
        Self {
            incoming,
            encoded: None,
        }
    }
}

/// Encodes an entry's payload, if that does not depend on other entries. Encoding
/// errors are reported when the entry is appended.
fn encode_entry(entry: &IncomingEntry) -> Option<EncodedPayload> {
    let ImportEvent::Body(body) = &entry.event else {
        return None;
    };
    encode_body(body, entry.author.as_deref(), external_id(entry), None).ok()
}

/// The id that the other system gave the entry.
pub(super) fn external_id(entry: &IncomingEntry) -> Option<&str> {
    match &entry.identity {
        EntryIdentity::External(id) => Some(id),
        EntryIdentity::Position(_) | EntryIdentity::Content => None,
    }
}

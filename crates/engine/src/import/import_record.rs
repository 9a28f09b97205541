//! What comes in, and what was found out about it on the way.

use throughline_model::{EntryIdentity, ImportEvent, IncomingEntry, IncomingItem, IncomingSession};
use throughline_store::{EncodedPayload, encode_body};

/// Something that comes in.
///
/// What it will be stored as can be found out by whoever reads it: that needs no store, and
/// whoever has just read it has it at hand.
#[derive(Clone, Debug)]
pub struct ImportRecord {
    pub(super) incoming: IncomingItem,
    pub(super) encoded: Option<EncodedPayload>,
}

impl ImportRecord {
    /// Something that comes in, already as it will be stored.
    pub fn with_encoding(incoming: IncomingItem) -> Self {
        let encoded = match &incoming {
            IncomingItem::Entry(entry) => encode_entry(entry),
            IncomingItem::Session(_) | IncomingItem::Blob(_) | IncomingItem::Skipped(_) => None,
        };
        Self { incoming, encoded }
    }

    /// What it is.
    pub fn incoming(&self) -> &IncomingItem {
        &self.incoming
    }

    /// The session that it is, of which more may be known than whoever read it could tell.
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

/// What an entry will be stored as, where that is known without the others. If it cannot be
/// encoded, whoever appends it is told why.
fn encode_entry(entry: &IncomingEntry) -> Option<EncodedPayload> {
    let ImportEvent::Body(body) = &entry.event else {
        return None;
    };
    encode_body(body, entry.author.as_deref(), external_id(entry), None).ok()
}

/// What its system calls an entry.
pub(super) fn external_id(entry: &IncomingEntry) -> Option<&str> {
    match &entry.identity {
        EntryIdentity::External(own) => Some(own),
        EntryIdentity::Position(_) | EntryIdentity::Content => None,
    }
}

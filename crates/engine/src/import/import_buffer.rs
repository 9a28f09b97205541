//! What is gathered for one session until it is appended.

use std::collections::HashMap;

use throughline_model::{Body, Digest, EntryIdentity, ImportEvent, IncomingEntry, IncomingSession};
use throughline_store::EncodedPayload;

use super::pending_entry::{PendingEntry, content_bytes};
use super::resolve_target;
use super::session_import::SessionImport;

/// What is gathered for one session.
#[derive(Debug)]
pub(super) struct ImportBuffer {
    /// What it is to meet; away while entries are made ready to be appended.
    pub(super) import: Option<SessionImport>,
    pub(super) pending: Vec<PendingEntry>,
    /// How often each entry without an id of its own has come.
    content_counts: HashMap<Digest, u32>,
}

impl ImportBuffer {
    pub(super) fn new(session: IncomingSession) -> Self {
        Self {
            import: Some(SessionImport::new(session)),
            pending: Vec::new(),
            content_counts: HashMap::new(),
        }
    }

    /// What it is to meet, if there is something to be done: entries to append, or an append
    /// under way to wait for.
    pub(super) fn take_import(&mut self) -> Option<SessionImport> {
        let meeting = self.import.as_mut()?;
        if self.pending.is_empty() && !meeting.is_busy() {
            // Nothing has come for a while: what makes it fast to go on is let go.
            meeting.release_id_cache();
            return None;
        }
        self.import.take()
    }

    /// Takes an entry, which waits until the next append.
    pub(super) fn push(&mut self, entry: Box<IncomingEntry>, encoded: Option<EncodedPayload>) {
        let mut times = 0;
        if entry.identity == EntryIdentity::Content
            && let Some(content) = content_bytes(&entry)
        {
            // The same words may be said twice; the second time is another message.
            let seen = self.content_counts.entry(Digest::of(&content)).or_default();
            *seen += 1;
            times = *seen;
        }
        if let ImportEvent::Titled { title, .. } = &entry.event
            && resolve_target::name_from_title(title).is_some_and(|name| name.as_str() != title)
        {
            // A name has no capitals and no spaces; the title keeps them.
            let identity = match &entry.identity {
                EntryIdentity::External(id) | EntryIdentity::Position(id) => {
                    EntryIdentity::Position(format!("{id}/title"))
                }
                EntryIdentity::Content => EntryIdentity::Content,
            };
            let description = Some(title.clone());
            let described = IncomingEntry {
                identity,
                event: ImportEvent::Body(Body::Described { description }),
                ..(*entry).clone()
            };
            self.pending
                .push(PendingEntry::new(Box::new(described), 0, None));
        }
        self.pending.push(PendingEntry::new(entry, times, encoded));
    }
}

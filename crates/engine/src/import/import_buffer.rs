//! Buffers the entries of one session until they are appended.

use std::collections::HashMap;

use throughline_model::{Body, Digest, EntryIdentity, ImportEvent, IncomingEntry, IncomingSession};
use throughline_store::EncodedPayload;

use super::pending_entry::{PendingEntry, content_bytes};
use super::resolve_target;
use super::session_import::SessionImport;

/// The buffered entries of one session.
#[derive(Debug)]
pub(super) struct ImportBuffer {
    /// The state of the import; `None` while entries are being prepared and appended.
    pub(super) import: Option<SessionImport>,
    pub(super) pending: Vec<PendingEntry>,
    /// How often each entry without an external id has occurred, by content digest.
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

    /// Takes the import if there is work to do: entries to append, or a pending append
    /// to wait for.
    pub(super) fn take_import(&mut self) -> Option<SessionImport> {
        let import = self.import.as_mut()?;
        if self.pending.is_empty() && !import.is_busy() {
            // No entries have arrived since the last append, so the cache is no longer
            // worth its memory.
            import.release_id_cache();
            return None;
        }
        self.import.take()
    }

    /// Buffers an entry until the next append.
    pub(super) fn push(&mut self, entry: Box<IncomingEntry>, encoded: Option<EncodedPayload>) {
        let mut occurrence = 0;
        if entry.identity == EntryIdentity::Content
            && let Some(content) = content_bytes(&entry)
        {
            // A source may contain the same message twice; the second one is a separate
            // entry.
            let count = self.content_counts.entry(Digest::of(&content)).or_default();
            *count += 1;
            occurrence = *count;
        }
        if let ImportEvent::Titled { title, .. } = &entry.event
            && resolve_target::name_from_title(title).is_some_and(|name| name.as_str() != title)
        {
            // A name has neither capitals nor spaces, so the original title is stored
            // as a description.
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
        self.pending
            .push(PendingEntry::new(entry, occurrence, encoded));
    }
}

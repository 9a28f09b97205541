//! An entry that waits to be appended: what it says, and the id it gets for that.
//!
//! Invariant: the id is a function of the session and of what the entry is, so that the same
//! entry has it every time it comes.

use throughline_model::{
    Body, EntryId, EntryIdNamespace, EntryIdentity, ImportEvent, IncomingEntry, NameSource,
    SessionId, Tag, Timestamp,
};
use throughline_store::{EncodedPayload, StoreError};

use super::resolve_target;
use crate::Error;

/// An entry that waits to be appended.
#[derive(Clone, Debug)]
pub(super) struct PendingEntry {
    pub(super) entry: Box<IncomingEntry>,
    /// Which of those that are the same.
    pub(super) occurrence: u32,
    /// What it will be stored as, where that was found out on the way.
    pub(super) encoded: Option<EncodedPayload>,
}

impl PendingEntry {
    pub(super) fn new(
        entry: Box<IncomingEntry>,
        occurrence: u32,
        encoded: Option<EncodedPayload>,
    ) -> Self {
        Self {
            entry,
            occurrence,
            encoded,
        }
    }

    /// The id of the entry in a session.
    pub(super) fn id(&self, within: &EntryIdNamespace<'_>) -> Result<EntryId, Error> {
        Ok(match &self.entry.identity {
            EntryIdentity::External(own) => within.derive_external(own),
            EntryIdentity::Position(place) => position_id(within, place),
            EntryIdentity::Content => {
                let body = encode_content(&self.entry).ok_or_else(|| StoreError::Backend {
                    during: "encoding a message",
                    source: "it has no JSON".into(),
                })?;
                let at = self.entry.at.map_or(0, Timestamp::as_microsecond);
                let (at, times) = (at.to_le_bytes(), self.occurrence.to_le_bytes());
                within.derive(&[b"import", &body, &at, &times])
            }
        })
    }

    /// What can be said without numbers of ours.
    pub(super) fn standalone_body(&self) -> Option<Body> {
        let tags = |words: &[String]| -> Vec<Tag> {
            let word = |word: &String| word.split_whitespace().collect::<Vec<_>>().join("-");
            words.iter().filter_map(|w| word(w).parse().ok()).collect()
        };
        match &self.entry.event {
            ImportEvent::Body(body) => Some(body.clone()),
            ImportEvent::Titled { title, by_person } => {
                Some(match resolve_target::name_from_title(title) {
                    Some(name) => Body::Renamed {
                        name: Some(name),
                        by: if *by_person {
                            NameSource::Person
                        } else {
                            NameSource::Program
                        },
                    },
                    None => Body::Described {
                        description: Some(title.clone()),
                    },
                })
            }
            ImportEvent::Tagged(words) => Some(Body::Tagged { tags: tags(words) }),
            ImportEvent::Untagged(words) => Some(Body::Untagged { tags: tags(words) }),
            ImportEvent::Compacted { .. }
            | ImportEvent::Summarized { .. }
            | ImportEvent::Rewound { .. } => None,
        }
    }

    /// Whether something was said, and not only noted.
    pub(super) fn has_content(&self) -> bool {
        match &self.entry.event {
            ImportEvent::Body(body) => matches!(body, Body::Message(_) | Body::ContextSet { .. }),
            ImportEvent::Compacted { .. } | ImportEvent::Summarized { .. } => true,
            ImportEvent::Rewound { .. }
            | ImportEvent::Titled { .. }
            | ImportEvent::Tagged(_)
            | ImportEvent::Untagged(_) => false,
        }
    }

    /// Whether it is a message.
    pub(super) fn is_message(&self) -> bool {
        matches!(&self.entry.event, ImportEvent::Body(Body::Message(_)))
    }
}

/// The id of what is known by its place in the source.
pub(super) fn position_id(within: &EntryIdNamespace<'_>, place: &str) -> EntryId {
    within.derive(&[b"place", place.as_bytes()])
}

/// The ids of entries in a session.
pub(super) fn entry_ids(
    session: &SessionId,
    waiting: &[PendingEntry],
) -> Result<Vec<EntryId>, Error> {
    let within = EntryIdNamespace::of(session);
    waiting.iter().map(|waiting| waiting.id(&within)).collect()
}

/// Whether two bodies say the same. Where a summary ends is told anew each time, and may
/// be told otherwise once there is more.
pub(super) fn has_same_content(there: &Body, new: &Body) -> bool {
    match (there, new) {
        // What was erased here is not brought back.
        (Body::Erased(_), _) => true,
        // What an answer cost may become known after it was brought in.
        (Body::Message(there), Body::Message(new)) => {
            there.role == new.role && there.content == new.content
        }
        (there, new) => there == new,
    }
}

/// What an entry says and when, to tell it from others.
pub(super) fn content_bytes(entry: &IncomingEntry) -> Option<Vec<u8>> {
    let mut content = encode_content(entry)?;
    let at = entry.at.map_or(0, Timestamp::as_microsecond);
    content.extend(at.to_le_bytes());
    Some(content)
}

fn encode_content(entry: &IncomingEntry) -> Option<Vec<u8>> {
    match &entry.event {
        ImportEvent::Body(Body::Message(message)) => serde_json::to_vec(message).ok(),
        ImportEvent::Body(body) => serde_json::to_vec(body).ok(),
        other => Some(format!("{other:?}").into_bytes()),
    }
}

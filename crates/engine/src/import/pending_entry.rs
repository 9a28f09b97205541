//! An entry that waits to be appended, and the derivation of its id and body.
//!
//! Invariant: the id depends only on the session and on the entry's identity, so an
//! entry gets the same id on every import.

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
    /// The occurrence number among identical entries.
    pub(super) occurrence: u32,
    /// The encoded payload, if the reader prepared it.
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

    /// Returns the entry's id within a session.
    pub(super) fn id(&self, namespace: &EntryIdNamespace<'_>) -> Result<EntryId, Error> {
        Ok(match &self.entry.identity {
            EntryIdentity::External(own) => namespace.derive_external(own),
            EntryIdentity::Position(place) => position_id(namespace, place),
            EntryIdentity::Content => {
                let body = encode_content(&self.entry).ok_or_else(|| StoreError::Backend {
                    during: "encoding a message",
                    source: "it cannot be encoded as JSON".into(),
                })?;
                let at = self.entry.at.map_or(0, Timestamp::as_microsecond);
                let (at, times) = (at.to_le_bytes(), self.occurrence.to_le_bytes());
                namespace.derive(&[b"import", &body, &at, &times])
            }
        })
    }

    /// Returns the body, unless it refers to other entries by number.
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

    /// Whether the entry has content of its own, not just metadata.
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

/// Returns the id of an entry that is identified by its position in the source.
pub(super) fn position_id(namespace: &EntryIdNamespace<'_>, place: &str) -> EntryId {
    namespace.derive(&[b"place", place.as_bytes()])
}

/// Returns the ids of entries within a session.
pub(super) fn entry_ids(
    session: &SessionId,
    pending: &[PendingEntry],
) -> Result<Vec<EntryId>, Error> {
    let namespace = EntryIdNamespace::of(session);
    pending
        .iter()
        .map(|pending| pending.id(&namespace))
        .collect()
}

/// Whether two bodies have the same content. Summaries are not compared: their extent
/// is computed on every import and may change as the source grows.
pub(super) fn has_same_content(stored: &Body, new: &Body) -> bool {
    match (stored, new) {
        // Erased content is not restored by an import.
        (Body::Erased(_), _) => true,
        // Usage and other metadata of a message may become known after it was imported.
        (Body::Message(stored), Body::Message(new)) => {
            stored.role == new.role && stored.content == new.content
        }
        (stored, new) => stored == new,
    }
}

/// Returns an entry's content and time as bytes, to tell it from other entries.
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
        // Entry ids are derived from this text, so the names in it must never change: an import
        // that is repeated would append the entry a second time.
        other => Some(format!("{other:?}").into_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use throughline_model::{Summary, Usage};

    use super::*;

    #[test]
    fn the_text_that_entry_ids_are_derived_from_never_changes() {
        let summary = Summary::default();
        let summary_text = "Summary { background: \"\", topics: [], completed: [], in_progress: [], \
            pending: [], blockers: [], decisions: [], facts: [], files_touched: [], open_tasks: [] }";
        let events = [
            (
                ImportEvent::Compacted {
                    summary: summary.clone(),
                    by: "m".into(),
                    keeps: Some("e".into()),
                    usage: Some(Usage::default()),
                },
                format!(
                    "Compacted {{ summary: {summary_text}, by: \"m\", keeps: Some(\"e\"), usage: \
                     Some(Usage {{ input: 0, output: 0, cache_read: 0, cache_write: 0 }}) }}"
                ),
            ),
            (
                ImportEvent::Summarized {
                    summary,
                    by: "m".into(),
                },
                format!("Summarized {{ summary: {summary_text}, by: \"m\" }}"),
            ),
            (
                ImportEvent::Rewound {
                    to: Some("e".into()),
                },
                "Rewound { to: Some(\"e\") }".to_owned(),
            ),
            (
                ImportEvent::Titled {
                    title: "t".into(),
                    by_person: true,
                },
                "Titled { title: \"t\", by_person: true }".to_owned(),
            ),
            (
                ImportEvent::Tagged(vec!["a".into()]),
                "Tagged([\"a\"])".to_owned(),
            ),
            (
                ImportEvent::Untagged(vec!["a".into()]),
                "Untagged([\"a\"])".to_owned(),
            ),
        ];
        for (event, text) in events {
            let entry = IncomingEntry {
                identity: EntryIdentity::Content,
                event,
                at: None,
                author: None,
                position: 0,
            };
            assert_eq!(encode_content(&entry), Some(text.into_bytes()), "{entry:?}");
        }
    }
}

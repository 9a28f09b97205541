//! An entry that waits to be appended: what it says, and the id it gets for that.
//!
//! Invariant: the id is a function of the session and of what the entry is, so that the same
//! entry has it every time it comes.

use throughline_model::{
    Body, EntryId, Happened, Identity, IdsWithin, IncomingEntry, NamedBy, SessionId, Tag, Timestamp,
};
use throughline_store::{Encoded, StoreError};

use super::place;
use crate::Error;

/// An entry that waits to be appended.
#[derive(Clone, Debug)]
pub(super) struct Waiting {
    pub(super) entry: Box<IncomingEntry>,
    /// Which of those that are the same.
    pub(super) times: u32,
    /// What it will be stored as, where that was found out on the way.
    pub(super) encoded: Option<Encoded>,
}

impl Waiting {
    pub(super) fn new(entry: Box<IncomingEntry>, times: u32, encoded: Option<Encoded>) -> Self {
        Self {
            entry,
            times,
            encoded,
        }
    }

    /// The id of the entry in a session.
    pub(super) fn id(&self, within: &IdsWithin<'_>) -> Result<EntryId, Error> {
        Ok(match &self.entry.identity {
            Identity::Own(own) => within.external(own),
            Identity::Place(place) => at_place(within, place),
            Identity::Content => {
                let body = encoded(&self.entry).ok_or_else(|| StoreError::Backend {
                    during: "encoding a message",
                    source: "it has no JSON".into(),
                })?;
                let at = self.entry.at.map_or(0, Timestamp::as_microsecond);
                let (at, times) = (at.to_le_bytes(), self.times.to_le_bytes());
                within.derived(&[b"import", &body, &at, &times])
            }
        })
    }

    /// What can be said without numbers of ours.
    pub(super) fn plain_body(&self) -> Option<Body> {
        let tags = |words: &[String]| -> Vec<Tag> {
            let word = |word: &String| word.split_whitespace().collect::<Vec<_>>().join("-");
            words.iter().filter_map(|w| word(w).parse().ok()).collect()
        };
        match &self.entry.what {
            Happened::Body(body) => Some(body.clone()),
            Happened::Titled { title, by_person } => Some(match place::name(title) {
                Some(name) => Body::Renamed {
                    name: Some(name),
                    by: if *by_person {
                        NamedBy::Person
                    } else {
                        NamedBy::Program
                    },
                },
                None => Body::Described {
                    description: Some(title.clone()),
                },
            }),
            Happened::Tagged(words) => Some(Body::Tagged { tags: tags(words) }),
            Happened::Untagged(words) => Some(Body::Untagged { tags: tags(words) }),
            Happened::Compacted { .. } | Happened::Summarized { .. } | Happened::Rewound { .. } => {
                None
            }
        }
    }

    /// Whether something was said, and not only noted.
    pub(super) fn is_said(&self) -> bool {
        match &self.entry.what {
            Happened::Body(body) => matches!(body, Body::Message(_) | Body::ContextSet { .. }),
            Happened::Compacted { .. } | Happened::Summarized { .. } => true,
            Happened::Rewound { .. }
            | Happened::Titled { .. }
            | Happened::Tagged(_)
            | Happened::Untagged(_) => false,
        }
    }

    /// Whether it is a message.
    pub(super) fn is_message(&self) -> bool {
        matches!(&self.entry.what, Happened::Body(Body::Message(_)))
    }
}

/// The id of what is known by its place in the source.
pub(super) fn at_place(within: &IdsWithin<'_>, place: &str) -> EntryId {
    within.derived(&[b"place", place.as_bytes()])
}

/// The ids of entries in a session.
pub(super) fn ids(session: &SessionId, waiting: &[Waiting]) -> Result<Vec<EntryId>, Error> {
    let within = IdsWithin::of(session);
    waiting.iter().map(|waiting| waiting.id(&within)).collect()
}

/// Whether two bodies say the same. Where a summary ends is told anew each time, and may
/// be told otherwise once there is more.
pub(super) fn says_the_same(there: &Body, new: &Body) -> bool {
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
pub(super) fn content(entry: &IncomingEntry) -> Option<Vec<u8>> {
    let mut content = encoded(entry)?;
    let at = entry.at.map_or(0, Timestamp::as_microsecond);
    content.extend(at.to_le_bytes());
    Some(content)
}

fn encoded(entry: &IncomingEntry) -> Option<Vec<u8>> {
    match &entry.what {
        Happened::Body(Body::Message(message)) => serde_json::to_vec(message).ok(),
        Happened::Body(body) => serde_json::to_vec(body).ok(),
        other => Some(format!("{other:?}").into_bytes()),
    }
}

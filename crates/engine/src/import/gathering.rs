//! What is gathered for one session until it is appended.

use std::collections::HashMap;

use throughline_model::{Body, Digest, Happened, Identity, IncomingEntry, IncomingSession};
use throughline_store::Encoded;

use super::meeting::Meeting;
use super::place;
use super::waiting::{Waiting, content};

/// What is gathered for one session.
#[derive(Debug)]
pub(super) struct Gathering {
    /// What it is to meet; away while entries are made ready to be appended.
    pub(super) meeting: Option<Meeting>,
    pub(super) waiting: Vec<Waiting>,
    /// How often each entry without an id of its own has come.
    seen: HashMap<Digest, u32>,
}

impl Gathering {
    pub(super) fn new(session: IncomingSession) -> Self {
        Self {
            meeting: Some(Meeting::new(session)),
            waiting: Vec::new(),
            seen: HashMap::new(),
        }
    }

    /// What it is to meet, if there is something to be done: entries to append, or an append
    /// under way to wait for.
    pub(super) fn take_meeting(&mut self) -> Option<Meeting> {
        let meeting = self.meeting.as_mut()?;
        if self.waiting.is_empty() && !meeting.is_busy() {
            // Nothing has come for a while: what makes it fast to go on is let go.
            meeting.rest();
            return None;
        }
        self.meeting.take()
    }

    /// Takes an entry, which waits until the next append.
    pub(super) fn take(&mut self, entry: Box<IncomingEntry>, encoded: Option<Encoded>) {
        let mut times = 0;
        if entry.identity == Identity::Content
            && let Some(content) = content(&entry)
        {
            // The same words may be said twice; the second time is another message.
            let seen = self.seen.entry(Digest::of(&content)).or_default();
            *seen += 1;
            times = *seen;
        }
        if let Happened::Titled { title, .. } = &entry.what
            && place::name(title).is_some_and(|name| name.as_str() != title)
        {
            // A name has no capitals and no spaces; the title keeps them.
            let identity = match &entry.identity {
                Identity::Own(id) | Identity::Place(id) => Identity::Place(format!("{id}/title")),
                Identity::Content => Identity::Content,
            };
            let description = Some(title.clone());
            let described = IncomingEntry {
                identity,
                what: Happened::Body(Body::Described { description }),
                ..(*entry).clone()
            };
            self.waiting
                .push(Waiting::new(Box::new(described), 0, None));
        }
        self.waiting.push(Waiting::new(entry, times, encoded));
    }
}

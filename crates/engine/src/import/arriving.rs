//! What comes in, and what was found out about it on the way.

use throughline_model::{Happened, Identity, Incoming, IncomingEntry, IncomingSession};
use throughline_store::{Encoded, encode_beforehand};

/// Something that comes in.
///
/// What it will be stored as can be found out by whoever reads it: that needs no store, and
/// whoever has just read it has it at hand.
#[derive(Clone, Debug)]
pub struct Arriving {
    pub(super) incoming: Incoming,
    pub(super) encoded: Option<Encoded>,
}

impl Arriving {
    /// Something that comes in, already as it will be stored.
    pub fn encoded(incoming: Incoming) -> Self {
        let encoded = match &incoming {
            Incoming::Entry(entry) => encoded(entry),
            Incoming::Session(_) | Incoming::Blob(_) | Incoming::Passed(_) => None,
        };
        Self { incoming, encoded }
    }

    /// What it is.
    pub fn incoming(&self) -> &Incoming {
        &self.incoming
    }

    /// The session that it is, of which more may be known than whoever read it could tell.
    pub fn session_mut(&mut self) -> Option<&mut IncomingSession> {
        match &mut self.incoming {
            Incoming::Session(session) => Some(session),
            Incoming::Entry(_) | Incoming::Blob(_) | Incoming::Passed(_) => None,
        }
    }
}

impl From<Incoming> for Arriving {
    fn from(incoming: Incoming) -> Self {
        Self {
            incoming,
            encoded: None,
        }
    }
}

/// What an entry will be stored as, where that is known without the others. If it cannot be
/// encoded, whoever appends it is told why.
fn encoded(entry: &IncomingEntry) -> Option<Encoded> {
    let Happened::Body(body) = &entry.what else {
        return None;
    };
    encode_beforehand(body, entry.author.as_deref(), own_id(entry), None).ok()
}

/// What its system calls an entry.
pub(super) fn own_id(entry: &IncomingEntry) -> Option<&str> {
    match &entry.identity {
        Identity::Own(own) => Some(own),
        Identity::Place(_) | Identity::Content => None,
    }
}

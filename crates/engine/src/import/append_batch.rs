//! Entries of one session that are appended together, and an append that is under way.

use throughline_model::{NewEntry, Seq, SessionRef};
use throughline_store::{Append, AppendOutcome, EncodedPayload, Expect, StoreError, encode_entry};

use super::in_flight::InFlight;
use crate::{Error, Throughline};

/// Entries to be appended together, each with what it is stored as.
#[derive(Debug, Default)]
pub(super) struct AppendBatch {
    entries: Vec<NewEntry>,
    encoded: Vec<EncodedPayload>,
    messages: u64,
    /// Where the first of them stood in its source.
    source_position: u64,
}

impl AppendBatch {
    /// An empty one, for about so many entries.
    pub(super) fn with_capacity(entries: usize) -> Self {
        Self {
            entries: Vec::with_capacity(entries),
            encoded: Vec::with_capacity(entries),
            ..Self::default()
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(super) fn len(&self) -> u64 {
        self.entries.len() as u64
    }

    /// Adds an entry, which stood at this place in its source.
    pub(super) fn push(
        &mut self,
        new: NewEntry,
        encoded: Option<EncodedPayload>,
        place: u64,
    ) -> Result<(), Error> {
        if self.is_empty() {
            self.source_position = place;
        }
        self.messages += u64::from(new.body.message().is_some());
        self.encoded.push(match encoded {
            Some(encoded) => encoded,
            None => encode_entry(&new, None)?,
        });
        self.entries.push(new);
        Ok(())
    }

    /// Appends it, after this head if one is named, and then no other.
    pub(super) async fn append(
        self,
        tl: &Throughline,
        to: &SessionRef,
        after: Option<Seq>,
    ) -> PendingAppend {
        let (tl, to) = (tl.clone(), to.clone());
        let append = Append {
            expect: after.map_or(Expect::Any, Expect::At),
            encoded: self.encoded,
            ..Append::unconditional(self.entries)
        };
        PendingAppend {
            append: InFlight::start(async move { tl.store.append(&to, append).await }).await,
            messages: self.messages,
            source_position: self.source_position,
            is_chained: after.is_some(),
        }
    }
}

/// An append whose outcome is still to come.
#[derive(Debug)]
pub(super) struct PendingAppend {
    pub(super) append: InFlight<Result<AppendOutcome, StoreError>>,
    /// How many messages are in it.
    pub(super) messages: u64,
    /// Where the first of its entries stood in its source.
    pub(super) source_position: u64,
    /// Whether it is refused unless the one before it is there, and nothing else since.
    pub(super) is_chained: bool,
}

//! A batch of entries that are appended to one session together, and its pending
//! append.

use throughline_model::{NewEntry, Seq, SessionRef};
use throughline_store::{Append, AppendOutcome, EncodedPayload, Expect, StoreError, encode_entry};

use super::in_flight::InFlight;
use crate::{Error, Throughline};

/// Entries to be appended together, with their encoded payloads.
#[derive(Debug, Default)]
pub(super) struct AppendBatch {
    entries: Vec<NewEntry>,
    encoded: Vec<EncodedPayload>,
    messages: u64,
    /// The position of the first entry in its source.
    source_position: u64,
}

impl AppendBatch {
    /// Creates an empty batch with capacity for this many entries.
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

    /// Adds an entry, with its position in the source.
    pub(super) fn push(
        &mut self,
        new: NewEntry,
        encoded: Option<EncodedPayload>,
        source_position: u64,
    ) -> Result<(), Error> {
        if self.is_empty() {
            self.source_position = source_position;
        }
        self.messages += u64::from(new.body.message().is_some());
        self.encoded.push(match encoded {
            Some(encoded) => encoded,
            None => encode_entry(&new, None)?,
        });
        self.entries.push(new);
        Ok(())
    }

    /// Starts to append the batch. If `after` is given, the append fails unless it is
    /// the head.
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

/// An append in progress.
#[derive(Debug)]
pub(super) struct PendingAppend {
    pub(super) append: InFlight<Result<AppendOutcome, StoreError>>,
    /// The number of messages in it.
    pub(super) messages: u64,
    /// The position of its first entry in the source.
    pub(super) source_position: u64,
    /// Whether it fails unless the append before it succeeded and nobody else wrote
    /// since.
    pub(super) is_chained: bool,
}

//! Entries of one session that are appended together, and an append that is under way.

use std::fmt;

use futures_util::future::BoxFuture;
use throughline_model::{NewEntry, Seq, SessionRef};
use throughline_store::{Append, Appended, Encoded, Expect, StoreError, Wanted, encode};

use crate::{Error, Throughline};

/// Entries to be appended together, each with what it is stored as.
#[derive(Debug, Default)]
pub(super) struct Bundle {
    entries: Vec<NewEntry>,
    encoded: Vec<Encoded>,
    messages: u64,
    /// Where the first of them stood in its source.
    place: u64,
}

impl Bundle {
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
        encoded: Option<Encoded>,
        place: u64,
    ) -> Result<(), Error> {
        if self.is_empty() {
            self.place = place;
        }
        self.messages += u64::from(new.body.message().is_some());
        self.encoded.push(match encoded {
            Some(encoded) => encoded,
            None => encode(&new, None)?,
        });
        self.entries.push(new);
        Ok(())
    }

    /// The append of it, which begins when it is first asked for its outcome.
    pub(super) fn append(self, tl: &Throughline, to: &SessionRef, after: Option<Seq>) -> UnderWay {
        let (tl, to) = (tl.clone(), to.clone());
        let follows = after.is_some();
        let append = Append {
            expect: after.map_or(Expect::Any, Expect::At),
            encoded: self.encoded,
            wanted: Wanted::Last,
            ..Append::any(self.entries)
        };
        UnderWay {
            outcome: Box::pin(async move { tl.store.append(&to, append).await }),
            messages: self.messages,
            place: self.place,
            follows,
        }
    }
}

/// An append whose outcome is still to come.
pub(super) struct UnderWay {
    pub(super) outcome: BoxFuture<'static, Result<Appended, StoreError>>,
    /// How many messages are in it.
    pub(super) messages: u64,
    /// Where the first of its entries stood in its source.
    pub(super) place: u64,
    /// Whether it is refused unless the one before it is there, and nothing else since.
    pub(super) follows: bool,
}

impl fmt::Debug for UnderWay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UnderWay")
            .field("messages", &self.messages)
            .finish_non_exhaustive()
    }
}

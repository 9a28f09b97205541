//! Wire types, where they differ from the domain types.

mod entry;
mod session;
mod stream_event;

pub(crate) use entry::EntryView;
pub(crate) use session::{SessionDetail, SessionView, UsageView};
pub(crate) use stream_event::StreamedEvent;

use serde::{Deserialize, Deserializer};

/// A field that may be absent, null or set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum PatchField<T> {
    /// Unchanged.
    #[default]
    Absent,
    /// Set, or removed by null.
    Set(Option<T>),
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for PatchField<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Option::deserialize(deserializer).map(Self::Set)
    }
}

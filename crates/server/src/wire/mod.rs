//! What goes over the wire, where that is not what the model has.

mod entry;
mod session;
mod stream_event;

pub(crate) use entry::EntryView;
pub(crate) use session::{SessionDetail, SessionView, UsageView};
pub(crate) use stream_event::StreamedEvent;

use serde::{Deserialize, Deserializer};

/// A member that may be absent, null or there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum PatchField<T> {
    /// Left alone.
    #[default]
    Absent,
    /// Set, or taken away.
    Set(Option<T>),
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for PatchField<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Option::deserialize(deserializer).map(Self::Set)
    }
}

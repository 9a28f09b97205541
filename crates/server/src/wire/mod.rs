//! What goes over the wire, where that is not what the model has.

mod entry;
mod session;

pub(crate) use entry::EntryView;
pub(crate) use session::{SessionDetail, SessionView, UsageView};

use serde::{Deserialize, Deserializer};

/// A member that may be absent, null or there: left alone, taken away or set.
pub(crate) fn given<'de, D, T>(deserializer: D) -> Result<Option<Option<T>>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    Option::deserialize(deserializer).map(Some)
}

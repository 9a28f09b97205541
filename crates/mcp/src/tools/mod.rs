//! The tools, a file a subject.

mod memory;
mod sessions;
mod writing;

pub(crate) use sessions::parsed_cursor;

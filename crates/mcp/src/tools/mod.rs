//! The tools, a file a subject.

mod memory;
mod session_writes;
mod sessions;

pub(crate) use sessions::parse_cursor;

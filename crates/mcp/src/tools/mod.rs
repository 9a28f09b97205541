//! The MCP tools, one file per subject.

mod memory;
mod session_writes;
mod sessions;

pub(crate) use sessions::parse_cursor;

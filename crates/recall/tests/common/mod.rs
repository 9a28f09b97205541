//! An index in a folder of its own.

#![allow(dead_code, reason = "not every test needs all of it")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[cfg(feature = "contextual")]
pub(crate) mod small;

use tempfile::TempDir;
use throughline_recall::FolderIndex;
use throughline_recall::conformance::Fed;

/// An empty index in a new folder.
pub(crate) fn empty() -> (TempDir, Fed) {
    let folder = TempDir::new().unwrap();
    let index = FolderIndex::open(folder.path()).unwrap();
    (folder, Fed::new(Box::new(index), ()))
}

/// An index of one session.
pub(crate) fn with(texts: &[&str]) -> (TempDir, Fed) {
    let (folder, mut fed) = empty();
    fed.say(texts);
    (folder, fed)
}

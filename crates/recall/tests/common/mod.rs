//! Creates folder indexes for tests.

#![allow(dead_code, reason = "not every test needs all of it")]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[cfg(feature = "contextual")]
pub(crate) mod tiny_model;

use tempfile::TempDir;
use throughline_recall::FolderIndex;
use throughline_recall::conformance::IndexFixture;

/// Creates an empty index in a new folder.
pub(crate) fn empty_index() -> (TempDir, IndexFixture) {
    let folder = TempDir::new().unwrap();
    let index = FolderIndex::open(folder.path()).unwrap();
    (folder, IndexFixture::new(Box::new(index), ()))
}

/// Creates an index with one session.
pub(crate) fn index_with(texts: &[&str]) -> (TempDir, IndexFixture) {
    let (folder, mut fixture) = empty_index();
    fixture.index_texts(texts);
    (folder, fixture)
}

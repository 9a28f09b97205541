//! An index in a folder of its own.

#![allow(dead_code, reason = "not every test needs all of it")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[cfg(feature = "contextual")]
pub(crate) mod tiny_model;

use tempfile::TempDir;
use throughline_recall::FolderIndex;
use throughline_recall::conformance::IndexFixture;

/// An empty index in a new folder.
pub(crate) fn empty_index() -> (TempDir, IndexFixture) {
    let folder = TempDir::new().unwrap();
    let index = FolderIndex::open(folder.path()).unwrap();
    (folder, IndexFixture::new(Box::new(index), ()))
}

/// An index of one session.
pub(crate) fn index_with(texts: &[&str]) -> (TempDir, IndexFixture) {
    let (folder, mut fed) = empty_index();
    fed.index_texts(texts);
    (folder, fed)
}

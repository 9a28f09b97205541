//! Removes files that a killed process left in an index folder.
//!
//! The engine names delete files after the operation they belong to and numbers operations
//! from the last commit, so a file written before a kill would collide with the next run. The
//! engine's own list of files does not help: every process has its own copy of it.
//!
//! Invariant: called only while the indexing lock is held; files of the last commit stay.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use tantivy::directory::{Directory as _, META_LOCK};

use crate::RecallError;
use crate::error::ErrorContext as _;

const DURING: &str = "removing leftover files";

/// The engine's files that belong to no segment.
const ENGINE_FILES: [&str; 4] = [
    "meta.json",
    ".managed.json",
    ".tantivy-writer.lock",
    ".tantivy-meta.lock",
];

/// The files of an index folder, besides temporary files.
const INDEX_FILES: [&str; 6] = [
    "about.json",
    "verified.json",
    "text",
    "encoded",
    "feeding.lock",
    "removals",
];

/// Finds the files that belong to nothing.
pub(super) fn find(folder: &Path, engine: &tantivy::Index) -> Result<Vec<PathBuf>, RecallError> {
    // Held so that no reader is between reading a commit and opening its files.
    let _lock = engine
        .directory()
        .acquire_lock(&META_LOCK)
        .map_err(|error| tantivy::TantivyError::LockFailure(error, None))
        .during(DURING)?;
    let meta = engine.load_metas().during(DURING)?;
    let living: HashSet<PathBuf> = meta.list_segment_files();
    let text = folder.join("text");
    let mut leftovers = Vec::new();
    for name in list_names(&text)? {
        let is_own = ENGINE_FILES.iter().any(|own| name == Path::new(own));
        if !is_own && !living.contains(&name) {
            leftovers.push(text.join(name));
        }
    }
    for name in list_names(folder)? {
        if !INDEX_FILES
            .iter()
            .any(|expected| name == Path::new(expected))
        {
            leftovers.push(folder.join(name));
        }
    }
    leftovers.sort();
    Ok(leftovers)
}

/// Removes the files that belong to nothing.
pub(super) fn remove(folder: &Path, engine: &tantivy::Index) -> Result<(), RecallError> {
    for path in find(folder, engine)? {
        // Unknown folders are left alone; `tl doctor` lists them.
        match fs::remove_file(&path) {
            Err(error)
                if error.kind() != io::ErrorKind::NotFound
                    && error.kind() != io::ErrorKind::IsADirectory =>
            {
                return Err(error).during(DURING);
            }
            _ => {}
        }
    }
    Ok(())
}

fn list_names(folder: &Path) -> Result<Vec<PathBuf>, RecallError> {
    let mut names = Vec::new();
    for file in fs::read_dir(folder).during(DURING)? {
        names.push(PathBuf::from(file.during(DURING)?.file_name()));
    }
    Ok(names)
}

//! Verifies the checksums of the files of the last commit.
//!
//! Reading a whole index for every search would take too long: `verified.json` records the
//! length, time and number of every file that was found intact, and only files that differ
//! from it are read again. That covers files that were rewritten, truncated or replaced; a
//! disk that returns other bytes than were written is detected by [`VerifyScope::All`].

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use serde::{Deserialize, Serialize};
use tantivy::TantivyError;
use tantivy::directory::{Directory as _, META_LOCK};
use tantivy::error::DataCorruption;
use tantivy::index::SegmentComponent;

const STAMPS_FILE: &str = "verified.json";
/// The minimum length of a file with a checksum.
const MIN_FILE_BYTES: u64 = 8;

/// Which files to verify.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum VerifyScope {
    /// Files that changed since they were last found intact.
    Changed,
    /// All files.
    All,
}

/// The metadata by which a changed file is recognized.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct FileStamp {
    length: u64,
    written: u128,
    inode: u64,
}

/// Fails if a file of the last commit is missing or differs from what was written.
pub(super) fn verify(
    folder: &Path,
    engine: &tantivy::Index,
    scope: VerifyScope,
) -> tantivy::Result<()> {
    let known: BTreeMap<PathBuf, FileStamp> = match scope {
        VerifyScope::All => BTreeMap::new(),
        VerifyScope::Changed => fs::read(folder.join(STAMPS_FILE))
            .ok()
            .and_then(|bytes| serde_json::from_slice(&bytes).ok())
            .unwrap_or_default(),
    };
    let mut found = BTreeMap::new();
    {
        // Held so that no file of this commit is removed meanwhile.
        let _lock = engine
            .directory()
            .acquire_lock(&META_LOCK)
            .map_err(|error| TantivyError::LockFailure(error, None))?;
        for name in commit_files(engine)? {
            let stamp = read_stamp(&folder.join("text").join(&name))?;
            if stamp.length < MIN_FILE_BYTES {
                return Err(corruption_error(name, "it is truncated"));
            }
            if known.get(&name) != Some(&stamp) && !engine.directory().validate_checksum(&name)? {
                return Err(corruption_error(
                    name,
                    "its checksum does not match its content",
                ));
            }
            found.insert(name, stamp);
        }
    }
    if found != known {
        save_stamps(folder, &found);
    }
    Ok(())
}

/// Returns the files of the last commit. The engine treats a missing positions file as empty,
/// so it cannot be relied on to detect one.
fn commit_files(engine: &tantivy::Index) -> tantivy::Result<HashSet<PathBuf>> {
    let meta = engine.load_metas()?;
    let mut files = meta.list_segment_files();
    for segment in &meta.segments {
        if !segment.has_deletes() {
            files.remove(&segment.relative_path(SegmentComponent::Delete));
        }
        files.remove(&segment.relative_path(SegmentComponent::TempStore));
    }
    Ok(files)
}

fn read_stamp(path: &Path) -> std::io::Result<FileStamp> {
    let meta = fs::metadata(path)?;
    let written = meta.modified()?.duration_since(UNIX_EPOCH);
    #[cfg(unix)]
    let inode = std::os::unix::fs::MetadataExt::ino(&meta);
    #[cfg(not(unix))]
    let inode = 0;
    Ok(FileStamp {
        length: meta.len(),
        written: written.map_or(0, |since| since.as_nanos()),
        inode,
    })
}

/// Saves the stamps; if that fails, the files are read again the next time.
fn save_stamps(folder: &Path, found: &BTreeMap<PathBuf, FileStamp>) {
    let Ok(bytes) = serde_json::to_vec(found) else {
        return;
    };
    let write = || -> std::io::Result<()> {
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        file.write_all(&bytes)?;
        file.persist(folder.join(STAMPS_FILE))?;
        Ok(())
    };
    let _ = write();
}

fn corruption_error(name: PathBuf, what: &str) -> TantivyError {
    TantivyError::DataCorruption(DataCorruption::new(name, what.to_owned()))
}

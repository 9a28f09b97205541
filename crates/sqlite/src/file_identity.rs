//! Detects that the store's file was deleted or replaced while it is open.
//!
//! A connection keeps writing to the file it opened even after that was deleted or replaced,
//! and those writes would be lost. So the path is checked before and after every batch of
//! writes, and before every read.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use throughline_store::StoreError;

use crate::open::side_file;

/// Device and inode.
#[cfg(unix)]
type FileId = (u64, u64);
#[cfg(not(unix))]
type FileId = ();

/// Queries the inode only. After a file's timestamps have been queried, Linux writes its inode
/// again with the next write, which makes the sync of every commit half as slow again.
#[cfg(target_os = "linux")]
fn file_id(path: &Path) -> std::io::Result<FileId> {
    use rustix::fs::{AtFlags, CWD, StatxFlags, makedev, statx};
    match statx(CWD, path, AtFlags::empty(), StatxFlags::INO) {
        Ok(file) => Ok((
            makedev(file.stx_dev_major, file.stx_dev_minor),
            file.stx_ino,
        )),
        // An old kernel, or a sandbox that does not support the call.
        Err(rustix::io::Errno::NOSYS | rustix::io::Errno::PERM) => file_id_by_metadata(path),
        Err(error) => Err(error.into()),
    }
}

#[cfg(all(unix, not(target_os = "linux")))]
fn file_id(path: &Path) -> std::io::Result<FileId> {
    file_id_by_metadata(path)
}

#[cfg(unix)]
fn file_id_by_metadata(path: &Path) -> std::io::Result<FileId> {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata(path).map(|file| (file.dev(), file.ino()))
}

#[cfg(not(unix))]
fn file_id(path: &Path) -> std::io::Result<FileId> {
    std::fs::metadata(path).map(|_| ())
}

/// The identities of the files a store was opened with.
#[derive(Debug)]
pub(crate) struct OpenFiles {
    path: PathBuf,
    wal_path: PathBuf,
    main: FileId,
    /// Set by the first write: every connection of a store shares one log.
    wal: OnceLock<FileId>,
}

impl OpenFiles {
    /// Captures the identity of the file at `path`. The caller holds a connection to it, so its
    /// inode number cannot be reused meanwhile.
    pub(crate) fn capture(path: &Path) -> Result<Self, StoreError> {
        Ok(Self {
            path: path.to_owned(),
            wal_path: side_file(path, "-wal"),
            main: file_id(path).map_err(|_| replaced_error(path))?,
            wal: OnceLock::new(),
        })
    }

    /// Fails if the path names another file, or none.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        refuse_other_file(&self.path, self.main)
    }

    /// Also fails if the write-ahead log was replaced or deleted. The caller has begun a write
    /// transaction.
    pub(crate) fn check_for_writing(&self) -> Result<(), StoreError> {
        self.check()?;
        match self.wal.get() {
            Some(id) => refuse_other_file(&self.wal_path, *id),
            None => {
                let id = file_id(&self.wal_path).map_err(|_| replaced_error(&self.wal_path))?;
                self.wal.get_or_init(|| id);
                Ok(())
            }
        }
    }
}

fn refuse_other_file(path: &Path, id: FileId) -> Result<(), StoreError> {
    match file_id(path) {
        Ok(found) if found == id => Ok(()),
        _ => Err(replaced_error(path)),
    }
}

fn replaced_error(path: &Path) -> StoreError {
    StoreError::FileReplaced {
        file: path.display().to_string(),
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_one_id_however_it_is_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        let (one, other) = (folder.path().join("one"), folder.path().join("other"));
        std::fs::write(&one, "").unwrap();
        std::fs::write(&other, "").unwrap();
        assert_eq!(file_id(&one).unwrap(), file_id_by_metadata(&one).unwrap());
        assert_ne!(file_id(&one).unwrap(), file_id(&other).unwrap());
        assert!(file_id(&folder.path().join("none")).is_err());
    }
}

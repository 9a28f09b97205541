//! Which file is open, and whether its path still names it.
//!
//! A connection keeps writing to the file it opened even after that was deleted or another
//! was put in its place, and nobody would ever find what it writes. So every batch of writes
//! is preceded and followed by a look at the path, and every read preceded by one.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use throughline_store::StoreError;

use crate::open::side_file;

/// Device and inode.
#[cfg(unix)]
type FileId = (u64, u64);
#[cfg(not(unix))]
type FileId = ();

/// Asks for the inode and nothing else. After somebody has looked at a file's times, Linux
/// writes its inode anew with the next write, and the sync of every commit would take half as
/// long again.
#[cfg(target_os = "linux")]
fn file_id(path: &Path) -> std::io::Result<FileId> {
    use rustix::fs::{AtFlags, CWD, StatxFlags, makedev, statx};
    match statx(CWD, path, AtFlags::empty(), StatxFlags::INO) {
        Ok(file) => Ok((
            makedev(file.stx_dev_major, file.stx_dev_minor),
            file.stx_ino,
        )),
        // An old kernel, or a sandbox that does not know the call.
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

/// The files a store was opened with.
#[derive(Debug)]
pub(crate) struct OpenFiles {
    path: PathBuf,
    wal_path: PathBuf,
    main: FileId,
    /// Known from the first write on: every connection of a store shares the one log.
    wal: OnceLock<FileId>,
}

impl OpenFiles {
    /// Notes what the path names now. The caller holds a connection to it, so that the number
    /// of the file cannot be given to another one.
    pub(crate) fn capture(path: &Path) -> Result<Self, StoreError> {
        Ok(Self {
            path: path.to_owned(),
            wal_path: side_file(path, "-wal"),
            main: file_id(path).map_err(|_| replaced_error(path))?,
            wal: OnceLock::new(),
        })
    }

    /// Refuses if the path names another file, or none.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        refuse_other_file(&self.path, self.main)
    }

    /// Refuses also if the write-ahead log is another, or gone. The caller has begun a write.
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

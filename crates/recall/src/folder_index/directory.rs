//! The engine's directory, owner-only and with checksums on the files that lack one.
//!
//! Segment files end with a checksum; `meta.json` and the list of managed files do not. Both
//! are replaced as a whole, so a checksum is added as their last line when they are written
//! and verified when they are read.
//!
//! Invariant: reading such a file returns what was written, or fails.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tantivy::directory::error::{DeleteError, LockError, OpenReadError, OpenWriteError};
use tantivy::directory::{
    Directory, DirectoryLock, FileHandle, Lock, MmapDirectory, WatchCallback, WatchHandle, WritePtr,
};
use throughline_model::Digest;

use crate::private_files;

/// A directory of the full-text engine.
#[derive(Clone, Debug)]
pub(super) struct ChecksummedDirectory {
    root: PathBuf,
    files: MmapDirectory,
}

impl ChecksummedDirectory {
    pub(super) fn open(root: &Path) -> tantivy::Result<Self> {
        Ok(Self {
            root: root.to_owned(),
            files: MmapDirectory::open(root)?,
        })
    }

    fn restrict(&self, path: &Path) {
        // The folder itself is already closed to others: this is the second line of defense.
        let _ = private_files::restrict_file(&self.root.join(path));
    }
}

impl Directory for ChecksummedDirectory {
    fn get_file_handle(&self, path: &Path) -> Result<Arc<dyn FileHandle>, OpenReadError> {
        self.files.get_file_handle(path)
    }

    fn delete(&self, path: &Path) -> Result<(), DeleteError> {
        self.files.delete(path)
    }

    fn exists(&self, path: &Path) -> Result<bool, OpenReadError> {
        self.files.exists(path)
    }

    fn open_write(&self, path: &Path) -> Result<WritePtr, OpenWriteError> {
        let file = self.files.open_write(path)?;
        self.restrict(path);
        Ok(file)
    }

    fn atomic_read(&self, path: &Path) -> Result<Vec<u8>, OpenReadError> {
        let mut bytes = self.files.atomic_read(path)?;
        let Some(length) = verified_length(&bytes) else {
            let what = "its checksum does not match its content";
            let error = io::Error::new(io::ErrorKind::InvalidData, what);
            return Err(OpenReadError::wrap_io_error(error, path.to_owned()));
        };
        bytes.truncate(length);
        Ok(bytes)
    }

    fn atomic_write(&self, path: &Path, content: &[u8]) -> io::Result<()> {
        let checksum = Digest::of(content).to_string();
        let bytes = [content, b"\n", checksum.as_bytes()].concat();
        self.files.atomic_write(path, &bytes)
    }

    fn sync_directory(&self) -> io::Result<()> {
        self.files.sync_directory()
    }

    fn acquire_lock(&self, lock: &Lock) -> Result<DirectoryLock, LockError> {
        let held = self.files.acquire_lock(lock)?;
        self.restrict(&lock.filepath);
        Ok(held)
    }

    fn watch(&self, callback: WatchCallback) -> tantivy::Result<WatchHandle> {
        self.files.watch(callback)
    }
}

/// Returns the length of the content before the checksum, if the checksum matches.
fn verified_length(bytes: &[u8]) -> Option<usize> {
    let end = bytes.iter().rposition(|byte| *byte == b'\n')?;
    let (content, checksum) = (&bytes[..end], &bytes[end + 1..]);
    (checksum == Digest::of(content).to_string().as_bytes()).then_some(end)
}

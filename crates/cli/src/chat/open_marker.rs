//! A mark that a chat is open on a session, so that the next one knows how it ended.
//!
//! The mark is a file that is locked while the chat runs and removed when it ends. One
//! that is there and not locked was left by a chat that was killed.

use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use throughline::SessionId;

use crate::paths::create_private_folder;

/// How a session was left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PreviousExit {
    /// As it should be.
    Clean,
    /// The chat ended without leaving.
    Crashed,
    /// Another chat is open on it.
    StillOpen,
}

/// A mark that is taken away again.
#[derive(Debug)]
pub(crate) struct OpenMarker {
    held: Option<(PathBuf, File)>,
}

impl OpenMarker {
    /// Marks a session; tells how it was left.
    pub(crate) fn acquire(folder: &Path, session: &SessionId) -> io::Result<(Self, PreviousExit)> {
        create_private_folder(folder)?;
        let path = folder.join(session.as_str());
        let was_there = path.exists();
        let file = crate::private_files::private_file_options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&path)?;
        match file.try_lock() {
            Ok(()) => {
                let left = if was_there {
                    PreviousExit::Crashed
                } else {
                    PreviousExit::Clean
                };
                let held = Some((path, file));
                Ok((Self { held }, left))
            }
            Err(TryLockError::WouldBlock) => Ok((Self { held: None }, PreviousExit::StillOpen)),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}

impl Drop for OpenMarker {
    fn drop(&mut self) {
        if let Some((path, _file)) = self.held.take() {
            // One that cannot be removed only makes the next start say too much.
            let _ = std::fs::remove_file(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_marker_tells_how_a_session_was_left() {
        let folder = tempfile::tempdir().unwrap();
        let id: SessionId = "s".parse().unwrap();

        let (first, left) = OpenMarker::acquire(folder.path(), &id).unwrap();
        assert_eq!(left, PreviousExit::Clean);
        let (second, left) = OpenMarker::acquire(folder.path(), &id).unwrap();
        assert_eq!(left, PreviousExit::StillOpen);
        drop(second);
        drop(first);
        let (_, left) = OpenMarker::acquire(folder.path(), &id).unwrap();
        assert_eq!(left, PreviousExit::Clean);

        std::fs::write(folder.path().join("s"), b"").unwrap();
        let (_, left) = OpenMarker::acquire(folder.path(), &id).unwrap();
        assert_eq!(left, PreviousExit::Crashed);
    }
}

//! Marks a session as open in a chat, so that the next chat can detect a crash.
//!
//! The marker is a file that is locked while the chat runs and removed when it ends. An
//! unlocked marker was left behind by a chat that was killed.

use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use throughline::SessionId;

use crate::paths::create_private_folder;

/// How the previous chat on a session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PreviousExit {
    /// It left properly.
    Clean,
    /// It was killed.
    Crashed,
    /// It is still open.
    StillOpen,
}

/// A held marker; removed when dropped.
#[derive(Debug)]
pub(crate) struct OpenMarker {
    held: Option<(PathBuf, File)>,
}

impl OpenMarker {
    /// Marks a session as open; returns how the previous chat ended.
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
                let previous_exit = if was_there {
                    PreviousExit::Crashed
                } else {
                    PreviousExit::Clean
                };
                let held = Some((path, file));
                Ok((Self { held }, previous_exit))
            }
            Err(TryLockError::WouldBlock) => Ok((Self { held: None }, PreviousExit::StillOpen)),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}

impl Drop for OpenMarker {
    fn drop(&mut self) {
        if let Some((path, _file)) = self.held.take() {
            // A marker that cannot be removed only causes a needless notice at the next start.
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

        let (first, previous_exit) = OpenMarker::acquire(folder.path(), &id).unwrap();
        assert_eq!(previous_exit, PreviousExit::Clean);
        let (second, previous_exit) = OpenMarker::acquire(folder.path(), &id).unwrap();
        assert_eq!(previous_exit, PreviousExit::StillOpen);
        drop(second);
        drop(first);
        let (_, previous_exit) = OpenMarker::acquire(folder.path(), &id).unwrap();
        assert_eq!(previous_exit, PreviousExit::Clean);

        std::fs::write(folder.path().join("s"), b"").unwrap();
        let (_, previous_exit) = OpenMarker::acquire(folder.path(), &id).unwrap();
        assert_eq!(previous_exit, PreviousExit::Crashed);
    }
}

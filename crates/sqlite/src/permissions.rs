//! Takes the permissions of a store's files away from everybody but their owner.
//!
//! New files are created that way; these are files that were copied, restored or made
//! otherwise. Nothing is opened for it: closing a file would drop the database's locks on it.

use std::path::Path;

/// Restricts the store's file and those beside it, as far as they are ours to change.
#[cfg(unix)]
pub(crate) fn restrict_to_owner(path: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    for suffix in ["", "-wal", "-shm"] {
        let file = crate::open::side_file(path, suffix);
        let Ok(meta) = std::fs::metadata(&file) else {
            continue;
        };
        let mut permissions = meta.permissions();
        if permissions.mode() & 0o077 != 0 {
            permissions.set_mode(permissions.mode() & 0o700);
            // Somebody else's file, or one on a disk that cannot be written, is as it is.
            let _ = std::fs::set_permissions(&file, permissions);
        }
    }
}

#[cfg(not(unix))]
pub(crate) fn restrict_to_owner(_: &Path) {}

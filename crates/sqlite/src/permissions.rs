//! Restricts the permissions of a store's files to their owner.
//!
//! New files are created that way; this covers files that were copied, restored or created
//! otherwise. It opens no file, since closing one would drop SQLite's locks on it.

use std::path::Path;

/// Restricts the store's file and those beside it, where permitted.
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
            // Another user's file, or one on a read-only disk, is left as it is.
            let _ = std::fs::set_permissions(&file, permissions);
        }
    }
}

#[cfg(not(unix))]
pub(crate) fn restrict_to_owner(_: &Path) {}

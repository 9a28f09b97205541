//! Writes a consistent backup copy while the store is in use.
//!
//! The copy is made from one snapshot, so concurrent writes never make it start over. It is
//! written to a temporary file and renamed only when complete.

use std::fs::{File, OpenOptions};
use std::path::Path;

use rusqlite::Connection;
use throughline_store::StoreError;

use crate::error::during;
use crate::fsync::sync_folder;
use crate::open::side_file;

/// Copies the whole store into a new file.
pub(crate) fn copy_store(connection: &Connection, to: &Path) -> Result<(), StoreError> {
    let failed = |source: std::io::Error| StoreError::Backend {
        during: "making a backup",
        source: format!("{}: {source}", to.display()).into(),
    };
    if to.exists() {
        return Err(failed(std::io::Error::other("the file already exists")));
    }
    let partial = side_file(to, ".partial");
    // Left over from an interrupted backup.
    let _ = std::fs::remove_file(&partial);
    let mut file = OpenOptions::new();
    file.write(true).create_new(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        file.mode(0o600);
    }
    file.open(&partial).map_err(failed)?;
    let copied = connection
        .execute("VACUUM INTO ?1", [partial.to_string_lossy()])
        .map_err(during("making a backup"))
        .and_then(|_| {
            File::open(&partial)
                .and_then(|copy| copy.sync_all())
                .and_then(|()| std::fs::rename(&partial, to))
                .and_then(|()| sync_folder(to))
                .map_err(failed)
        });
    if copied.is_err() {
        for leftover in [partial.clone(), side_file(&partial, "-journal")] {
            let _ = std::fs::remove_file(leftover);
        }
    }
    copied
}

//! Creates folders and files that only their owner can open.
//!
//! The index is as private as the store it was built from, regardless of the umask.
//!
//! Invariant: permissions are only ever removed, never added.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::path::Path;

use tempfile::TempDir;

/// Creates a folder and its missing parents for the owner only; restricts one that exists.
pub fn create_folder(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)?;
    restrict_folder(path)
}

/// Creates a temporary folder for the owner only, in `within` or in the system's temporary
/// folder.
pub fn temporary_folder(prefix: &str, within: Option<&Path>) -> io::Result<TempDir> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(prefix);
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700));
    match within {
        Some(folder) => builder.tempdir_in(folder),
        None => builder.tempdir(),
    }
}

/// Returns options that create a file for the owner only.
pub fn file_options() -> OpenOptions {
    let mut options = File::options();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Removes the permissions of everybody but the owner from a folder. A folder that belongs to
/// another user, or that cannot be written, stays as it is.
pub fn restrict_folder(path: &Path) -> io::Result<()> {
    restrict(path, 0o700)
}

/// Removes the permissions of everybody but the owner from a file. A file that belongs to
/// another user, or that cannot be written, stays as it is.
pub fn restrict_file(path: &Path) -> io::Result<()> {
    restrict(path, 0o600)
}

/// Restricts a folder and everything in it; ignores files that disappear meanwhile.
pub fn restrict_all(folder: &Path) -> io::Result<()> {
    restrict_folder(folder)?;
    for file in fs::read_dir(folder)? {
        let file = file?;
        let done = match file.file_type() {
            Ok(kind) if kind.is_dir() => restrict_all(&file.path()),
            Ok(kind) if kind.is_file() => restrict_file(&file.path()),
            Ok(_) => Ok(()),
            Err(error) => Err(error),
        };
        match done {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// Returns whether others than the owner may open a file or folder; `false` if that is
/// unknown.
#[cfg(unix)]
pub fn is_open_to_others(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    fs::symlink_metadata(path)
        .is_ok_and(|meta| !meta.is_symlink() && meta.permissions().mode() & 0o077 != 0)
}

/// Returns whether others than the owner may open a file or folder; `false` if that is
/// unknown.
#[cfg(not(unix))]
pub fn is_open_to_others(_: &Path) -> bool {
    false
}

#[cfg(unix)]
fn restrict(path: &Path, mode: u32) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    let mut permissions = fs::metadata(path)?.permissions();
    if permissions.mode() & 0o777 & !mode == 0 {
        return Ok(());
    }
    permissions.set_mode(permissions.mode() & mode);
    match fs::set_permissions(path, permissions) {
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem
            ) =>
        {
            Ok(())
        }
        done => done,
    }
}

#[cfg(not(unix))]
fn restrict(_: &Path, _: u32) -> io::Result<()> {
    Ok(())
}

//! Finds leftover files, and files that others than their owner can open.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use throughline_model::Timestamp;
use throughline_recall::private_files::is_open_to_others;

use super::{HealthFinding, HealthOptions};

/// A file written more recently than this may still be in use by a process.
const IN_USE_WINDOW: Duration = Duration::from_secs(3_600);

/// Checks the store's files, those beside it and the program's folders.
pub(super) fn check(
    options: &HealthOptions,
    index: Option<PathBuf>,
    now: Timestamp,
) -> Vec<HealthFinding> {
    let mut checker = FileChecker {
        oldest_in_use: SystemTime::from(now) - IN_USE_WINDOW,
        findings: Vec::new(),
    };
    if let Some(file) = &options.store_file {
        for suffix in ["", "-wal", "-shm"] {
            let mut name = file.as_os_str().to_owned();
            name.push(suffix);
            checker.check_permissions(Path::new(&name));
        }
        checker.check_store_folder(file, index.as_deref());
    }
    // Leftovers within the index are reported by the index check.
    if let Some(index) = index.filter(|index| index.is_dir()) {
        checker.check_tree(&index, Leftovers::Ignore);
    }
    for folder in &options.shared_folders {
        checker.check_permissions(folder);
        for path in list_folder(folder) {
            checker.check_name(&path);
        }
    }
    for folder in &options.own_folders {
        checker.check_tree(folder, Leftovers::Report);
    }
    let mut findings = checker.findings;
    findings.sort_by(|a, b| path_of(a).cmp(&path_of(b)));
    findings.dedup();
    findings
}

fn path_of(finding: &HealthFinding) -> Option<&Path> {
    match finding {
        HealthFinding::Leftover { path, .. } | HealthFinding::Permissions { path, .. } => {
            Some(path)
        }
        HealthFinding::Index { .. } | HealthFinding::Lease { .. } => None,
    }
}

/// What to do with leftover files in a folder.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Leftovers {
    Report,
    Ignore,
}

struct FileChecker {
    oldest_in_use: SystemTime,
    findings: Vec<HealthFinding>,
}

impl FileChecker {
    /// Checks the files in the store's folder that belong to a store. Other programs
    /// may have files there as well.
    fn check_store_folder(&mut self, store: &Path, index: Option<&Path>) {
        let folder = match store.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        for path in list_folder(folder) {
            let name = name_of(&path);
            if name.ends_with(".partial") || name.ends_with(".partial-journal") {
                self.check_leftover(&path, "an unfinished backup");
            } else if is_index(&path) && Some(path.as_path()) != index && !has_store(&path) {
                self.check_leftover(&path, "the index of a store that no longer exists");
            }
        }
    }

    fn check_tree(&mut self, path: &Path, leftovers: Leftovers) {
        self.check_permissions(path);
        if leftovers == Leftovers::Report {
            self.check_name(path);
        }
        // Symbolic links are not followed: their targets belong to others.
        if path.is_dir() && !path.is_symlink() {
            for inner in list_folder(path) {
                self.check_tree(&inner, leftovers);
            }
        }
    }

    fn check_name(&mut self, path: &Path) {
        if let Some(what) = describe_leftover(path) {
            self.check_leftover(path, what);
        }
    }

    fn check_permissions(&mut self, path: &Path) {
        if is_open_to_others(path) {
            self.findings.push(HealthFinding::Permissions {
                path: path.to_owned(),
                mode: mode_of(path),
            });
        }
    }

    fn check_leftover(&mut self, path: &Path, what: &'static str) {
        let written = fs::symlink_metadata(path).and_then(|meta| meta.modified());
        if written.is_ok_and(|written| written < self.oldest_in_use) {
            self.findings.push(HealthFinding::Leftover {
                path: path.to_owned(),
                what,
            });
        }
    }
}

/// Describes a temporary file, recognized by its name.
fn describe_leftover(path: &Path) -> Option<&'static str> {
    let name = name_of(path);
    if name.starts_with(".tmp") {
        Some("a temporary file")
    } else if name.starts_with(".adding-") {
        Some("a model that was not added completely")
    } else {
        None
    }
}

fn is_index(path: &Path) -> bool {
    path.extension().is_some_and(|end| end == "index") && path.join("about.json").is_file()
}

/// Whether there is a file that this index may belong to.
fn has_store(index: &Path) -> bool {
    let folder = index.parent().unwrap_or(Path::new("."));
    let mut beside = list_folder(folder).into_iter();
    beside.any(|path| path != index && path.is_file() && path.file_stem() == index.file_stem())
}

fn name_of(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// Lists a folder; empty if it cannot be read or no longer exists.
fn list_folder(folder: &Path) -> Vec<PathBuf> {
    let files = fs::read_dir(folder).into_iter().flatten();
    let mut paths: Vec<_> = files.flatten().map(|file| file.path()).collect();
    paths.sort();
    paths
}

#[cfg(unix)]
fn mode_of(path: &Path) -> String {
    use std::os::unix::fs::PermissionsExt as _;
    let mode = fs::symlink_metadata(path).map_or(0, |meta| meta.permissions().mode());
    format!("{:04o}", mode & 0o7777)
}

#[cfg(not(unix))]
fn mode_of(_: &Path) -> String {
    String::new()
}

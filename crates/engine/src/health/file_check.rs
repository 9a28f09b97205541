//! Finds leftover files, and files that others than their owner may open.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use throughline_model::Timestamp;
use throughline_recall::private_files::is_open_to_others;

use super::{HealthFinding, HealthOptions};

/// A file that was written to more recently may still be needed by a running process.
const IN_USE_WINDOW: Duration = Duration::from_secs(3_600);

/// Checks the store's files, those beside them and the program's folders.
pub(super) fn check(
    options: &HealthOptions,
    index: Option<PathBuf>,
    now: Timestamp,
) -> Vec<HealthFinding> {
    let mut walk = FileChecker {
        oldest_in_use: SystemTime::from(now) - IN_USE_WINDOW,
        findings: Vec::new(),
    };
    if let Some(file) = &options.store_file {
        for suffix in ["", "-wal", "-shm"] {
            let mut name = file.as_os_str().to_owned();
            name.push(suffix);
            walk.check_permissions(Path::new(&name));
        }
        walk.check_store_folder(file, index.as_deref());
    }
    // The index names its own leftovers.
    if let Some(index) = index.filter(|index| index.is_dir()) {
        walk.check_tree(&index, Leftovers::Ignore);
    }
    for folder in &options.shared_folders {
        walk.check_permissions(folder);
        for path in list_folder(folder) {
            walk.check_name(&path);
        }
    }
    for folder in &options.own_folders {
        walk.check_tree(folder, Leftovers::Report);
    }
    let mut findings = walk.findings;
    findings.sort_by(|one, other| path_of(one).cmp(&path_of(other)));
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
    /// Looks at the files in the store's folder that belong to a store. Others may keep
    /// their files there as well.
    fn check_store_folder(&mut self, store: &Path, index: Option<&Path>) {
        let folder = match store.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        for path in list_folder(folder) {
            let name = name_of(&path);
            if name.ends_with(".partial") || name.ends_with(".partial-journal") {
                self.check_leftover(&path, "a backup that was not finished");
            } else if is_index(&path) && Some(path.as_path()) != index && !has_store(&path) {
                self.check_leftover(&path, "the index of a store that is gone");
            }
        }
    }

    fn check_tree(&mut self, path: &Path, leftovers: Leftovers) {
        self.check_permissions(path);
        if leftovers == Leftovers::Report {
            self.check_name(path);
        }
        // A link leads to what somebody else keeps.
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

/// What a file was, where its name says that it was only needed for a while.
fn describe_leftover(path: &Path) -> Option<&'static str> {
    let name = name_of(path);
    if name.starts_with(".tmp") {
        Some("a temporary file")
    } else if name.starts_with(".adding-") {
        Some("a model that was not added")
    } else {
        None
    }
}

fn is_index(path: &Path) -> bool {
    path.extension().is_some_and(|end| end == "index") && path.join("about.json").is_file()
}

/// Whether some file has the name that an index is called after.
fn has_store(index: &Path) -> bool {
    let folder = index.parent().unwrap_or(Path::new("."));
    let mut beside = list_folder(folder).into_iter();
    beside.any(|path| path != index && path.is_file() && path.file_stem() == index.file_stem())
}

fn name_of(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// What is in a folder; nothing where it cannot be read or is gone by now.
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

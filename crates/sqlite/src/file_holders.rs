//! Finds the processes that have a store open, on systems that expose it (Linux's /proc).

use std::path::Path;

use crate::open::side_file;

/// Lists other processes that have the main file or its write-ahead log open, by name and
/// process id. Empty where the system does not expose them.
pub(crate) fn find_file_holders(store: &Path) -> Vec<String> {
    let files = [store.to_owned(), side_file(store, "-wal")];
    let files: Vec<_> = files
        .iter()
        .filter_map(|file| file.canonicalize().ok())
        .collect();
    let Ok(processes) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for process in processes.flatten() {
        let number = process.file_name().to_string_lossy().into_owned();
        if number.parse() == Ok(std::process::id()) || number.parse::<u32>().is_err() {
            continue;
        }
        // Other users' processes cannot be inspected.
        let Ok(open) = std::fs::read_dir(process.path().join("fd")) else {
            continue;
        };
        let is_open = open
            .flatten()
            .filter_map(|file| std::fs::read_link(file.path()).ok())
            .any(|file| files.contains(&file));
        if is_open {
            let name = std::fs::read_to_string(process.path().join("comm")).unwrap_or_default();
            found.push(format!("{} (process {number})", name.trim()));
        }
    }
    found
}

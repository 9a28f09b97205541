//! Loads project context for a request: instructions, recent commits and the folder tree.
//!
//! Read for every request, so that it is current.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use throughline::context::ContextDocument;

/// Files with instructions for agents; the first found is used.
const INSTRUCTION_FILES: [&str; 2] = ["AGENTS.md", "CLAUDE.md"];
/// Maximum number of lines of the folder tree.
const MAX_TREE_LINES: usize = 60;

/// Loads the documents of a folder, most important first.
pub(crate) fn load(folder: &Path) -> Vec<ContextDocument> {
    let mut documents = Vec::new();
    if let Some((path, text)) = find_instructions(folder) {
        let name = format!("instructions ({})", path.display());
        documents.push(ContextDocument { name, text });
    }
    let workspace = folder.display().to_string();
    let parts = [
        ("workspace", Some(workspace)),
        ("recent commits", recent_commits(folder)),
        ("structure", folder_tree(folder)),
    ];
    for (name, text) in parts {
        if let Some(text) = text.filter(|text| !text.is_empty()) {
            let name = name.to_owned();
            documents.push(ContextDocument { name, text });
        }
    }
    documents
}

/// Finds the nearest instructions at or above the folder.
fn find_instructions(folder: &Path) -> Option<(PathBuf, String)> {
    folder.ancestors().find_map(|folder| {
        INSTRUCTION_FILES.iter().find_map(|name| {
            let path = folder.join(name);
            let text = std::fs::read_to_string(&path).ok()?;
            Some((path, text))
        })
    })
}

fn recent_commits(folder: &Path) -> Option<String> {
    let output = Command::new("git")
        .arg("-C")
        .arg(folder)
        .args(["log", "-5", "--format=%h - %s"])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&output.stdout);
    output.status.success().then(|| text.trim_end().to_owned())
}

/// Returns the folder tree, two levels deep, without hidden files and build output.
fn folder_tree(folder: &Path) -> Option<String> {
    let mut lines = Vec::new();
    for (name, is_folder) in list_folder(folder)? {
        lines.push(if is_folder {
            format!("{name}/")
        } else {
            name.clone()
        });
        if is_folder {
            let inner = list_folder(&folder.join(&name)).unwrap_or_default();
            lines.extend(inner.into_iter().map(|(inner, is_folder)| {
                let slash = if is_folder { "/" } else { "" };
                format!("  {inner}{slash}")
            }));
        }
    }
    if lines.len() > MAX_TREE_LINES {
        let more = lines.len() - MAX_TREE_LINES;
        lines.truncate(MAX_TREE_LINES);
        lines.push(format!("… {more} more"));
    }
    Some(lines.join("\n"))
}

fn list_folder(folder: &Path) -> Option<Vec<(String, bool)>> {
    let mut names: Vec<_> = std::fs::read_dir(folder)
        .ok()?
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let name = entry.file_name().into_string().ok()?;
            let is_folder = entry.file_type().ok()?.is_dir();
            let built = is_folder && matches!(name.as_str(), "target" | "node_modules");
            (!name.starts_with('.') && !built).then_some((name, is_folder))
        })
        .collect();
    names.sort();
    Some(names)
}

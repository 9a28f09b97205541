//! Where agents' files are looked for.

use std::path::{Path, PathBuf};

/// The folders that agents are looked for in, the nearest first.
pub fn agent_folders(project: Option<&Path>, config: &Path) -> Vec<PathBuf> {
    let project = project.map(|folder| folder.join(".throughline").join("agents"));
    project.into_iter().chain([config.join("agents")]).collect()
}

/// The files that may be meant by what a person calls an agent: a path, or a name.
pub fn agent_candidates(name: &str, project: Option<&Path>, config: &Path) -> Vec<PathBuf> {
    let is_path = Path::new(name).components().count() != 1
        || Path::new(name).extension().is_some_and(|end| end == "md");
    if is_path {
        return vec![PathBuf::from(name)];
    }
    let folders = agent_folders(project, config).into_iter();
    folders
        .map(|folder| folder.join(format!("{name}.md")))
        .collect()
}

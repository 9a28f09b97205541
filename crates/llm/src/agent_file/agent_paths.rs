//! Where agent files are searched for.

use std::path::{Path, PathBuf};

/// Returns the folders that may contain agent files, the most specific first.
pub fn agent_folders(project: Option<&Path>, config: &Path) -> Vec<PathBuf> {
    let project = project.map(|folder| folder.join(".throughline").join("agents"));
    project.into_iter().chain([config.join("agents")]).collect()
}

/// Returns the files that `name` may refer to; it is a path or an agent's name.
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

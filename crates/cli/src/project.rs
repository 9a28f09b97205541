//! Determines the project of a folder from its git repository or the folder itself.

use std::path::{Component, Path, PathBuf};
use std::process::{Command, Stdio};

use throughline::{Project, ProjectMarker, Throughline};

/// Returns the project of a folder, registering it if it is new.
pub(crate) async fn resolve(tl: &Throughline, folder: &Path) -> anyhow::Result<Option<Project>> {
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    let git = find_git(&folder);
    let top = git
        .as_ref()
        .map_or_else(|| find_marked_folder(&folder), |git| git.top.clone());
    let marker = ProjectMarker::Folder(top.to_string_lossy().into_owned());

    let remote = git.as_ref().and_then(GitWorktree::remote);
    let mut marks: Vec<ProjectMarker> = remote.iter().cloned().map(ProjectMarker::Remote).collect();
    if let Some(git) = git.filter(|_| remote.is_none()) {
        // Asking git for the root commit reads the whole history, so it is done only for
        // unknown folders.
        let known = tl.projects().await?;
        if !known
            .iter()
            .any(|project| project.markers.contains(&marker))
        {
            marks.extend(git.root_commit().map(ProjectMarker::RootCommit));
        }
    }
    marks.push(marker);
    marks.extend(inode(&top).map(ProjectMarker::Inode));

    let name = remote
        .as_deref()
        .and_then(|remote| remote.rsplit('/').next())
        .map(ToOwned::to_owned)
        .or_else(|| Some(top.file_name()?.to_string_lossy().into_owned()))
        .unwrap_or_else(|| "/".to_owned());
    let gone = |path: &str| !Path::new(path).exists();
    Ok(tl.find_or_create_project(&name, &marks, gone).await?)
}

/// Returns the project of a folder named by another system. If the folder does not exist
/// here, the repository's address identifies the project.
pub(crate) async fn resolve_named(
    tl: &Throughline,
    folder: &Path,
    remote: Option<&str>,
) -> anyhow::Result<Option<Project>> {
    let remote = remote.and_then(normalize_remote);
    if folder.is_dir() || remote.is_none() {
        return resolve(tl, folder).await;
    }
    let mut marks: Vec<ProjectMarker> = remote.iter().cloned().map(ProjectMarker::Remote).collect();
    marks.push(ProjectMarker::Folder(folder.to_string_lossy().into_owned()));
    let name = remote
        .as_deref()
        .and_then(|remote| remote.rsplit('/').next());
    let name = name.unwrap_or_default().to_owned();
    let gone = |path: &str| !Path::new(path).exists();
    Ok(tl.find_or_create_project(&name, &marks, gone).await?)
}

/// Returns a path relative to the project's root, or `None` if it is outside. The path is
/// relative to `start`, or else to the root. The file need not exist.
pub(crate) fn relative_path(project: &Project, start: Option<&Path>, path: &str) -> Option<String> {
    let folder = project.markers.iter().find_map(|mark| match mark {
        ProjectMarker::Folder(folder) => Some(PathBuf::from(folder)),
        _ => None,
    });
    let top = folder.unwrap_or_default();
    let start = start.map(|start| start.canonicalize().unwrap_or_else(|_| start.to_owned()));
    let whole = start.as_deref().unwrap_or(&top).join(path);
    // Purely lexical, so that the file need not exist.
    let mut plain = PathBuf::new();
    for part in whole.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                plain.pop();
            }
            part => plain.push(part),
        }
    }
    let inside = plain.strip_prefix(&top).ok()?;
    let parts: Vec<_> = inside.iter().map(|part| part.to_string_lossy()).collect();
    match parts.join("/") {
        inside if inside.starts_with('/') => None,
        inside if inside.is_empty() => Some(".".to_owned()),
        inside => Some(inside),
    }
}

/// Returns the nearest folder at or above this one with a `.throughline` folder, or this one.
fn find_marked_folder(folder: &Path) -> PathBuf {
    let mut folders = folder.ancestors();
    folders
        .find(|folder| folder.join(".throughline").is_dir())
        .unwrap_or(folder)
        .to_owned()
}

/// A git work tree.
#[derive(Debug)]
struct GitWorktree {
    /// Its root folder.
    top: PathBuf,
    /// The shared git folder with its configuration.
    common_dir: PathBuf,
}

fn find_git(folder: &Path) -> Option<GitWorktree> {
    let top = folder
        .ancestors()
        .find(|folder| folder.join(".git").exists())?;
    let dot = top.join(".git");
    let common = if dot.is_dir() {
        dot
    } else {
        // A linked work tree: a file with the path of the git folder.
        let text = std::fs::read_to_string(&dot).ok()?;
        let own = top.join(text.strip_prefix("gitdir:")?.trim());
        match std::fs::read_to_string(own.join("commondir")) {
            Ok(common) => own.join(common.trim()),
            Err(_) => own,
        }
    };
    Some(GitWorktree {
        top: top.to_owned(),
        common_dir: common,
    })
}

impl GitWorktree {
    /// Returns the address of `origin`, or of the first remote, normalized independent of the
    /// protocol.
    fn remote(&self) -> Option<String> {
        let config = std::fs::read_to_string(self.common_dir.join("config")).ok()?;
        let mut section = String::new();
        let mut remotes: Vec<(String, String)> = Vec::new();
        for line in config.lines().map(str::trim) {
            if line.starts_with('[') {
                line.clone_into(&mut section);
            } else if let Some((key, value)) = line.split_once('=')
                && key.trim() == "url"
                && let Some(name) = section.strip_prefix("[remote \"")
            {
                remotes.push((
                    name.trim_end_matches("\"]").to_owned(),
                    value.trim().to_owned(),
                ));
            }
        }
        let origin = remotes
            .iter()
            .find(|(name, _)| name == "origin")
            .or(remotes.first());
        origin.and_then(|(_, url)| normalize_remote(url))
    }

    /// Returns the root commit.
    fn root_commit(&self) -> Option<String> {
        let output = Command::new("git")
            .arg("-C")
            .arg(&self.top)
            .args(["rev-list", "--max-parents=0", "HEAD"])
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .output()
            .ok()?;
        let commits = String::from_utf8(output.stdout).ok()?;
        // A history may have several roots; the smallest is stable.
        commits
            .lines()
            .map(str::trim)
            .filter(|c| !c.is_empty())
            .min()
            .map(ToOwned::to_owned)
    }
}

/// Normalizes a remote's URL to `host/path`. Returns `None` for a local path, which does not
/// identify a moved folder.
fn normalize_remote(url: &str) -> Option<String> {
    let rest = match url.split_once("://") {
        Some(("file", _)) => return None,
        Some((_, rest)) => rest.to_owned(),
        // user@host:path
        None => {
            let (host, path) = url.split_once(':')?;
            if host.contains('/') || host.len() < 2 {
                return None;
            }
            format!("{host}/{path}")
        }
    };
    let rest = rest
        .split_once('@')
        .map_or(rest.as_str(), |(_, after)| after);
    let (host, path) = rest.split_once('/')?;
    let host = host.split(':').next()?.to_lowercase();
    let path = path.trim_matches('/').trim_end_matches(".git");
    (!host.is_empty() && !path.is_empty()).then(|| format!("{host}/{path}"))
}

#[cfg(unix)]
fn inode(folder: &Path) -> Option<String> {
    use std::os::unix::fs::MetadataExt;
    let metadata = std::fs::metadata(folder).ok()?;
    Some(format!("{}:{}", metadata.dev(), metadata.ino()))
}

#[cfg(not(unix))]
fn inode(_: &Path) -> Option<String> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_repository_has_one_address_however_it_is_reached() {
        for url in [
            "https://example.org/team/app.git",
            "https://user:token@example.org/team/app",
            "git@example.org:team/app.git",
            "ssh://git@example.org:22/team/app.git",
            "https://EXAMPLE.org/team/app/",
        ] {
            assert_eq!(
                normalize_remote(url).as_deref(),
                Some("example.org/team/app"),
                "{url}"
            );
        }
    }

    #[test]
    fn a_path_on_this_machine_is_no_remote() {
        for url in [
            "/srv/git/app.git",
            "../app",
            "file:///srv/app.git",
            "C:\\app",
        ] {
            assert_eq!(normalize_remote(url), None, "{url}");
        }
    }

    #[test]
    fn a_path_is_relative_to_the_top_of_its_project() {
        let project = Project {
            id: "dir:/app".parse().unwrap(),
            name: "app".into(),
            markers: vec![ProjectMarker::Folder("/app".into())],
        };
        let relative =
            |start: Option<&str>, path| relative_path(&project, start.map(Path::new), path);
        assert_eq!(
            relative(Some("/app/src"), "a.rs").as_deref(),
            Some("src/a.rs")
        );
        assert_eq!(
            relative(Some("/app/src"), "../docs/").as_deref(),
            Some("docs")
        );
        assert_eq!(relative(None, "src/a.rs").as_deref(), Some("src/a.rs"));
        assert_eq!(relative(None, "/app").as_deref(), Some("."));
        assert_eq!(relative(Some("/app"), "../other"), None);
        assert_eq!(relative(Some("/app"), "/etc/hosts"), None);
    }
}

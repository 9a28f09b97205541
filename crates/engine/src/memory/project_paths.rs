//! Which files a fact belongs to, wherever a project's folder is.
//!
//! Facts name files relative to the project's top; sessions name them as they please:
//! relative to the folder they are in, or from the root. Only names are compared: the
//! files need not be there.

/// Where a session is: its folder, and the top of its project.
#[derive(Clone, Debug, Default)]
pub(super) struct ProjectPaths {
    pub(super) workspace: Option<String>,
    pub(super) root: Option<String>,
}

impl ProjectPaths {
    /// A path relative to the project's top; none where it is outside.
    pub(super) fn to_relative(&self, path: &str) -> Option<String> {
        let path = path.replace('\\', "/");
        let path = path.trim_start_matches("file://");
        if !is_absolute(path) {
            let workspace = self.workspace.as_deref().filter(|_| self.root.is_some());
            return match workspace {
                Some(workspace) => {
                    self.strip_root(&normalize_path(&format!("{workspace}/{path}"))?)
                }
                None => normalize_path(path),
            };
        }
        self.strip_root(&normalize_path(path)?)
    }

    fn strip_root(&self, path: &str) -> Option<String> {
        let tops = [&self.root, &self.workspace];
        tops.into_iter().flatten().find_map(|top| {
            let top = normalize_path(&top.replace('\\', "/"))?;
            match path.strip_prefix(&top)? {
                "" => Some(".".to_owned()),
                rest => rest.strip_prefix('/').map(ToOwned::to_owned),
            }
        })
    }
}

fn is_absolute(path: &str) -> bool {
    path.starts_with(['/', '~']) || path.chars().nth(1) == Some(':')
}

/// A path without `.` and `..`; none where it leads out of where it starts.
fn normalize_path(path: &str) -> Option<String> {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    let root = if path.starts_with('/') { "/" } else { "" };
    Some(format!("{root}{}", parts.join("/")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_one_name_however_a_session_calls_it() {
        let ground = ProjectPaths {
            workspace: Some("/home/ada/app/src".into()),
            root: Some("/home/ada/app".into()),
        };
        for path in [
            "auth.rs",
            "./auth.rs",
            "../src/auth.rs",
            "/home/ada/app/src/auth.rs",
            "/home/ada/app/./src/x/../auth.rs",
        ] {
            assert_eq!(
                ground.to_relative(path).as_deref(),
                Some("src/auth.rs"),
                "{path}"
            );
        }
        for path in [
            "/etc/hosts",
            "/home/ada/application/a.rs",
            "../../../other/x",
            "~/notes",
        ] {
            assert_eq!(ground.to_relative(path), None, "{path}");
        }
        assert_eq!(
            ProjectPaths::default().to_relative("./a/b.rs").as_deref(),
            Some("a/b.rs")
        );
    }
}

//! Converts file paths to paths relative to a project's root.
//!
//! Facts name files relative to the project's root; sessions name them relative to
//! their workspace or absolutely. Only names are compared: the files need not exist.

/// The workspace folder of a session and the root of its project.
#[derive(Clone, Debug, Default)]
pub(super) struct ProjectPaths {
    pub(super) workspace: Option<String>,
    pub(super) root: Option<String>,
}

impl ProjectPaths {
    /// Returns a path relative to the project's root; `None` if it is outside.
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
        let roots = [&self.root, &self.workspace];
        roots.into_iter().flatten().find_map(|root| {
            let root = normalize_path(&root.replace('\\', "/"))?;
            match path.strip_prefix(&root)? {
                "" => Some(".".to_owned()),
                rest => rest.strip_prefix('/').map(ToOwned::to_owned),
            }
        })
    }
}

fn is_absolute(path: &str) -> bool {
    path.starts_with(['/', '~']) || path.chars().nth(1) == Some(':')
}

/// Resolves `.` and `..`; `None` if the path leads outside of where it starts.
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
    fn every_path_to_a_file_becomes_the_same_relative_path() {
        let paths = ProjectPaths {
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
                paths.to_relative(path).as_deref(),
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
            assert_eq!(paths.to_relative(path), None, "{path}");
        }
        assert_eq!(
            ProjectPaths::default().to_relative("./a/b.rs").as_deref(),
            Some("a/b.rs")
        );
    }
}

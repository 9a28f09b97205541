//! Which files a fact belongs to, wherever a project's folder is.
//!
//! Facts name files relative to the project's top; sessions name them as they please:
//! relative to the folder they are in, or from the root. Only names are compared: the
//! files need not be there.

/// Where a session is: its folder, and the top of its project.
#[derive(Clone, Debug, Default)]
pub(super) struct Ground {
    pub(super) workspace: Option<String>,
    pub(super) top: Option<String>,
}

impl Ground {
    /// A path relative to the project's top; none where it is outside.
    pub(super) fn relative(&self, path: &str) -> Option<String> {
        let path = path.replace('\\', "/");
        let path = path.trim_start_matches("file://");
        if !is_rooted(path) {
            let workspace = self.workspace.as_deref().filter(|_| self.top.is_some());
            return match workspace {
                Some(workspace) => self.inside(&plain(&format!("{workspace}/{path}"))?),
                None => plain(path),
            };
        }
        self.inside(&plain(path)?)
    }

    fn inside(&self, path: &str) -> Option<String> {
        let tops = [&self.top, &self.workspace];
        tops.into_iter().flatten().find_map(|top| {
            let top = plain(&top.replace('\\', "/"))?;
            match path.strip_prefix(&top)? {
                "" => Some(".".to_owned()),
                rest => rest.strip_prefix('/').map(ToOwned::to_owned),
            }
        })
    }
}

fn is_rooted(path: &str) -> bool {
    path.starts_with(['/', '~']) || path.chars().nth(1) == Some(':')
}

/// A path without `.` and `..`; none where it leads out of where it starts.
fn plain(path: &str) -> Option<String> {
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
        let ground = Ground {
            workspace: Some("/home/ada/app/src".into()),
            top: Some("/home/ada/app".into()),
        };
        for path in [
            "auth.rs",
            "./auth.rs",
            "../src/auth.rs",
            "/home/ada/app/src/auth.rs",
            "/home/ada/app/./src/x/../auth.rs",
        ] {
            assert_eq!(
                ground.relative(path).as_deref(),
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
            assert_eq!(ground.relative(path), None, "{path}");
        }
        assert_eq!(
            Ground::default().relative("./a/b.rs").as_deref(),
            Some("a/b.rs")
        );
    }
}

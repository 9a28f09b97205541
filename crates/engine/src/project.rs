//! Identifies projects by markers: git remote, first commit, folder and inode.

use throughline_model::{Project, ProjectId, ProjectMarker};
use throughline_store::SessionFilter;

use crate::{Error, Throughline};

impl Throughline {
    /// Returns the project with these markers, creating it if it is not known.
    ///
    /// A git remote identifies a project, and different remotes mean different
    /// projects. Without a remote, the first commit identifies it, then the folder, and
    /// finally the folder's inode, provided that the folder it was known by no longer
    /// exists (`is_gone`).
    pub async fn find_or_create_project(
        &self,
        name: &str,
        markers: &[ProjectMarker],
        is_gone: impl Fn(&str) -> bool,
    ) -> Result<Option<Project>, Error> {
        let Some(strongest) = markers.first() else {
            return Ok(None);
        };
        let projects = self.store.list_projects(&self.owner).await?;
        if let Some(known) = find_known_project(&projects, markers, is_gone) {
            let mut project = known.clone();
            merge_markers(&mut project, markers);
            if project != *known {
                self.store.put_project(&self.owner, &project).await?;
            }
            return Ok(Some(project));
        }
        let project = Project {
            id: free_id(&projects, &strongest.project_id()?)?,
            name: name.to_owned(),
            markers: markers.to_vec(),
        };
        self.store.put_project(&self.owner, &project).await?;
        Ok(Some(project))
    }

    /// Returns the owner's projects.
    pub async fn projects(&self) -> Result<Vec<Project>, Error> {
        Ok(self.store.list_projects(&self.owner).await?)
    }

    /// Returns whether any session belongs to the project with this id. Clients
    /// elsewhere may name projects that have no folder here and so are not among
    /// [`projects`](Self::projects).
    pub async fn is_project(&self, id: &ProjectId) -> Result<bool, Error> {
        let filter = SessionFilter {
            project: Some(id.clone()),
            ..SessionFilter::default()
        };
        Ok(!self.list(&filter, None, 1).await?.items.is_empty())
    }
}

/// Returns an unused id: another project may have had the same marker before.
fn free_id(projects: &[Project], preferred: &ProjectId) -> Result<ProjectId, Error> {
    let mut id = preferred.clone();
    let mut next = 2_u32;
    while projects.iter().any(|project| project.id == id) {
        id = format!("{preferred}#{next}").parse()?;
        next += 1;
    }
    Ok(id)
}

fn find_remote(markers: &[ProjectMarker]) -> Option<&ProjectMarker> {
    markers
        .iter()
        .find(|marker| matches!(marker, ProjectMarker::Remote(_)))
}

fn folder_path(project: &Project) -> Option<&str> {
    project.markers.iter().find_map(|marker| match marker {
        ProjectMarker::Folder(path) => Some(path.as_str()),
        _ => None,
    })
}

fn find_known_project<'a>(
    projects: &'a [Project],
    markers: &[ProjectMarker],
    is_gone: impl Fn(&str) -> bool,
) -> Option<&'a Project> {
    let compatible =
        |project: &&Project| match (find_remote(markers), find_remote(&project.markers)) {
            (Some(ours), Some(theirs)) => ours == theirs,
            _ => true,
        };
    let with = |is_kind: fn(&ProjectMarker) -> bool| {
        let ours: Vec<_> = markers.iter().filter(|marker| is_kind(marker)).collect();
        projects
            .iter()
            .filter(compatible)
            .find(|project| ours.iter().any(|marker| project.markers.contains(marker)))
    };
    with(|marker| matches!(marker, ProjectMarker::Remote(_)))
        .or_else(|| with(|marker| matches!(marker, ProjectMarker::RootCommit(_))))
        .or_else(|| with(|marker| matches!(marker, ProjectMarker::Folder(_))))
        .or_else(|| {
            with(|marker| matches!(marker, ProjectMarker::Inode(_)))
                .filter(|project| folder_path(project).is_some_and(&is_gone))
        })
}

/// Merges markers into a project. Folder and inode replace the old ones; commits and
/// remotes accumulate.
fn merge_markers(project: &mut Project, markers: &[ProjectMarker]) {
    for marker in markers {
        match marker {
            ProjectMarker::Folder(_) => project
                .markers
                .retain(|m| !matches!(m, ProjectMarker::Folder(_))),
            ProjectMarker::Inode(_) => project
                .markers
                .retain(|m| !matches!(m, ProjectMarker::Inode(_))),
            ProjectMarker::Remote(_) | ProjectMarker::RootCommit(_) => {}
        }
        if !project.markers.contains(marker) {
            project.markers.push(marker.clone());
        }
    }
    project.markers.sort();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn project(id: &str, markers: &[ProjectMarker]) -> Project {
        Project {
            id: id.parse().unwrap(),
            name: id.to_owned(),
            markers: markers.to_vec(),
        }
    }

    fn folder_marker(path: &str) -> ProjectMarker {
        ProjectMarker::Folder(path.into())
    }

    #[test]
    fn a_moved_repository_is_recognised_by_its_remote() {
        let known = [project(
            "p",
            &[
                ProjectMarker::Remote("x.org/p".into()),
                folder_marker("/old"),
            ],
        )];
        let markers = [
            ProjectMarker::Remote("x.org/p".into()),
            folder_marker("/new"),
        ];
        assert_eq!(
            find_known_project(&known, &markers, |_| false),
            Some(&known[0])
        );
    }

    #[test]
    fn a_fork_of_a_repository_is_another_project() {
        let root = ProjectMarker::RootCommit("abc".into());
        let known = [project(
            "p",
            &[ProjectMarker::Remote("x.org/p".into()), root.clone()],
        )];
        let fork = [ProjectMarker::Remote("x.org/mine".into()), root.clone()];
        assert_eq!(find_known_project(&known, &fork, |_| false), None);
        // Before it had a remote it was known by its first commit.
        assert_eq!(
            find_known_project(&known, &[root], |_| false),
            Some(&known[0])
        );
    }

    #[test]
    fn a_moved_folder_is_recognised_once_the_old_one_is_gone() {
        let inode = ProjectMarker::Inode("1:2".into());
        let known = [project("p", &[folder_marker("/old"), inode.clone()])];
        let markers = [folder_marker("/new"), inode];
        assert_eq!(
            find_known_project(&known, &markers, |_| true),
            Some(&known[0])
        );
        assert_eq!(find_known_project(&known, &markers, |_| false), None);
    }

    #[test]
    fn a_new_folder_replaces_the_old_one() {
        let mut known = project(
            "p",
            &[
                folder_marker("/old"),
                ProjectMarker::RootCommit("abc".into()),
            ],
        );
        merge_markers(&mut known, &[folder_marker("/new")]);
        assert_eq!(
            known.markers,
            [
                ProjectMarker::RootCommit("abc".into()),
                folder_marker("/new")
            ]
        );
    }
}

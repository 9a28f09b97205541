//! Recognising a project by its marks.

use throughline_model::{Project, ProjectId, ProjectMarker};
use throughline_store::SessionFilter;

use crate::{Error, Throughline};

impl Throughline {
    /// The project with these marks: one that is known, or a new one.
    ///
    /// A git remote says which project it is, and two different remotes say that it is
    /// two. Without a remote, the first commit does; then the folder; then, where the
    /// folder it was known in is gone (`gone` tells), the file system's number for it.
    pub async fn find_or_create_project(
        &self,
        name: &str,
        marks: &[ProjectMarker],
        gone: impl Fn(&str) -> bool,
    ) -> Result<Option<Project>, Error> {
        let Some(strongest) = marks.first() else {
            return Ok(None);
        };
        let projects = self.store.list_projects(&self.owner).await?;
        if let Some(known) = find_known_project(&projects, marks, gone) {
            let mut project = known.clone();
            merge_marks(&mut project, marks);
            if project != *known {
                self.store.put_project(&self.owner, &project).await?;
            }
            return Ok(Some(project));
        }
        let project = Project {
            id: free_id(&projects, &strongest.project_id()?)?,
            name: name.to_owned(),
            markers: marks.to_vec(),
        };
        self.store.put_project(&self.owner, &project).await?;
        Ok(Some(project))
    }

    /// The owner's projects.
    pub async fn projects(&self) -> Result<Vec<Project>, Error> {
        Ok(self.store.list_projects(&self.owner).await?)
    }

    /// Whether a session belongs to a project with this id. Programs elsewhere name projects
    /// that have no folder here, and so are not among [`projects`](Self::projects).
    pub async fn is_project(&self, id: &ProjectId) -> Result<bool, Error> {
        let filter = SessionFilter {
            project: Some(id.clone()),
            ..SessionFilter::default()
        };
        Ok(!self.list(&filter, None, 1).await?.items.is_empty())
    }
}

/// An id that no project has: another one may have had this place before.
fn free_id(projects: &[Project], wanted: &ProjectId) -> Result<ProjectId, Error> {
    let mut id = wanted.clone();
    let mut next = 2_u32;
    while projects.iter().any(|project| project.id == id) {
        id = format!("{wanted}#{next}").parse()?;
        next += 1;
    }
    Ok(id)
}

fn find_remote(marks: &[ProjectMarker]) -> Option<&ProjectMarker> {
    marks
        .iter()
        .find(|mark| matches!(mark, ProjectMarker::Remote(_)))
}

fn folder_path(project: &Project) -> Option<&str> {
    project.markers.iter().find_map(|mark| match mark {
        ProjectMarker::Folder(path) => Some(path.as_str()),
        _ => None,
    })
}

fn find_known_project<'a>(
    projects: &'a [Project],
    marks: &[ProjectMarker],
    gone: impl Fn(&str) -> bool,
) -> Option<&'a Project> {
    let compatible = |project: &&Project| match (find_remote(marks), find_remote(&project.markers))
    {
        (Some(ours), Some(theirs)) => ours == theirs,
        _ => true,
    };
    let with = |wanted: fn(&ProjectMarker) -> bool| {
        let ours: Vec<_> = marks.iter().filter(|mark| wanted(mark)).collect();
        projects
            .iter()
            .filter(compatible)
            .find(|project| ours.iter().any(|mark| project.markers.contains(mark)))
    };
    with(|mark| matches!(mark, ProjectMarker::Remote(_)))
        .or_else(|| with(|mark| matches!(mark, ProjectMarker::RootCommit(_))))
        .or_else(|| with(|mark| matches!(mark, ProjectMarker::Folder(_))))
        .or_else(|| {
            with(|mark| matches!(mark, ProjectMarker::Inode(_)))
                .filter(|project| folder_path(project).is_some_and(&gone))
        })
}

/// Takes in marks: what it is now replaces what it was; commits and remotes add up.
fn merge_marks(project: &mut Project, marks: &[ProjectMarker]) {
    for mark in marks {
        match mark {
            ProjectMarker::Folder(_) => project
                .markers
                .retain(|m| !matches!(m, ProjectMarker::Folder(_))),
            ProjectMarker::Inode(_) => project
                .markers
                .retain(|m| !matches!(m, ProjectMarker::Inode(_))),
            ProjectMarker::Remote(_) | ProjectMarker::RootCommit(_) => {}
        }
        if !project.markers.contains(mark) {
            project.markers.push(mark.clone());
        }
    }
    project.markers.sort();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn project(id: &str, marks: &[ProjectMarker]) -> Project {
        Project {
            id: id.parse().unwrap(),
            name: id.to_owned(),
            markers: marks.to_vec(),
        }
    }

    fn folder_mark(path: &str) -> ProjectMarker {
        ProjectMarker::Folder(path.into())
    }

    #[test]
    fn a_moved_repository_is_recognised_by_its_remote() {
        let known = [project(
            "p",
            &[ProjectMarker::Remote("x.org/p".into()), folder_mark("/old")],
        )];
        let marks = [ProjectMarker::Remote("x.org/p".into()), folder_mark("/new")];
        assert_eq!(
            find_known_project(&known, &marks, |_| false),
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
        let known = [project("p", &[folder_mark("/old"), inode.clone()])];
        let marks = [folder_mark("/new"), inode];
        assert_eq!(
            find_known_project(&known, &marks, |_| true),
            Some(&known[0])
        );
        assert_eq!(find_known_project(&known, &marks, |_| false), None);
    }

    #[test]
    fn a_new_folder_replaces_the_old_one() {
        let mut known = project(
            "p",
            &[folder_mark("/old"), ProjectMarker::RootCommit("abc".into())],
        );
        merge_marks(&mut known, &[folder_mark("/new")]);
        assert_eq!(
            known.markers,
            [ProjectMarker::RootCommit("abc".into()), folder_mark("/new")]
        );
    }
}

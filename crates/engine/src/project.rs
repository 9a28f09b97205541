//! Recognising a project by its marks.

use throughline_model::{Mark, Project, ProjectId};
use throughline_store::Filter;

use crate::{Error, Throughline};

impl Throughline {
    /// The project with these marks: one that is known, or a new one.
    ///
    /// A git remote says which project it is, and two different remotes say that it is
    /// two. Without a remote, the first commit does; then the folder; then, where the
    /// folder it was known in is gone (`gone` tells), the file system's number for it.
    pub async fn project(
        &self,
        name: &str,
        marks: &[Mark],
        gone: impl Fn(&str) -> bool,
    ) -> Result<Option<Project>, Error> {
        let Some(strongest) = marks.first() else {
            return Ok(None);
        };
        let projects = self.store.projects(&self.owner).await?;
        if let Some(known) = recognise(&projects, marks, gone) {
            let mut project = known.clone();
            learn(&mut project, marks);
            if project != *known {
                self.store.put_project(&self.owner, &project).await?;
            }
            return Ok(Some(project));
        }
        let project = Project {
            id: free_id(&projects, &strongest.project_id()?)?,
            name: name.to_owned(),
            marks: marks.to_vec(),
        };
        self.store.put_project(&self.owner, &project).await?;
        Ok(Some(project))
    }

    /// The owner's projects.
    pub async fn projects(&self) -> Result<Vec<Project>, Error> {
        Ok(self.store.projects(&self.owner).await?)
    }

    /// Whether a session belongs to a project with this id. Programs elsewhere name projects
    /// that have no folder here, and so are not among [`projects`](Self::projects).
    pub async fn is_project(&self, id: &ProjectId) -> Result<bool, Error> {
        let filter = Filter {
            project: Some(id.clone()),
            ..Filter::default()
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

fn remote(marks: &[Mark]) -> Option<&Mark> {
    marks.iter().find(|mark| matches!(mark, Mark::Remote(_)))
}

fn folder(project: &Project) -> Option<&str> {
    project.marks.iter().find_map(|mark| match mark {
        Mark::Folder(path) => Some(path.as_str()),
        _ => None,
    })
}

fn recognise<'a>(
    projects: &'a [Project],
    marks: &[Mark],
    gone: impl Fn(&str) -> bool,
) -> Option<&'a Project> {
    let compatible = |project: &&Project| match (remote(marks), remote(&project.marks)) {
        (Some(ours), Some(theirs)) => ours == theirs,
        _ => true,
    };
    let with = |wanted: fn(&Mark) -> bool| {
        let ours: Vec<_> = marks.iter().filter(|mark| wanted(mark)).collect();
        projects
            .iter()
            .filter(compatible)
            .find(|project| ours.iter().any(|mark| project.marks.contains(mark)))
    };
    with(|mark| matches!(mark, Mark::Remote(_)))
        .or_else(|| with(|mark| matches!(mark, Mark::RootCommit(_))))
        .or_else(|| with(|mark| matches!(mark, Mark::Folder(_))))
        .or_else(|| {
            with(|mark| matches!(mark, Mark::Inode(_)))
                .filter(|project| folder(project).is_some_and(&gone))
        })
}

/// Takes in marks: what it is now replaces what it was; commits and remotes add up.
fn learn(project: &mut Project, marks: &[Mark]) {
    for mark in marks {
        match mark {
            Mark::Folder(_) => project.marks.retain(|m| !matches!(m, Mark::Folder(_))),
            Mark::Inode(_) => project.marks.retain(|m| !matches!(m, Mark::Inode(_))),
            Mark::Remote(_) | Mark::RootCommit(_) => {}
        }
        if !project.marks.contains(mark) {
            project.marks.push(mark.clone());
        }
    }
    project.marks.sort();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn project(id: &str, marks: &[Mark]) -> Project {
        Project {
            id: id.parse().unwrap(),
            name: id.to_owned(),
            marks: marks.to_vec(),
        }
    }

    fn at(path: &str) -> Mark {
        Mark::Folder(path.into())
    }

    #[test]
    fn a_moved_repository_is_recognised_by_its_remote() {
        let known = [project("p", &[Mark::Remote("x.org/p".into()), at("/old")])];
        let marks = [Mark::Remote("x.org/p".into()), at("/new")];
        assert_eq!(recognise(&known, &marks, |_| false), Some(&known[0]));
    }

    #[test]
    fn a_fork_of_a_repository_is_another_project() {
        let root = Mark::RootCommit("abc".into());
        let known = [project(
            "p",
            &[Mark::Remote("x.org/p".into()), root.clone()],
        )];
        let fork = [Mark::Remote("x.org/mine".into()), root.clone()];
        assert_eq!(recognise(&known, &fork, |_| false), None);
        // Before it had a remote it was known by its first commit.
        assert_eq!(recognise(&known, &[root], |_| false), Some(&known[0]));
    }

    #[test]
    fn a_moved_folder_is_recognised_once_the_old_one_is_gone() {
        let inode = Mark::Inode("1:2".into());
        let known = [project("p", &[at("/old"), inode.clone()])];
        let marks = [at("/new"), inode];
        assert_eq!(recognise(&known, &marks, |_| true), Some(&known[0]));
        assert_eq!(recognise(&known, &marks, |_| false), None);
    }

    #[test]
    fn a_new_place_replaces_the_old_one() {
        let mut known = project("p", &[at("/old"), Mark::RootCommit("abc".into())]);
        learn(&mut known, &[at("/new")]);
        assert_eq!(known.marks, [Mark::RootCommit("abc".into()), at("/new")]);
    }
}

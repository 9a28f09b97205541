//! The scope of a memory: one project, or all projects of an owner.

use std::fmt;

use throughline_model::{Digest, IdError, Key, ProjectId};

/// The scope of a memory. The owner is that of the [`Throughline`](crate::Throughline).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum MemoryScope {
    /// One project, for all its sessions and agents.
    Project(ProjectId),
    /// All sessions of an owner, whatever the project.
    Owner,
}

impl MemoryScope {
    /// The key of the session that holds the memory.
    pub(super) fn key(&self) -> Result<Key, IdError> {
        let prefix = Key::INTERNAL_PREFIX;
        match self {
            Self::Owner => format!("{prefix}memory:owner").parse(),
            Self::Project(id) => {
                let key = format!("{prefix}memory:project:{id}");
                if key.chars().count() <= Key::MAX {
                    return key.parse();
                }
                // A path may be too long for a key; its digest is used instead.
                let digest = Digest::of(id.as_str().as_bytes());
                format!("{prefix}memory:project:#{digest}").parse()
            }
        }
    }

    /// The project, if the scope is one.
    pub fn project(&self) -> Option<&ProjectId> {
        match self {
            Self::Project(id) => Some(id),
            Self::Owner => None,
        }
    }
}

impl fmt::Display for MemoryScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Project(_) => "the project's memory",
            Self::Owner => "the owner-wide memory",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_project_has_its_own_key_however_long_its_path() {
        let long = |end: &str| format!("dir:/{}/{end}", "x".repeat(2_000));
        let key = |id: &str| MemoryScope::Project(id.parse().unwrap()).key().unwrap();
        assert_eq!(key("dir:/a").as_str(), "throughline:memory:project:dir:/a");
        assert_ne!(key(&long("a")), key(&long("b")));
        assert!(key(&long("a")).is_internal());
        assert!(MemoryScope::Owner.key().unwrap().is_internal());
    }
}

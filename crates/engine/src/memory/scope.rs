//! Whose memory: a project's, or its owner's.

use std::fmt;

use throughline_model::{Digest, IdError, Key, ProjectId};

/// Of what something is remembered. The owner is the one of the [`Throughline`](crate::Throughline).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum MemoryScope {
    /// Of one project, for all its sessions and agents.
    Project(ProjectId),
    /// For all sessions of an owner, whatever the project.
    Owner,
}

impl MemoryScope {
    /// The key of the session that holds it.
    pub(super) fn key(&self) -> Result<Key, IdError> {
        let own = Key::INTERNAL_PREFIX;
        match self {
            Self::Owner => format!("{own}memory:owner").parse(),
            Self::Project(id) => {
                let key = format!("{own}memory:project:{id}");
                if key.chars().count() <= Key::MAX {
                    return key.parse();
                }
                // A path may be longer than a key; its digest stands for it.
                let digest = Digest::of(id.as_str().as_bytes());
                format!("{own}memory:project:#{digest}").parse()
            }
        }
    }

    /// The project, where it is one's.
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
    fn every_project_has_a_key_of_its_own_however_long_its_path() {
        let long = |end: &str| format!("dir:/{}/{end}", "x".repeat(2_000));
        let key = |id: &str| MemoryScope::Project(id.parse().unwrap()).key().unwrap();
        assert_eq!(key("dir:/a").as_str(), "throughline:memory:project:dir:/a");
        assert_ne!(key(&long("a")), key(&long("b")));
        assert!(key(&long("a")).is_internal());
        assert!(MemoryScope::Owner.key().unwrap().is_internal());
    }
}

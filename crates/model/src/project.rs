//! The project that a session belongs to: a folder or repository, recognized even if
//! moved.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::IdError;
use crate::name::serde_via_str;

/// The permanent id of a project: the marker it was first recognized by.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProjectId(String);

impl ProjectId {
    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for ProjectId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        // Paths may be long; control characters are never valid because ids are
        // displayed.
        if text.is_empty() || text.len() > 8192 || text.chars().any(char::is_control) {
            return Err(IdError::Key(text.chars().take(80).collect()));
        }
        Ok(Self(text.to_owned()))
    }
}

serde_via_str!(ProjectId);

/// Something that identifies a project, strongest first.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "by", content = "is", rename_all = "snake_case")]
pub enum ProjectMarker {
    /// Its git remote, normalized: `github.com/rust-lang/rust`.
    Remote(String),
    /// The first commit of its history.
    RootCommit(String),
    /// The folder it was last seen in.
    Folder(String),
    /// The folder's inode number, which stays the same if the folder is moved.
    Inode(String),
}

impl ProjectMarker {
    /// The id of a project first recognized by this marker.
    pub fn project_id(&self) -> Result<ProjectId, IdError> {
        let (kind, value) = match self {
            Self::Remote(value) => ("git", value),
            Self::RootCommit(value) => ("root", value),
            Self::Folder(value) => ("dir", value),
            Self::Inode(value) => ("inode", value),
        };
        format!("{kind}:{value}").parse()
    }
}

/// A project and all its markers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Project {
    /// Its permanent id.
    pub id: ProjectId,
    /// Its display name: the last part of the remote or folder.
    pub name: String,
    /// What identifies it.
    #[serde(rename = "marks")]
    pub markers: Vec<ProjectMarker>,
}

//! The folder or repository a session belongs to, wherever it has been moved to.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::IdError;
use crate::name::serde_via_str;

/// The lasting id of a project: the mark it was first seen by.
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
        // A path may be long; control characters never belong in one that is shown.
        if text.is_empty() || text.len() > 8192 || text.chars().any(char::is_control) {
            return Err(IdError::Key(text.chars().take(80).collect()));
        }
        Ok(Self(text.to_owned()))
    }
}

serde_via_str!(ProjectId);

/// Something a project can be recognised by, strongest first.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "by", content = "is", rename_all = "snake_case")]
pub enum ProjectMarker {
    /// Its git remote, normalized: `github.com/rust-lang/rust`.
    Remote(String),
    /// The first commit of its history.
    RootCommit(String),
    /// The folder it was last seen in.
    Folder(String),
    /// The file system's own number for the folder: a moved folder keeps it.
    Inode(String),
}

impl ProjectMarker {
    /// The id of a project first seen by this mark.
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

/// A project and everything it has been recognised by.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Project {
    /// Its lasting id.
    pub id: ProjectId,
    /// What people call it: the last part of the remote or folder.
    pub name: String,
    /// What it can be recognised by.
    #[serde(rename = "marks")]
    pub markers: Vec<ProjectMarker>,
}

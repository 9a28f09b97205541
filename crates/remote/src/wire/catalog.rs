//! Finding sessions, the trash, projects.

use serde::{Deserialize, Serialize};
use throughline_model::{Project, SessionId, SessionInfo, Timestamp};
use throughline_store::{Candidate, Cursor, Fence, Page, SessionFilter, TrashedSession};

use super::Call;

/// The sessions that match, latest activity first.
///
/// A server may answer with fewer than asked for; `next` tells where to go on.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListSessions {
    /// Which sessions.
    pub filter: SessionFilter,
    /// From where on.
    pub after: Option<Cursor>,
    /// At most so many.
    pub limit: usize,
}

impl Call for ListSessions {
    const NAME: &'static str = "list";
    type Answer = Page<SessionInfo>;
}

/// How many sessions match.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CountSessions {
    /// Which sessions.
    pub filter: SessionFilter,
}

impl Call for CountSessions {
    const NAME: &'static str = "count";
    type Answer = u64;
}

/// Sessions that a text may mean.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FindCandidates {
    /// What somebody typed.
    pub text: String,
    /// At most so many.
    pub limit: usize,
}

impl Call for FindCandidates {
    const NAME: &'static str = "candidates";
    type Answer = Vec<Candidate>;
}

/// Puts a session into the trash.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trash {
    /// The session.
    pub session: SessionId,
    /// When it went there.
    pub at: Timestamp,
    /// The lease it is done under, if any.
    pub fence: Option<Fence>,
}

impl Call for Trash {
    const NAME: &'static str = "trash";
    type Answer = ();
}

/// Takes a session out of the trash.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Restore {
    /// The session.
    pub session: SessionId,
}

impl Call for Restore {
    const NAME: &'static str = "restore";
    type Answer = ();
}

/// What is in the trash since before a time, longest there first.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListTrashed {
    /// The time.
    pub before: Timestamp,
}

impl Call for ListTrashed {
    const NAME: &'static str = "trashed";
    type Answer = Vec<TrashedSession>;
}

/// Removes a session in the trash for good.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Remove {
    /// The session.
    pub session: SessionId,
    /// Since when it must be in the trash, if that matters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trashed_at: Option<Timestamp>,
    /// The lease it is done under, if any.
    pub fence: Option<Fence>,
}

impl Call for Remove {
    const NAME: &'static str = "remove";
    type Answer = ();
}

/// The owner's projects.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListProjects {}

impl Call for ListProjects {
    const NAME: &'static str = "projects";
    type Answer = Vec<Project>;
}

/// Makes or replaces a project.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PutProject {
    /// The project.
    pub project: Project,
}

impl Call for PutProject {
    const NAME: &'static str = "put_project";
    type Answer = ();
}

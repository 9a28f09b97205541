//! Calls that list and find sessions, move them to the trash and back, remove them, and list and
//! store projects.

use serde::{Deserialize, Serialize};
use throughline_model::{Project, SessionId, SessionInfo, Timestamp};
use throughline_store::{Candidate, Cursor, Fence, Page, SessionFilter, TrashedSession};

use super::Call;

/// Lists the sessions that match, latest activity first.
///
/// A server may return fewer than requested; `next` says where to continue.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListSessions {
    /// Which sessions to list.
    pub filter: SessionFilter,
    /// Where to continue from.
    pub after: Option<Cursor>,
    /// Maximum number of sessions.
    pub limit: usize,
}

impl Call for ListSessions {
    const NAME: &'static str = "list";
    type Answer = Page<SessionInfo>;
}

/// Counts the sessions that match.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CountSessions {
    /// Which sessions to count.
    pub filter: SessionFilter,
}

impl Call for CountSessions {
    const NAME: &'static str = "count";
    type Answer = u64;
}

/// Finds the sessions that a text may refer to.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FindCandidates {
    /// The text a user typed.
    pub text: String,
    /// Maximum number of sessions.
    pub limit: usize,
}

impl Call for FindCandidates {
    const NAME: &'static str = "candidates";
    type Answer = Vec<Candidate>;
}

/// Moves a session to the trash.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trash {
    /// The session.
    pub session: SessionId,
    /// When it was trashed.
    pub at: Timestamp,
    /// The lease this is done under, if any.
    pub fence: Option<Fence>,
}

impl Call for Trash {
    const NAME: &'static str = "trash";
    type Answer = ();
}

/// Restores a session from the trash.
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

/// Lists the sessions trashed before a time, oldest first.
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

/// Permanently removes a session that is in the trash.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Remove {
    /// The session.
    pub session: SessionId,
    /// When it must have been trashed, to guard against a restore in between.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trashed_at: Option<Timestamp>,
    /// The lease this is done under, if any.
    pub fence: Option<Fence>,
}

impl Call for Remove {
    const NAME: &'static str = "remove";
    type Answer = ();
}

/// Lists the owner's projects.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListProjects {}

impl Call for ListProjects {
    const NAME: &'static str = "projects";
    type Answer = Vec<Project>;
}

/// Creates or replaces a project.
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

//! The trait for finding sessions: listing, lookup, trash and projects.

use std::fmt;
use std::str::FromStr;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use throughline_model::{
    Owner, Project, ProjectId, SessionId, SessionInfo, SessionRef, Status, Tag, Timestamp,
};

use crate::{Fence, StoreError};

/// Which sessions to list. The default is all user sessions that are not in the trash.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SessionFilter {
    /// Whether to list live or trashed sessions.
    pub scope: SessionScope,
    /// Only sessions with all of these tags.
    pub tags: Vec<Tag>,
    /// Only sessions last used with this agent.
    pub agent: Option<String>,
    /// Only sessions of this project.
    pub project: Option<ProjectId>,
    /// Only sessions with this status.
    pub status: Option<Status>,
    /// Only sessions active at or after this time.
    pub since: Option<Timestamp>,
    /// Only sessions forked or continued from this one.
    pub parent: Option<SessionId>,
    /// Whether to include internal sessions: those whose key begins with
    /// [`Key::INTERNAL_PREFIX`](throughline_model::Key::INTERNAL_PREFIX).
    #[serde(rename = "own")]
    pub include_internal: bool,
}

/// Whether to list live or trashed sessions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionScope {
    /// Sessions that are not in the trash.
    #[default]
    Live,
    /// Sessions in the trash.
    Trash,
}

/// A position in a listing: after the session with this activity time and id.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cursor {
    /// The session's last activity.
    pub last_activity: Timestamp,
    /// The session's id.
    pub id: SessionId,
}

/// The text is not a valid cursor.
#[derive(Debug, thiserror::Error)]
#[error("{0:?} is not a cursor: use the `next` value of an earlier listing")]
pub struct CursorError(String);

impl Cursor {
    /// The position after a session.
    pub fn after(info: &SessionInfo) -> Self {
        Self {
            last_activity: info.last_activity,
            id: info.id.clone(),
        }
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}~{}", self.last_activity.as_microsecond(), self.id)
    }
}

impl FromStr for Cursor {
    type Err = CursorError;

    fn from_str(text: &str) -> Result<Self, CursorError> {
        let parsed = text.split_once('~').and_then(|(micros, id)| {
            Some(Self {
                last_activity: Timestamp::from_microsecond(micros.parse().ok()?).ok()?,
                id: id.parse().ok()?,
            })
        });
        parsed.ok_or_else(|| CursorError(text.to_owned()))
    }
}

/// One page of a listing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Page<T> {
    /// The items of the page.
    pub items: Vec<T>,
    /// Where the next page starts, if there is one.
    pub next: Option<Cursor>,
}

impl Page<SessionInfo> {
    /// Builds a page of `limit` items from a query for one more: the extra item shows
    /// that there is a next page.
    pub fn from_overfetch(mut items: Vec<SessionInfo>, limit: usize) -> Self {
        let more = items.len() > limit;
        items.truncate(limit);
        let next = items.last().filter(|_| more).map(Cursor::after);
        Self { items, next }
    }
}

/// A session in the trash.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrashedSession {
    /// The session's info.
    #[serde(rename = "card")]
    pub info: SessionInfo,
    /// When it was moved to the trash.
    pub at: Timestamp,
}

/// Finds sessions. Listing reads no log.
#[async_trait]
pub trait Catalog: Send + Sync {
    /// The matching sessions, latest activity first, then by id, greatest first.
    async fn list(
        &self,
        owner: &Owner,
        filter: &SessionFilter,
        after: Option<&Cursor>,
        limit: usize,
    ) -> Result<Page<SessionInfo>, StoreError>;

    /// The number of matching sessions.
    async fn count(&self, owner: &Owner, filter: &SessionFilter) -> Result<u64, StoreError>;

    /// Sessions that `text` may refer to, live or trashed: those with that id, key or
    /// name, then those whose id begins with it, excluding internal ones. Each group is
    /// ordered by latest activity; at most `limit` in all.
    async fn find_candidates(
        &self,
        owner: &Owner,
        text: &str,
        limit: usize,
    ) -> Result<Vec<Candidate>, StoreError>;

    /// Moves a session to the trash. Has no effect if it is already there.
    async fn trash(&self, session: &SessionRef, at: Timestamp) -> Result<(), StoreError> {
        self.trash_fenced(session, at, None).await
    }

    /// Like [`trash`](Self::trash), under a lease.
    async fn trash_fenced(
        &self,
        session: &SessionRef,
        at: Timestamp,
        fence: Option<&Fence>,
    ) -> Result<(), StoreError>;

    /// Restores a session from the trash.
    async fn restore(&self, session: &SessionRef) -> Result<(), StoreError>;

    /// The sessions trashed before `before`, oldest first.
    async fn list_trashed(
        &self,
        owner: &Owner,
        before: Timestamp,
    ) -> Result<Vec<TrashedSession>, StoreError>;

    /// Permanently removes a session in the trash. Entries shared with forks stay for
    /// them.
    async fn remove(&self, session: &SessionRef) -> Result<(), StoreError> {
        self.remove_fenced(session, None, None).await
    }

    /// Like [`remove`](Self::remove), under a lease, and only if the session has been
    /// in the trash since `trashed_at`: if it was restored and trashed again, this
    /// fails with [`StoreError::TrashedAgain`].
    async fn remove_fenced(
        &self,
        session: &SessionRef,
        trashed_at: Option<Timestamp>,
        fence: Option<&Fence>,
    ) -> Result<(), StoreError>;

    /// The owner's projects.
    async fn list_projects(&self, owner: &Owner) -> Result<Vec<Project>, StoreError>;

    /// Creates or replaces a project.
    async fn put_project(&self, owner: &Owner, project: &Project) -> Result<(), StoreError>;
}

/// A session that a text may refer to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Candidate {
    /// The session's info.
    #[serde(rename = "card")]
    pub info: SessionInfo,
    /// Whether it is in the trash.
    pub trashed: bool,
}

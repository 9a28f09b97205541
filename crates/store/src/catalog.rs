//! Finding sessions: lists, look-ups, the trash, and the projects they belong to.

use std::fmt;
use std::str::FromStr;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use throughline_model::{
    Owner, Project, ProjectId, SessionId, SessionInfo, SessionRef, Status, Tag, Timestamp,
};

use crate::{Fence, StoreError};

/// Which sessions to list. The default is all of people's that are not in the trash.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SessionFilter {
    /// In use or in the trash.
    pub scope: SessionScope,
    /// With all of these tags.
    pub tags: Vec<Tag>,
    /// Last with the agent of this name.
    pub agent: Option<String>,
    /// Of this project.
    pub project: Option<ProjectId>,
    /// Of this status.
    pub status: Option<Status>,
    /// Active at or after this.
    pub since: Option<Timestamp>,
    /// Forked or continued from this session.
    pub parent: Option<SessionId>,
    /// Whether the program's own are listed too: those whose key begins with
    /// [`Key::OWN`](throughline_model::Key::OWN).
    #[serde(rename = "own")]
    pub include_internal: bool,
}

/// Whether the trash is looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionScope {
    /// What is in use.
    #[default]
    Live,
    /// What is in the trash.
    Trash,
}

/// A place in a listing: after this session, which was active then.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cursor {
    /// The session's last activity.
    pub last_activity: Timestamp,
    /// Its id.
    pub id: SessionId,
}

/// Why a text is no cursor.
#[derive(Debug, thiserror::Error)]
#[error("{0:?} is not a cursor: use `next` of an earlier listing")]
pub struct CursorError(String);

impl Cursor {
    /// The place after a card.
    pub fn after(card: &SessionInfo) -> Self {
        Self {
            last_activity: card.last_activity,
            id: card.id.clone(),
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
    /// What is on it.
    pub items: Vec<T>,
    /// Where the next one starts, if there is one.
    pub next: Option<Cursor>,
}

impl Page<SessionInfo> {
    /// A page of so many, of which one more was looked for: that there is tells that there
    /// is another page.
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
    /// Its card.
    #[serde(rename = "card")]
    pub info: SessionInfo,
    /// When it went there.
    pub at: Timestamp,
}

/// Finds sessions. Listing touches no log.
#[async_trait]
pub trait Catalog: Send + Sync {
    /// The sessions that match, latest activity first, then by id, greatest first.
    async fn list(
        &self,
        owner: &Owner,
        filter: &SessionFilter,
        after: Option<&Cursor>,
        limit: usize,
    ) -> Result<Page<SessionInfo>, StoreError>;

    /// How many sessions match.
    async fn count(&self, owner: &Owner, filter: &SessionFilter) -> Result<u64, StoreError>;

    /// Sessions that `text` may mean, in use or in the trash: those whose id, key or name it
    /// is, then those whose id begins with it, the program's own left out. Of each, latest
    /// activity first; at most `limit` in all.
    async fn find_candidates(
        &self,
        owner: &Owner,
        text: &str,
        limit: usize,
    ) -> Result<Vec<Candidate>, StoreError>;

    /// Puts a session into the trash. There already: nothing changes.
    async fn trash(&self, session: &SessionRef, at: Timestamp) -> Result<(), StoreError> {
        self.trash_fenced(session, at, None).await
    }

    /// The same, under a lease.
    async fn trash_fenced(
        &self,
        session: &SessionRef,
        at: Timestamp,
        fence: Option<&Fence>,
    ) -> Result<(), StoreError>;

    /// Takes a session out of the trash.
    async fn restore(&self, session: &SessionRef) -> Result<(), StoreError>;

    /// What is in the trash since before `before`, longest there first.
    async fn list_trashed(
        &self,
        owner: &Owner,
        before: Timestamp,
    ) -> Result<Vec<TrashedSession>, StoreError>;

    /// Removes a session in the trash for good. Entries that forks share stay for them.
    async fn remove(&self, session: &SessionRef) -> Result<(), StoreError> {
        self.remove_fenced(session, None, None).await
    }

    /// The same, under a lease, and only if the session is in the trash since `trashed_at`: one
    /// that was restored and trashed again since is refused with [`StoreError::TrashedAgain`].
    async fn remove_fenced(
        &self,
        session: &SessionRef,
        trashed_at: Option<Timestamp>,
        fence: Option<&Fence>,
    ) -> Result<(), StoreError>;

    /// The owner's projects.
    async fn list_projects(&self, owner: &Owner) -> Result<Vec<Project>, StoreError>;

    /// Makes or replaces a project.
    async fn put_project(&self, owner: &Owner, project: &Project) -> Result<(), StoreError>;
}

/// A session that a text may mean, and where it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Candidate {
    /// Its card.
    #[serde(rename = "card")]
    pub info: SessionInfo,
    /// Whether it is in the trash.
    pub trashed: bool,
}

//! The change feed: all changes of a store in commit order, which indexes and events
//! follow.
//!
//! Invariant: positions only grow, whatever is removed; a change that was read once
//! stays at the same position, unless the session it belongs to was removed.

use std::fmt::Debug;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use throughline_model::{Digest, Owner, Seq, SessionId, StoredEntry};

use crate::StoreError;

/// A position in the feed; zero is before the first change.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Position(pub u64);

impl std::fmt::Display for Position {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(&self.0, f)
    }
}

/// A change in the store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// Its position in the feed.
    pub position: Position,
    /// The session's owner.
    pub owner: Owner,
    /// The session.
    pub session: SessionId,
    /// What changed.
    #[serde(rename = "what")]
    pub kind: ChangeKind,
}

impl Change {
    /// Identifies the change. Erasing an entry does not change its fingerprint.
    pub fn fingerprint(&self) -> Digest {
        let what = match &self.kind {
            ChangeKind::Created => "created".to_owned(),
            ChangeKind::Appended(stored) => format!("{} {}", stored.seq, stored.digest),
            ChangeKind::Erased(seq) => format!("erased {seq}"),
            ChangeKind::Trashed => "trashed".to_owned(),
            ChangeKind::Restored => "restored".to_owned(),
            ChangeKind::Removed => "removed".to_owned(),
        };
        let (position, owner, session) = (self.position, &self.owner, &self.session);
        Digest::of(format!("{position} {owner} {session} {what}").as_bytes())
    }
}

/// The kinds of changes. Changes within a session are entries of its log; the other
/// kinds concern the session as a whole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ChangeKind {
    /// The session was created or forked.
    Created,
    /// An entry was appended. In stored form: a damaged entry must not block the feed.
    Appended(StoredEntry),
    /// The content of an entry was erased.
    Erased(Seq),
    /// The session was moved to the trash.
    Trashed,
    /// The session was restored from the trash.
    Restored,
    /// The session was permanently removed.
    Removed,
}

/// Changes of a session as a whole, which stores record separately from the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionEvent {
    /// It was created or forked.
    Created,
    /// The content of an entry was erased.
    Erased(Seq),
    /// It was moved to the trash.
    Trashed,
    /// It was restored from the trash.
    Restored,
    /// It was permanently removed.
    Removed,
}

impl SessionEvent {
    /// The stored kind, and the entry it concerns.
    pub fn to_row(self) -> (&'static str, Option<Seq>) {
        match self {
            Self::Created => ("created", None),
            Self::Erased(seq) => ("erased", Some(seq)),
            Self::Trashed => ("trashed", None),
            Self::Restored => ("restored", None),
            Self::Removed => ("removed", None),
        }
    }

    /// Parses the stored form; returns `None` for an unknown kind.
    pub fn from_row(kind: &str, seq: Option<Seq>) -> Option<Self> {
        Some(match (kind, seq) {
            ("created", _) => Self::Created,
            ("erased", Some(seq)) => Self::Erased(seq),
            ("trashed", _) => Self::Trashed,
            ("restored", _) => Self::Restored,
            ("removed", _) => Self::Removed,
            _ => return None,
        })
    }
}

impl From<SessionEvent> for ChangeKind {
    fn from(event: SessionEvent) -> Self {
        match event {
            SessionEvent::Created => Self::Created,
            SessionEvent::Erased(seq) => Self::Erased(seq),
            SessionEvent::Trashed => Self::Trashed,
            SessionEvent::Restored => Self::Restored,
            SessionEvent::Removed => Self::Removed,
        }
    }
}

/// Reads the changes of a store, across owners. For internal services, which must not
/// show one owner's data to another.
#[async_trait]
pub trait ChangeFeed: Debug + Send + Sync {
    /// The position of the last change.
    async fn last_position(&self) -> Result<Position, StoreError>;

    /// The position up to which every change acknowledged so far is included.
    ///
    /// In a store with several writers this can be later than
    /// [`ChangeFeed::last_position`]: while a change is being committed,
    /// [`ChangeFeed::changes`] does not return those with later positions either,
    /// although they may have been acknowledged.
    async fn acknowledged_position(&self) -> Result<Position, StoreError> {
        self.last_position().await
    }

    /// The changes after a position, oldest first, at most `limit`.
    async fn changes(&self, after: Position, limit: usize) -> Result<Vec<Change>, StoreError>;

    /// The changes of one owner after a position, oldest first, at most `limit`.
    async fn owner_changes(
        &self,
        owner: &Owner,
        after: Position,
        limit: usize,
    ) -> Result<Vec<Change>, StoreError>;

    /// The change at a position; `None` if there is none or its session was removed.
    async fn change_at(&self, position: Position) -> Result<Option<Change>, StoreError> {
        let Some(before) = position.0.checked_sub(1) else {
            return Ok(None);
        };
        let mut next = self.changes(Position(before), 1).await?;
        let found = next.pop();
        Ok(found.filter(|change| change.position == position))
    }

    /// Waits until there may be a change after a position, and returns `true`.
    ///
    /// A store that is not notified of other writers returns `false` at once: the
    /// caller must poll.
    async fn wait_for_change(&self, after: Position) -> Result<bool, StoreError> {
        let _ = after;
        Ok(false)
    }
}

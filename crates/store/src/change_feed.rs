//! What happened in a store, in the order it happened: the thread that indexes and
//! events hang on.
//!
//! Invariant: positions only grow, whatever is removed; a change that is read once is
//! read at the same position ever after, unless what it tells of is gone.

use std::fmt::Debug;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use throughline_model::{Digest, Owner, Seq, SessionId, StoredEntry};

use crate::StoreError;

/// A place in the feed; zero is before everything.
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

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// Where in the feed it is.
    pub position: Position,
    /// Whose.
    pub owner: Owner,
    /// In which session.
    pub session: SessionId,
    /// What.
    #[serde(rename = "what")]
    pub kind: ChangeKind,
}

impl Change {
    /// What the change is recognised by. An entry that is erased keeps its own.
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

/// What happened. Everything that is part of a session is an entry of its log; the rest
/// happens to sessions as a whole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ChangeKind {
    /// The session was made, or forked.
    Created,
    /// An entry was appended. As stored: one that is damaged must not hold up the rest.
    Appended(StoredEntry),
    /// The content of an entry was erased.
    Erased(Seq),
    /// The session was put into the trash.
    Trashed,
    /// It was taken out again.
    Restored,
    /// It is gone for good.
    Removed,
}

/// What happens to a session as a whole, as stores note it beside the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionEvent {
    /// It was made, or forked.
    Created,
    /// The content of an entry was erased.
    Erased(Seq),
    /// It was put into the trash.
    Trashed,
    /// It was taken out again.
    Restored,
    /// It is gone for good.
    Removed,
}

impl SessionEvent {
    /// What it is noted as, and for which entry.
    pub fn to_row(self) -> (&'static str, Option<Seq>) {
        match self {
            Self::Created => ("created", None),
            Self::Erased(seq) => ("erased", Some(seq)),
            Self::Trashed => ("trashed", None),
            Self::Restored => ("restored", None),
            Self::Removed => ("removed", None),
        }
    }

    /// What was noted; none if that is of no known kind.
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

/// What happened in a store, across owners. For the store's own servants, which must not
/// show one owner what is another's.
#[async_trait]
pub trait ChangeFeed: Debug + Send + Sync {
    /// The position of the last change.
    async fn last_position(&self) -> Result<Position, StoreError>;

    /// The position at or before which everything is that was acknowledged so far.
    ///
    /// In a store with several writers this can be later than [`Feed::last_position`]: while a
    /// change is still being committed, [`Feed::changes`] does not show those with later positions
    /// either, although they may have been acknowledged.
    async fn acknowledged_position(&self) -> Result<Position, StoreError> {
        self.last_position().await
    }

    /// The changes after a position, oldest first, at most `limit` of them.
    async fn changes(&self, after: Position, limit: usize) -> Result<Vec<Change>, StoreError>;

    /// The changes of one owner after a position, oldest first, at most `limit` of them.
    async fn owner_changes(
        &self,
        owner: &Owner,
        after: Position,
        limit: usize,
    ) -> Result<Vec<Change>, StoreError>;

    /// The change at a position; none if there is none, or what it tells of is gone.
    async fn change_at(&self, position: Position) -> Result<Option<Change>, StoreError> {
        let Some(before) = position.0.checked_sub(1) else {
            return Ok(None);
        };
        let mut next = self.changes(Position(before), 1).await?;
        let found = next.pop();
        Ok(found.filter(|change| change.position == position))
    }

    /// Waits until something may have happened after a position, and answers `true`.
    ///
    /// A store that is not told of what others write answers `false` at once: whoever asks
    /// looks again in their own time.
    async fn wait_for_change(&self, after: Position) -> Result<bool, StoreError> {
        let _ = after;
        Ok(false)
    }
}

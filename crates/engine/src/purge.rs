//! Making room: nothing goes but what was asked for, and first to the trash.

use jiff::SignedDuration;
use throughline_model::{Card, Timestamp};
use throughline_store::{Filter, StoreError, Trashed};

use crate::{Error, Throughline};

/// What to purge. By default, nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Purge {
    /// Remove for good what has been in the trash for longer than this.
    pub grace: Option<SignedDuration>,
    /// Put into the trash the sessions that were active longest ago, beyond this many.
    pub max_sessions: Option<usize>,
    /// Only tell.
    pub dry_run: bool,
}

/// What a purge did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Purged {
    /// Removed for good.
    pub removed: Vec<Card>,
    /// Put into the trash.
    pub trashed: Vec<Card>,
}

/// What a purge decides to do.
#[derive(Default)]
struct Due {
    /// To be removed, if it is still in the trash since the same time.
    removed: Vec<Trashed>,
    /// To be put into the trash.
    trashed: Vec<Card>,
}

impl Due {
    fn is_empty(&self) -> bool {
        self.removed.is_empty() && self.trashed.is_empty()
    }
}

impl From<Due> for Purged {
    fn from(due: Due) -> Self {
        let removed = due.removed.into_iter().map(|trashed| trashed.card);
        Self {
            removed: removed.collect(),
            trashed: due.trashed,
        }
    }
}

/// Whether somebody restored, re-trashed or removed a session after it was decided about.
fn is_no_longer_due(error: &StoreError) -> bool {
    matches!(
        error,
        StoreError::NotInTrash(_) | StoreError::TrashedAgain { .. } | StoreError::NoSuchSession(_)
    )
}

impl Throughline {
    /// Removes what is old in the trash, then puts into it what is too many.
    ///
    /// In this order: what is put into the trash now stays there for its time. What was
    /// restored meanwhile stays, even if it is in the trash again: its grace period is new. One
    /// process at a time purges what is an owner's; the others wait, and find it done.
    pub async fn purge(&self, purge: Purge) -> Result<Purged, Error> {
        let due = self.due(&purge).await?;
        if purge.dry_run || due.is_empty() {
            return Ok(due.into());
        }
        let held = self.hold("purge").await?;
        let purging = async {
            // Somebody else may have been at it just now.
            let due = self.due(&purge).await?;
            let fence = held.fence();
            let mut purged = Purged::default();
            for old in due.removed {
                let session = self.owner.session(&old.card.id);
                let (since, fence) = (Some(old.at), fence.as_ref());
                match self.store.remove_under(&session, since, fence).await {
                    Ok(()) => purged.removed.push(old.card),
                    Err(error) if is_no_longer_due(&error) => {}
                    Err(error) => return Err(error.into()),
                }
            }
            for card in due.trashed {
                let session = self.owner.session(&card.id);
                let trashing = self.store.trash_under(&session, self.now(), fence.as_ref());
                match trashing.await {
                    Ok(()) => purged.trashed.push(card),
                    Err(error) if is_no_longer_due(&error) => {}
                    Err(error) => return Err(error.into()),
                }
            }
            Ok(purged)
        };
        let purged = held.keep(purging).await;
        held.release().await;
        purged
    }

    /// What a purge would do now.
    async fn due(&self, purge: &Purge) -> Result<Due, Error> {
        let mut due = Due::default();
        if let Some(grace) = purge.grace {
            let before = self.now().checked_sub(grace).unwrap_or(Timestamp::MIN);
            due.removed = self.store.trashed(&self.owner, before).await?;
        }
        if let Some(most) = purge.max_sessions {
            let mut after = None;
            let mut kept = 0;
            loop {
                let page = self.list(&Filter::default(), after.as_ref(), 1_000).await?;
                for card in page.items {
                    kept += 1;
                    if kept > most {
                        due.trashed.push(card);
                    }
                }
                after = page.next;
                if after.is_none() {
                    break;
                }
            }
        }
        Ok(due)
    }
}

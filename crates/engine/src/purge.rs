//! Making room: nothing goes but what was asked for, and first to the trash.

use jiff::SignedDuration;
use throughline_model::{SessionInfo, Timestamp};
use throughline_store::{SessionFilter, StoreError, TrashedSession};

use crate::{Error, Throughline};

/// What to purge. By default, nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PurgeOptions {
    /// Remove for good what has been in the trash for longer than this.
    pub grace: Option<SignedDuration>,
    /// Put into the trash the sessions that were active longest ago, beyond this many.
    pub max_sessions: Option<usize>,
    /// Only tell.
    pub dry_run: bool,
}

/// What a purge did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PurgeReport {
    /// Removed for good.
    pub removed: Vec<SessionInfo>,
    /// Put into the trash.
    pub trashed: Vec<SessionInfo>,
}

/// What a purge decides to do.
#[derive(Default)]
struct PurgePlan {
    /// To be removed, if it is still in the trash since the same time.
    to_remove: Vec<TrashedSession>,
    /// To be put into the trash.
    to_trash: Vec<SessionInfo>,
}

impl PurgePlan {
    fn is_empty(&self) -> bool {
        self.to_remove.is_empty() && self.to_trash.is_empty()
    }
}

impl From<PurgePlan> for PurgeReport {
    fn from(due: PurgePlan) -> Self {
        let removed = due.to_remove.into_iter().map(|trashed| trashed.info);
        Self {
            removed: removed.collect(),
            trashed: due.to_trash,
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
    pub async fn purge(&self, purge: PurgeOptions) -> Result<PurgeReport, Error> {
        let due = self.plan_purge(&purge).await?;
        if purge.dry_run || due.is_empty() {
            return Ok(due.into());
        }
        let held = self.acquire_lease("purge").await?;
        let purging = async {
            // Somebody else may have been at it just now.
            let due = self.plan_purge(&purge).await?;
            let fence = held.fence();
            let mut purged = PurgeReport::default();
            for old in due.to_remove {
                let session = self.owner.session(&old.info.id);
                let (since, fence) = (Some(old.at), fence.as_ref());
                match self.store.remove_fenced(&session, since, fence).await {
                    Ok(()) => purged.removed.push(old.info),
                    Err(error) if is_no_longer_due(&error) => {}
                    Err(error) => return Err(error.into()),
                }
            }
            for card in due.to_trash {
                let session = self.owner.session(&card.id);
                let trashing = self
                    .store
                    .trash_fenced(&session, self.now(), fence.as_ref());
                match trashing.await {
                    Ok(()) => purged.trashed.push(card),
                    Err(error) if is_no_longer_due(&error) => {}
                    Err(error) => return Err(error.into()),
                }
            }
            Ok(purged)
        };
        let purged = held.run_with_renewal(purging).await;
        held.release().await;
        purged
    }

    /// What a purge would do now.
    async fn plan_purge(&self, purge: &PurgeOptions) -> Result<PurgePlan, Error> {
        let mut due = PurgePlan::default();
        if let Some(grace) = purge.grace {
            let before = self.now().checked_sub(grace).unwrap_or(Timestamp::MIN);
            due.to_remove = self.store.list_trashed(&self.owner, before).await?;
        }
        if let Some(most) = purge.max_sessions {
            let mut after = None;
            let mut kept = 0;
            loop {
                let page = self
                    .list(&SessionFilter::default(), after.as_ref(), 1_000)
                    .await?;
                for card in page.items {
                    kept += 1;
                    if kept > most {
                        due.to_trash.push(card);
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

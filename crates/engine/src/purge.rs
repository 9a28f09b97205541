//! Purging: removes old sessions from the trash and moves surplus sessions into it.
//!
//! Only what the caller requests is purged, and sessions always go to the trash first.

use jiff::SignedDuration;
use throughline_model::{SessionInfo, Timestamp};
use throughline_store::{SessionFilter, StoreError, TrashedSession};

use crate::{Error, Throughline};

/// What to purge. By default, nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PurgeOptions {
    /// Permanently remove sessions that have been in the trash for longer than this.
    pub grace: Option<SignedDuration>,
    /// Move the least recently active sessions beyond this number to the trash.
    pub max_sessions: Option<usize>,
    /// Only report what would be done.
    pub dry_run: bool,
}

/// The result of a purge.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PurgeReport {
    /// Permanently removed sessions.
    pub removed: Vec<SessionInfo>,
    /// Sessions moved to the trash.
    pub trashed: Vec<SessionInfo>,
}

/// What a purge is going to do.
#[derive(Default)]
struct PurgePlan {
    /// Sessions to remove, unless they were restored or trashed again meanwhile.
    to_remove: Vec<TrashedSession>,
    /// Sessions to move to the trash.
    to_trash: Vec<SessionInfo>,
}

impl PurgePlan {
    fn is_empty(&self) -> bool {
        self.to_remove.is_empty() && self.to_trash.is_empty()
    }
}

impl From<PurgePlan> for PurgeReport {
    fn from(plan: PurgePlan) -> Self {
        let removed = plan.to_remove.into_iter().map(|trashed| trashed.info);
        Self {
            removed: removed.collect(),
            trashed: plan.to_trash,
        }
    }
}

/// Returns whether the session was restored, trashed again or removed after the purge
/// was planned.
fn is_no_longer_due(error: &StoreError) -> bool {
    matches!(
        error,
        StoreError::NotInTrash(_) | StoreError::TrashedAgain { .. } | StoreError::NoSuchSession(_)
    )
}

impl Throughline {
    /// Removes sessions whose grace period in the trash is over, then moves surplus
    /// sessions to the trash.
    ///
    /// In this order, so that newly trashed sessions stay in the trash for the whole
    /// grace period. A session that was restored meanwhile is not removed, even if it
    /// is in the trash again: its grace period starts anew. Only one process at a time
    /// purges an owner's sessions; the others wait and then have nothing left to do.
    pub async fn purge(&self, purge: PurgeOptions) -> Result<PurgeReport, Error> {
        let plan = self.plan_purge(&purge).await?;
        if purge.dry_run || plan.is_empty() {
            return Ok(plan.into());
        }
        let lease = self.acquire_lease("purge").await?;
        let purging = async {
            // The previous holder of the lease may have purged just now.
            let plan = self.plan_purge(&purge).await?;
            let fence = lease.fence();
            let mut purged = PurgeReport::default();
            for old in plan.to_remove {
                let session = self.owner.session(&old.info.id);
                let (since, fence) = (Some(old.at), fence.as_ref());
                match self.store.remove_fenced(&session, since, fence).await {
                    Ok(()) => purged.removed.push(old.info),
                    Err(error) if is_no_longer_due(&error) => {}
                    Err(error) => return Err(error.into()),
                }
            }
            for info in plan.to_trash {
                let session = self.owner.session(&info.id);
                let trashing = self
                    .store
                    .trash_fenced(&session, self.now(), fence.as_ref());
                match trashing.await {
                    Ok(()) => purged.trashed.push(info),
                    Err(error) if is_no_longer_due(&error) => {}
                    Err(error) => return Err(error.into()),
                }
            }
            Ok(purged)
        };
        let purged = lease.run_with_renewal(purging).await;
        lease.release().await;
        purged
    }

    /// Plans what a purge would do now.
    async fn plan_purge(&self, purge: &PurgeOptions) -> Result<PurgePlan, Error> {
        let mut plan = PurgePlan::default();
        if let Some(grace) = purge.grace {
            let before = self.now().checked_sub(grace).unwrap_or(Timestamp::MIN);
            plan.to_remove = self.store.list_trashed(&self.owner, before).await?;
        }
        if let Some(max_sessions) = purge.max_sessions {
            let mut after = None;
            let mut count = 0;
            loop {
                let page = self
                    .list(&SessionFilter::default(), after.as_ref(), 1_000)
                    .await?;
                for info in page.items {
                    count += 1;
                    if count > max_sessions {
                        plan.to_trash.push(info);
                    }
                }
                after = page.next;
                if after.is_none() {
                    break;
                }
            }
        }
        Ok(plan)
    }
}

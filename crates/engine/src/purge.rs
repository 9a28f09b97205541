//! Making room: nothing goes but what was asked for, and first to the trash.

use jiff::SignedDuration;
use throughline_model::{Card, Timestamp};
use throughline_store::Filter;

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

impl Throughline {
    /// Removes what is old in the trash, then puts into it what is too many.
    ///
    /// In this order: what is put into the trash now stays there for its time.
    pub async fn purge(&self, purge: Purge) -> Result<Purged, Error> {
        let mut purged = Purged::default();
        if let Some(grace) = purge.grace {
            let before = self.now().checked_sub(grace).unwrap_or(Timestamp::MIN);
            for trashed in self.store.trashed(&self.owner, before).await? {
                if !purge.dry_run {
                    let session = self.owner.session(&trashed.card.id);
                    self.store.remove(&session).await?;
                }
                purged.removed.push(trashed.card);
            }
        }
        if let Some(most) = purge.max_sessions {
            let mut after = None;
            let mut kept = 0;
            loop {
                let page = self.list(&Filter::default(), after.as_ref(), 1_000).await?;
                for card in page.items {
                    kept += 1;
                    if kept > most {
                        purged.trashed.push(card);
                    }
                }
                after = page.next;
                if after.is_none() {
                    break;
                }
            }
            if !purge.dry_run {
                for card in &purged.trashed {
                    self.trash(&card.id).await?;
                }
            }
        }
        Ok(purged)
    }
}

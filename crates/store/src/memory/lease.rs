//! Leases in memory.

use std::sync::atomic::Ordering;
use std::time::Duration;

use async_trait::async_trait;
use throughline_model::{Owner, Timestamp, to_micros};

use super::{MemoryStore, Space};
use crate::{Fence, Lease, Leases, StoreError};

/// The store's clock is that of the machine it is on.
#[expect(clippy::disallowed_methods, reason = "this store's own clock")]
fn after(term: Duration) -> Timestamp {
    let now = Timestamp::now();
    to_micros(now.checked_add(term).unwrap_or(Timestamp::MAX))
}

impl Space {
    /// Whether what is written under this may still be.
    pub(super) fn holds(&self, fence: Option<&Fence>) -> bool {
        fence.is_none_or(|fence| {
            let lease = self.leases.get(&fence.name);
            lease.is_some_and(|lease| lease.number == fence.number)
        })
    }

    /// Refuses what is written under a lease that is another's.
    pub(super) fn refuse_lost(&self, fence: Option<&Fence>) -> Result<(), StoreError> {
        match fence {
            Some(fence) if !self.holds(Some(fence)) => Err(fence.lost()),
            _ => Ok(()),
        }
    }
}

#[async_trait]
impl Leases for MemoryStore {
    async fn take_lease(
        &self,
        owner: &Owner,
        name: &str,
        holder: &str,
        term: Duration,
    ) -> Result<Lease, StoreError> {
        self.with(owner, |space| {
            if let Some(held) = space.leases.get(name)
                && held.holder != holder
                && held.expires_at > after(Duration::ZERO)
            {
                return Err(StoreError::LeaseHeld {
                    name: name.to_owned(),
                    holder: held.holder.clone(),
                    until: held.expires_at,
                });
            }
            let lease = Lease {
                owner: owner.clone(),
                name: name.to_owned(),
                holder: holder.to_owned(),
                number: self.leased.fetch_add(1, Ordering::Relaxed) + 1,
                expires_at: after(term),
            };
            space.leases.insert(name.to_owned(), lease.clone());
            Ok(lease)
        })
    }

    async fn renew_lease(&self, lease: &Lease, term: Duration) -> Result<Lease, StoreError> {
        self.with(&lease.owner, |space| {
            space.refuse_lost(Some(&lease.fence()))?;
            let renewed = Lease {
                expires_at: after(term),
                ..lease.clone()
            };
            space.leases.insert(lease.name.clone(), renewed.clone());
            Ok(renewed)
        })
    }

    async fn release_lease(&self, lease: &Lease) -> Result<(), StoreError> {
        self.with(&lease.owner, |space| {
            if space.holds(Some(&lease.fence())) {
                space.leases.remove(&lease.name);
            }
            Ok(())
        })
    }
}

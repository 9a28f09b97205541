//! [`LeaseStore`] of the in-memory store.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use async_trait::async_trait;
use throughline_model::{Owner, Timestamp, truncate_to_micros};

use super::{MemoryStore, OwnerData};
use crate::{Fence, Lease, LeaseStore, StoreError, is_lease_in_effect};

/// A lease, and when it was last granted or renewed.
#[derive(Debug)]
pub(super) struct GrantedLease {
    pub(super) lease: Lease,
    granted_at: Timestamp,
}

/// The store's clock: the system clock, or one injected by tests.
pub(super) struct Clock(Arc<dyn Fn() -> Timestamp + Send + Sync>);

impl Clock {
    pub(super) fn new(now: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    fn now(&self) -> Timestamp {
        truncate_to_micros((self.0)())
    }
}

impl Default for Clock {
    #[expect(clippy::disallowed_methods, reason = "this store's own clock")]
    fn default() -> Self {
        Self::new(Timestamp::now)
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Clock")
    }
}

impl GrantedLease {
    fn new(lease: Lease, now: Timestamp, term: Duration) -> Self {
        Self {
            lease: Lease {
                expires_at: truncate_to_micros(now.checked_add(term).unwrap_or(Timestamp::MAX)),
                ..lease
            },
            granted_at: now,
        }
    }

    fn is_in_effect(&self, now: Timestamp) -> bool {
        is_lease_in_effect(self.granted_at, self.lease.expires_at, now)
    }
}

impl OwnerData {
    /// Whether the fence's leases are still held.
    pub(super) fn is_fence_held(&self, fence: Option<&Fence>) -> bool {
        let held = |fence: &Fence| {
            let granted = self.leases.get(&fence.name);
            granted.is_some_and(|granted| granted.lease.fencing_token == fence.fencing_token)
        };
        fence.is_none_or(|fence| fence.iter().all(held))
    }

    /// Rejects a write whose lease was lost.
    pub(super) fn reject_lost(&self, fence: Option<&Fence>) -> Result<(), StoreError> {
        match fence {
            Some(fence) if !self.is_fence_held(Some(fence)) => Err(fence.lost_error()),
            _ => Ok(()),
        }
    }
}

#[async_trait]
impl LeaseStore for MemoryStore {
    async fn acquire_lease(
        &self,
        owner: &Owner,
        name: &str,
        holder: &str,
        term: Duration,
    ) -> Result<Lease, StoreError> {
        self.with_owner(owner, |space| {
            let now = self.clock.now();
            if let Some(held) = space.leases.get(name)
                && held.lease.holder != holder
                && held.is_in_effect(now)
            {
                return Err(StoreError::LeaseHeld {
                    name: name.to_owned(),
                    holder: held.lease.holder.clone(),
                    until: held.lease.expires_at,
                });
            }
            let lease = Lease {
                owner: owner.clone(),
                name: name.to_owned(),
                holder: holder.to_owned(),
                fencing_token: self.last_fencing_token.fetch_add(1, Ordering::Relaxed) + 1,
                expires_at: now,
            };
            let granted = GrantedLease::new(lease, now, term);
            let lease = granted.lease.clone();
            space.leases.insert(name.to_owned(), granted);
            Ok(lease)
        })
    }

    async fn renew_lease(&self, lease: &Lease, term: Duration) -> Result<Lease, StoreError> {
        self.with_owner(&lease.owner, |space| {
            space.reject_lost(Some(&lease.fence()))?;
            let renewed = GrantedLease::new(lease.clone(), self.clock.now(), term);
            let lease = renewed.lease.clone();
            space.leases.insert(lease.name.clone(), renewed);
            Ok(lease)
        })
    }

    async fn release_lease(&self, lease: &Lease) -> Result<(), StoreError> {
        self.with_owner(&lease.owner, |space| {
            if space.is_fence_held(Some(&lease.fence())) {
                space.leases.remove(&lease.name);
            }
            Ok(())
        })
    }

    async fn peek_lease(&self, owner: &Owner, name: &str) -> Result<Option<Lease>, StoreError> {
        self.with_owner(owner, |space| {
            let now = self.clock.now();
            let held = space.leases.get(name).filter(|held| held.is_in_effect(now));
            Ok(held.map(|held| held.lease.clone()))
        })
    }
}

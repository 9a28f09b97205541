//! Implements [`LeaseStore`]: leases for work that one process at a time may do.

use std::time::Duration;

use async_trait::async_trait;
use throughline_model::Owner;
use throughline_store::{Lease, LeaseStore, StoreError};

use crate::store::RemoteStore;
use crate::wire;

#[async_trait]
impl LeaseStore for RemoteStore {
    async fn acquire_lease(
        &self,
        owner: &Owner,
        name: &str,
        holder: &str,
        term: Duration,
    ) -> Result<Lease, StoreError> {
        let call = wire::AcquireLease {
            name: name.to_owned(),
            holder: holder.to_owned(),
            term,
        };
        self.client().call(self.credentials_of(owner)?, &call).await
    }

    async fn renew_lease(&self, lease: &Lease, term: Duration) -> Result<Lease, StoreError> {
        let call = wire::RenewLease {
            lease: lease.clone(),
            term,
        };
        self.client()
            .call(self.credentials_of(&lease.owner)?, &call)
            .await
    }

    async fn release_lease(&self, lease: &Lease) -> Result<(), StoreError> {
        let call = wire::ReleaseLease {
            lease: lease.clone(),
        };
        self.client()
            .call(self.credentials_of(&lease.owner)?, &call)
            .await
    }

    async fn peek_lease(&self, owner: &Owner, name: &str) -> Result<Option<Lease>, StoreError> {
        let call = wire::PeekLease {
            name: name.to_owned(),
        };
        self.client().call(self.credentials_of(owner)?, &call).await
    }
}

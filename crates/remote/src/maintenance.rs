//! Maintenance: not supported remotely, except for listing owners; it is done on the server.

use std::path::Path;

use async_trait::async_trait;
use throughline_model::Owner;
use throughline_store::{CheckReport, Lease, Maintenance, ProgressCallback, StoreError};

use crate::store::RemoteStore;

#[async_trait]
impl Maintenance for RemoteStore {
    /// Returns the owners whose tokens this client has.
    async fn owners(&self) -> Result<Vec<Owner>, StoreError> {
        let owners = self
            .all_credentials()
            .iter()
            .map(|holder| holder.owner.clone());
        Ok(owners.collect())
    }

    async fn leases(&self) -> Result<Vec<Lease>, StoreError> {
        Err(StoreError::Unsupported(
            "list leases from here: run `tl doctor` on the server",
        ))
    }

    async fn check(&self, _: ProgressCallback<'_>) -> Result<CheckReport, StoreError> {
        Err(StoreError::Unsupported(
            "be checked from here: run `tl doctor` on the server",
        ))
    }

    async fn rebuild(&self, _: ProgressCallback<'_>) -> Result<CheckReport, StoreError> {
        Err(StoreError::Unsupported(
            "be rebuilt from here: run `tl doctor --rebuild` on the server",
        ))
    }

    async fn backup(&self, _: &Path, _: ProgressCallback<'_>) -> Result<(), StoreError> {
        Err(StoreError::Unsupported(
            "be backed up from here: use `tl export`, or run `tl backup` on the \
             server",
        ))
    }

    async fn size(&self) -> Result<u64, StoreError> {
        Err(StoreError::Unsupported(
            "report its size: it may hold the data of other owners",
        ))
    }

    async fn close(&self) -> Result<(), StoreError> {
        // Everything acknowledged is durable on the server.
        Ok(())
    }
}

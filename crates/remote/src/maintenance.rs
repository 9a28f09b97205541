//! Upkeep, which is the business of whoever runs the server.

use std::path::Path;

use async_trait::async_trait;
use throughline_model::Owner;
use throughline_store::{CheckReport, Lease, Maintenance, ProgressCallback, StoreError};

use crate::store::RemoteStore;

#[async_trait]
impl Maintenance for RemoteStore {
    /// Those whose tokens there are: others are not told of here.
    async fn owners(&self) -> Result<Vec<Owner>, StoreError> {
        let owners = self
            .all_credentials()
            .iter()
            .map(|holder| holder.owner.clone());
        Ok(owners.collect())
    }

    async fn leases(&self) -> Result<Vec<Lease>, StoreError> {
        Err(StoreError::Unsupported(
            "list leases from here: run `tl doctor` where the server keeps its store",
        ))
    }

    async fn check(&self, _: ProgressCallback<'_>) -> Result<CheckReport, StoreError> {
        Err(StoreError::Unsupported(
            "be checked from here: run `tl doctor` where the server keeps its store",
        ))
    }

    async fn rebuild(&self, _: ProgressCallback<'_>) -> Result<CheckReport, StoreError> {
        Err(StoreError::Unsupported(
            "be mended from here: run `tl doctor --rebuild` where the server keeps its store",
        ))
    }

    async fn backup(&self, _: &Path, _: ProgressCallback<'_>) -> Result<(), StoreError> {
        Err(StoreError::Unsupported(
            "be copied to a file from here: use `tl export`, or `tl backup` where the server keeps \
             its store",
        ))
    }

    async fn size(&self) -> Result<u64, StoreError> {
        Err(StoreError::Unsupported(
            "tell how large it is: others may be in it as well",
        ))
    }

    async fn close(&self) -> Result<(), StoreError> {
        // Whatever was acknowledged is durable there.
        Ok(())
    }
}

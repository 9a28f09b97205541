//! Attachments, sent as raw bytes.

use async_trait::async_trait;
use throughline_model::{Digest, Owner};
use throughline_store::{BlobStore, StoreError, validate_blob};

use crate::store::RemoteStore;
use crate::wire::BLOBS_PATH;

#[async_trait]
impl BlobStore for RemoteStore {
    async fn put_blob(&self, owner: &Owner, bytes: Vec<u8>) -> Result<Digest, StoreError> {
        let credentials = self.credentials_of(owner)?;
        let digest = validate_blob(&bytes)?;
        let kept: Digest = self
            .client()
            .post_bytes(credentials, BLOBS_PATH, bytes.into())
            .await?;
        refuse_other_digest(&digest, &kept)?;
        Ok(digest)
    }

    async fn blob(&self, owner: &Owner, digest: &Digest) -> Result<Vec<u8>, StoreError> {
        let credentials = self.credentials_of(owner)?;
        let path = format!("{BLOBS_PATH}/{digest}");
        let bytes = self.client().get_bytes(credentials, path).await?;
        refuse_other_digest(digest, &Digest::of(&bytes))?;
        Ok(bytes.into())
    }
}

/// Refuses bytes whose digest is not the expected one.
fn refuse_other_digest(meant: &Digest, found: &Digest) -> Result<(), StoreError> {
    if meant == found {
        return Ok(());
    }
    Err(StoreError::DamagedStore {
        what: format!("the bytes of attachment {meant} do not match its digest"),
        source: None,
    })
}

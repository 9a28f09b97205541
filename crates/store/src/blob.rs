//! The trait for storing attachments by content.

use async_trait::async_trait;
use throughline_model::{Digest, Owner};

use crate::StoreError;

/// The maximum size of an attachment, in bytes.
pub const MAX_BLOB_BYTES: u64 = 512 * 1024 * 1024;

/// Computes the digest of an attachment; rejects one that is too large to store.
pub fn validate_blob(bytes: &[u8]) -> Result<Digest, StoreError> {
    let size = bytes.len() as u64;
    if size > MAX_BLOB_BYTES {
        return Err(StoreError::TooLarge {
            what: "an attachment",
            bytes: size,
            max: MAX_BLOB_BYTES,
        });
    }
    Ok(Digest::of(bytes))
}

/// Stores attachments by content: the same bytes are stored once.
///
/// Blobs are separate per owner: knowing a digest gives no access to another owner's
/// bytes.
#[async_trait]
pub trait BlobStore: Send + Sync {
    /// Stores bytes; returns once they are durable.
    async fn put_blob(&self, owner: &Owner, bytes: Vec<u8>) -> Result<Digest, StoreError>;

    /// The bytes with this digest.
    async fn blob(&self, owner: &Owner, digest: &Digest) -> Result<Vec<u8>, StoreError>;
}

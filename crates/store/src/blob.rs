//! Attachments, stored once by their content.

use async_trait::async_trait;
use throughline_model::{Digest, Owner};

use crate::StoreError;

/// The largest attachment, in bytes.
pub const MAX_BLOB_BYTES: u64 = 512 * 1024 * 1024;

/// The digest of an attachment, unless it is too large to store.
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

/// Keeps attachments: the same bytes once, however often they are put.
///
/// Each owner has their own: knowing a digest is no way to somebody else's bytes.
#[async_trait]
pub trait BlobStore: Send + Sync {
    /// Keeps some bytes; answers once they are durable.
    async fn put_blob(&self, owner: &Owner, bytes: Vec<u8>) -> Result<Digest, StoreError>;

    /// The bytes with that digest.
    async fn blob(&self, owner: &Owner, digest: &Digest) -> Result<Vec<u8>, StoreError>;
}

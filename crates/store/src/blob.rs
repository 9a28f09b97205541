//! Attachments, stored once by their content.

use async_trait::async_trait;
use throughline_model::{Digest, Owner};

use crate::StoreError;

/// The largest attachment, in bytes.
pub const MAX_BLOB_BYTES: u64 = 512 * 1024 * 1024;

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

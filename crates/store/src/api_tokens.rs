//! The trait for storing the API tokens of a server.

use async_trait::async_trait;
use throughline_model::{ApiToken, Digest, Timestamp, TokenId};

use crate::StoreError;

/// Stores API tokens: hash, owner, role and validity. Used by servers and their
/// administrators, across owners.
///
/// Tokens are never deleted: revoked ones stay on record.
#[async_trait]
pub trait ApiTokens: Send + Sync {
    /// Stores a new token. Fails with [`StoreError::TokenExists`] if its id or hash is
    /// taken.
    async fn insert_token(&self, token: &ApiToken) -> Result<(), StoreError>;

    /// The token with this hash, whether or not it is still valid.
    async fn token_by_hash(&self, hash: &Digest) -> Result<Option<ApiToken>, StoreError>;

    /// The tokens with these hashes, in any order; unknown hashes are skipped.
    async fn tokens_by_hash(&self, hashes: &[Digest]) -> Result<Vec<ApiToken>, StoreError> {
        let mut found = Vec::with_capacity(hashes.len());
        for hash in hashes {
            found.extend(self.token_by_hash(hash).await?);
        }
        Ok(found)
    }

    /// All tokens, including expired and revoked ones, oldest first.
    async fn list_tokens(&self) -> Result<Vec<ApiToken>, StoreError>;

    /// Revokes a token and returns it. Has no effect if it is already revoked.
    async fn revoke_token(&self, id: &TokenId, at: Timestamp) -> Result<ApiToken, StoreError>;
}

//! Who may call a server that serves this store.

use async_trait::async_trait;
use throughline_model::{ApiToken, Digest, Timestamp, TokenId};

use crate::StoreError;

/// Keeps tokens: their hashes, whose they are and until when they count. For servers and
/// whoever runs them, across owners.
///
/// Nothing is ever deleted here: what was taken back stays on record.
#[async_trait]
pub trait ApiTokens: Send + Sync {
    /// Keeps a new token. One whose id or hash is there already is refused with
    /// [`StoreError::TokenExists`].
    async fn insert_token(&self, token: &ApiToken) -> Result<(), StoreError>;

    /// The token with this hash, whether or not it still counts.
    async fn token_by_hash(&self, hash: &Digest) -> Result<Option<ApiToken>, StoreError>;

    /// The tokens with these hashes, in any order; those that are not there are left out.
    async fn tokens_by_hash(&self, hashes: &[Digest]) -> Result<Vec<ApiToken>, StoreError> {
        let mut found = Vec::with_capacity(hashes.len());
        for hash in hashes {
            found.extend(self.token_by_hash(hash).await?);
        }
        Ok(found)
    }

    /// Every token there ever was, oldest first.
    async fn list_tokens(&self) -> Result<Vec<ApiToken>, StoreError>;

    /// Takes a token back; answers with what is known of it. Taken back already: nothing
    /// changes.
    async fn revoke_token(&self, id: &TokenId, at: Timestamp) -> Result<ApiToken, StoreError>;
}

//! Who may call a server that serves this store.

use async_trait::async_trait;
use throughline_model::{Digest, Timestamp, Token, TokenId};

use crate::StoreError;

/// Keeps tokens: their hashes, whose they are and until when they count. For servers and
/// whoever runs them, across owners.
///
/// Nothing is ever deleted here: what was taken back stays on record.
#[async_trait]
pub trait Access: Send + Sync {
    /// Keeps a new token. One whose id or hash is there already is refused with
    /// [`StoreError::TokenExists`].
    async fn put_token(&self, token: &Token) -> Result<(), StoreError>;

    /// The token with this hash, whether or not it still counts.
    async fn token(&self, hash: &Digest) -> Result<Option<Token>, StoreError>;

    /// The tokens with these hashes, in any order; those that are not there are left out.
    async fn tokens_with(&self, hashes: &[Digest]) -> Result<Vec<Token>, StoreError> {
        let mut found = Vec::with_capacity(hashes.len());
        for hash in hashes {
            found.extend(self.token(hash).await?);
        }
        Ok(found)
    }

    /// Every token there ever was, oldest first.
    async fn tokens(&self) -> Result<Vec<Token>, StoreError>;

    /// Takes a token back; answers with what is known of it. Taken back already: nothing
    /// changes.
    async fn revoke_token(&self, id: &TokenId, at: Timestamp) -> Result<Token, StoreError>;
}

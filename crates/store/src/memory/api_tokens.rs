//! [`ApiTokens`] of the in-memory store.

use std::sync::{MutexGuard, PoisonError};

use async_trait::async_trait;
use throughline_model::{ApiToken, Digest, Timestamp, TokenId, truncate_to_micros};

use super::MemoryStore;
use crate::{ApiTokens, StoreError};

impl MemoryStore {
    fn lock_tokens(&self) -> MutexGuard<'_, Vec<ApiToken>> {
        self.api_tokens
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl ApiTokens for MemoryStore {
    async fn insert_token(&self, token: &ApiToken) -> Result<(), StoreError> {
        let mut held = self.lock_tokens();
        let same = |known: &ApiToken| known.id == token.id || known.hash == token.hash;
        if held.iter().any(same) {
            return Err(StoreError::TokenExists(token.id.clone()));
        }
        held.push(ApiToken {
            created_at: truncate_to_micros(token.created_at),
            expires_at: token.expires_at.map(truncate_to_micros),
            revoked_at: token.revoked_at.map(truncate_to_micros),
            ..token.clone()
        });
        Ok(())
    }

    async fn token_by_hash(&self, hash: &Digest) -> Result<Option<ApiToken>, StoreError> {
        Ok(self
            .lock_tokens()
            .iter()
            .find(|token| token.hash == *hash)
            .cloned())
    }

    async fn list_tokens(&self) -> Result<Vec<ApiToken>, StoreError> {
        let mut tokens = self.lock_tokens().clone();
        tokens.sort_by(|a, b| (a.created_at, &a.id).cmp(&(b.created_at, &b.id)));
        Ok(tokens)
    }

    async fn revoke_token(&self, id: &TokenId, at: Timestamp) -> Result<ApiToken, StoreError> {
        let mut held = self.lock_tokens();
        let token = held.iter_mut().find(|token| token.id == *id);
        let token = token.ok_or_else(|| StoreError::NoSuchToken(id.clone()))?;
        token.revoked_at.get_or_insert(truncate_to_micros(at));
        Ok(token.clone())
    }
}

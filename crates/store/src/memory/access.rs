//! Tokens in memory.

use std::sync::{MutexGuard, PoisonError};

use async_trait::async_trait;
use throughline_model::{Digest, Timestamp, Token, TokenId, to_micros};

use super::MemoryStore;
use crate::{Access, StoreError};

impl MemoryStore {
    fn held(&self) -> MutexGuard<'_, Vec<Token>> {
        self.access.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Access for MemoryStore {
    async fn put_token(&self, token: &Token) -> Result<(), StoreError> {
        let mut held = self.held();
        let same = |known: &Token| known.id == token.id || known.hash == token.hash;
        if held.iter().any(same) {
            return Err(StoreError::TokenExists(token.id.clone()));
        }
        held.push(Token {
            created_at: to_micros(token.created_at),
            expires_at: token.expires_at.map(to_micros),
            revoked_at: token.revoked_at.map(to_micros),
            ..token.clone()
        });
        Ok(())
    }

    async fn token(&self, hash: &Digest) -> Result<Option<Token>, StoreError> {
        Ok(self
            .held()
            .iter()
            .find(|token| token.hash == *hash)
            .cloned())
    }

    async fn tokens(&self) -> Result<Vec<Token>, StoreError> {
        let mut tokens = self.held().clone();
        tokens.sort_by(|a, b| (a.created_at, &a.id).cmp(&(b.created_at, &b.id)));
        Ok(tokens)
    }

    async fn revoke_token(&self, id: &TokenId, at: Timestamp) -> Result<Token, StoreError> {
        let mut held = self.held();
        let token = held.iter_mut().find(|token| token.id == *id);
        let token = token.ok_or_else(|| StoreError::NoSuchToken(id.clone()))?;
        token.revoked_at.get_or_insert(to_micros(at));
        Ok(token.clone())
    }
}

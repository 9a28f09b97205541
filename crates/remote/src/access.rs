//! Tokens, which are the business of whoever runs the server.

use async_trait::async_trait;
use throughline_model::{Digest, Timestamp, Token, TokenId};
use throughline_store::{Access, StoreError};

use crate::store::RemoteStore;

/// What is told to whoever asks here.
const ELSEWHERE: StoreError = StoreError::Unsupported(
    "manage tokens from here: run `tl token` where the server keeps its store, or use its page",
);

#[async_trait]
impl Access for RemoteStore {
    async fn put_token(&self, _: &Token) -> Result<(), StoreError> {
        Err(ELSEWHERE)
    }

    async fn token(&self, _: &Digest) -> Result<Option<Token>, StoreError> {
        Err(ELSEWHERE)
    }

    async fn tokens(&self) -> Result<Vec<Token>, StoreError> {
        Err(ELSEWHERE)
    }

    async fn revoke_token(&self, _: &TokenId, _: Timestamp) -> Result<Token, StoreError> {
        Err(ELSEWHERE)
    }
}

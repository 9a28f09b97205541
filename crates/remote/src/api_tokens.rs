//! API tokens: not supported remotely; they are managed on the server.

use async_trait::async_trait;
use throughline_model::{ApiToken, Digest, Timestamp, TokenId};
use throughline_store::{ApiTokens, StoreError};

use crate::store::RemoteStore;

/// The error of every call here.
const UNSUPPORTED: StoreError = StoreError::Unsupported(
    "manage tokens from here: run `tl token` on the server, or use its web page",
);

#[async_trait]
impl ApiTokens for RemoteStore {
    async fn insert_token(&self, _: &ApiToken) -> Result<(), StoreError> {
        Err(UNSUPPORTED)
    }

    async fn token_by_hash(&self, _: &Digest) -> Result<Option<ApiToken>, StoreError> {
        Err(UNSUPPORTED)
    }

    async fn list_tokens(&self) -> Result<Vec<ApiToken>, StoreError> {
        Err(UNSUPPORTED)
    }

    async fn revoke_token(&self, _: &TokenId, _: Timestamp) -> Result<ApiToken, StoreError> {
        Err(UNSUPPORTED)
    }
}

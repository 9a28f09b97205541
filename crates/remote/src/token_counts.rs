//! Implements [`TokenCounts`]: reads and stores token counts per entry.

use async_trait::async_trait;
use throughline_model::{Seq, SessionRef};
use throughline_store::{StoreError, TokenCounts};

use crate::store::RemoteStore;
use crate::wire;

#[async_trait]
impl TokenCounts for RemoteStore {
    async fn token_counts(
        &self,
        of: &SessionRef,
        encoding: &str,
        from: Seq,
        to: Seq,
    ) -> Result<Vec<(Seq, u64)>, StoreError> {
        let call = wire::GetTokenCounts {
            session: of.id.clone(),
            encoding: encoding.to_owned(),
            from,
            to,
        };
        self.client()
            .call(self.credentials_of(&of.owner)?, &call)
            .await
    }

    async fn put_token_counts(
        &self,
        of: &SessionRef,
        encoding: &str,
        counts: &[(Seq, u64)],
    ) -> Result<(), StoreError> {
        let call = wire::PutTokenCounts {
            session: of.id.clone(),
            encoding: encoding.to_owned(),
            counts: counts.to_vec(),
        };
        self.client()
            .call(self.credentials_of(&of.owner)?, &call)
            .await
    }
}

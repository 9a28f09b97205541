//! Token counts.

use async_trait::async_trait;
use axum::Router;
use throughline::{Seq, StoreError};
use throughline_remote::wire;

use super::{Answered, Asker, on};
use crate::App;

/// The paths of this part.
pub(super) fn routes(router: Router<App>) -> Router<App> {
    on::<wire::PutTokenCounts>(on::<wire::TokenCounts>(router))
}

#[async_trait]
impl Answered for wire::TokenCounts {
    async fn answer(self, asker: &Asker) -> Result<Vec<(Seq, u64)>, StoreError> {
        let of = asker.session(&self.session);
        let store = asker.store();
        store
            .token_counts(&of, &self.encoding, self.from, self.to)
            .await
    }
}

#[async_trait]
impl Answered for wire::PutTokenCounts {
    async fn answer(self, asker: &Asker) -> Result<(), StoreError> {
        let of = asker.session(&self.session);
        let store = asker.store();
        store
            .put_token_counts(&of, &self.encoding, &self.counts)
            .await
    }
}

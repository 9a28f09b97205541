//! Store protocol: token counts.

use async_trait::async_trait;
use axum::Router;
use throughline::{Seq, StoreError};
use throughline_remote::wire;

use super::{CallContext, CallHandler, route_call};
use crate::App;

/// Adds the routes of this module.
pub(super) fn add_routes(router: Router<App>) -> Router<App> {
    route_call::<wire::PutTokenCounts>(route_call::<wire::GetTokenCounts>(router))
}

#[async_trait]
impl CallHandler for wire::GetTokenCounts {
    async fn handle(self, ctx: &CallContext) -> Result<Vec<(Seq, u64)>, StoreError> {
        let of = ctx.session(&self.session);
        let store = ctx.store();
        store
            .token_counts(&of, &self.encoding, self.from, self.to)
            .await
    }
}

#[async_trait]
impl CallHandler for wire::PutTokenCounts {
    async fn handle(self, ctx: &CallContext) -> Result<(), StoreError> {
        let of = ctx.session(&self.session);
        let store = ctx.store();
        store
            .put_token_counts(&of, &self.encoding, &self.counts)
            .await
    }
}

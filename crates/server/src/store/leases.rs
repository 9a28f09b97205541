//! Store protocol: leases, for work that must be done by one process at a time.

use async_trait::async_trait;
use axum::Router;
use throughline::{Lease, StoreError};
use throughline_remote::wire;

use super::{CallContext, CallHandler, route_call};
use crate::App;

/// Adds the routes of this module.
pub(super) fn add_routes(router: Router<App>) -> Router<App> {
    let router = route_call::<wire::AcquireLease>(router);
    let router = route_call::<wire::RenewLease>(router);
    let router = route_call::<wire::ReleaseLease>(router);
    route_call::<wire::PeekLease>(router)
}

#[async_trait]
impl CallHandler for wire::AcquireLease {
    async fn handle(self, ctx: &CallContext) -> Result<Lease, StoreError> {
        let (owner, store) = (ctx.owner(), ctx.store());
        store
            .acquire_lease(owner, &self.name, &self.holder, self.term)
            .await
    }
}

#[async_trait]
impl CallHandler for wire::RenewLease {
    async fn handle(self, ctx: &CallContext) -> Result<Lease, StoreError> {
        let lease = with_caller_as_owner(self.lease, ctx);
        ctx.store().renew_lease(&lease, self.term).await
    }
}

#[async_trait]
impl CallHandler for wire::ReleaseLease {
    async fn handle(self, ctx: &CallContext) -> Result<(), StoreError> {
        let lease = with_caller_as_owner(self.lease, ctx);
        ctx.store().release_lease(&lease).await
    }
}

#[async_trait]
impl CallHandler for wire::PeekLease {
    async fn handle(self, ctx: &CallContext) -> Result<Option<Lease>, StoreError> {
        ctx.store().peek_lease(ctx.owner(), &self.name).await
    }
}

/// Sets the caller as the lease's owner, whatever the request says.
fn with_caller_as_owner(lease: Lease, ctx: &CallContext) -> Lease {
    Lease {
        owner: ctx.owner().clone(),
        ..lease
    }
}

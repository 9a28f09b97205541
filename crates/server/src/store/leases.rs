//! Work that must happen once.

use async_trait::async_trait;
use axum::Router;
use throughline::{Lease, StoreError};
use throughline_remote::wire;

use super::{CallContext, CallHandler, route_call};
use crate::App;

/// The paths of this part.
pub(super) fn add_routes(router: Router<App>) -> Router<App> {
    let router = route_call::<wire::AcquireLease>(router);
    let router = route_call::<wire::RenewLease>(router);
    let router = route_call::<wire::ReleaseLease>(router);
    route_call::<wire::PeekLease>(router)
}

#[async_trait]
impl CallHandler for wire::AcquireLease {
    async fn handle(self, asker: &CallContext) -> Result<Lease, StoreError> {
        let (owner, store) = (asker.owner(), asker.store());
        store
            .acquire_lease(owner, &self.name, &self.holder, self.term)
            .await
    }
}

#[async_trait]
impl CallHandler for wire::RenewLease {
    async fn handle(self, asker: &CallContext) -> Result<Lease, StoreError> {
        let lease = with_caller_as_owner(self.lease, asker);
        asker.store().renew_lease(&lease, self.term).await
    }
}

#[async_trait]
impl CallHandler for wire::ReleaseLease {
    async fn handle(self, asker: &CallContext) -> Result<(), StoreError> {
        let lease = with_caller_as_owner(self.lease, asker);
        asker.store().release_lease(&lease).await
    }
}

#[async_trait]
impl CallHandler for wire::PeekLease {
    async fn handle(self, asker: &CallContext) -> Result<Option<Lease>, StoreError> {
        asker.store().peek_lease(asker.owner(), &self.name).await
    }
}

/// The caller's lease, whoever's it says it is.
fn with_caller_as_owner(lease: Lease, asker: &CallContext) -> Lease {
    Lease {
        owner: asker.owner().clone(),
        ..lease
    }
}

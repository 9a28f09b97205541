//! Work that must happen once.

use async_trait::async_trait;
use axum::Router;
use throughline::{Lease, StoreError};
use throughline_remote::wire;

use super::{Answered, Asker, on};
use crate::App;

/// The paths of this part.
pub(super) fn routes(router: Router<App>) -> Router<App> {
    let router = on::<wire::TakeLease>(router);
    let router = on::<wire::RenewLease>(router);
    let router = on::<wire::ReleaseLease>(router);
    on::<wire::PeekLease>(router)
}

#[async_trait]
impl Answered for wire::TakeLease {
    async fn answer(self, asker: &Asker) -> Result<Lease, StoreError> {
        let (owner, store) = (asker.owner(), asker.store());
        store
            .take_lease(owner, &self.name, &self.holder, self.term)
            .await
    }
}

#[async_trait]
impl Answered for wire::RenewLease {
    async fn answer(self, asker: &Asker) -> Result<Lease, StoreError> {
        let lease = own(self.lease, asker);
        asker.store().renew_lease(&lease, self.term).await
    }
}

#[async_trait]
impl Answered for wire::ReleaseLease {
    async fn answer(self, asker: &Asker) -> Result<(), StoreError> {
        let lease = own(self.lease, asker);
        asker.store().release_lease(&lease).await
    }
}

#[async_trait]
impl Answered for wire::PeekLease {
    async fn answer(self, asker: &Asker) -> Result<Option<Lease>, StoreError> {
        asker.store().peek_lease(asker.owner(), &self.name).await
    }
}

/// The caller's lease, whoever's it says it is.
fn own(lease: Lease, asker: &Asker) -> Lease {
    Lease {
        owner: asker.owner().clone(),
        ..lease
    }
}

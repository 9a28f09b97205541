//! What happened, to the caller.

use std::time::Duration;

use async_trait::async_trait;
use axum::Router;
use throughline::{Change, ChangeKind, Position, ReadRange, StoreError};
use throughline_remote::wire;
use tokio::time::Instant;

use super::{CallContext, CallHandler, route_call};
use crate::App;

/// How long somebody waits for something to happen before they are told that nothing did.
const LONG_POLL_TIMEOUT: Duration = Duration::from_secs(25);

/// The paths of this part.
pub(super) fn add_routes(router: Router<App>) -> Router<App> {
    let router = route_call::<wire::LastPosition>(router);
    let router = route_call::<wire::ReadChanges>(router);
    route_call::<wire::WaitForChange>(router)
}

#[async_trait]
impl CallHandler for wire::LastPosition {
    async fn handle(self, asker: &CallContext) -> Result<Position, StoreError> {
        asker.store().last_position().await
    }
}

#[async_trait]
impl CallHandler for wire::ReadChanges {
    async fn handle(self, asker: &CallContext) -> Result<wire::ChangesPage, StoreError> {
        let (owner, limit) = (asker.owner(), asker.page_limit(self.limit));
        let changes = asker
            .store()
            .owner_changes(owner, self.after, limit)
            .await?;
        let found = changes.len();
        let mut bytes = 0;
        let changes: Vec<_> = changes
            .into_iter()
            .take_while(|change| {
                // As much as a page of a log has, and at least one.
                let before = bytes;
                bytes += payload_bytes(change);
                before < ReadRange::PAGE_BYTES
            })
            .collect();
        let more = found == limit || changes.len() < found;
        Ok(wire::ChangesPage { changes, more })
    }
}

fn payload_bytes(change: &Change) -> usize {
    match &change.kind {
        ChangeKind::Appended(stored) => stored.payload.len(),
        _ => 0,
    }
}

#[async_trait]
impl CallHandler for wire::WaitForChange {
    async fn handle(self, asker: &CallContext) -> Result<bool, StoreError> {
        // Well within the time there is for an answer.
        let until = Instant::now() + LONG_POLL_TIMEOUT.min(asker.app.limits().response_timeout / 2);
        loop {
            // First listening, then looking: nothing can happen in between.
            let told = asker.app.hub.next_event(asker.owner()).await;
            let after = asker.store().owner_changes(asker.owner(), self.after, 1);
            if !after.await?.is_empty() {
                return Ok(true);
            }
            tokio::select! {
                told = told => if !told {
                    return Ok(false);
                },
                () = tokio::time::sleep_until(until) => return Ok(false),
            }
        }
    }
}

//! Store protocol: the change feed, limited to the caller's changes.

use std::time::Duration;

use async_trait::async_trait;
use axum::Router;
use throughline::{Change, ChangeKind, Position, ReadRange, StoreError};
use throughline_remote::wire;
use tokio::time::Instant;

use super::{CallContext, CallHandler, route_call};
use crate::App;

/// How long a long poll waits for a change.
const LONG_POLL_TIMEOUT: Duration = Duration::from_secs(25);

/// Adds the routes of this module.
pub(super) fn add_routes(router: Router<App>) -> Router<App> {
    let router = route_call::<wire::LastPosition>(router);
    let router = route_call::<wire::ReadChanges>(router);
    route_call::<wire::WaitForChange>(router)
}

#[async_trait]
impl CallHandler for wire::LastPosition {
    async fn handle(self, ctx: &CallContext) -> Result<Position, StoreError> {
        ctx.store().last_position().await
    }
}

#[async_trait]
impl CallHandler for wire::ReadChanges {
    async fn handle(self, ctx: &CallContext) -> Result<wire::ChangesPage, StoreError> {
        let (owner, limit) = (ctx.owner(), ctx.page_limit(self.limit));
        let changes = ctx.store().owner_changes(owner, self.after, limit).await?;
        let found = changes.len();
        let mut bytes = 0;
        let changes: Vec<_> = changes
            .into_iter()
            .take_while(|change| {
                // As many as fit into a page, and at least one.
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
    async fn handle(self, ctx: &CallContext) -> Result<bool, StoreError> {
        // Well within the response timeout.
        let until = Instant::now() + LONG_POLL_TIMEOUT.min(ctx.app.limits().response_timeout / 2);
        loop {
            // Subscribe before reading, so that no change is missed.
            let next = ctx.app.hub.next_event(ctx.owner()).await;
            let after = ctx.store().owner_changes(ctx.owner(), self.after, 1);
            if !after.await?.is_empty() {
                return Ok(true);
            }
            tokio::select! {
                next = next => if !next {
                    return Ok(false);
                },
                () = tokio::time::sleep_until(until) => return Ok(false),
            }
        }
    }
}

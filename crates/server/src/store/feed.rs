//! What happened, to the caller.

use std::time::Duration;

use async_trait::async_trait;
use axum::Router;
use throughline::{Change, Position, Read, StoreError, What};
use throughline_remote::wire;
use tokio::time::Instant;

use super::{Answered, Asker, on};
use crate::App;

/// How long somebody waits for something to happen before they are told that nothing did.
const WAIT: Duration = Duration::from_secs(25);

/// The paths of this part.
pub(super) fn routes(router: Router<App>) -> Router<App> {
    let router = on::<wire::LastPosition>(router);
    let router = on::<wire::Changes>(router);
    on::<wire::Changed>(router)
}

#[async_trait]
impl Answered for wire::LastPosition {
    async fn answer(self, asker: &Asker) -> Result<Position, StoreError> {
        asker.store().last_position().await
    }
}

#[async_trait]
impl Answered for wire::Changes {
    async fn answer(self, asker: &Asker) -> Result<wire::Told, StoreError> {
        let (owner, limit) = (asker.owner(), asker.page(self.limit));
        let changes = asker.store().changes_of(owner, self.after, limit).await?;
        let found = changes.len();
        let mut bytes = 0;
        let changes: Vec<_> = changes
            .into_iter()
            .take_while(|change| {
                // As much as a page of a log has, and at least one.
                let before = bytes;
                bytes += size(change);
                before < Read::PAGE_BYTES
            })
            .collect();
        let more = found == limit || changes.len() < found;
        Ok(wire::Told { changes, more })
    }
}

fn size(change: &Change) -> usize {
    match &change.what {
        What::Appended(stored) => stored.payload.len(),
        _ => 0,
    }
}

#[async_trait]
impl Answered for wire::Changed {
    async fn answer(self, asker: &Asker) -> Result<bool, StoreError> {
        // Well within the time there is for an answer.
        let until = Instant::now() + WAIT.min(asker.app.limits().time / 2);
        loop {
            // First listening, then looking: nothing can happen in between.
            let told = asker.app.hub.next_of(asker.owner()).await;
            let after = asker.store().changes_of(asker.owner(), self.after, 1);
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

//! What happened, to those whose tokens there are. Positions are the store's.

use async_trait::async_trait;
use throughline_model::Owner;
use throughline_store::{Change, Feed, Position, StoreError};

use crate::store::{Holder, RemoteStore};
use crate::wire;

#[async_trait]
impl Feed for RemoteStore {
    /// The position of the last change in the whole store: it may be another's, who is not
    /// told of here.
    async fn last_position(&self) -> Result<Position, StoreError> {
        let badge = self.badge(self.owner())?;
        self.client().call(badge, &wire::LastPosition {}).await
    }

    async fn changes(&self, after: Position, limit: usize) -> Result<Vec<Change>, StoreError> {
        let mut changes = Vec::new();
        for holder in self.holders() {
            changes.extend(self.changes_of(&holder.owner, after, limit).await?);
        }
        changes.sort_by_key(|change| change.position);
        changes.truncate(limit);
        Ok(changes)
    }

    async fn changes_of(
        &self,
        owner: &Owner,
        mut after: Position,
        limit: usize,
    ) -> Result<Vec<Change>, StoreError> {
        let badge = self.badge(owner)?;
        let mut changes: Vec<Change> = Vec::new();
        loop {
            let limit = limit - changes.len();
            let told = self
                .client()
                .call(badge, &wire::Changes { after, limit })
                .await?;
            let Some(last) = told.changes.last() else {
                return Ok(changes);
            };
            after = last.position;
            let enough = told.changes.len() >= limit || !told.more;
            changes.extend(told.changes);
            if enough {
                return Ok(changes);
            }
        }
    }

    async fn changed(&self, after: Position) -> Result<bool, StoreError> {
        // Whichever is told of something first; a server lets nobody wait for ever.
        loop {
            let waiting = self.holders().iter().map(|holder| {
                let waited = self.waited(holder, after);
                Box::pin(waited)
            });
            let (told, _, _) = futures_util::future::select_all(waiting).await;
            if told? {
                return Ok(true);
            }
        }
    }
}

impl RemoteStore {
    async fn waited(&self, holder: &Holder, after: Position) -> Result<bool, StoreError> {
        let call = wire::Changed { after };
        self.client().call(&holder.badge, &call).await
    }
}

//! What happened, to those whose tokens there are. Positions are the store's.

use async_trait::async_trait;
use throughline_model::Owner;
use throughline_store::{Change, ChangeFeed, Position, StoreError};

use crate::store::{OwnerCredentials, RemoteStore};
use crate::wire;

#[async_trait]
impl ChangeFeed for RemoteStore {
    /// The position of the last change in the whole store: it may be another's, who is not
    /// told of here.
    async fn last_position(&self) -> Result<Position, StoreError> {
        let badge = self.credentials_of(self.owner())?;
        self.client().call(badge, &wire::LastPosition {}).await
    }

    async fn changes(&self, after: Position, limit: usize) -> Result<Vec<Change>, StoreError> {
        let mut changes = Vec::new();
        for holder in self.all_credentials() {
            changes.extend(self.owner_changes(&holder.owner, after, limit).await?);
        }
        changes.sort_by_key(|change| change.position);
        changes.truncate(limit);
        Ok(changes)
    }

    async fn owner_changes(
        &self,
        owner: &Owner,
        mut after: Position,
        limit: usize,
    ) -> Result<Vec<Change>, StoreError> {
        let badge = self.credentials_of(owner)?;
        let mut changes: Vec<Change> = Vec::new();
        loop {
            let limit = limit - changes.len();
            let told = self
                .client()
                .call(badge, &wire::ReadChanges { after, limit })
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

    async fn wait_for_change(&self, after: Position) -> Result<bool, StoreError> {
        // Whichever is told of something first; a server lets nobody wait for ever.
        loop {
            let waiting = self.all_credentials().iter().map(|holder| {
                let waited = self.wait_for_owner_change(holder, after);
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
    async fn wait_for_owner_change(
        &self,
        holder: &OwnerCredentials,
        after: Position,
    ) -> Result<bool, StoreError> {
        let call = wire::WaitForChange { after };
        self.client().call(&holder.credentials, &call).await
    }
}

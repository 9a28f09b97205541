//! The change feed of the owners whose tokens this client has; positions are those of the whole
//! store.

use async_trait::async_trait;
use throughline_model::Owner;
use throughline_store::{Change, ChangeFeed, Position, StoreError};

use crate::store::{OwnerCredentials, RemoteStore};
use crate::wire;

#[async_trait]
impl ChangeFeed for RemoteStore {
    /// Returns the position of the last change in the whole store, which may concern an owner
    /// this client has no token for.
    async fn last_position(&self) -> Result<Position, StoreError> {
        let credentials = self.credentials_of(self.owner())?;
        self.client()
            .call(credentials, &wire::LastPosition {})
            .await
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
        let credentials = self.credentials_of(owner)?;
        let mut changes: Vec<Change> = Vec::new();
        loop {
            let limit = limit - changes.len();
            let page = self
                .client()
                .call(credentials, &wire::ReadChanges { after, limit })
                .await?;
            let Some(last) = page.changes.last() else {
                return Ok(changes);
            };
            after = last.position;
            let enough = page.changes.len() >= limit || !page.more;
            changes.extend(page.changes);
            if enough {
                return Ok(changes);
            }
        }
    }

    async fn wait_for_change(&self, after: Position) -> Result<bool, StoreError> {
        // Waits for the first of them; a server ends every wait after a while.
        loop {
            let waiting = self.all_credentials().iter().map(|holder| {
                let waited = self.wait_for_owner_change(holder, after);
                Box::pin(waited)
            });
            let (changed, _, _) = futures_util::future::select_all(waiting).await;
            if changed? {
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

//! Finding sessions, the trash, projects.

use async_trait::async_trait;
use throughline_model::{Card, Owner, Project, SessionRef, Timestamp};
use throughline_store::{Candidate, Catalog, Cursor, Fence, Filter, Page, StoreError, Trashed};

use crate::store::RemoteStore;
use crate::wire;

#[async_trait]
impl Catalog for RemoteStore {
    async fn list(
        &self,
        owner: &Owner,
        filter: &Filter,
        after: Option<&Cursor>,
        limit: usize,
    ) -> Result<Page<Card>, StoreError> {
        let badge = self.badge(owner)?;
        let mut page = Page {
            items: Vec::new(),
            next: after.cloned(),
        };
        loop {
            let call = wire::List {
                filter: filter.clone(),
                after: page.next,
                limit: limit - page.items.len(),
            };
            let more = self.client().call(badge, &call).await?;
            let empty = more.items.is_empty();
            page.items.extend(more.items);
            page.next = more.next;
            // A server gives no more at once than it wants to.
            if page.next.is_none() || page.items.len() >= limit || empty {
                return Ok(page);
            }
        }
    }

    async fn count(&self, owner: &Owner, filter: &Filter) -> Result<u64, StoreError> {
        let call = wire::Count {
            filter: filter.clone(),
        };
        self.client().call(self.badge(owner)?, &call).await
    }

    async fn candidates(
        &self,
        owner: &Owner,
        text: &str,
        limit: usize,
    ) -> Result<Vec<Candidate>, StoreError> {
        let call = wire::Candidates {
            text: text.to_owned(),
            limit,
        };
        self.client().call(self.badge(owner)?, &call).await
    }

    async fn trash_under(
        &self,
        session: &SessionRef,
        at: Timestamp,
        fence: Option<&Fence>,
    ) -> Result<(), StoreError> {
        let call = wire::Trash {
            session: session.id.clone(),
            at,
            fence: fence.cloned(),
        };
        self.client().call(self.badge(&session.owner)?, &call).await
    }

    async fn restore(&self, session: &SessionRef) -> Result<(), StoreError> {
        let call = wire::Restore {
            session: session.id.clone(),
        };
        let badge = self.badge(&session.owner)?;
        let outcome = self.client().ask(badge, &call).await;
        match outcome.result {
            // An attempt that nobody heard the end of has done it.
            Err(StoreError::NotInTrash(_)) if outcome.again => Ok(()),
            result => result,
        }
    }

    async fn trashed(&self, owner: &Owner, before: Timestamp) -> Result<Vec<Trashed>, StoreError> {
        let call = wire::TrashedBefore { before };
        self.client().call(self.badge(owner)?, &call).await
    }

    async fn remove_under(
        &self,
        session: &SessionRef,
        trashed_at: Option<Timestamp>,
        fence: Option<&Fence>,
    ) -> Result<(), StoreError> {
        let call = wire::Remove {
            session: session.id.clone(),
            trashed_at,
            fence: fence.cloned(),
        };
        let badge = self.badge(&session.owner)?;
        let outcome = self.client().ask(badge, &call).await;
        match outcome.result {
            // An attempt that nobody heard the end of has done it.
            Err(StoreError::NoSuchSession(_)) if outcome.again => Ok(()),
            result => result,
        }
    }

    async fn projects(&self, owner: &Owner) -> Result<Vec<Project>, StoreError> {
        let badge = self.badge(owner)?;
        self.client().call(badge, &wire::Projects {}).await
    }

    async fn put_project(&self, owner: &Owner, project: &Project) -> Result<(), StoreError> {
        let call = wire::PutProject {
            project: project.clone(),
        };
        self.client().call(self.badge(owner)?, &call).await
    }
}

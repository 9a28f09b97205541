//! Implements [`Catalog`]: listing sessions, the trash and projects.

use async_trait::async_trait;
use throughline_model::{Owner, Project, SessionInfo, SessionRef, Timestamp};
use throughline_store::{
    Candidate, Catalog, Cursor, Fence, Page, SessionFilter, StoreError, TrashedSession,
};

use crate::store::RemoteStore;
use crate::wire;

#[async_trait]
impl Catalog for RemoteStore {
    async fn list(
        &self,
        owner: &Owner,
        filter: &SessionFilter,
        after: Option<&Cursor>,
        limit: usize,
    ) -> Result<Page<SessionInfo>, StoreError> {
        let credentials = self.credentials_of(owner)?;
        let mut page = Page {
            items: Vec::new(),
            next: after.cloned(),
        };
        loop {
            let call = wire::ListSessions {
                filter: filter.clone(),
                after: page.next,
                limit: limit - page.items.len(),
            };
            let more = self.client().call(credentials, &call).await?;
            let empty = more.items.is_empty();
            page.items.extend(more.items);
            page.next = more.next;
            // A server may return fewer than requested.
            if page.next.is_none() || page.items.len() >= limit || empty {
                return Ok(page);
            }
        }
    }

    async fn count(&self, owner: &Owner, filter: &SessionFilter) -> Result<u64, StoreError> {
        let call = wire::CountSessions {
            filter: filter.clone(),
        };
        self.client().call(self.credentials_of(owner)?, &call).await
    }

    async fn find_candidates(
        &self,
        owner: &Owner,
        text: &str,
        limit: usize,
    ) -> Result<Vec<Candidate>, StoreError> {
        let call = wire::FindCandidates {
            text: text.to_owned(),
            limit,
        };
        self.client().call(self.credentials_of(owner)?, &call).await
    }

    async fn trash_fenced(
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
        self.client()
            .call(self.credentials_of(&session.owner)?, &call)
            .await
    }

    async fn restore(&self, session: &SessionRef) -> Result<(), StoreError> {
        let call = wire::Restore {
            session: session.id.clone(),
        };
        let credentials = self.credentials_of(&session.owner)?;
        let outcome = self.client().call_with_outcome(credentials, &call).await;
        match outcome.result {
            // An earlier attempt whose answer was lost has done it.
            Err(StoreError::NotInTrash(_)) if outcome.may_be_done => Ok(()),
            result => result,
        }
    }

    async fn list_trashed(
        &self,
        owner: &Owner,
        before: Timestamp,
    ) -> Result<Vec<TrashedSession>, StoreError> {
        let call = wire::ListTrashed { before };
        self.client().call(self.credentials_of(owner)?, &call).await
    }

    async fn remove_fenced(
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
        let credentials = self.credentials_of(&session.owner)?;
        let outcome = self.client().call_with_outcome(credentials, &call).await;
        match outcome.result {
            // An earlier attempt whose answer was lost has done it.
            Err(StoreError::NoSuchSession(_)) if outcome.may_be_done => Ok(()),
            result => result,
        }
    }

    async fn list_projects(&self, owner: &Owner) -> Result<Vec<Project>, StoreError> {
        let credentials = self.credentials_of(owner)?;
        self.client()
            .call(credentials, &wire::ListProjects {})
            .await
    }

    async fn put_project(&self, owner: &Owner, project: &Project) -> Result<(), StoreError> {
        let call = wire::PutProject {
            project: project.clone(),
        };
        self.client().call(self.credentials_of(owner)?, &call).await
    }
}

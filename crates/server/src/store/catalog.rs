//! Finding sessions, the trash, projects.

use async_trait::async_trait;
use axum::Router;
use throughline::{Candidate, Page, Project, SessionInfo, StoreError, TrashedSession};
use throughline_remote::wire;

use super::{CallContext, CallHandler, route_call};
use crate::App;

/// The paths of this part.
pub(super) fn add_routes(router: Router<App>) -> Router<App> {
    let router = route_call::<wire::ListSessions>(router);
    let router = route_call::<wire::CountSessions>(router);
    let router = route_call::<wire::FindCandidates>(router);
    let router = route_call::<wire::Trash>(router);
    let router = route_call::<wire::Restore>(router);
    let router = route_call::<wire::ListTrashed>(router);
    let router = route_call::<wire::Remove>(router);
    let router = route_call::<wire::ListProjects>(router);
    route_call::<wire::PutProject>(router)
}

#[async_trait]
impl CallHandler for wire::ListSessions {
    async fn handle(self, asker: &CallContext) -> Result<Page<SessionInfo>, StoreError> {
        let (after, limit) = (self.after.as_ref(), asker.page_limit(self.limit));
        let owner = asker.owner();
        asker.store().list(owner, &self.filter, after, limit).await
    }
}

#[async_trait]
impl CallHandler for wire::CountSessions {
    async fn handle(self, asker: &CallContext) -> Result<u64, StoreError> {
        asker.store().count(asker.owner(), &self.filter).await
    }
}

#[async_trait]
impl CallHandler for wire::FindCandidates {
    async fn handle(self, asker: &CallContext) -> Result<Vec<Candidate>, StoreError> {
        let (owner, limit) = (asker.owner(), asker.page_limit(self.limit));
        asker
            .store()
            .find_candidates(owner, &self.text, limit)
            .await
    }
}

#[async_trait]
impl CallHandler for wire::Trash {
    async fn handle(self, asker: &CallContext) -> Result<(), StoreError> {
        let session = asker.session(&self.session);
        let fence = self.fence.as_ref();
        asker.store().trash_fenced(&session, self.at, fence).await
    }
}

#[async_trait]
impl CallHandler for wire::Restore {
    async fn handle(self, asker: &CallContext) -> Result<(), StoreError> {
        asker.store().restore(&asker.session(&self.session)).await
    }
}

#[async_trait]
impl CallHandler for wire::ListTrashed {
    async fn handle(self, asker: &CallContext) -> Result<Vec<TrashedSession>, StoreError> {
        asker.store().list_trashed(asker.owner(), self.before).await
    }
}

#[async_trait]
impl CallHandler for wire::Remove {
    async fn handle(self, asker: &CallContext) -> Result<(), StoreError> {
        let session = asker.session(&self.session);
        let (trashed_at, fence) = (self.trashed_at, self.fence.as_ref());
        let store = asker.store();
        store.remove_fenced(&session, trashed_at, fence).await
    }
}

#[async_trait]
impl CallHandler for wire::ListProjects {
    async fn handle(self, asker: &CallContext) -> Result<Vec<Project>, StoreError> {
        asker.store().list_projects(asker.owner()).await
    }
}

#[async_trait]
impl CallHandler for wire::PutProject {
    async fn handle(self, asker: &CallContext) -> Result<(), StoreError> {
        let owner = asker.owner();
        asker.store().put_project(owner, &self.project).await
    }
}

//! Store protocol: the session catalog, the trash and projects.

use async_trait::async_trait;
use axum::Router;
use throughline::{Candidate, Page, Project, SessionInfo, StoreError, TrashedSession};
use throughline_remote::wire;

use super::{CallContext, CallHandler, route_call};
use crate::App;

/// Adds the routes of this module.
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
    async fn handle(self, ctx: &CallContext) -> Result<Page<SessionInfo>, StoreError> {
        let (after, limit) = (self.after.as_ref(), ctx.page_limit(self.limit));
        let owner = ctx.owner();
        ctx.store().list(owner, &self.filter, after, limit).await
    }
}

#[async_trait]
impl CallHandler for wire::CountSessions {
    async fn handle(self, ctx: &CallContext) -> Result<u64, StoreError> {
        ctx.store().count(ctx.owner(), &self.filter).await
    }
}

#[async_trait]
impl CallHandler for wire::FindCandidates {
    async fn handle(self, ctx: &CallContext) -> Result<Vec<Candidate>, StoreError> {
        let (owner, limit) = (ctx.owner(), ctx.page_limit(self.limit));
        ctx.store().find_candidates(owner, &self.text, limit).await
    }
}

#[async_trait]
impl CallHandler for wire::Trash {
    async fn handle(self, ctx: &CallContext) -> Result<(), StoreError> {
        let session = ctx.session(&self.session);
        let fence = self.fence.as_ref();
        ctx.store().trash_fenced(&session, self.at, fence).await
    }
}

#[async_trait]
impl CallHandler for wire::Restore {
    async fn handle(self, ctx: &CallContext) -> Result<(), StoreError> {
        ctx.store().restore(&ctx.session(&self.session)).await
    }
}

#[async_trait]
impl CallHandler for wire::ListTrashed {
    async fn handle(self, ctx: &CallContext) -> Result<Vec<TrashedSession>, StoreError> {
        ctx.store().list_trashed(ctx.owner(), self.before).await
    }
}

#[async_trait]
impl CallHandler for wire::Remove {
    async fn handle(self, ctx: &CallContext) -> Result<(), StoreError> {
        let session = ctx.session(&self.session);
        let (trashed_at, fence) = (self.trashed_at, self.fence.as_ref());
        let store = ctx.store();
        store.remove_fenced(&session, trashed_at, fence).await
    }
}

#[async_trait]
impl CallHandler for wire::ListProjects {
    async fn handle(self, ctx: &CallContext) -> Result<Vec<Project>, StoreError> {
        ctx.store().list_projects(ctx.owner()).await
    }
}

#[async_trait]
impl CallHandler for wire::PutProject {
    async fn handle(self, ctx: &CallContext) -> Result<(), StoreError> {
        let owner = ctx.owner();
        ctx.store().put_project(owner, &self.project).await
    }
}

//! Finding sessions, the trash, projects.

use async_trait::async_trait;
use axum::Router;
use throughline::{Candidate, Card, Page, Project, StoreError, Trashed};
use throughline_remote::wire;

use super::{Answered, Asker, on};
use crate::App;

/// The paths of this part.
pub(super) fn routes(router: Router<App>) -> Router<App> {
    let router = on::<wire::List>(router);
    let router = on::<wire::Count>(router);
    let router = on::<wire::Candidates>(router);
    let router = on::<wire::Trash>(router);
    let router = on::<wire::Restore>(router);
    let router = on::<wire::TrashedBefore>(router);
    let router = on::<wire::Remove>(router);
    let router = on::<wire::Projects>(router);
    on::<wire::PutProject>(router)
}

#[async_trait]
impl Answered for wire::List {
    async fn answer(self, asker: &Asker) -> Result<Page<Card>, StoreError> {
        let (after, limit) = (self.after.as_ref(), asker.page(self.limit));
        let owner = asker.owner();
        asker.store().list(owner, &self.filter, after, limit).await
    }
}

#[async_trait]
impl Answered for wire::Count {
    async fn answer(self, asker: &Asker) -> Result<u64, StoreError> {
        asker.store().count(asker.owner(), &self.filter).await
    }
}

#[async_trait]
impl Answered for wire::Candidates {
    async fn answer(self, asker: &Asker) -> Result<Vec<Candidate>, StoreError> {
        let (owner, limit) = (asker.owner(), asker.page(self.limit));
        asker.store().candidates(owner, &self.text, limit).await
    }
}

#[async_trait]
impl Answered for wire::Trash {
    async fn answer(self, asker: &Asker) -> Result<(), StoreError> {
        let session = asker.session(&self.session);
        let fence = self.fence.as_ref();
        asker.store().trash_under(&session, self.at, fence).await
    }
}

#[async_trait]
impl Answered for wire::Restore {
    async fn answer(self, asker: &Asker) -> Result<(), StoreError> {
        asker.store().restore(&asker.session(&self.session)).await
    }
}

#[async_trait]
impl Answered for wire::TrashedBefore {
    async fn answer(self, asker: &Asker) -> Result<Vec<Trashed>, StoreError> {
        asker.store().trashed(asker.owner(), self.before).await
    }
}

#[async_trait]
impl Answered for wire::Remove {
    async fn answer(self, asker: &Asker) -> Result<(), StoreError> {
        let session = asker.session(&self.session);
        let (trashed_at, fence) = (self.trashed_at, self.fence.as_ref());
        let store = asker.store();
        store.remove_under(&session, trashed_at, fence).await
    }
}

#[async_trait]
impl Answered for wire::Projects {
    async fn answer(self, asker: &Asker) -> Result<Vec<Project>, StoreError> {
        asker.store().projects(asker.owner()).await
    }
}

#[async_trait]
impl Answered for wire::PutProject {
    async fn answer(self, asker: &Asker) -> Result<(), StoreError> {
        let owner = asker.owner();
        asker.store().put_project(owner, &self.project).await
    }
}

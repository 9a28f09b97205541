//! Caches the list of a project's sessions, so that it is not queried for every
//! message.

use std::sync::{Arc, PoisonError};

use throughline_model::{Body, Owner, ProjectId, SessionId};
use throughline_store::{Change, ChangeKind, Position, SessionFilter};

use crate::{Error, Throughline};

/// After more changes than this, the sessions are listed again.
const MAX_FOLLOWED_CHANGES: usize = 200;

/// The sessions of a project, as of a position.
#[derive(Clone, Debug)]
pub(super) struct ProjectSessions {
    owner: Owner,
    project: ProjectId,
    position: Position,
    sessions: Arc<[SessionId]>,
}

impl Throughline {
    /// Returns the sessions of a project that are not in the trash.
    pub(super) async fn list_project_sessions(
        &self,
        project: &ProjectId,
    ) -> Result<Arc<[SessionId]>, Error> {
        if let Some(project_sessions) = self.cached_project_sessions(project).await? {
            return Ok(project_sessions);
        }
        // Position first: changes made while listing are then examined again.
        let at = self.store.last_position().await?;
        let filter = SessionFilter {
            project: Some(project.clone()),
            ..SessionFilter::default()
        };
        let infos = self.list_all(&filter).await?;
        let project_sessions = ProjectSessions {
            owner: self.owner.clone(),
            project: project.clone(),
            position: at,
            sessions: infos.into_iter().map(|info| info.id).collect(),
        };
        let sessions = Arc::clone(&project_sessions.sessions);
        self.cache_project_sessions(project_sessions);
        Ok(sessions)
    }

    /// Returns the cached sessions, unless a change since may affect them.
    async fn cached_project_sessions(
        &self,
        project: &ProjectId,
    ) -> Result<Option<Arc<[SessionId]>>, Error> {
        let cached = self
            .index
            .project_sessions
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let is_same_project =
            |cached: &ProjectSessions| cached.owner == self.owner && cached.project == *project;
        let Some(mut cached) = cached.filter(is_same_project) else {
            return Ok(None);
        };
        let since = self
            .store
            .changes(cached.position, MAX_FOLLOWED_CHANGES)
            .await?;
        if since.len() == MAX_FOLLOWED_CHANGES
            || since
                .iter()
                .any(|change| self.affects_project_sessions(change))
        {
            return Ok(None);
        }
        let sessions = Arc::clone(&cached.sessions);
        if let Some(last) = since.last() {
            cached.position = last.position;
            self.cache_project_sessions(cached);
        }
        Ok(Some(sessions))
    }

    /// Whether a change may affect which sessions a project has.
    fn affects_project_sessions(&self, change: &Change) -> bool {
        let keeps_membership = match &change.kind {
            ChangeKind::Appended(entry) => entry.decode().is_ok_and(|entry| {
                !matches!(
                    entry.body,
                    Body::Moved { .. } | Body::Archived | Body::Unarchived
                )
            }),
            _ => false,
        };
        change.owner == self.owner && !keeps_membership
    }

    fn cache_project_sessions(&self, project_sessions: ProjectSessions) {
        let mut cached = self
            .index
            .project_sessions
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *cached = Some(project_sessions);
    }
}

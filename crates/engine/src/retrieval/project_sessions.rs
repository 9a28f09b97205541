//! Which sessions a project has, without listing them for every message.

use std::sync::{Arc, PoisonError};

use throughline_model::{Body, Owner, ProjectId, SessionId};
use throughline_store::{Change, ChangeKind, Position, SessionFilter};

use crate::{Error, Throughline};

/// After more changes than this the sessions are listed again.
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
    /// The sessions of a project that are in use.
    pub(super) async fn list_project_sessions(
        &self,
        project: &ProjectId,
    ) -> Result<Arc<[SessionId]>, Error> {
        if let Some(members) = self.cached_project_sessions(project).await? {
            return Ok(members);
        }
        // Read first: what changes while they are listed is then looked at again.
        let at = self.store.last_position().await?;
        let filter = SessionFilter {
            project: Some(project.clone()),
            ..SessionFilter::default()
        };
        let cards = self.list_all(&filter).await?;
        let members = ProjectSessions {
            owner: self.owner.clone(),
            project: project.clone(),
            position: at,
            sessions: cards.into_iter().map(|card| card.id).collect(),
        };
        let sessions = Arc::clone(&members.sessions);
        self.cache_project_sessions(members);
        Ok(sessions)
    }

    /// Those that are known, unless something has happened to a session since.
    async fn cached_project_sessions(
        &self,
        project: &ProjectId,
    ) -> Result<Option<Arc<[SessionId]>>, Error> {
        let known = self
            .index
            .project_sessions
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let is_it =
            |known: &ProjectSessions| known.owner == self.owner && known.project == *project;
        let Some(mut known) = known.filter(is_it) else {
            return Ok(None);
        };
        let since = self
            .store
            .changes(known.position, MAX_FOLLOWED_CHANGES)
            .await?;
        if since.len() == MAX_FOLLOWED_CHANGES
            || since
                .iter()
                .any(|change| self.affects_project_sessions(change))
        {
            return Ok(None);
        }
        let sessions = Arc::clone(&known.sessions);
        if let Some(last) = since.last() {
            known.position = last.position;
            self.cache_project_sessions(known);
        }
        Ok(Some(sessions))
    }

    /// Whether a change may be to which sessions a project has.
    fn affects_project_sessions(&self, change: &Change) -> bool {
        let only_said = match &change.kind {
            ChangeKind::Appended(entry) => entry.decode().is_ok_and(|entry| {
                !matches!(
                    entry.body,
                    Body::Moved { .. } | Body::Archived | Body::Unarchived
                )
            }),
            _ => false,
        };
        change.owner == self.owner && !only_said
    }

    fn cache_project_sessions(&self, members: ProjectSessions) {
        let mut kept = self
            .index
            .project_sessions
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *kept = Some(members);
    }
}

//! Which sessions a project has, without listing them for every message.

use std::sync::{Arc, PoisonError};

use throughline_model::{Body, Owner, ProjectId, SessionId};
use throughline_store::{Change, Filter, Position, What};

use crate::{Error, Throughline};

/// After more changes than this the sessions are listed again.
const FOLLOWED: usize = 200;

/// The sessions of a project, as of a position.
#[derive(Clone, Debug)]
pub(super) struct Members {
    owner: Owner,
    project: ProjectId,
    at: Position,
    sessions: Arc<[SessionId]>,
}

impl Throughline {
    /// The sessions of a project that are in use.
    pub(super) async fn sessions_of(&self, project: &ProjectId) -> Result<Arc<[SessionId]>, Error> {
        if let Some(members) = self.members_still(project).await? {
            return Ok(members);
        }
        // Read first: what changes while they are listed is then looked at again.
        let at = self.store.last_position().await?;
        let filter = Filter {
            project: Some(project.clone()),
            ..Filter::default()
        };
        let cards = self.list_all(&filter).await?;
        let members = Members {
            owner: self.owner.clone(),
            project: project.clone(),
            at,
            sessions: cards.into_iter().map(|card| card.id).collect(),
        };
        let sessions = Arc::clone(&members.sessions);
        self.keep_members(members);
        Ok(sessions)
    }

    /// Those that are known, unless something has happened to a session since.
    async fn members_still(&self, project: &ProjectId) -> Result<Option<Arc<[SessionId]>>, Error> {
        let known = self
            .shelf
            .members
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let is_it = |known: &Members| known.owner == self.owner && known.project == *project;
        let Some(mut known) = known.filter(is_it) else {
            return Ok(None);
        };
        let since = self.store.changes(known.at, FOLLOWED).await?;
        if since.len() == FOLLOWED || since.iter().any(|change| self.concerns_members(change)) {
            return Ok(None);
        }
        let sessions = Arc::clone(&known.sessions);
        if let Some(last) = since.last() {
            known.at = last.position;
            self.keep_members(known);
        }
        Ok(Some(sessions))
    }

    /// Whether a change may be to which sessions a project has.
    fn concerns_members(&self, change: &Change) -> bool {
        let only_said = match &change.what {
            What::Appended(entry) => entry.decode().is_ok_and(|entry| {
                !matches!(
                    entry.body,
                    Body::Moved { .. } | Body::Archived | Body::Unarchived
                )
            }),
            _ => false,
        };
        change.owner == self.owner && !only_said
    }

    fn keep_members(&self, members: Members) {
        let mut kept = self
            .shelf
            .members
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *kept = Some(members);
    }
}

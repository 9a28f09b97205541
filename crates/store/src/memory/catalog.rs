//! [`Catalog`] of the in-memory store.

use std::collections::HashSet;

use async_trait::async_trait;
use throughline_model::{Digest, Owner, Project, SessionInfo, SessionRef, Timestamp};

use super::change_feed::StoredChangeKind;
use super::{MemoryStore, Session};
use crate::{
    Candidate, Catalog, Cursor, Fence, Page, SessionFilter, SessionScope, StoreError,
    TrashedSession,
};

impl SessionFilter {
    /// Whether a session with this info, trashed or not, matches.
    fn matches(&self, info: &SessionInfo, trashed: bool) -> bool {
        let scope = match self.scope {
            SessionScope::Live => !trashed,
            SessionScope::Trash => trashed,
        };
        let agent = info.agent.as_ref().map(|agent| agent.name.as_str());
        scope
            && (self.include_internal || !info.is_internal())
            && self.tags.iter().all(|tag| info.tags.contains(tag))
            && self.agent.as_deref().is_none_or(|name| agent == Some(name))
            && self
                .project
                .as_ref()
                .is_none_or(|p| info.project.as_ref() == Some(p))
            && self.status.is_none_or(|status| info.status == status)
            && self.since.is_none_or(|since| info.last_activity >= since)
            && self
                .parent
                .as_ref()
                .is_none_or(|p| info.lineage.parent() == Some(p))
    }
}

fn sort_by_activity(mut infos: Vec<SessionInfo>) -> Vec<SessionInfo> {
    infos.sort_by(|a, b| (b.last_activity, &b.id).cmp(&(a.last_activity, &a.id)));
    infos
}

/// The attachments that a session's entries refer to.
fn collect_attachments(session: &Session) -> Vec<Digest> {
    let entries = session.log.iter().filter_map(|stored| stored.decode().ok());
    let mut blobs = Vec::new();
    for entry in entries {
        if let Some(message) = entry.message() {
            blobs.extend(
                message
                    .content
                    .attachments()
                    .map(|attachment| attachment.blob),
            );
        }
    }
    blobs
}

#[async_trait]
impl Catalog for MemoryStore {
    async fn list(
        &self,
        owner: &Owner,
        filter: &SessionFilter,
        after: Option<&Cursor>,
        limit: usize,
    ) -> Result<Page<SessionInfo>, StoreError> {
        let infos = self.with_owner(owner, |space| {
            let matching = space.sessions.values().filter(|session| {
                let info = &session.record.info;
                filter.matches(info, session.trashed_at.is_some())
                    && after.is_none_or(|cursor| {
                        (info.last_activity, &info.id) < (cursor.last_activity, &cursor.id)
                    })
            });
            matching
                .map(|session| session.record.info.clone())
                .collect()
        });
        Ok(Page::from_overfetch(sort_by_activity(infos), limit))
    }

    async fn count(&self, owner: &Owner, filter: &SessionFilter) -> Result<u64, StoreError> {
        self.with_owner(owner, |space| {
            let admitted = space.sessions.values().filter(|session| {
                filter.matches(&session.record.info, session.trashed_at.is_some())
            });
            Ok(admitted.count() as u64)
        })
    }

    async fn find_candidates(
        &self,
        owner: &Owner,
        text: &str,
        limit: usize,
    ) -> Result<Vec<Candidate>, StoreError> {
        self.with_owner(owner, |space| {
            let is_exact = |info: &SessionInfo| {
                info.id.as_str() == text
                    || info.key.as_ref().is_some_and(|key| key.as_str() == text)
                    || info.name.as_ref().is_some_and(|name| name.as_str() == text)
            };
            let infos = space.sessions.values().map(|session| &session.record.info);
            let meant = infos
                .filter(|info| {
                    is_exact(info) || (info.id.as_str().starts_with(text) && !info.is_internal())
                })
                .cloned()
                .collect();
            let mut infos = sort_by_activity(meant);
            infos.sort_by_key(|info| !is_exact(info));
            infos.truncate(limit);
            Ok(infos
                .into_iter()
                .map(|info| Candidate {
                    trashed: space.sessions[&info.id].trashed_at.is_some(),
                    info,
                })
                .collect())
        })
    }

    async fn trash_fenced(
        &self,
        session: &SessionRef,
        at: Timestamp,
        fence: Option<&Fence>,
    ) -> Result<(), StoreError> {
        self.with_owner(&session.owner, |space| {
            space.reject_lost(fence)?;
            match space.sessions.get_mut(&session.id) {
                None => Err(StoreError::NoSuchSession(session.id.clone())),
                Some(found) => {
                    if found.trashed_at.is_none() {
                        found.trashed_at = Some(at);
                        space.record_change(&session.id, StoredChangeKind::Trashed);
                    }
                    Ok(())
                }
            }
        })
    }

    async fn restore(&self, session: &SessionRef) -> Result<(), StoreError> {
        self.with_owner(&session.owner, |space| {
            let Some(found) = space.sessions.get(&session.id) else {
                return Err(StoreError::NoSuchSession(session.id.clone()));
            };
            if found.trashed_at.is_none() {
                return Err(StoreError::NotInTrash(session.id.clone()));
            }
            if let Some(key) = &found.header.key {
                space.reject_taken_key(key)?;
            }
            if let Some(found) = space.sessions.get_mut(&session.id) {
                found.trashed_at = None;
            }
            space.record_change(&session.id, StoredChangeKind::Restored);
            Ok(())
        })
    }

    async fn list_trashed(
        &self,
        owner: &Owner,
        before: Timestamp,
    ) -> Result<Vec<TrashedSession>, StoreError> {
        self.with_owner(owner, |space| {
            let mut trashed: Vec<_> = space
                .sessions
                .values()
                .filter_map(|session| {
                    let at = session.trashed_at.filter(|at| *at < before)?;
                    let info = session.record.info.clone();
                    Some(TrashedSession { info, at })
                })
                .collect();
            trashed.sort_by(|a, b| (a.at, &a.info.id).cmp(&(b.at, &b.info.id)));
            Ok(trashed)
        })
    }

    async fn remove_fenced(
        &self,
        session: &SessionRef,
        trashed_at: Option<Timestamp>,
        fence: Option<&Fence>,
    ) -> Result<(), StoreError> {
        self.with_owner(&session.owner, |space| {
            space.reject_lost(fence)?;
            match space
                .sessions
                .get(&session.id)
                .map(|found| found.trashed_at)
            {
                None => Err(StoreError::NoSuchSession(session.id.clone())),
                Some(None) => Err(StoreError::NotInTrash(session.id.clone())),
                Some(Some(at)) if trashed_at.is_some_and(|expected| expected != at) => {
                    Err(StoreError::TrashedAgain {
                        id: session.id.clone(),
                        at,
                    })
                }
                Some(Some(_)) => {
                    let removed = space.sessions.remove(&session.id);
                    space.changes.retain(|(_, happened)| {
                        happened.session != session.id
                            || !matches!(happened.kind, StoredChangeKind::Appended(_))
                    });
                    space.record_change(&session.id, StoredChangeKind::Removed);
                    let blobs = removed
                        .iter()
                        .flat_map(collect_attachments)
                        .collect::<Vec<_>>();
                    let still_used: HashSet<_> = space
                        .sessions
                        .values()
                        .flat_map(collect_attachments)
                        .collect();
                    for blob in blobs.iter().filter(|blob| !still_used.contains(blob)) {
                        space.blobs.remove(blob);
                    }
                    Ok(())
                }
            }
        })
    }

    async fn list_projects(&self, owner: &Owner) -> Result<Vec<Project>, StoreError> {
        self.with_owner(owner, |space| Ok(space.projects.clone()))
    }

    async fn put_project(&self, owner: &Owner, project: &Project) -> Result<(), StoreError> {
        self.with_owner(owner, |space| {
            match space
                .projects
                .iter_mut()
                .find(|known| known.id == project.id)
            {
                Some(known) => known.clone_from(project),
                None => space.projects.push(project.clone()),
            }
            Ok(())
        })
    }
}

//! Finding sessions in memory.

use std::collections::HashSet;

use async_trait::async_trait;
use throughline_model::{Card, Digest, Owner, Project, SessionRef, Timestamp};

use super::feed::Told;
use super::{MemoryStore, Session};
use crate::{Candidate, Catalog, Cursor, Fence, Filter, Page, Scope, StoreError, Trashed};

impl Filter {
    /// Whether a session with this card, in the trash or not, is meant.
    fn admits(&self, card: &Card, trashed: bool) -> bool {
        let scope = match self.scope {
            Scope::Live => !trashed,
            Scope::Trash => trashed,
        };
        let agent = card.agent.as_ref().map(|agent| agent.name.as_str());
        scope
            && (self.own || !card.is_own())
            && self.tags.iter().all(|tag| card.tags.contains(tag))
            && self.agent.as_deref().is_none_or(|name| agent == Some(name))
            && self
                .project
                .as_ref()
                .is_none_or(|p| card.project.as_ref() == Some(p))
            && self.status.is_none_or(|status| card.status == status)
            && self.since.is_none_or(|since| card.last_activity >= since)
            && self
                .parent
                .as_ref()
                .is_none_or(|p| card.lineage.parent() == Some(p))
    }
}

fn sorted(mut cards: Vec<Card>) -> Vec<Card> {
    cards.sort_by(|a, b| (b.last_activity, &b.id).cmp(&(a.last_activity, &a.id)));
    cards
}

/// The attachments that a session's entries name.
fn attachments(session: &Session) -> Vec<Digest> {
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
        filter: &Filter,
        after: Option<&Cursor>,
        limit: usize,
    ) -> Result<Page<Card>, StoreError> {
        let cards = self.with(owner, |space| {
            let matching = space.sessions.values().filter(|session| {
                let card = &session.record.card;
                filter.admits(card, session.trashed.is_some())
                    && after.is_none_or(|cursor| {
                        (card.last_activity, &card.id) < (cursor.last_activity, &cursor.id)
                    })
            });
            matching
                .map(|session| session.record.card.clone())
                .collect()
        });
        Ok(Page::cut(sorted(cards), limit))
    }

    async fn count(&self, owner: &Owner, filter: &Filter) -> Result<u64, StoreError> {
        self.with(owner, |space| {
            let admitted = space
                .sessions
                .values()
                .filter(|session| filter.admits(&session.record.card, session.trashed.is_some()));
            Ok(admitted.count() as u64)
        })
    }

    async fn candidates(
        &self,
        owner: &Owner,
        text: &str,
        limit: usize,
    ) -> Result<Vec<Candidate>, StoreError> {
        self.with(owner, |space| {
            let is_it = |card: &Card| {
                card.id.as_str() == text
                    || card.key.as_ref().is_some_and(|key| key.as_str() == text)
                    || card.name.as_ref().is_some_and(|name| name.as_str() == text)
            };
            let cards = space.sessions.values().map(|session| &session.record.card);
            let meant = cards
                .filter(|card| {
                    is_it(card) || (card.id.as_str().starts_with(text) && !card.is_own())
                })
                .cloned()
                .collect();
            let mut cards = sorted(meant);
            cards.sort_by_key(|card| !is_it(card));
            cards.truncate(limit);
            Ok(cards
                .into_iter()
                .map(|card| Candidate {
                    trashed: space.sessions[&card.id].trashed.is_some(),
                    card,
                })
                .collect())
        })
    }

    async fn trash_under(
        &self,
        session: &SessionRef,
        at: Timestamp,
        fence: Option<&Fence>,
    ) -> Result<(), StoreError> {
        self.with(&session.owner, |space| {
            space.refuse_lost(fence)?;
            match space.sessions.get_mut(&session.id) {
                None => Err(StoreError::NoSuchSession(session.id.clone())),
                Some(found) => {
                    if found.trashed.is_none() {
                        found.trashed = Some(at);
                        space.tell(&session.id, Told::Trashed);
                    }
                    Ok(())
                }
            }
        })
    }

    async fn restore(&self, session: &SessionRef) -> Result<(), StoreError> {
        self.with(&session.owner, |space| {
            let Some(found) = space.sessions.get(&session.id) else {
                return Err(StoreError::NoSuchSession(session.id.clone()));
            };
            if found.trashed.is_none() {
                return Err(StoreError::NotInTrash(session.id.clone()));
            }
            if let Some(key) = &found.birth.key {
                space.refuse_taken_key(key)?;
            }
            if let Some(found) = space.sessions.get_mut(&session.id) {
                found.trashed = None;
            }
            space.tell(&session.id, Told::Restored);
            Ok(())
        })
    }

    async fn trashed(&self, owner: &Owner, before: Timestamp) -> Result<Vec<Trashed>, StoreError> {
        self.with(owner, |space| {
            let mut trashed: Vec<_> = space
                .sessions
                .values()
                .filter_map(|session| {
                    let at = session.trashed.filter(|at| *at < before)?;
                    let card = session.record.card.clone();
                    Some(Trashed { card, at })
                })
                .collect();
            trashed.sort_by(|a, b| (a.at, &a.card.id).cmp(&(b.at, &b.card.id)));
            Ok(trashed)
        })
    }

    async fn remove_under(
        &self,
        session: &SessionRef,
        trashed_at: Option<Timestamp>,
        fence: Option<&Fence>,
    ) -> Result<(), StoreError> {
        self.with(&session.owner, |space| {
            space.refuse_lost(fence)?;
            match space.sessions.get(&session.id).map(|found| found.trashed) {
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
                    space.happened.retain(|(_, happened)| {
                        happened.session != session.id
                            || !matches!(happened.what, Told::Appended(_))
                    });
                    space.tell(&session.id, Told::Removed);
                    let blobs = removed.iter().flat_map(attachments).collect::<Vec<_>>();
                    let kept: HashSet<_> = space.sessions.values().flat_map(attachments).collect();
                    for blob in blobs.iter().filter(|blob| !kept.contains(blob)) {
                        space.blobs.remove(blob);
                    }
                    Ok(())
                }
            }
        })
    }

    async fn projects(&self, owner: &Owner) -> Result<Vec<Project>, StoreError> {
        self.with(owner, |space| Ok(space.projects.clone()))
    }

    async fn put_project(&self, owner: &Owner, project: &Project) -> Result<(), StoreError> {
        self.with(owner, |space| {
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

//! Resolves what a user typed (id, key, name, number or `last`) to a session.
//!
//! All commands and interfaces resolve sessions here, so the same text means the same
//! session everywhere.

use throughline_model::{Name, SessionId, SessionInfo, SessionSpec};
use throughline_store::{Candidate, SessionFilter, StoreError};

use crate::{AmbiguousMatch, Error, Session, Throughline};

/// The most candidates listed in an error.
const MAX_CANDIDATES: usize = 10;

impl Throughline {
    /// Finds the session that `spec` refers to. `listing` is the last listing the user
    /// saw.
    pub async fn resolve(
        &self,
        spec: &SessionSpec,
        listing: &[SessionId],
    ) -> Result<Session, Error> {
        let found = self.lookup(spec, listing).await?;
        if found.trashed {
            return Err(StoreError::InTrash(found.info.id).into());
        }
        Ok(self.handle(&found.info.id))
    }

    /// Finds the session in the trash that `spec` refers to.
    pub async fn resolve_trashed(
        &self,
        spec: &SessionSpec,
        listing: &[SessionId],
    ) -> Result<SessionId, Error> {
        let found = self.lookup(spec, listing).await?;
        if !found.trashed {
            return Err(StoreError::NotInTrash(found.info.id).into());
        }
        Ok(found.info.id)
    }

    async fn lookup(&self, spec: &SessionSpec, listing: &[SessionId]) -> Result<Candidate, Error> {
        match spec {
            SessionSpec::Last => {
                let latest = self.list(&SessionFilter::default(), None, 1).await?.items;
                let info = latest.into_iter().next().ok_or(Error::NoSessions)?;
                let trashed = false;
                Ok(Candidate { info, trashed })
            }
            SessionSpec::Path(_) => Err(Error::IsTranscriptPath(spec.clone())),
            SessionSpec::Text { text, number } => {
                let candidates = self.candidates(text).await?;
                match choose(text, candidates)? {
                    Choice::Exact(found) => {
                        // A session's name may also be a number in the listing.
                        match number.and_then(|number| listing.get(number - 1)) {
                            Some(id) if *id != found.info.id => {
                                let listed = self.candidate_by_id(id).await?;
                                require_unique(text, vec![*found, listed])
                            }
                            _ => Ok(*found),
                        }
                    }
                    Choice::Prefix(found) => match number {
                        None => require_unique(text, found),
                        Some(number) => match listing.get(number - 1) {
                            Some(id) => self.candidate_by_id(id).await,
                            // Too short for an id prefix.
                            None if *number < 1_000 => Err(Error::NotListed {
                                number: *number,
                                listed: listing.len(),
                            }),
                            None => require_unique(text, found),
                        },
                    },
                }
            }
        }
    }

    /// Returns the sessions that `text` may refer to, as typed or converted to a valid
    /// name.
    async fn candidates(&self, text: &str) -> Result<Vec<Candidate>, Error> {
        let found = self.store.find_candidates(&self.owner, text, 100).await?;
        match text.parse::<Name>() {
            Ok(name) if found.is_empty() && name.as_str() != text => {
                let named = self
                    .store
                    .find_candidates(&self.owner, name.as_str(), 100)
                    .await?;
                let is_it = |candidate: &Candidate| candidate.info.name.as_ref() == Some(&name);
                Ok(named.into_iter().filter(is_it).collect())
            }
            _ => Ok(found),
        }
    }

    /// Returns a session of the last listing, which may have been removed since.
    async fn candidate_by_id(&self, id: &SessionId) -> Result<Candidate, Error> {
        let found = self
            .store
            .find_candidates(&self.owner, id.as_str(), 100)
            .await?;
        found
            .into_iter()
            .find(|candidate| candidate.info.id == *id)
            .ok_or_else(|| StoreError::NoSuchSession(id.clone()).into())
    }
}

enum Choice {
    /// A session whose id, key or name is the text.
    Exact(Box<Candidate>),
    /// Sessions whose id begins with the text.
    Prefix(Vec<Candidate>),
}

/// Chooses by precedence: id, key, name, id prefix; sessions in use before those in the
/// trash.
fn choose(text: &str, candidates: Vec<Candidate>) -> Result<Choice, Error> {
    let is_id = |info: &SessionInfo| info.id.as_str() == text;
    let is_key = |info: &SessionInfo| info.key.as_ref().is_some_and(|key| key.as_str() == text);
    let is_name = |info: &SessionInfo| info.name.as_ref().is_some_and(|name| name.as_str() == text);
    for is_it in [&is_id as &dyn Fn(&SessionInfo) -> bool, &is_key, &is_name] {
        let exact: Vec<_> = candidates
            .iter()
            .filter(|c| is_it(&c.info))
            .cloned()
            .collect();
        if !exact.is_empty() {
            return require_unique(text, exact).map(|found| Choice::Exact(Box::new(found)));
        }
    }
    Ok(Choice::Prefix(candidates))
}

fn require_unique(text: &str, mut candidates: Vec<Candidate>) -> Result<Candidate, Error> {
    if candidates.iter().any(|candidate| !candidate.trashed) {
        candidates.retain(|candidate| !candidate.trashed);
    }
    match candidates.len() {
        0 => Err(Error::NoMatch(text.to_owned())),
        1 => Ok(candidates.swap_remove(0)),
        _ => {
            candidates.truncate(MAX_CANDIDATES);
            Err(Error::Ambiguous(Box::new(AmbiguousMatch {
                text: text.to_owned(),
                candidates: candidates
                    .into_iter()
                    .map(|candidate| candidate.info)
                    .collect(),
            })))
        }
    }
}

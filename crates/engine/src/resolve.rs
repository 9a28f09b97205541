//! From what a person typed to a session: the one place.

use throughline_model::{Card, Name, SessionId, SessionSpec};
use throughline_store::{Candidate, Filter, StoreError};

use crate::{Ambiguous, Error, Session, Throughline};

/// How many candidates are told.
const TOLD: usize = 10;

impl Throughline {
    /// Finds the session that was meant. `listing` is the last one the person saw.
    pub async fn resolve(
        &self,
        spec: &SessionSpec,
        listing: &[SessionId],
    ) -> Result<Session, Error> {
        let found = self.lookup(spec, listing).await?;
        if found.trashed {
            return Err(StoreError::InTrash(found.card.id).into());
        }
        Ok(self.handle(&found.card.id))
    }

    /// Finds the session in the trash that was meant.
    pub async fn resolve_trashed(
        &self,
        spec: &SessionSpec,
        listing: &[SessionId],
    ) -> Result<SessionId, Error> {
        let found = self.lookup(spec, listing).await?;
        if !found.trashed {
            return Err(StoreError::NotInTrash(found.card.id).into());
        }
        Ok(found.card.id)
    }

    async fn lookup(&self, spec: &SessionSpec, listing: &[SessionId]) -> Result<Candidate, Error> {
        match spec {
            SessionSpec::Last => {
                let latest = self.list(&Filter::default(), None, 1).await?.items;
                let card = latest.into_iter().next().ok_or(Error::NoSessions)?;
                let trashed = false;
                Ok(Candidate { card, trashed })
            }
            SessionSpec::Path(_) => Err(Error::IsPath(spec.clone())),
            SessionSpec::Text { text, number } => {
                let candidates = self.candidates(text).await?;
                match choose(text, candidates)? {
                    Choice::Exact(found) => {
                        // A session may be called what another's number is.
                        match number.and_then(|number| listing.get(number - 1)) {
                            Some(id) if *id != found.card.id => {
                                let listed = self.listed(id).await?;
                                one(text, vec![*found, listed])
                            }
                            _ => Ok(*found),
                        }
                    }
                    Choice::Prefix(found) => match number {
                        None => one(text, found),
                        Some(number) => match listing.get(number - 1) {
                            Some(id) => self.listed(id).await,
                            // Too short to be meant as the beginning of an id.
                            None if *number < 1_000 => Err(Error::NotListed {
                                number: *number,
                                listed: listing.len(),
                            }),
                            None => one(text, found),
                        },
                    },
                }
            }
        }
    }

    /// What `text` may mean, as it stands or as it would be written as a name.
    async fn candidates(&self, text: &str) -> Result<Vec<Candidate>, Error> {
        let found = self.store.candidates(&self.owner, text, 100).await?;
        match text.parse::<Name>() {
            Ok(name) if found.is_empty() && name.as_str() != text => {
                let named = self
                    .store
                    .candidates(&self.owner, name.as_str(), 100)
                    .await?;
                let is_it = |candidate: &Candidate| candidate.card.name.as_ref() == Some(&name);
                Ok(named.into_iter().filter(is_it).collect())
            }
            _ => Ok(found),
        }
    }

    /// A session of the last listing, which may be gone since.
    async fn listed(&self, id: &SessionId) -> Result<Candidate, Error> {
        let found = self.store.candidates(&self.owner, id.as_str(), 100).await?;
        found
            .into_iter()
            .find(|candidate| candidate.card.id == *id)
            .ok_or_else(|| StoreError::NoSuchSession(id.clone()).into())
    }
}

enum Choice {
    /// It is what was typed.
    Exact(Box<Candidate>),
    /// They begin with it.
    Prefix(Vec<Candidate>),
}

/// An id before a key before a name before the beginning of an id; what is in use before
/// what is in the trash.
fn choose(text: &str, candidates: Vec<Candidate>) -> Result<Choice, Error> {
    let is_id = |card: &Card| card.id.as_str() == text;
    let is_key = |card: &Card| card.key.as_ref().is_some_and(|key| key.as_str() == text);
    let is_name = |card: &Card| card.name.as_ref().is_some_and(|name| name.as_str() == text);
    for is_it in [&is_id as &dyn Fn(&Card) -> bool, &is_key, &is_name] {
        let exact: Vec<_> = candidates
            .iter()
            .filter(|c| is_it(&c.card))
            .cloned()
            .collect();
        if !exact.is_empty() {
            return one(text, exact).map(|found| Choice::Exact(Box::new(found)));
        }
    }
    Ok(Choice::Prefix(candidates))
}

fn one(text: &str, mut candidates: Vec<Candidate>) -> Result<Candidate, Error> {
    if candidates.iter().any(|candidate| !candidate.trashed) {
        candidates.retain(|candidate| !candidate.trashed);
    }
    match candidates.len() {
        0 => Err(Error::NoMatch(text.to_owned())),
        1 => Ok(candidates.swap_remove(0)),
        _ => {
            candidates.truncate(TOLD);
            Err(Error::Ambiguous(Box::new(Ambiguous {
                text: text.to_owned(),
                candidates: candidates
                    .into_iter()
                    .map(|candidate| candidate.card)
                    .collect(),
            })))
        }
    }
}

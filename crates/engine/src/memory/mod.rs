//! Memory: facts that outlive sessions.
//!
//! A memory is itself a session, one a project and one an owner, with a key that nobody
//! else can take. So stores, exports, checks and digests work for it as for any other,
//! and what it holds is a fold of its log: [`Facts`].
//!
//! Invariant: nothing is read from or written to the memory of another project or owner.

mod change;
mod contradiction;
mod error;
mod ground;
mod in_request;
mod likeness;
#[cfg(test)]
mod pairs;
mod propose;
mod rank;
mod scope;
mod search;
mod words;

pub use change::{Added, How as AddedHow, NewFact};
pub use error::MemoryError;
pub use likeness::{Similar, word_overlap};
pub use propose::{Proposed, Proposing};
pub use scope::MemoryScope;
pub use search::Found;

use throughline_model::{Body, Entry, Fact, Facts, Seq};

use crate::{Error, Session, Throughline};

/// Entries read at a time.
const PAGE: usize = 1_000;

/// What is remembered in one scope. Cheap to clone; holds no state.
#[derive(Clone, Debug)]
pub struct Memory {
    tl: Throughline,
    scope: MemoryScope,
}

impl Throughline {
    /// What is remembered of a project, or for all of an owner's.
    pub fn memory(&self, scope: MemoryScope) -> Memory {
        let tl = self.clone();
        Memory { tl, scope }
    }
}

impl Memory {
    /// Of what.
    pub fn scope(&self) -> &MemoryScope {
        &self.scope
    }

    /// The session that holds it; none where nothing was ever remembered.
    pub async fn session(&self) -> Result<Option<Session>, Error> {
        let key = self.scope.key()?;
        let (store, owner) = (&self.tl.store, &self.tl.owner);
        let found = store.candidates(owner, key.as_str(), 100).await?;
        let is_it = |card: &throughline_model::Card| card.key.as_ref() == Some(&key);
        let memory = found
            .iter()
            .find(|found| !found.trashed && is_it(&found.card));
        Ok(memory.map(|found| self.tl.handle(&found.card.id)))
    }

    /// Everything it holds, whether or not it still stands.
    pub async fn facts(&self) -> Result<Facts, Error> {
        Ok(match self.session().await? {
            Some(session) => folded(&session).await?,
            None => Facts::default(),
        })
    }

    /// The facts that count, oldest first.
    pub async fn list(&self) -> Result<Vec<Fact>, Error> {
        Ok(self.facts().await?.standing().cloned().collect())
    }

    /// The facts that count and belong to any of these files or folders, which are
    /// relative to the project's top.
    pub async fn facts_for(&self, files: &[String]) -> Result<Vec<Fact>, Error> {
        let facts = self.facts().await?;
        let belongs = |fact: &&Fact| fact.belongs_to(files);
        Ok(facts.standing().filter(belongs).cloned().collect())
    }

    /// The facts for a request, the best first, at most so many; `touched` are the files
    /// it is about.
    ///
    /// First those that belong to a touched file, last those that belong to others.
    /// Among equals by weight: four times as much where a person said it, more the more
    /// sessions it was used in, and half as much for every thirty days without use.
    pub async fn standing(&self, touched: &[String], limit: usize) -> Result<Vec<Fact>, Error> {
        let mut facts = self.list().await?;
        rank::best_first(&mut facts, |fact| fact, self.tl.now(), touched);
        facts.truncate(limit);
        Ok(facts)
    }

    /// What happened to a fact, to all that it replaced and all that replaced it; to every
    /// fact, where none is named. Oldest first.
    pub async fn history(&self, fact: Option<Seq>) -> Result<Vec<Entry>, Error> {
        let Some(session) = self.session().await? else {
            return match fact {
                None => Ok(Vec::new()),
                Some(seq) => Err(self.no_such(seq).into()),
            };
        };
        let entries = all(&session).await?;
        let Some(fact) = fact else {
            let tells = |entry: &Entry| concerned(&entry.body, entry.seq).is_some();
            return Ok(entries.into_iter().filter(tells).collect());
        };
        let story = Facts::fold(&entries).story(fact);
        if story.is_empty() {
            return Err(self.no_such(fact).into());
        }
        let told = |entry: &Entry| match concerned(&entry.body, entry.seq) {
            Some(seqs) => seqs.iter().any(|seq| story.contains(seq)),
            None => false,
        };
        Ok(entries.into_iter().filter(told).collect())
    }

    fn no_such(&self, seq: Seq) -> MemoryError {
        MemoryError::NoSuchFact {
            seq,
            of: self.scope.to_string(),
        }
    }
}

/// The facts an entry tells of, where it tells of any.
fn concerned(body: &Body, seq: Seq) -> Option<Vec<Seq>> {
    match body {
        Body::Remembered(_) => Some(vec![seq]),
        Body::Accepted { fact } | Body::Forgotten { fact, .. } => Some(vec![*fact]),
        Body::Used { facts, .. } => Some(facts.clone()),
        _ => None,
    }
}

/// The facts in a memory's log.
async fn folded(session: &Session) -> Result<Facts, Error> {
    Ok(Facts::fold(&all(session).await?))
}

async fn all(session: &Session) -> Result<Vec<Entry>, Error> {
    let mut entries: Vec<Entry> = Vec::new();
    loop {
        let next = entries.last().map_or(Seq(1), |last| last.seq.next());
        let page = session.entries(next, PAGE).await?;
        if page.is_empty() {
            return Ok(entries);
        }
        entries.extend(page);
    }
}

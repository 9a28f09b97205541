//! Memory: facts that outlive sessions.
//!
//! A memory is itself a session, one a project and one an owner, with a key that nobody
//! else can take. So stores, exports, checks and digests work for it as for any other,
//! and what it holds is a fold of its log: [`Facts`].
//!
//! Invariant: nothing is read from or written to the memory of another project or owner.

mod contradiction;
mod error;
mod fact_changes;
mod fact_rank;
mod fact_search;
mod fact_similarity;
mod fact_words;
mod project_paths;
mod propose;
mod request_facts;
mod scope;
#[cfg(test)]
mod similarity_corpus;

pub use error::MemoryError;
pub use fact_changes::{AddFactOutcome, AddFactStatus, NewFact};
pub use fact_search::FactMatch;
pub use fact_similarity::{Similarity, word_overlap};
pub use propose::{ProposalMode, ProposalReport};
pub use scope::MemoryScope;

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
        let found = store.find_candidates(owner, key.as_str(), 100).await?;
        let is_it = |card: &throughline_model::SessionInfo| card.key.as_ref() == Some(&key);
        let memory = found
            .iter()
            .find(|found| !found.trashed && is_it(&found.info));
        Ok(memory.map(|found| self.tl.handle(&found.info.id)))
    }

    /// Everything it holds, whether or not it still stands.
    pub async fn facts(&self) -> Result<Facts, Error> {
        Ok(match self.session().await? {
            Some(session) => load_folded(&session).await?,
            None => Facts::default(),
        })
    }

    /// The facts that count, oldest first.
    pub async fn list(&self) -> Result<Vec<Fact>, Error> {
        Ok(self.facts().await?.iter_in_effect().cloned().collect())
    }

    /// The facts that count and belong to any of these files or folders, which are
    /// relative to the project's top.
    pub async fn facts_for_files(&self, files: &[String]) -> Result<Vec<Fact>, Error> {
        let facts = self.facts().await?;
        let belongs = |fact: &&Fact| fact.is_related_to(files);
        Ok(facts.iter_in_effect().filter(belongs).cloned().collect())
    }

    /// The facts for a request, the best first, at most so many; `touched` are the files
    /// it is about.
    ///
    /// First those that belong to a touched file, last those that belong to others.
    /// Among equals by weight: four times as much where a person said it, more the more
    /// sessions it was used in, and half as much for every thirty days without use.
    pub async fn top_facts(&self, touched: &[String], limit: usize) -> Result<Vec<Fact>, Error> {
        let mut facts = self.list().await?;
        fact_rank::sort_by_rank(&mut facts, |fact| fact, self.tl.now(), touched);
        facts.truncate(limit);
        Ok(facts)
    }

    /// What happened to a fact, to all that it replaced and all that replaced it; to every
    /// fact, where none is named. Oldest first.
    pub async fn history(&self, fact: Option<Seq>) -> Result<Vec<Entry>, Error> {
        let Some(session) = self.session().await? else {
            return match fact {
                None => Ok(Vec::new()),
                Some(seq) => Err(self.no_such_fact(seq).into()),
            };
        };
        let entries = read_all_entries(&session).await?;
        let Some(fact) = fact else {
            let tells = |entry: &Entry| facts_in_entry(&entry.body, entry.seq).is_some();
            return Ok(entries.into_iter().filter(tells).collect());
        };
        let story = Facts::fold(&entries).history(fact);
        if story.is_empty() {
            return Err(self.no_such_fact(fact).into());
        }
        let told = |entry: &Entry| match facts_in_entry(&entry.body, entry.seq) {
            Some(seqs) => seqs.iter().any(|seq| story.contains(seq)),
            None => false,
        };
        Ok(entries.into_iter().filter(told).collect())
    }

    fn no_such_fact(&self, seq: Seq) -> MemoryError {
        MemoryError::NoSuchFact {
            seq,
            of: self.scope.to_string(),
        }
    }
}

/// The facts an entry tells of, where it tells of any.
fn facts_in_entry(body: &Body, seq: Seq) -> Option<Vec<Seq>> {
    match body {
        Body::Remembered(_) => Some(vec![seq]),
        Body::Accepted { fact } | Body::Forgotten { fact, .. } => Some(vec![*fact]),
        Body::Used { facts, .. } => Some(facts.clone()),
        _ => None,
    }
}

/// The facts in a memory's log.
async fn load_folded(session: &Session) -> Result<Facts, Error> {
    Ok(Facts::fold(&read_all_entries(session).await?))
}

async fn read_all_entries(session: &Session) -> Result<Vec<Entry>, Error> {
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

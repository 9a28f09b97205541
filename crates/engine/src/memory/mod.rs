//! Memory: facts that outlive sessions.
//!
//! A memory is itself an internal session, one per project and one per owner, with a
//! reserved key. Stores, exports, checks and digests therefore work for it as for any
//! other session, and its facts are a fold of its log: [`Facts`].
//!
//! Invariant: the memory of another project or owner is neither read nor written.

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

/// The number of entries read at a time.
const PAGE: usize = 1_000;

/// The facts of one scope. Cheap to clone; holds no state.
#[derive(Clone, Debug)]
pub struct Memory {
    tl: Throughline,
    scope: MemoryScope,
}

impl Throughline {
    /// Returns the memory of a project, or the owner-wide one.
    pub fn memory(&self, scope: MemoryScope) -> Memory {
        let tl = self.clone();
        Memory { tl, scope }
    }
}

impl Memory {
    /// The scope of the memory.
    pub fn scope(&self) -> &MemoryScope {
        &self.scope
    }

    /// Returns the session that holds the facts; `None` if nothing was ever remembered.
    pub async fn session(&self) -> Result<Option<Session>, Error> {
        let key = self.scope.key()?;
        let (store, owner) = (&self.tl.store, &self.tl.owner);
        let found = store.find_candidates(owner, key.as_str(), 100).await?;
        let has_key = |info: &throughline_model::SessionInfo| info.key.as_ref() == Some(&key);
        let memory = found
            .iter()
            .find(|found| !found.trashed && has_key(&found.info));
        Ok(memory.map(|found| self.tl.handle(&found.info.id)))
    }

    /// Returns all facts, including forgotten and superseded ones.
    pub async fn facts(&self) -> Result<Facts, Error> {
        Ok(match self.session().await? {
            Some(session) => load_folded(&session).await?,
            None => Facts::default(),
        })
    }

    /// Returns the facts in effect, oldest first.
    pub async fn list(&self) -> Result<Vec<Fact>, Error> {
        Ok(self.facts().await?.iter_in_effect().cloned().collect())
    }

    /// Returns the facts in effect that belong to any of these files or folders, which
    /// are relative to the project's root.
    pub async fn facts_for_files(&self, files: &[String]) -> Result<Vec<Fact>, Error> {
        let facts = self.facts().await?;
        let belongs = |fact: &&Fact| fact.is_related_to(files);
        Ok(facts.iter_in_effect().filter(belongs).cloned().collect())
    }

    /// Returns the facts for a request, best first, at most `limit`; `touched` are the
    /// files that the request is about.
    ///
    /// Facts that belong to a touched file come first, those that belong to other files
    /// last. Otherwise they are ordered by weight: four times as much if stated by a
    /// person, more the more sessions they were used in, and half as much for every
    /// thirty days without use.
    pub async fn top_facts(&self, touched: &[String], limit: usize) -> Result<Vec<Fact>, Error> {
        let mut facts = self.list().await?;
        fact_rank::sort_by_rank(&mut facts, |fact| fact, self.tl.now(), touched);
        facts.truncate(limit);
        Ok(facts)
    }

    /// Returns the history of a fact, including those it replaced and those that
    /// replaced it, or of all facts; oldest first.
    pub async fn history(&self, fact: Option<Seq>) -> Result<Vec<Entry>, Error> {
        let Some(session) = self.session().await? else {
            return match fact {
                None => Ok(Vec::new()),
                Some(seq) => Err(self.no_such_fact(seq).into()),
            };
        };
        let entries = read_all_entries(&session).await?;
        let Some(fact) = fact else {
            let mentions_facts = |entry: &Entry| facts_in_entry(&entry.body, entry.seq).is_some();
            return Ok(entries.into_iter().filter(mentions_facts).collect());
        };
        let related = Facts::fold(&entries).history(fact);
        if related.is_empty() {
            return Err(self.no_such_fact(fact).into());
        }
        let is_related = |entry: &Entry| match facts_in_entry(&entry.body, entry.seq) {
            Some(seqs) => seqs.iter().any(|seq| related.contains(seq)),
            None => false,
        };
        Ok(entries.into_iter().filter(is_related).collect())
    }

    fn no_such_fact(&self, seq: Seq) -> MemoryError {
        MemoryError::NoSuchFact {
            seq,
            of: self.scope.to_string(),
        }
    }
}

/// Returns the facts that an entry is about, if any.
fn facts_in_entry(body: &Body, seq: Seq) -> Option<Vec<Seq>> {
    match body {
        Body::Remembered(_) => Some(vec![seq]),
        Body::Accepted { fact } | Body::Forgotten { fact, .. } => Some(vec![*fact]),
        Body::Used { facts, .. } => Some(facts.clone()),
        _ => None,
    }
}

/// Loads the facts from a memory's log.
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

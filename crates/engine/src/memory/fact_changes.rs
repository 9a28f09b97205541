//! Adds, edits, accepts, promotes and forgets facts.
//!
//! Every change is decided from the current facts and appended only if they have not
//! changed since, so that two writers never add the same fact twice.

use throughline_model::{
    Body, Entry, EntryId, Fact, FactSource, Facts, GENESIS, NewEntry, PERSON, RememberedFact, Seq,
    detect_secret,
};
use throughline_store::{Expect, StoreError};

use super::contradiction::contradicts;
use super::fact_similarity::is_same_fact;
use super::{Memory, MemoryError, MemoryScope, load_folded};
use crate::{ConflictPolicy, Error, NewSession, Session};

/// The maximum length of a fact, in characters. Anything longer is a document.
const MAX_FACT_CHARS: usize = 2_000;
/// How often a change is retried after concurrent writes.
const MAX_APPEND_ATTEMPTS: usize = 100;

/// A fact to add.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewFact {
    /// The text.
    pub text: String,
    /// The entry it comes from.
    pub source: Option<FactSource>,
    /// Who states it: [`PERSON`], a model's name, or `extractive`.
    pub by: String,
    /// The author, if there are several people.
    pub author: Option<String>,
    /// Files and folders it belongs to, relative to the project's root.
    pub files: Vec<String>,
    /// Older facts that it replaces, in addition to those it contradicts.
    pub supersedes: Vec<Seq>,
    /// Whether it is only a proposal, to be accepted by a person.
    pub proposed: bool,
    /// Whether to add it even if it looks like a secret.
    pub force: bool,
}

impl NewFact {
    /// A fact stated by a person.
    pub fn from_person(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            source: None,
            by: PERSON.to_owned(),
            author: None,
            files: Vec::new(),
            supersedes: Vec::new(),
            proposed: false,
            force: false,
        }
    }

    /// Returns the text to store, or why it is not valid.
    fn validate(&self) -> Result<String, MemoryError> {
        let text = self.text.trim();
        let chars = text.chars().count();
        if text.is_empty() {
            return Err(MemoryError::Empty);
        }
        if chars > MAX_FACT_CHARS {
            return Err(MemoryError::TooLong {
                chars,
                max: MAX_FACT_CHARS,
            });
        }
        match detect_secret(text) {
            Some(what) if !self.force => Err(MemoryError::Secret(what)),
            _ => Ok(text.to_owned()),
        }
    }
}

/// What adding a fact did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddFactStatus {
    /// The fact is new.
    New,
    /// The fact was known already, in the same or other words.
    Known,
    /// The fact was proposed already and is now accepted.
    Accepted,
}

/// The result of adding a fact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddFactOutcome {
    /// The fact as stored.
    pub fact: Fact,
    /// What adding it did.
    pub status: AddFactStatus,
}

impl Memory {
    /// Adds a fact, unless it is known. It replaces the facts that it contradicts.
    pub async fn add(&self, new: NewFact) -> Result<AddFactOutcome, Error> {
        let mut added = self.add_all(&[new]).await?;
        added.pop().ok_or_else(|| MemoryError::Empty.into())
    }

    /// Adds several facts atomically.
    pub(super) async fn add_all(&self, new: &[NewFact]) -> Result<Vec<AddFactOutcome>, Error> {
        let write = |facts: &Facts| {
            let mut draft = Draft::after(facts);
            let outcomes = new.iter().map(|new| self.draft_fact(&mut draft, new));
            let outcomes = outcomes.collect::<Result<Vec<_>, Error>>()?;
            Ok((draft.entries, outcomes))
        };
        let (facts, outcomes) = self.append_decided(write).await?;
        outcomes
            .into_iter()
            .map(|(seq, status)| {
                Ok(AddFactOutcome {
                    fact: self.find_fact(&facts, seq)?,
                    status,
                })
            })
            .collect()
    }

    /// Drafts the entries for one fact; returns the number of the resulting fact.
    fn draft_fact(&self, draft: &mut Draft, new: &NewFact) -> Result<(Seq, AddFactStatus), Error> {
        let text = new.validate()?;
        for seq in &new.supersedes {
            self.find_current_fact(&draft.facts, *seq)?;
        }
        // Facts that were rejected or replaced are not proposed again.
        let is_candidate = |fact: &&Fact| new.proposed || fact.is_current();
        let is_same = |fact: &&Fact| is_same_fact(&text, &fact.text, &self.tl.similarity);
        let known = draft
            .facts
            .iter()
            .filter(is_candidate)
            .find(is_same)
            .cloned();
        let mut supersedes = new.supersedes.clone();
        let mut files = new.files.clone();
        if let Some(known) = known {
            let has_new_files = files.iter().any(|file| !known.files.contains(file));
            if new.proposed || (!known.proposed && !has_new_files) {
                return Ok((known.seq, AddFactStatus::Known));
            }
            if !has_new_files {
                draft.push(Body::Accepted { fact: known.seq }, None);
                return Ok((known.seq, AddFactStatus::Accepted));
            }
            let old = known.files.iter().filter(|file| !new.files.contains(file));
            files.extend(old.cloned());
            supersedes.push(known.seq);
        }
        let older = draft
            .facts
            .iter_in_effect()
            .filter(|fact| contradicts(&text, &fact.text));
        supersedes.extend(older.map(|fact| fact.seq));
        supersedes.sort_unstable();
        supersedes.dedup();
        let remembered = RememberedFact {
            text,
            source: new.source.clone(),
            by: new.by.clone(),
            files,
            supersedes,
            proposed: new.proposed,
        };
        let seq = draft.push(Body::Remembered(Box::new(remembered)), new.author.clone());
        Ok((seq, AddFactStatus::New))
    }

    /// Replaces a fact by a person's wording. The old one remains in the history.
    pub async fn edit(&self, seq: Seq, text: &str, force: bool) -> Result<AddFactOutcome, Error> {
        let new_fact = NewFact {
            force,
            ..NewFact::from_person(text)
        };
        let write = |facts: &Facts| {
            let old = self.find_current_fact(facts, seq)?;
            let text = new_fact.validate()?;
            let mut draft = Draft::after(facts);
            if old.text == text && old.is_in_effect() {
                return Ok((draft.entries, (seq, AddFactStatus::Known)));
            }
            let remembered = RememberedFact {
                text,
                source: old.source,
                by: PERSON.to_owned(),
                files: old.files,
                supersedes: vec![seq],
                proposed: false,
            };
            let new = draft.push(Body::Remembered(Box::new(remembered)), None);
            Ok((draft.entries, (new, AddFactStatus::New)))
        };
        let (facts, (seq, status)) = self.append_decided(write).await?;
        let fact = self.find_fact(&facts, seq)?;
        Ok(AddFactOutcome { fact, status })
    }

    /// Forgets a fact, or rejects a proposal. Does nothing if it is forgotten already.
    pub async fn forget(&self, seq: Seq, reason: Option<&str>) -> Result<Fact, Error> {
        let write = |facts: &Facts| {
            let mut draft = Draft::after(facts);
            if !self.find_fact(facts, seq)?.forgotten {
                let reason = reason.map(ToOwned::to_owned);
                draft.push(Body::Forgotten { fact: seq, reason }, None);
            }
            Ok((draft.entries, ()))
        };
        let (facts, ()) = self.append_decided(write).await?;
        self.find_fact(&facts, seq)
    }

    /// Accepts proposals, all or none. Does nothing for those accepted already.
    pub async fn accept(&self, seqs: &[Seq]) -> Result<Vec<Fact>, Error> {
        let write = |facts: &Facts| {
            let mut draft = Draft::after(facts);
            for seq in seqs {
                if self.find_current_fact(facts, *seq)?.proposed {
                    draft.push(Body::Accepted { fact: *seq }, None);
                }
            }
            Ok((draft.entries, ()))
        };
        let (facts, ()) = self.append_decided(write).await?;
        seqs.iter()
            .map(|seq| self.find_fact(&facts, *seq))
            .collect()
    }

    /// Makes a project's fact owner-wide.
    pub async fn promote(&self, seq: Seq) -> Result<AddFactOutcome, Error> {
        if self.scope == MemoryScope::Owner {
            return Err(MemoryError::OwnerWide(seq).into());
        }
        let facts = self.facts().await?;
        let fact = self.find_current_fact(&facts, seq)?;
        let own_source = self.session().await?.map(|session| FactSource {
            session: session.id().clone(),
            seq,
        });
        let new = NewFact {
            source: fact.source.clone().or(own_source),
            by: fact.by.clone(),
            author: fact.author.clone(),
            // It has passed the check for secrets before.
            force: true,
            ..NewFact::from_person(&fact.text)
        };
        let added = self.tl.memory(MemoryScope::Owner).add(new).await?;
        // Add before forgetting: a duplicate is better than a loss.
        self.forget(seq, Some("now owner-wide")).await?;
        Ok(added)
    }

    /// Appends what `decide` returns for the current facts, retrying if they change
    /// meanwhile; returns the facts after the change.
    async fn append_decided<T>(
        &self,
        decide: impl Fn(&Facts) -> Result<(Vec<NewEntry>, T), Error>,
    ) -> Result<(Facts, T), Error> {
        let mut attempts = 0;
        loop {
            let session = self.session().await?;
            let mut facts = match &session {
                Some(session) => load_folded(session).await?,
                None => Facts::default(),
            };
            let (new, done) = decide(&facts)?;
            if new.is_empty() {
                return Ok((facts, done));
            }
            let session = match session {
                Some(session) => session,
                None => self.create_session().await?,
            };
            let entries = new.into_iter().map(|new| self.stamp(new)).collect();
            let expect = Expect::At(facts.head());
            attempts += 1;
            match session
                .append_all(entries, expect, ConflictPolicy::Reject)
                .await
            {
                Ok(appended) => {
                    appended.entries.iter().for_each(|entry| facts.apply(entry));
                    return Ok((facts, done));
                }
                Err(Error::Store(StoreError::Moved { .. })) if attempts < MAX_APPEND_ATTEMPTS => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Gives a drafted entry its id and time.
    fn stamp(&self, new: NewEntry) -> NewEntry {
        NewEntry {
            author: new.author,
            ..self.tl.new_entry(new.body)
        }
    }

    /// Creates the session that holds the facts, or finds it if it exists.
    async fn create_session(&self) -> Result<Session, Error> {
        let new = NewSession {
            key: Some(self.scope.key()?),
            project: self.scope.project().cloned(),
            ..NewSession::default()
        };
        let header = new.into_header(&*self.tl.environment);
        let created = self.tl.store.create(&self.tl.owner, header).await?;
        Ok(self.tl.handle(&created.record.info.id))
    }

    fn find_fact(&self, facts: &Facts, seq: Seq) -> Result<Fact, Error> {
        let fact = facts.get(seq).cloned();
        fact.ok_or_else(|| self.no_such_fact(seq).into())
    }

    /// Returns a fact that is neither superseded nor forgotten.
    fn find_current_fact(&self, facts: &Facts, seq: Seq) -> Result<Fact, Error> {
        let fact = self.find_fact(facts, seq)?;
        if let Some(by) = fact.superseded_by {
            return Err(MemoryError::Superseded { seq, by }.into());
        }
        if fact.forgotten {
            return Err(MemoryError::Forgotten(seq).into());
        }
        Ok(fact)
    }
}

/// Entries to be appended, and the facts as they would be afterwards.
struct Draft {
    facts: Facts,
    entries: Vec<NewEntry>,
}

impl Draft {
    fn after(facts: &Facts) -> Self {
        Self {
            facts: facts.clone(),
            entries: Vec::new(),
        }
    }

    /// Adds an entry and returns its future number. Id and time are set when it is
    /// appended.
    fn push(&mut self, body: Body, author: Option<String>) -> Seq {
        let seq = self.facts.head().next();
        let (id, at) = (
            EntryId::from_bytes([0; 16]),
            throughline_model::Timestamp::UNIX_EPOCH,
        );
        self.facts.apply(&Entry {
            seq,
            id,
            at,
            external_id: None,
            author: author.clone(),
            rebased: None,
            body: body.clone(),
            digest: GENESIS,
        });
        let mut entry = NewEntry::new(id, at, body);
        entry.author = author;
        self.entries.push(entry);
        seq
    }
}

//! Remembering, correcting and forgetting.
//!
//! What to write is decided from the facts as they stand and appended only if they still
//! do, so that two writers never remember the same thing twice.

use throughline_model::{
    Body, Entry, EntryId, Fact, FactSource, Facts, GENESIS, NewEntry, PERSON, RememberedFact, Seq,
    detect_secret,
};
use throughline_store::{Expect, StoreError};

use super::contradiction::contradicts;
use super::fact_similarity::is_same_fact;
use super::{Memory, MemoryError, MemoryScope, load_folded};
use crate::{ConflictPolicy, Error, NewSession, Session};

/// The longest fact, in characters. What is longer is a document.
const MAX_FACT_CHARS: usize = 2_000;
/// How often others may write while something is being written.
const MAX_APPEND_ATTEMPTS: usize = 100;

/// Something to remember.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewFact {
    /// What.
    pub text: String,
    /// Where it was said.
    pub source: Option<FactSource>,
    /// Who says so: [`PERSON`], a model's name, or `extractive`.
    pub by: String,
    /// Who of several people.
    pub author: Option<String>,
    /// Files and folders it belongs to, relative to the project's top.
    pub files: Vec<String>,
    /// Older facts that it replaces, besides those it contradicts.
    pub supersedes: Vec<Seq>,
    /// Whether it waits for somebody's word.
    pub proposed: bool,
    /// Whether it is remembered even if it looks like a secret.
    pub force: bool,
}

impl NewFact {
    /// A fact in a person's words.
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

    /// The text as it is kept, if it can be.
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

/// How something came to be remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddFactStatus {
    /// It is new.
    New,
    /// It was remembered already, in these words or others.
    Known,
    /// It was proposed already, and is now accepted.
    Accepted,
}

/// Something that is remembered now, or was already.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddFactOutcome {
    /// The fact.
    pub fact: Fact,
    /// Whether it is new.
    pub status: AddFactStatus,
}

impl Memory {
    /// Remembers something, unless it is known. What it contradicts it replaces.
    pub async fn add(&self, new: NewFact) -> Result<AddFactOutcome, Error> {
        let mut added = self.add_all(&[new]).await?;
        added.pop().ok_or_else(|| MemoryError::Empty.into())
    }

    /// Remembers several things in one go.
    pub(super) async fn add_all(&self, new: &[NewFact]) -> Result<Vec<AddFactOutcome>, Error> {
        let write = |facts: &Facts| {
            let mut draft = Draft::after(facts);
            let done = new.iter().map(|new| self.draft_fact(&mut draft, new));
            let done = done.collect::<Result<Vec<_>, Error>>()?;
            Ok((draft.entries, done))
        };
        let (facts, done) = self.append_decided(write).await?;
        done.into_iter()
            .map(|(seq, how)| {
                Ok(AddFactOutcome {
                    fact: self.find_fact(&facts, seq)?,
                    status: how,
                })
            })
            .collect()
    }

    /// What is to be written for one fact, and which fact that comes to.
    fn draft_fact(&self, draft: &mut Draft, new: &NewFact) -> Result<(Seq, AddFactStatus), Error> {
        let text = new.validate()?;
        for seq in &new.supersedes {
            self.find_current_fact(&draft.facts, *seq)?;
        }
        // What was once turned down or replaced is not proposed again.
        let counts = |fact: &&Fact| new.proposed || fact.is_current();
        let alike = |fact: &&Fact| is_same_fact(&text, &fact.text, &self.tl.similarity);
        let known = draft.facts.iter().filter(counts).find(alike).cloned();
        let mut supersedes = new.supersedes.clone();
        let mut files = new.files.clone();
        if let Some(known) = known {
            let brings_files = files.iter().any(|file| !known.files.contains(file));
            if new.proposed || (!known.proposed && !brings_files) {
                return Ok((known.seq, AddFactStatus::Known));
            }
            if !brings_files {
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

    /// Says a fact in other words, a person's. The old ones stay readable.
    pub async fn edit(&self, seq: Seq, text: &str, force: bool) -> Result<AddFactOutcome, Error> {
        let said = NewFact {
            force,
            ..NewFact::from_person(text)
        };
        let write = |facts: &Facts| {
            let old = self.find_current_fact(facts, seq)?;
            let text = said.validate()?;
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
        let (facts, (seq, how)) = self.append_decided(write).await?;
        let fact = self.find_fact(&facts, seq)?;
        Ok(AddFactOutcome { fact, status: how })
    }

    /// Lets a fact count no more, or turns a proposal down. Forgotten already: nothing
    /// changes.
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

    /// Lets proposals count, all or none. Accepted already: nothing changes.
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

    /// Makes a project's fact one for all of the owner's projects.
    pub async fn promote(&self, seq: Seq) -> Result<AddFactOutcome, Error> {
        if self.scope == MemoryScope::Owner {
            return Err(MemoryError::OwnerWide(seq).into());
        }
        let facts = self.facts().await?;
        let fact = self.find_current_fact(&facts, seq)?;
        let here = self.session().await?.map(|session| FactSource {
            session: session.id().clone(),
            seq,
        });
        let new = NewFact {
            source: fact.source.clone().or(here),
            by: fact.by.clone(),
            author: fact.author.clone(),
            // It was kept once already.
            force: true,
            ..NewFact::from_person(&fact.text)
        };
        let added = self.tl.memory(MemoryScope::Owner).add(new).await?;
        // After, not before: it is rather there twice than lost.
        self.forget(seq, Some("now owner-wide")).await?;
        Ok(added)
    }

    /// Writes what is decided from the facts as they stand; gives the facts after that.
    async fn append_decided<T>(
        &self,
        decide: impl Fn(&Facts) -> Result<(Vec<NewEntry>, T), Error>,
    ) -> Result<(Facts, T), Error> {
        let mut tries = 0;
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
            tries += 1;
            match session
                .append_all(entries, expect, ConflictPolicy::Reject)
                .await
            {
                Ok(appended) => {
                    appended.entries.iter().for_each(|entry| facts.apply(entry));
                    return Ok((facts, done));
                }
                Err(Error::Store(StoreError::Moved { .. })) if tries < MAX_APPEND_ATTEMPTS => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// An entry of a draft as it is written: with an id, and of now.
    fn stamp(&self, new: NewEntry) -> NewEntry {
        NewEntry {
            author: new.author,
            ..self.tl.new_entry(new.body)
        }
    }

    /// The session that holds it, made if it was not there.
    async fn create_session(&self) -> Result<Session, Error> {
        let new = NewSession {
            key: Some(self.scope.key()?),
            project: self.scope.project().cloned(),
            ..NewSession::default()
        };
        let birth = new.into_header(&*self.tl.environment);
        let created = self.tl.store.create(&self.tl.owner, birth).await?;
        Ok(self.tl.handle(&created.record.info.id))
    }

    fn find_fact(&self, facts: &Facts, seq: Seq) -> Result<Fact, Error> {
        let fact = facts.get(seq).cloned();
        fact.ok_or_else(|| self.no_such_fact(seq).into())
    }

    /// A fact that is neither superseded nor forgotten.
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

/// What is about to be written, and the facts as they would be after it.
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

    /// The number the entry will have. Its id and time come when it is written.
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

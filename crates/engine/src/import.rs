//! Bringing messages in from elsewhere, any number of times.
//!
//! Every message gets an id that is a function of what it is, so that the second time
//! it is recognised. Messages are gathered and appended together, many sessions at
//! once, which lets the store commit them together.

use std::collections::{HashMap, HashSet};

use futures_util::future::join_all;
use throughline_model::{
    Body, Entry, EntryId, Key, Message, Name, NewEntry, Project, ProjectId, Seq, SessionId,
    SessionRef, Timestamp,
};
use throughline_store::{Append, Candidate, Read, StoreError};

use crate::{Error, NewSession, Throughline};

/// How many messages are gathered before they are appended.
const GATHERED: usize = 16_384;
/// And how many bytes of them, about.
const GATHERED_BYTES: usize = 64 * 1024 * 1024;

/// A message from elsewhere.
#[derive(Clone, Debug)]
pub struct Incoming {
    /// Which session it belongs to: an id, key or name, of one that is there or not.
    pub session: String,
    /// The session's title.
    pub name: Option<String>,
    /// The session's project.
    pub project: Option<String>,
    /// When it was said.
    pub at: Option<Timestamp>,
    /// What the other system calls it.
    pub external_id: Option<String>,
    /// Who said it.
    pub author: Option<String>,
    /// What was said.
    pub message: Message,
    /// Where it came from, for telling of failures: a line number.
    pub line: u64,
}

/// What an import did.
#[derive(Debug, Default)]
pub struct ImportReport {
    /// Sessions made.
    pub created: u64,
    /// Messages appended.
    pub appended: u64,
    /// Messages that were there already.
    pub known: u64,
    /// Lines whose messages could not be appended, and why.
    pub failed: Vec<(u64, Error)>,
}

/// Takes messages in, in order.
#[derive(Debug)]
pub struct Importer {
    tl: Throughline,
    report: ImportReport,
    sessions: HashMap<String, Gathering>,
    messages: usize,
    bytes: usize,
}

/// The messages gathered for one session.
#[derive(Debug)]
struct Gathering {
    to: SessionRef,
    /// Set until the session has been made.
    make: Option<NewSession>,
    entries: Vec<(u64, NewEntry)>,
    /// How often each message without an id of its own has come.
    seen: HashMap<EntryId, u32>,
}

impl Importer {
    /// Imports into `tl`.
    pub fn new(tl: Throughline) -> Self {
        Self {
            tl,
            report: ImportReport::default(),
            sessions: HashMap::new(),
            messages: 0,
            bytes: 0,
        }
    }

    /// Takes one message in. It is durable after the next flush, at the latest when
    /// [`finish`](Self::finish) returns.
    pub async fn message(&mut self, incoming: Incoming) -> Result<(), Error> {
        if !self.sessions.contains_key(&incoming.session) {
            let gathering = match self.gathering(&incoming).await {
                Ok(gathering) => gathering,
                Err(error) => {
                    self.report.failed.push((incoming.line, error));
                    return Ok(());
                }
            };
            self.sessions.insert(incoming.session.clone(), gathering);
        }
        let now = self.tl.now();
        let Some(gathering) = self.sessions.get_mut(&incoming.session) else {
            return Ok(());
        };
        self.bytes += size(&incoming.message);
        let line = incoming.line;
        let entry = gathering_entry(gathering, incoming, now)?;
        gathering.entries.push((line, entry));
        self.messages += 1;
        if self.messages >= GATHERED || self.bytes >= GATHERED_BYTES {
            self.flush().await;
        }
        Ok(())
    }

    /// Appends what is gathered and tells what was done.
    pub async fn finish(mut self) -> ImportReport {
        self.flush().await;
        self.report.failed.sort_by_key(|(line, _)| *line);
        self.report
    }

    /// How many messages have been appended or recognised so far.
    pub fn done(&self) -> u64 {
        self.report.appended + self.report.known
    }

    async fn flush(&mut self) {
        let tl = &self.tl;
        let waiting = self
            .sessions
            .values_mut()
            .filter(|gathering| !gathering.entries.is_empty())
            .map(|gathering| gathering.append(tl));
        for done in join_all(waiting).await {
            self.report.created += done.created;
            self.report.appended += done.appended;
            self.report.known += done.known;
            self.report.failed.extend(done.failed);
        }
        self.messages = 0;
        self.bytes = 0;
    }

    /// Where messages for a session go: one that is there, or one to make.
    async fn gathering(&self, incoming: &Incoming) -> Result<Gathering, Error> {
        let text = incoming.session.trim();
        if let Ok(key) = text.parse::<Key>()
            && key.is_own()
        {
            return Err(Error::ReservedKey(key));
        }
        let owner = self.tl.owner();
        let candidates = self.tl.store.candidates(owner, text, 100).await?;
        let (to, make) = if let Some(id) = existing(text, &candidates)? {
            (owner.session(&id), None)
        } else {
            let new = self.new_session(text, incoming).await?;
            let id = new.id.clone().unwrap_or_else(|| self.tl.world.session_id());
            let new = NewSession {
                id: Some(id.clone()),
                ..new
            };
            (owner.session(&id), Some(new))
        };
        Ok(Gathering {
            to,
            make,
            entries: Vec::new(),
            seen: HashMap::new(),
        })
    }

    async fn new_session(&self, text: &str, incoming: &Incoming) -> Result<NewSession, Error> {
        let mut new = NewSession {
            at: incoming.at,
            ..NewSession::default()
        };
        match text.parse::<SessionId>() {
            Ok(id) => new.id = Some(id),
            // What cannot be an id is kept as the key, by which it is found again.
            Err(_) => new.key = Some(text.parse::<Key>()?),
        }
        // A title that cannot be made a name still leaves the session with its id.
        let title = incoming
            .name
            .as_deref()
            .or(new.key.as_ref().map(Key::as_str));
        new.name = title.and_then(|title| title.replace(['/', '\\'], "-").parse::<Name>().ok());
        if let Some(project) = &incoming.project {
            let id: ProjectId = project.parse()?;
            let known = self.tl.projects().await?;
            let same = |known: &&Project| known.id == id || known.name == *project;
            if let Some(known) = known.iter().find(same) {
                new.project = Some(known.id.clone());
            } else {
                let project = Project {
                    id: id.clone(),
                    name: project.clone(),
                    marks: Vec::new(),
                };
                self.tl.store.put_project(self.tl.owner(), &project).await?;
                new.project = Some(id);
            }
        }
        Ok(new)
    }
}

/// The session that `text` means, if there is one in use.
fn existing(text: &str, candidates: &[Candidate]) -> Result<Option<SessionId>, Error> {
    let by = |is: &dyn Fn(&Candidate) -> bool| candidates.iter().find(|c| is(c));
    let found = by(&|c| c.card.id.as_str() == text)
        .or_else(|| by(&|c| c.card.key.as_ref().is_some_and(|key| key.as_str() == text)))
        .or_else(|| {
            let name = |c: &&Candidate| c.card.name.as_ref().is_some_and(|n| n.as_str() == text);
            let mut named = candidates.iter().filter(name).filter(|c| !c.trashed);
            named.next().filter(|_| named.next().is_none())
        });
    match found {
        None => Ok(None),
        Some(found) if found.trashed => Err(StoreError::InTrash(found.card.id.clone()).into()),
        Some(found) => Ok(Some(found.card.id.clone())),
    }
}

fn size(message: &Message) -> usize {
    message.content.to_text().len() + 256
}

fn gathering_entry(
    gathering: &mut Gathering,
    incoming: Incoming,
    now: Timestamp,
) -> Result<NewEntry, Error> {
    let session = &gathering.to.id;
    let id = if let Some(external) = &incoming.external_id {
        EntryId::from_external(session, external)
    } else {
        let content =
            serde_json::to_vec(&incoming.message).map_err(|source| StoreError::Backend {
                during: "encoding a message",
                source: source.into(),
            })?;
        let at = incoming.at.map_or(0, Timestamp::as_microsecond);
        let parts: [&[u8]; 4] = [
            b"import",
            session.as_str().as_bytes(),
            &content,
            &at.to_le_bytes(),
        ];
        // The same words may be said twice; the second time is another message.
        let same = EntryId::derived(&parts);
        let times = gathering.seen.entry(same).or_default();
        *times += 1;
        EntryId::derived(&[same.as_bytes(), &times.to_le_bytes()])
    };
    let mut entry = NewEntry::new(
        id,
        incoming.at.unwrap_or(now),
        Body::Message(incoming.message),
    );
    entry.external_id = incoming.external_id;
    entry.author = incoming.author;
    Ok(entry)
}

impl Gathering {
    /// Lines whose outside id is known, but for other words than these.
    async fn changed(
        &self,
        tl: &Throughline,
        entries: &[(u64, NewEntry)],
        known: &[Option<Seq>],
    ) -> Result<Vec<(u64, Error)>, Error> {
        let mut changed = Vec::new();
        let outside = entries
            .iter()
            .zip(known)
            .filter_map(|((line, entry), seq)| {
                entry.external_id.as_ref()?;
                Some((*line, entry, (*seq)?))
            });
        let mut page: Vec<Entry> = Vec::new();
        for (line, entry, seq) in outside {
            if page.last().is_none_or(|last| seq > last.seq) || seq < page[0].seq {
                page = tl.store.read(&self.to, Read::from(seq, 500)).await?;
            }
            let there = page.iter().find(|there| there.seq == seq);
            if there.is_some_and(|there| there.body != entry.body) {
                let reused = StoreError::EntryIdReused {
                    id: self.to.id.clone(),
                    entry: entry.id,
                };
                changed.push((line, reused.into()));
            }
        }
        Ok(changed)
    }

    async fn append(&mut self, tl: &Throughline) -> ImportReport {
        let mut report = ImportReport::default();
        let entries = std::mem::take(&mut self.entries);
        let lines: Vec<u64> = entries.iter().map(|(line, _)| *line).collect();
        if let Err(error) = self.try_append(tl, entries, &mut report).await {
            let first = lines.first().copied().unwrap_or_default();
            report.failed.push((first, error));
        }
        report
    }

    async fn try_append(
        &mut self,
        tl: &Throughline,
        entries: Vec<(u64, NewEntry)>,
        report: &mut ImportReport,
    ) -> Result<(), Error> {
        if let Some(new) = self.make.clone() {
            let (_, existed) = tl.get_or_create(new).await?;
            report.created += u64::from(!existed);
            self.make = None;
        }
        let ids: Vec<_> = entries.iter().map(|(_, entry)| entry.id).collect();
        let known = tl.store.locate(&self.to, &ids).await?;
        report
            .failed
            .extend(self.changed(tl, &entries, &known).await?);
        let mut taken = HashSet::new();
        let total = entries.len() as u64;
        let new: Vec<NewEntry> = entries
            .into_iter()
            .zip(known)
            .filter(|((_, entry), known)| known.is_none() && taken.insert(entry.id))
            .map(|((_, entry), _)| entry)
            .collect();
        let appended = new.len() as u64;
        if !new.is_empty() {
            tl.store.append(&self.to, Append::any(new)).await?;
        }
        report.appended += appended;
        report.known += total - appended;
        Ok(())
    }
}

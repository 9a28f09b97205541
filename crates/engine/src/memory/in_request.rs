//! Which facts a request has, and which of them were of use.

use std::collections::HashSet;

use throughline_context::{Counted, Document, EntryRef, Fact as Line, SectionName};
use throughline_model::{
    Body, Content, Entry, Fact, Mark, Record, Role, Seq, SessionId, files_in, files_touched,
};

use super::ground::Ground;
use super::words::content;
use super::{MemoryScope, rank};
use crate::{Asking, Error, Session, Turned};

/// The most facts in one request.
const MOST: usize = 200;
/// How many of the last entries tell which files are being worked on.
const RECENT: usize = 40;
/// What share of a fact's words is said where it is of use, in percent.
const SAID: usize = 50;

/// A fact, and the session that holds it.
struct Held {
    memory: SessionId,
    fact: Fact,
}

impl Held {
    /// The fact as the model reads it.
    fn line(&self) -> Line {
        let fact = &self.fact;
        let text = match fact.files.as_slice() {
            [] => fact.text.clone(),
            files => format!("{} ({})", fact.text, files.join(", ")),
        };
        Line {
            text,
            source: Some(EntryRef {
                session: self.memory.clone(),
                seq: fact.seq,
                external_id: None,
            }),
        }
    }
}

impl Session {
    /// What is remembered for a request, the most important first: of the session's
    /// project, and for all of its owner's. What a document lists already is left out.
    pub(crate) async fn memory_for(
        &self,
        asking: &Asking<'_>,
        record: &Record,
        tail: &[Counted],
        documents: &[Document],
    ) -> Result<Vec<Line>, Error> {
        if asking.policy.shares.memory == 0 || record.card.is_own() {
            return Ok(Vec::new());
        }
        let mut held = self.held(record).await?;
        let told = |fact: &Fact| {
            let item = format!("- {}", fact.text);
            let has = |document: &Document| document.text.lines().any(|line| line == item);
            documents.iter().any(has)
        };
        held.retain(|held| !told(&held.fact));
        let touched = if held.iter().any(|held| !held.fact.files.is_empty()) {
            let recent = tail[tail.len().saturating_sub(RECENT)..].iter();
            let mut named = files_touched(recent.map(|counted| &counted.entry));
            named.extend(asking.message.map(files_in).unwrap_or_default());
            let ground = self.ground(record).await?;
            named
                .iter()
                .filter_map(|path| ground.relative(path))
                .collect()
        } else {
            Vec::new()
        };
        rank::best_first(&mut held, |held| &held.fact, self.tl.now(), &touched);
        held.truncate(MOST);
        Ok(held.iter().map(Held::line).collect())
    }

    /// The facts that count here, each once.
    async fn held(&self, record: &Record) -> Result<Vec<Held>, Error> {
        let project = record.card.project.clone().map(MemoryScope::Project);
        let mut held = Vec::new();
        let mut seen = HashSet::new();
        for scope in project.into_iter().chain([MemoryScope::Owner]) {
            let memory = self.tl.memory(scope);
            let Some(session) = memory.session().await? else {
                continue;
            };
            for fact in super::folded(&session).await?.standing() {
                if seen.insert(fact.text.clone()) {
                    let (memory, fact) = (session.id().clone(), fact.clone());
                    held.push(Held { memory, fact });
                }
            }
        }
        Ok(held)
    }

    /// Where the session and its project are.
    pub(super) async fn ground(&self, record: &Record) -> Result<Ground, Error> {
        let projects = self.tl.projects().await?;
        let ours = projects
            .iter()
            .find(|project| Some(&project.id) == record.card.project.as_ref());
        let folder = |mark: &Mark| match mark {
            Mark::Folder(path) => Some(path.clone()),
            _ => None,
        };
        Ok(Ground {
            workspace: record.card.workspace.clone(),
            top: ours.and_then(|project| project.marks.iter().find_map(folder)),
        })
    }

    /// Counts the facts that a turn made use of: those that were in its request and that
    /// the question or the answer is about. Each counts once a session.
    pub async fn note_memory_used(&self, turned: &Turned) -> Result<(), Error> {
        let Some(section) = turned.request.section(SectionName::Memory) else {
            return Ok(());
        };
        if section.entries.is_empty() {
            return Ok(());
        }
        let question = turned
            .request
            .messages
            .iter()
            .rfind(|message| message.role == Role::User);
        let answer = turned.answer.as_ref().and_then(Entry::message);
        let said: Vec<&Content> = [question.map(|m| &m.content), answer.map(|m| &m.content)]
            .into_iter()
            .flatten()
            .collect();
        let record = self.record().await?;
        let ground = self.ground(&record).await?;
        let named = said.iter().flat_map(|content| files_in(content));
        let touched: Vec<String> = named.filter_map(|path| ground.relative(&path)).collect();
        let texts: Vec<String> = said
            .iter()
            .map(|content| content.to_text().into_owned())
            .collect();
        let about = content(&texts.join("\n"));

        let project = record.card.project.clone().map(MemoryScope::Project);
        for scope in project.into_iter().chain([MemoryScope::Owner]) {
            let memory = self.tl.memory(scope);
            let Some(session) = memory.session().await? else {
                continue;
            };
            let sent = |seq: Seq| {
                let is_it = |place: &EntryRef| place.session == *session.id() && place.seq == seq;
                section.entries.iter().any(is_it)
            };
            let facts = super::folded(&session).await?;
            let used: Vec<Seq> = facts
                .standing()
                .filter(|fact| sent(fact.seq) && !facts.was_used_in(fact.seq, self.id()))
                .filter(|fact| fact.is_touched_by(&touched) || bears_on(fact, &about))
                .map(|fact| fact.seq)
                .collect();
            if !used.is_empty() {
                let body = Body::Used {
                    facts: used,
                    session: self.id().clone(),
                };
                session.append(body).await?;
            }
        }
        Ok(())
    }
}

/// Whether what was said is about a fact: most of its words were said.
fn bears_on(fact: &Fact, about: &[String]) -> bool {
    let words = content(&fact.text);
    let said = words.iter().filter(|word| about.contains(word)).count();
    said >= words.len().min(2) && said > 0 && said * 100 >= words.len() * SAID
}

//! Which facts a request has, and which of them were of use.

use std::collections::HashSet;

use throughline_context::{
    ContextDocument, CountedEntry, EntryRef, MemoryFact as FactLine, SectionName,
};
use throughline_model::{
    Body, Content, Entry, Fact, ProjectMarker, Record, Role, Seq, SessionId, extract_files,
    extract_touched_files,
};

use super::fact_words::content_words;
use super::project_paths::ProjectPaths;
use super::{MemoryScope, fact_rank};
use crate::{Error, RequestOptions, Session, TurnOutcome};

/// The most facts in one request.
const MAX_FACTS: usize = 200;
/// How many of the last entries tell which files are being worked on.
const RECENT_ENTRIES: usize = 40;
/// What share of a fact's words is said where it is of use, in percent.
const MIN_OVERLAP_PERCENT: usize = 50;

/// A fact, and the session that holds it.
struct ScopedFact {
    memory: SessionId,
    fact: Fact,
}

impl ScopedFact {
    /// The fact as the model reads it.
    fn to_line(&self) -> FactLine {
        let fact = &self.fact;
        let text = match fact.files.as_slice() {
            [] => fact.text.clone(),
            files => format!("{} ({})", fact.text, files.join(", ")),
        };
        FactLine {
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
    pub(crate) async fn find_request_facts(
        &self,
        asking: &RequestOptions<'_>,
        record: &Record,
        tail: &[CountedEntry],
        documents: &[ContextDocument],
    ) -> Result<Vec<FactLine>, Error> {
        if asking.policy.shares.memory == 0 || record.info.is_internal() {
            return Ok(Vec::new());
        }
        let mut held = self.load_facts(record).await?;
        let told = |fact: &Fact| {
            let item = format!("- {}", fact.text);
            let has = |document: &ContextDocument| document.text.lines().any(|line| line == item);
            documents.iter().any(has)
        };
        held.retain(|held| !told(&held.fact));
        let touched = if held.iter().any(|held| !held.fact.files.is_empty()) {
            let recent = tail[tail.len().saturating_sub(RECENT_ENTRIES)..].iter();
            let mut named = extract_touched_files(recent.map(|counted| &counted.entry));
            named.extend(asking.message.map(extract_files).unwrap_or_default());
            let ground = self.project_paths(record).await?;
            named
                .iter()
                .filter_map(|path| ground.to_relative(path))
                .collect()
        } else {
            Vec::new()
        };
        fact_rank::sort_by_rank(&mut held, |held| &held.fact, self.tl.now(), &touched);
        held.truncate(MAX_FACTS);
        Ok(held.iter().map(ScopedFact::to_line).collect())
    }

    /// The facts that count here, each once.
    async fn load_facts(&self, record: &Record) -> Result<Vec<ScopedFact>, Error> {
        let project = record.info.project.clone().map(MemoryScope::Project);
        let mut held = Vec::new();
        let mut seen = HashSet::new();
        for scope in project.into_iter().chain([MemoryScope::Owner]) {
            let memory = self.tl.memory(scope);
            let Some(session) = memory.session().await? else {
                continue;
            };
            for fact in super::load_folded(&session).await?.iter_in_effect() {
                if seen.insert(fact.text.clone()) {
                    let (memory, fact) = (session.id().clone(), fact.clone());
                    held.push(ScopedFact { memory, fact });
                }
            }
        }
        Ok(held)
    }

    /// Where the session and its project are.
    pub(super) async fn project_paths(&self, record: &Record) -> Result<ProjectPaths, Error> {
        let projects = self.tl.projects().await?;
        let ours = projects
            .iter()
            .find(|project| Some(&project.id) == record.info.project.as_ref());
        let folder = |mark: &ProjectMarker| match mark {
            ProjectMarker::Folder(path) => Some(path.clone()),
            _ => None,
        };
        Ok(ProjectPaths {
            workspace: record.info.workspace.clone(),
            root: ours.and_then(|project| project.markers.iter().find_map(folder)),
        })
    }

    /// Counts the facts that a turn made use of: those that were in its request and that
    /// the question or the answer is about. Each counts once a session.
    pub async fn record_fact_use(&self, turned: &TurnOutcome) -> Result<(), Error> {
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
        let ground = self.project_paths(&record).await?;
        let named = said.iter().flat_map(|content| extract_files(content));
        let touched: Vec<String> = named.filter_map(|path| ground.to_relative(&path)).collect();
        let texts: Vec<String> = said
            .iter()
            .map(|content| content.to_text().into_owned())
            .collect();
        let about = content_words(&texts.join("\n"));

        let project = record.info.project.clone().map(MemoryScope::Project);
        for scope in project.into_iter().chain([MemoryScope::Owner]) {
            let memory = self.tl.memory(scope);
            let Some(session) = memory.session().await? else {
                continue;
            };
            let sent = |seq: Seq| {
                let is_it = |place: &EntryRef| place.session == *session.id() && place.seq == seq;
                section.entries.iter().any(is_it)
            };
            let facts = super::load_folded(&session).await?;
            let used: Vec<Seq> = facts
                .iter_in_effect()
                .filter(|fact| sent(fact.seq) && !facts.was_used_in(fact.seq, self.id()))
                .filter(|fact| fact.matches_paths(&touched) || is_relevant(fact, &about))
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
fn is_relevant(fact: &Fact, about: &[String]) -> bool {
    let words = content_words(&fact.text);
    let said = words.iter().filter(|word| about.contains(word)).count();
    said >= words.len().min(2) && said > 0 && said * 100 >= words.len() * MIN_OVERLAP_PERCENT
}

//! Selects the facts for a request, and records which of them were used.

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
/// The number of recent entries that determine which files are touched.
const RECENT_ENTRIES: usize = 40;
/// The share of a fact's words that must occur for it to count as used, in percent.
const MIN_OVERLAP_PERCENT: usize = 50;

/// A fact and the memory session that holds it.
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
    /// Returns the facts for a request, most important first: those of the session's
    /// project and the owner-wide ones, except facts that a context document already
    /// lists.
    pub(crate) async fn find_request_facts(
        &self,
        options: &RequestOptions<'_>,
        record: &Record,
        tail: &[CountedEntry],
        documents: &[ContextDocument],
    ) -> Result<Vec<FactLine>, Error> {
        if options.policy.shares.memory == 0 || record.info.is_internal() {
            return Ok(Vec::new());
        }
        let mut facts = self.load_facts(record).await?;
        let is_listed = |fact: &Fact| {
            let item = format!("- {}", fact.text);
            let has = |document: &ContextDocument| document.text.lines().any(|line| line == item);
            documents.iter().any(has)
        };
        facts.retain(|scoped| !is_listed(&scoped.fact));
        let touched = if facts.iter().any(|scoped| !scoped.fact.files.is_empty()) {
            let recent = tail[tail.len().saturating_sub(RECENT_ENTRIES)..].iter();
            let mut named_files = extract_touched_files(recent.map(|counted| &counted.entry));
            named_files.extend(options.message.map(extract_files).unwrap_or_default());
            let paths = self.project_paths(record).await?;
            named_files
                .iter()
                .filter_map(|path| paths.to_relative(path))
                .collect()
        } else {
            Vec::new()
        };
        fact_rank::sort_by_rank(&mut facts, |scoped| &scoped.fact, self.tl.now(), &touched);
        facts.truncate(MAX_FACTS);
        Ok(facts.iter().map(ScopedFact::to_line).collect())
    }

    /// Loads the facts in effect for this session, without duplicates.
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

    /// Returns the session's workspace and its project's root.
    pub(super) async fn project_paths(&self, record: &Record) -> Result<ProjectPaths, Error> {
        let projects = self.tl.projects().await?;
        let ours = projects
            .iter()
            .find(|project| Some(&project.id) == record.info.project.as_ref());
        let folder = |marker: &ProjectMarker| match marker {
            ProjectMarker::Folder(path) => Some(path.clone()),
            _ => None,
        };
        Ok(ProjectPaths {
            workspace: record.info.workspace.clone(),
            root: ours.and_then(|project| project.markers.iter().find_map(folder)),
        })
    }

    /// Records which facts a turn used: those in its request that the question or the
    /// answer is about. Each counts once per session.
    pub async fn record_fact_use(&self, outcome: &TurnOutcome) -> Result<(), Error> {
        let Some(section) = outcome.request.section(SectionName::Memory) else {
            return Ok(());
        };
        if section.entries.is_empty() {
            return Ok(());
        }
        let question = outcome
            .request
            .messages
            .iter()
            .rfind(|message| message.role == Role::User);
        let answer = outcome.answer.as_ref().and_then(Entry::message);
        let contents: Vec<&Content> = [question.map(|m| &m.content), answer.map(|m| &m.content)]
            .into_iter()
            .flatten()
            .collect();
        let record = self.record().await?;
        let paths = self.project_paths(&record).await?;
        let named_files = contents.iter().flat_map(|content| extract_files(content));
        let touched: Vec<String> = named_files
            .filter_map(|path| paths.to_relative(&path))
            .collect();
        let texts: Vec<String> = contents
            .iter()
            .map(|content| content.to_text().into_owned())
            .collect();
        let message_words = content_words(&texts.join("\n"));

        let project = record.info.project.clone().map(MemoryScope::Project);
        for scope in project.into_iter().chain([MemoryScope::Owner]) {
            let memory = self.tl.memory(scope);
            let Some(session) = memory.session().await? else {
                continue;
            };
            let sent = |seq: Seq| {
                let is_fact = |entry: &EntryRef| entry.session == *session.id() && entry.seq == seq;
                section.entries.iter().any(is_fact)
            };
            let facts = super::load_folded(&session).await?;
            let used: Vec<Seq> = facts
                .iter_in_effect()
                .filter(|fact| sent(fact.seq) && !facts.was_used_in(fact.seq, self.id()))
                .filter(|fact| fact.matches_paths(&touched) || is_relevant(fact, &message_words))
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

/// Whether a message is about a fact: it contains most of the fact's words.
fn is_relevant(fact: &Fact, message_words: &[String]) -> bool {
    let words = content_words(&fact.text);
    let shared = words
        .iter()
        .filter(|word| message_words.contains(word))
        .count();
    shared >= words.len().min(2) && shared > 0 && shared * 100 >= words.len() * MIN_OVERLAP_PERCENT
}

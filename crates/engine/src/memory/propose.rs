//! What a summary found worth knowing becomes proposals in the project's memory.

use throughline_model::{Body, Entry, FactSource, Seq, files_in, looks_secret};

use super::change::How;
use super::contradiction::contradicts;
use super::likeness::same;
use super::{MemoryScope, NewFact};
use crate::{Error, Session, Turned};

/// The most that one summary may propose.
const MOST: usize = 20;
/// The fewest and the most words of what is worth proposing.
const WORDS: std::ops::RangeInclusive<usize> = 3..=60;

/// What becomes of what a summary found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Proposing {
    /// It is proposed, and waits for a person's word.
    #[default]
    Propose,
    /// It counts at once, unless it would replace what a person said.
    Accept,
    /// Nothing.
    Off,
}

impl std::str::FromStr for Proposing {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "propose" => Ok(Self::Propose),
            "accept" => Ok(Self::Accept),
            "off" => Ok(Self::Off),
            other => Err(format!("{other:?} is not propose, accept or off")),
        }
    }
}

/// What was proposed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Proposed {
    /// What waits for a person's word.
    pub waiting: Vec<Seq>,
    /// What counts already.
    pub accepted: Vec<Seq>,
}

impl Proposed {
    fn and(&mut self, more: Self) {
        self.waiting.extend(more.waiting);
        self.accepted.extend(more.accepted);
    }
}

impl Session {
    /// Keeps what a turn leaves in memory: which facts were of use in it, and what the
    /// summaries that were made on the way propose.
    pub async fn remember_turn(&self, turned: &Turned, how: Proposing) -> Result<Proposed, Error> {
        self.note_memory_used(turned).await?;
        let mut proposed = Proposed::default();
        for summary in &turned.checkpoints {
            proposed.and(self.propose_facts(summary, how).await?);
        }
        Ok(proposed)
    }

    /// Proposes the facts and decisions of a summary, by its entry, for the memory of
    /// the session's project. Nothing where the entry is no summary or there is no
    /// project; what is known, was turned down before, or looks like a secret is left out.
    pub async fn propose_facts(&self, summary: &Entry, how: Proposing) -> Result<Proposed, Error> {
        let (Body::Checkpoint(made) | Body::Summarized(made)) = &summary.body else {
            return Ok(Proposed::default());
        };
        let record = self.record().await?;
        let Some(project) = record
            .card
            .project
            .clone()
            .filter(|_| how != Proposing::Off)
        else {
            return Ok(Proposed::default());
        };
        let memory = self.tl.memory(MemoryScope::Project(project));
        let everywhere = self.tl.memory(MemoryScope::Owner).list().await?;
        let here = memory.list().await?;
        let ground = self.ground(&record).await?;
        let source = FactSource {
            session: self.id().clone(),
            seq: summary.seq,
        };
        let known = |text: &str| {
            everywhere
                .iter()
                .any(|fact| same(text, &fact.text, &self.tl.similar))
        };
        let replaces = |text: &str| {
            let said = here.iter().filter(|fact| fact.by_person());
            said.clone().any(|fact| contradicts(text, &fact.text))
        };
        let texts = made.summary.facts.iter().chain(&made.summary.decisions);
        let new: Vec<NewFact> = texts
            .map(|text| text.trim())
            .filter(|text| worth_proposing(text) && !known(text))
            .take(MOST)
            .map(|text| {
                let named = files_in(&throughline_model::Content::text(text));
                NewFact {
                    source: Some(source.clone()),
                    by: made.by.clone(),
                    files: named
                        .iter()
                        .filter_map(|file| ground.relative(file))
                        .collect(),
                    proposed: true,
                    ..NewFact::said(text)
                }
            })
            .collect();
        if new.is_empty() {
            return Ok(Proposed::default());
        }
        let mut proposed = Proposed::default();
        for added in memory.add_all(&new).await? {
            if added.how != How::New {
                continue;
            }
            let seq = added.fact.seq;
            if how == Proposing::Accept && !replaces(&added.fact.text) {
                proposed.accepted.push(seq);
            } else {
                proposed.waiting.push(seq);
            }
        }
        if !proposed.accepted.is_empty() {
            memory.accept(&proposed.accepted).await?;
        }
        Ok(proposed)
    }
}

/// A sentence that says something, and nothing that nobody should remember.
fn worth_proposing(text: &str) -> bool {
    WORDS.contains(&text.split_whitespace().count())
        && !text.ends_with('?')
        && looks_secret(text).is_none()
}

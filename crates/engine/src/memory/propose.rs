//! Proposes facts and decisions from summaries for the project's memory.

use throughline_model::{Body, Entry, FactSource, Seq, detect_secret, extract_files};

use super::contradiction::contradicts;
use super::fact_changes::AddFactStatus;
use super::fact_similarity::is_same_fact;
use super::{MemoryScope, NewFact};
use crate::{Error, Session, TurnOutcome};

/// The most proposals from one summary.
const MAX_PROPOSALS: usize = 20;
/// The number of words that a proposal may have.
const WORD_COUNTS: std::ops::RangeInclusive<usize> = 3..=60;

/// How to handle the facts that a summary contains.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProposalMode {
    /// Propose them, to be accepted by a person.
    #[default]
    Propose,
    /// Accept them at once, unless they would replace what a person stated.
    Accept,
    /// Ignore them.
    Off,
}

impl std::str::FromStr for ProposalMode {
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

/// The facts that were proposed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProposalReport {
    /// Proposals to be accepted by a person.
    pub pending: Vec<Seq>,
    /// Facts that were accepted at once.
    pub accepted: Vec<Seq>,
}

impl ProposalReport {
    fn extend(&mut self, more: Self) {
        self.pending.extend(more.pending);
        self.accepted.extend(more.accepted);
    }
}

impl Session {
    /// Updates the memory after a turn: records which facts were used, and proposes
    /// those in the turn's checkpoints.
    pub async fn remember_turn(
        &self,
        outcome: &TurnOutcome,
        mode: ProposalMode,
    ) -> Result<ProposalReport, Error> {
        self.record_fact_use(outcome).await?;
        let mut proposed = ProposalReport::default();
        for summary in &outcome.checkpoints {
            proposed.extend(self.propose_facts(summary, mode).await?);
        }
        Ok(proposed)
    }

    /// Proposes the facts and decisions of a summary entry for the memory of the
    /// session's project. Does nothing if the entry is not a summary or the session has
    /// no project. Facts that are known, were rejected before or look like secrets are
    /// left out.
    pub async fn propose_facts(
        &self,
        summary: &Entry,
        mode: ProposalMode,
    ) -> Result<ProposalReport, Error> {
        let (Body::Checkpoint(checkpoint) | Body::Summarized(checkpoint)) = &summary.body else {
            return Ok(ProposalReport::default());
        };
        let record = self.record().await?;
        let Some(project) = record
            .info
            .project
            .clone()
            .filter(|_| mode != ProposalMode::Off)
        else {
            return Ok(ProposalReport::default());
        };
        let memory = self.tl.memory(MemoryScope::Project(project));
        let owner_facts = self.tl.memory(MemoryScope::Owner).list().await?;
        let project_facts = memory.list().await?;
        let paths = self.project_paths(&record).await?;
        let source = FactSource {
            session: self.id().clone(),
            seq: summary.seq,
        };
        let is_known = |text: &str| {
            owner_facts
                .iter()
                .any(|fact| is_same_fact(text, &fact.text, &self.tl.similarity))
        };
        let replaces = |text: &str| {
            let by_person = project_facts.iter().filter(|fact| fact.is_by_person());
            by_person.clone().any(|fact| contradicts(text, &fact.text))
        };
        let texts = checkpoint
            .summary
            .facts
            .iter()
            .chain(&checkpoint.summary.decisions);
        let new: Vec<NewFact> = texts
            .map(|text| text.trim())
            .filter(|text| is_worth_proposing(text) && !is_known(text))
            .take(MAX_PROPOSALS)
            .map(|text| {
                let files = extract_files(&throughline_model::Content::text(text));
                NewFact {
                    source: Some(source.clone()),
                    by: checkpoint.by.clone(),
                    files: files
                        .iter()
                        .filter_map(|file| paths.to_relative(file))
                        .collect(),
                    proposed: true,
                    ..NewFact::from_person(text)
                }
            })
            .collect();
        if new.is_empty() {
            return Ok(ProposalReport::default());
        }
        let mut proposed = ProposalReport::default();
        for added in memory.add_all(&new).await? {
            if added.status != AddFactStatus::New {
                continue;
            }
            let seq = added.fact.seq;
            if mode == ProposalMode::Accept && !replaces(&added.fact.text) {
                proposed.accepted.push(seq);
            } else {
                proposed.pending.push(seq);
            }
        }
        if !proposed.accepted.is_empty() {
            memory.accept(&proposed.accepted).await?;
        }
        Ok(proposed)
    }
}

/// Whether a text is a statement of reasonable length without secrets.
fn is_worth_proposing(text: &str) -> bool {
    WORD_COUNTS.contains(&text.split_whitespace().count())
        && !text.ends_with('?')
        && detect_secret(text).is_none()
}

//! What a summary found worth knowing becomes proposals in the project's memory.

use throughline_model::{Body, Entry, FactSource, Seq, detect_secret, extract_files};

use super::contradiction::contradicts;
use super::fact_changes::AddFactStatus;
use super::fact_similarity::is_same_fact;
use super::{MemoryScope, NewFact};
use crate::{Error, Session, TurnOutcome};

/// The most that one summary may propose.
const MAX_PROPOSALS: usize = 20;
/// The fewest and the most words of what is worth proposing.
const WORD_COUNTS: std::ops::RangeInclusive<usize> = 3..=60;

/// What becomes of what a summary found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProposalMode {
    /// It is proposed, and waits for a person's word.
    #[default]
    Propose,
    /// It counts at once, unless it would replace what a person said.
    Accept,
    /// Nothing.
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

/// What was proposed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProposalReport {
    /// What waits for a person's word.
    pub pending: Vec<Seq>,
    /// What counts already.
    pub accepted: Vec<Seq>,
}

impl ProposalReport {
    fn extend(&mut self, more: Self) {
        self.pending.extend(more.pending);
        self.accepted.extend(more.accepted);
    }
}

impl Session {
    /// Keeps what a turn leaves in memory: which facts were of use in it, and what the
    /// summaries that were made on the way propose.
    pub async fn remember_turn(
        &self,
        turned: &TurnOutcome,
        how: ProposalMode,
    ) -> Result<ProposalReport, Error> {
        self.record_fact_use(turned).await?;
        let mut proposed = ProposalReport::default();
        for summary in &turned.checkpoints {
            proposed.extend(self.propose_facts(summary, how).await?);
        }
        Ok(proposed)
    }

    /// Proposes the facts and decisions of a summary, by its entry, for the memory of
    /// the session's project. Nothing where the entry is no summary or there is no
    /// project; what is known, was turned down before, or looks like a secret is left out.
    pub async fn propose_facts(
        &self,
        summary: &Entry,
        how: ProposalMode,
    ) -> Result<ProposalReport, Error> {
        let (Body::Checkpoint(made) | Body::Summarized(made)) = &summary.body else {
            return Ok(ProposalReport::default());
        };
        let record = self.record().await?;
        let Some(project) = record
            .info
            .project
            .clone()
            .filter(|_| how != ProposalMode::Off)
        else {
            return Ok(ProposalReport::default());
        };
        let memory = self.tl.memory(MemoryScope::Project(project));
        let everywhere = self.tl.memory(MemoryScope::Owner).list().await?;
        let here = memory.list().await?;
        let ground = self.project_paths(&record).await?;
        let source = FactSource {
            session: self.id().clone(),
            seq: summary.seq,
        };
        let known = |text: &str| {
            everywhere
                .iter()
                .any(|fact| is_same_fact(text, &fact.text, &self.tl.similarity))
        };
        let replaces = |text: &str| {
            let said = here.iter().filter(|fact| fact.is_by_person());
            said.clone().any(|fact| contradicts(text, &fact.text))
        };
        let texts = made.summary.facts.iter().chain(&made.summary.decisions);
        let new: Vec<NewFact> = texts
            .map(|text| text.trim())
            .filter(|text| is_worth_proposing(text) && !known(text))
            .take(MAX_PROPOSALS)
            .map(|text| {
                let named = extract_files(&throughline_model::Content::text(text));
                NewFact {
                    source: Some(source.clone()),
                    by: made.by.clone(),
                    files: named
                        .iter()
                        .filter_map(|file| ground.to_relative(file))
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
            if how == ProposalMode::Accept && !replaces(&added.fact.text) {
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

/// A sentence that says something, and nothing that nobody should remember.
fn is_worth_proposing(text: &str) -> bool {
    WORD_COUNTS.contains(&text.split_whitespace().count())
        && !text.ends_with('?')
        && detect_secret(text).is_none()
}

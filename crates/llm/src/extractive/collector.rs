//! Collects the candidate statements of a conversation.

use std::collections::HashMap;

use throughline_model::{Block, Body, Content, Entry, Message, Role, Summary};

use super::candidate::{
    Candidate, Effect, find_rejected_terms, is_choice_question, sort_dedup, strip_filler,
};
use super::classify::{Classification, Speaker, Statement, StatementKind, classify};
use super::cues::{Cue, find_cues};
use super::lexicon::{Lexicon, Term, split_words};
use super::segments::{ListMarker, Section, Segment, is_failure, split_segments};
use super::specifics::find_specifics;
use super::topics::PhraseCounts;
use crate::summary_files::ratio;

/// Maximum number of failure lines taken from the output in one message.
const MAX_FAILURES: usize = 2;

/// The candidates collected from a conversation.
#[derive(Default)]
pub(super) struct CandidateCollector {
    pub(super) items: Vec<Candidate>,
    pub(super) lexicon: Lexicon,
    pub(super) phrases: PhraseCounts,
    pub(super) headings: Vec<String>,
    /// The user's goal.
    pub(super) goal: Option<String>,
    by_text: HashMap<String, usize>,
    message_index: usize,
    message_count: usize,
    /// Number of user messages so far.
    user_messages: usize,
    /// The terms of an either-or question, and the message that asked it.
    open_choice: (usize, Vec<Term>),
}

impl CandidateCollector {
    /// Adds the previous summary, which precedes everything else.
    pub(super) fn add_summary(&mut self, previous: &Summary) {
        let lists = [
            (StatementKind::Decision, &previous.decisions),
            (StatementKind::Task, &previous.open_tasks),
            (StatementKind::Pending, &previous.pending),
            (StatementKind::InProgress, &previous.in_progress),
            (StatementKind::Blocker, &previous.blockers),
            (StatementKind::Done, &previous.completed),
            (StatementKind::Fact, &previous.facts),
        ];
        for (kind, list) in lists {
            for (index, text) in list.iter().enumerate() {
                let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
                if text.is_empty() {
                    continue;
                }
                let mut item = self.build_candidate(text, Speaker::PreviousSummary, None, None);
                let floor = match item.classification {
                    _ if kind != StatementKind::Fact => 0.55,
                    Some(_) => 0.3,
                    None => 0.1,
                };
                let strength = match item.classification {
                    Some(class) if class.kind == kind => class.strength.max(floor),
                    _ => floor,
                };
                item.classification = Some(Classification::new(kind, strength));
                item.recency = 0.15 + 0.2 * ratio(index, list.len());
                // It was selected before, so it counts as the user's, regardless of its author.
                self.lexicon.count(&item.terms, true, 0);
                self.lexicon.count(&item.terms, false, 0);
                self.insert(item);
            }
        }
    }

    /// Adds the statements of the entries.
    pub(super) fn add_entries(&mut self, entries: &[Entry]) {
        self.message_count = entries.iter().filter(|entry| has_statements(entry)).count();
        for entry in entries.iter().filter(|entry| has_statements(entry)) {
            self.message_index += 1;
            match &entry.body {
                Body::Message(message) => self.add_message(message),
                Body::Merged(merge) => {
                    let text = merge.summary.as_deref().unwrap_or_default();
                    self.add_text(text, Speaker::Agent, false);
                }
                _ => {}
            }
        }
    }

    fn add_message(&mut self, message: &Message) {
        let speaker = match message.role {
            Role::User => {
                self.user_messages += 1;
                Speaker::User
            }
            Role::Assistant => Speaker::Agent,
            Role::System => Speaker::System,
            Role::Tool => {
                self.add_tool_output(&message.content);
                for result in message.content.tool_results() {
                    self.add_tool_output(&result.content);
                }
                return;
            }
        };
        for block in &message.content.0 {
            match block {
                Block::Text(text) => self.add_text(text, speaker, message.incomplete),
                Block::ToolResult(result) => self.add_tool_output(&result.content),
                _ => {}
            }
        }
    }

    fn add_tool_output(&mut self, content: &Content) {
        let text = content.to_text();
        let lines = text.lines().map(str::trim);
        let failures: Vec<_> = lines
            .filter(|line| line.len() <= 200 && is_failure(line))
            .take(MAX_FAILURES)
            .collect();
        for line in failures {
            self.add_failure(line);
        }
    }

    fn add_failure(&mut self, line: &str) {
        let text = line.split_whitespace().collect::<Vec<_>>().join(" ");
        let mut item = self.build_candidate(text, Speaker::Agent, None, None);
        item.classification = Some(Classification::new(StatementKind::Fact, 0.3));
        item.is_tool_output = true;
        self.insert(item);
    }

    fn add_text(&mut self, text: &str, speaker: Speaker, cut: bool) {
        let mut failures = 0;
        let pieces = split_segments(text, cut);
        let crowd = u32::try_from(pieces.len()).unwrap_or(u32::MAX);
        for piece in pieces {
            match piece {
                Segment::Statement {
                    text,
                    marker: mark,
                    section,
                } => {
                    let text = strip_filler(&text).to_owned();
                    let mut item = self.build_candidate(text, speaker, mark, section);
                    item.statements_in_message = crowd;
                    let user = speaker == Speaker::User;
                    self.lexicon.count(&item.terms, user, self.message_index);
                    let settled = matches!(
                        item.kind(),
                        Some(StatementKind::Decision | StatementKind::Done)
                    );
                    if user
                        && !settled
                        && self.user_messages < 2
                        && self.goal.is_none()
                        && item.terms.len() > 2
                    {
                        self.goal = Some(item.text.clone());
                    }
                    if speaker == Speaker::Agent && is_choice_question(&item.text) {
                        self.open_choice = (self.message_index, item.terms.clone());
                    }
                    self.insert(item);
                }
                Segment::Heading(title) => self.headings.push(title),
                Segment::Output(line) => {
                    if failures < MAX_FAILURES && is_failure(&line) {
                        failures += 1;
                        self.add_failure(&line);
                    }
                }
            }
        }
    }

    fn build_candidate(
        &mut self,
        text: String,
        speaker: Speaker,
        mark: Option<ListMarker>,
        section: Option<Section>,
    ) -> Candidate {
        let words = split_words(&text);
        let hits = find_cues(&words);
        let specifics = find_specifics(&words);
        let ids: Vec<Option<Term>> = words
            .iter()
            .map(|word| self.lexicon.intern(&word.lower))
            .collect();
        let answers = speaker == Speaker::User
            && self.open_choice.0 + 1 == self.message_index
            && ids
                .iter()
                .flatten()
                .any(|id| self.open_choice.1.contains(id));
        let class = classify(&Statement {
            text: &text,
            words: &words,
            cues: &hits,
            speaker,
            marker: mark,
            section,
            specificity: specifics.weight,
            answers_choice: answers,
        });
        if speaker != Speaker::PreviousSummary {
            self.phrases
                .count(&text, &words, &ids, speaker == Speaker::User);
        }
        let pick = |at: &[usize]| sort_dedup(at.iter().filter_map(|&at| ids[at]).collect());
        let has = |cue: Cue| hits.iter().any(|hit| hit.cue == cue);
        Candidate {
            classification: class,
            speaker,
            message_index: self.message_index,
            recency: 0.4 + 0.6 * ratio(self.message_index, self.message_count),
            lead_terms: ids.iter().flatten().take(3).copied().collect(),
            specific_terms: pick(&specifics.positions),
            value_terms: pick(&specifics.value_positions),
            specificity: specifics.weight,
            has_identifier: specifics.has_identifier,
            mentions: 1,
            statements_in_message: 1,
            is_tool_output: false,
            rejected_terms: find_rejected_terms(&words, &hits, &ids),
            effect: Effect {
                reverses: has(Cue::Reversal) || has(Cue::Rejection),
                cancels: has(Cue::Cancellation),
                unblocks: has(Cue::Unblocked),
            },
            is_current: true,
            terms: sort_dedup(ids.iter().flatten().copied().collect()),
            text,
        }
    }

    /// Adds a candidate, or records the repetition of an existing one.
    fn insert(&mut self, item: Candidate) {
        let Effect {
            reverses,
            cancels,
            unblocks,
        } = item.effect;
        if item.classification.is_none() && !(reverses || cancels || unblocks) {
            return;
        }
        let key = item.text.trim_end_matches(['.', '!']).to_lowercase();
        if let Some(&at) = self.by_text.get(&key) {
            let known = &mut self.items[at];
            known.mentions += 1;
            known.recency = known.recency.max(item.recency);
            // A verbatim repetition; a bare "done" may refer to something else.
            if !known.terms.is_empty() {
                return;
            }
        }
        self.by_text.insert(key, self.items.len());
        self.items.push(item);
    }
}

/// Whether an entry makes statements of its own. The offline agent only repeats earlier
/// ones.
fn has_statements(entry: &Entry) -> bool {
    match &entry.body {
        Body::Message(message) => message.model.as_deref() != Some(crate::OFFLINE_MODEL),
        Body::Merged(_) => true,
        _ => false,
    }
}

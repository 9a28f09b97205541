//! Applies later statements to earlier ones: completed tasks, reversed decisions, changed
//! figures.
//!
//! Statements are processed in order, so only a later one can supersede an earlier one.

use std::collections::HashMap;

use super::candidate::Candidate;
use super::classify::{Classification, Speaker, StatementKind};
use super::lexicon::{Lexicon, Term, intersect_terms};

/// Maximum number of earlier items compared per item.
const MAX_RELATED: usize = 48;

/// An index of earlier items by their terms.
#[derive(Default)]
struct TermIndex(HashMap<Term, Vec<usize>>);

impl TermIndex {
    fn insert(&mut self, at: usize, terms: &[Term]) {
        for &term in terms {
            self.0.entry(term).or_default().push(at);
        }
    }

    /// Returns the items that share a term, without duplicates, the latest last.
    fn find_related(&self, terms: &[Term]) -> Vec<usize> {
        let mut found: Vec<usize> = terms
            .iter()
            .filter_map(|term| self.0.get(term))
            .flat_map(|items| items.iter().rev().take(MAX_RELATED).copied())
            .collect();
        found.sort_unstable();
        found.dedup();
        found
    }
}

/// Marks every item that a later one supersedes.
pub(super) fn resolve_superseded(items: &mut [Candidate], lexicon: &Lexicon) {
    let mut open = TermIndex::default();
    let mut held = TermIndex::default();
    // The first message may answer a question of the previous summary.
    let mut requests: Vec<usize> = items
        .iter()
        .rposition(|item| item.message_index == 0 && item.kind() == Some(StatementKind::Task))
        .into_iter()
        .collect();
    let mut asked_at = 0;
    for now in 0..items.len() {
        let kind = items[now].kind();
        if kind == Some(StatementKind::Done) {
            complete_tasks(items, now, &open, &requests, asked_at, lexicon);
        }
        if items[now].effect.cancels || items[now].effect.unblocks {
            resolve_cancelled(items, now, &open, lexicon);
        }
        if matches!(kind, Some(StatementKind::Decision | StatementKind::Fact))
            || items[now].effect.reverses
        {
            drop_reversed(items, now, &held, lexicon);
        }
        match kind {
            Some(
                StatementKind::Task
                | StatementKind::Pending
                | StatementKind::InProgress
                | StatementKind::Blocker,
            ) => {
                open.insert(now, &items[now].terms);
            }
            Some(StatementKind::Decision | StatementKind::Fact) => {
                held.insert(now, &items[now].terms);
            }
            _ => {}
        }
        if items[now].speaker == Speaker::User {
            if items[now].message_index != asked_at {
                requests.clear();
                asked_at = items[now].message_index;
            }
            if items[now]
                .classification
                .is_some_and(|class| class.is_request)
            {
                requests.push(now);
            }
        }
    }
}

/// Marks the tasks that `now` reports as completed.
fn complete_tasks(
    items: &mut [Candidate],
    now: usize,
    open: &TermIndex,
    requests: &[usize],
    asked_at: usize,
    lexicon: &Lexicon,
) {
    let done = items[now].clone();
    let mut matched = false;
    for earlier in open.find_related(&done.terms) {
        let task = &items[earlier];
        if task.is_current
            && task.message_index <= done.message_index
            && task.kind() != Some(StatementKind::Done)
            && matches_task(&done, task, lexicon)
        {
            mark_completed(&mut items[earlier], &done);
            matched = true;
        }
    }
    // A bare "Done." completes the latest request, and so does work related to it.
    let bare = done.terms.len() < 2 && !matched;
    if done.speaker == Speaker::Agent
        && done.message_index > asked_at
        && done.message_index <= asked_at + 6
    {
        for &request in requests {
            let task = &items[request];
            let about = !intersect_terms(&done.terms, &task.terms).is_empty();
            if task.kind() == Some(StatementKind::Task) && (bare || about) {
                mark_completed(&mut items[request], &done);
            }
        }
    }
}

/// Whether the completed work is what the task requested.
fn matches_task(done: &Candidate, task: &Candidate, lexicon: &Lexicon) -> bool {
    let both = intersect_terms(&done.terms, &task.terms);
    let share = lexicon.total_rarity(&both) / lexicon.total_rarity(&task.terms).max(f64::EPSILON);
    let enough = both.len() > 1 || task.terms.len() == 1;
    // A different number, ticket or path is a different task.
    let other = task
        .specific_terms
        .iter()
        .any(|term| !done.terms.contains(term))
        && done
            .specific_terms
            .iter()
            .any(|term| !task.terms.contains(term));
    enough && share >= if other { 0.75 } else { 0.5 }
}

fn mark_completed(task: &mut Candidate, done: &Candidate) {
    task.recency = task.recency.max(done.recency);
    task.classification = Some(Classification::new(StatementKind::Done, 0.9));
}

/// Removes cancelled tasks and resolved blockers.
fn resolve_cancelled(items: &mut [Candidate], now: usize, open: &TermIndex, lexicon: &Lexicon) {
    let by = items[now].clone();
    for earlier in open.find_related(&by.terms) {
        let item = &items[earlier];
        let fits = match item.kind() {
            Some(StatementKind::Blocker) => by.effect.unblocks,
            Some(StatementKind::Task | StatementKind::Pending | StatementKind::InProgress) => {
                by.effect.cancels
            }
            _ => false,
        };
        let both = intersect_terms(&by.terms, &item.terms);
        let share =
            lexicon.total_rarity(&both) / lexicon.total_rarity(&item.terms).max(f64::EPSILON);
        if fits && item.message_index < by.message_index && both.len() > 1 && share >= 0.3 {
            if by.effect.cancels {
                items[earlier].is_current = false;
            } else {
                mark_completed(&mut items[earlier], &by);
            }
        }
    }
}

/// Removes decisions and facts that `now` replaces.
fn drop_reversed(items: &mut [Candidate], now: usize, held: &TermIndex, lexicon: &Lexicon) {
    let by = items[now].clone();
    for earlier in held.find_related(&by.terms) {
        let item = &items[earlier];
        // Statements of one message, or of the previous summary, do not replace each other.
        if !item.is_current
            || item.message_index >= by.message_index
            || item.message_index == 0 && by.message_index == 0
        {
            continue;
        }
        let gone = if by.rejected_terms.is_empty() {
            by.effect.reverses
                && by.classification.is_some()
                && has_same_subject(&by, item, lexicon, 0.5)
                || is_changed_value(&by, item)
        } else {
            is_rejected_by(&by, item, lexicon) || is_changed_value(&by, item)
        };
        if gone {
            items[earlier].is_current = false;
        }
    }
}

/// Whether "X instead of Y" rejects an earlier "let's use Y".
fn is_rejected_by(by: &Candidate, item: &Candidate, lexicon: &Lexicon) -> bool {
    let named = intersect_terms(&by.rejected_terms, &item.terms);
    let share =
        lexicon.total_rarity(&named) / lexicon.total_rarity(&by.rejected_terms).max(f64::EPSILON);
    let about = named
        .iter()
        .any(|term| item.lead_terms.iter().take(2).any(|lead| lead == term));
    let common = intersect_terms(&by.terms, &item.terms).len() > named.len();
    by.kind() == Some(StatementKind::Decision)
        && item.kind() == by.kind()
        && share >= 0.5
        && (about || common)
}

fn has_same_subject(by: &Candidate, item: &Candidate, lexicon: &Lexicon, least: f64) -> bool {
    if by.kind() != item.kind() {
        return false;
    }
    let both = intersect_terms(&by.terms, &item.terms);
    let smaller = lexicon
        .total_rarity(&by.terms)
        .min(lexicon.total_rarity(&item.terms));
    both.len() > 1 && lexicon.total_rarity(&both) / smaller.max(f64::EPSILON) >= least
}

/// Whether it is the same sentence with a different figure.
fn is_changed_value(by: &Candidate, item: &Candidate) -> bool {
    if by.kind() != item.kind() || by.is_tool_output || item.is_tool_output {
        return false;
    }
    let subject = |of: &Candidate| -> Vec<Term> {
        let terms = of
            .terms
            .iter()
            .filter(|term| !of.value_terms.contains(term));
        terms.copied().collect()
    };
    let (ours, theirs) = (subject(by), subject(item));
    let both = intersect_terms(&ours, &theirs).len();
    let all = ours.len() + theirs.len() - both;
    let values = intersect_terms(&by.value_terms, &item.value_terms).len();
    // Import and export limits may both be valid, so only one side may have extra terms.
    let within = both == ours.len() || both == theirs.len();
    both > 1
        && within
        && both * 3 >= all * 2
        && by.value_terms.len() == item.value_terms.len()
        && by.value_terms.len() == values + 1
}

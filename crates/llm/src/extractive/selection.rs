//! Selects the highest-scoring candidates that fit, without duplicates.

use std::collections::HashMap;

use throughline_model::{Note, Summary};

use crate::SummaryRequest;

use super::candidate::Candidate;
use super::classify::{Speaker, StatementKind};
use super::collector::CandidateCollector;
use super::lexicon::{Lexicon, Term, intersect_terms, split_words};

/// Scores a candidate.
fn score(item: &Candidate, kind: StatementKind, strength: f64, lexicon: &Lexicon) -> f64 {
    let (base, freshness) = match kind {
        StatementKind::Decision => (3.0, 0.6),
        StatementKind::Task => (2.8, 0.6),
        StatementKind::Blocker => (2.6, 1.0),
        StatementKind::Pending => (2.2, 1.0),
        StatementKind::InProgress => (1.9, 2.0),
        StatementKind::Done => (1.5, 1.0),
        StatementKind::Fact if item.is_tool_output => (0.6, 1.6),
        StatementKind::Fact => (1.7, 0.6),
    };
    let voice = match item.speaker {
        Speaker::User => 0.3,
        // A long answer is mostly explanation, the more so the less it uses the user's
        // terms.
        Speaker::Agent => {
            let strange = 1.0 - lexicon.grounded_share(&item.terms);
            -0.8 * strange - 0.15 * f64::from(item.statements_in_message).ln()
        }
        Speaker::System => -0.4,
        Speaker::PreviousSummary => 0.0,
    };
    // A request that was not taken up again loses weight.
    let faded = if item.classification.is_some_and(|class| class.is_request) && item.recency < 0.9 {
        0.7
    } else {
        1.0
    };
    let length = f64::from(u32::try_from(item.text.len()).unwrap_or(u32::MAX));
    base * (0.4 + 0.6 * strength) * faded
        + 0.7 * item.specificity.min(3.0)
        + 0.8 * lexicon.centrality(&item.terms)
        + freshness * item.recency
        + 0.3 * f64::from(item.mentions).ln()
        + voice
        - length / 500.0
}

/// Maximum share of the space for one kind while other kinds need some, in percent.
fn max_share(kind: StatementKind) -> usize {
    match kind {
        StatementKind::Decision | StatementKind::Fact => 45,
        StatementKind::Task => 35,
        StatementKind::Blocker | StatementKind::Pending => 20,
        StatementKind::InProgress => 12,
        StatementKind::Done => 22,
    }
}

/// Minimum share of the space for facts, if there are any, in percent.
const MIN_FACTS_SHARE: usize = 25;

/// The terms that the summary already covers.
#[derive(Default)]
struct CoveredTerms {
    /// Terms of the background or the first topic.
    opening: Vec<Term>,
    items: Vec<Vec<Term>>,
    by_term: HashMap<Term, Vec<usize>>,
}

impl CoveredTerms {
    fn insert(&mut self, terms: Vec<Term>) {
        for &term in &terms {
            self.by_term.entry(term).or_default().push(self.items.len());
        }
        self.items.push(terms);
    }

    /// Whether the item adds nothing new. Items with new specifics are never covered.
    fn covers(&self, item: &Candidate, lexicon: &Lexicon) -> bool {
        if item.kind() == Some(StatementKind::Fact) && is_duplicate(item, &self.opening) {
            return true;
        }
        let mut rare = item.terms.clone();
        rare.sort_by(|&a, &b| {
            lexicon
                .rarity(b)
                .total_cmp(&lexicon.rarity(a))
                .then(a.cmp(&b))
        });
        // Two texts that share most terms share one of these.
        rare.truncate(item.terms.len() * 2 / 5 + 1);
        let near = rare
            .iter()
            .filter_map(|term| self.by_term.get(term))
            .flatten();
        near.copied().any(|at| is_duplicate(item, &self.items[at]))
    }
}

/// Whether these terms include most of an item and everything specific in it.
fn is_duplicate(item: &Candidate, terms: &[Term]) -> bool {
    let both = intersect_terms(&item.terms, terms).len();
    let all = item.terms.len() + terms.len() - both;
    let mostly = both * 20 >= all * 13 || both * 20 >= item.terms.len() * 17;
    mostly
        && !terms.is_empty()
        && intersect_terms(&item.specific_terms, terms).len() == item.specific_terms.len()
}

/// The selected items by kind, oldest first.
pub(super) struct Selection {
    lists: HashMap<StatementKind, Vec<String>>,
}

impl Selection {
    /// Adds the lists to a summary.
    pub(super) fn into_summary(mut self, summary: &mut Summary) {
        let mut take = |kind| self.lists.remove(&kind).unwrap_or_default();
        summary.decisions = take(StatementKind::Decision);
        summary.open_tasks = take(StatementKind::Task);
        summary.blockers = take(StatementKind::Blocker);
        summary.pending = take(StatementKind::Pending);
        summary.in_progress = take(StatementKind::InProgress);
        summary.completed = take(StatementKind::Done);
        summary.facts = take(StatementKind::Fact);
    }
}

/// Returns the size of a list item in bytes.
pub(super) fn item_cost(text: &str) -> usize {
    text.len() + 3
}

/// Selects items for `room` bytes. Pins and decisions are always included.
pub(super) fn select_items(
    found: &mut CandidateCollector,
    request: &SummaryRequest<'_>,
    opening: &str,
    room: usize,
) -> Selection {
    let mut covered = CoveredTerms {
        opening: lookup_terms(found, opening),
        ..CoveredTerms::default()
    };
    let mut lists: HashMap<StatementKind, Vec<String>> = HashMap::new();
    let mut left = room;
    for (kind, noted) in [
        (StatementKind::Fact, request.pins),
        (StatementKind::Decision, request.decisions),
    ] {
        for Note { text, .. } in noted {
            covered.insert(lookup_terms(found, text));
            let list = lists.entry(kind).or_default();
            if !list.contains(text) {
                left = left.saturating_sub(item_cost(text));
                list.push(text.clone());
            }
        }
    }
    for index in rank_and_select(found, &mut covered, left) {
        let item = &found.items[index];
        if let Some(kind) = item.kind() {
            let list = lists.entry(kind).or_default();
            if !list.contains(&item.text) {
                list.push(item.text.clone());
            }
        }
    }
    Selection { lists }
}

fn lookup_terms(found: &mut CandidateCollector, text: &str) -> Vec<Term> {
    let mut terms: Vec<Term> = split_words(text)
        .iter()
        .filter_map(|word| found.lexicon.intern(&word.lower))
        .collect();
    terms.sort_unstable();
    terms.dedup();
    terms
}

/// Whether an item is a digression: a fact from a long answer whose words occur nowhere
/// else. It is left out even if there is space, because it could not be distinguished
/// later from facts that matter.
fn is_digression(item: &Candidate, kind: StatementKind, lexicon: &Lexicon) -> bool {
    item.speaker == Speaker::Agent
        && matches!(kind, StatementKind::Fact | StatementKind::Task)
        && item.statements_in_message > 3
        && !item.has_identifier
        && lexicon.grounded_share(&item.terms) < 0.34
}

/// Returns the selected items in the order of the conversation.
fn rank_and_select(
    found: &CandidateCollector,
    covered: &mut CoveredTerms,
    room: usize,
) -> Vec<usize> {
    let mut ranked: Vec<(f64, usize, StatementKind)> = Vec::new();
    for (index, item) in found.items.iter().enumerate() {
        let Some(class) = item.classification else {
            continue;
        };
        // Statements without a subject or specifics are not useful later.
        let least = if class.strength > 0.0 { 2 } else { 3 };
        let bare = item.terms.len() < least && item.specificity <= 0.0;
        let empty = (bare || item.terms.is_empty()) && item.speaker != Speaker::PreviousSummary;
        // What an agent had in progress is over some messages later.
        let over = class.kind == StatementKind::InProgress
            && item.recency < 0.6
            && item.speaker == Speaker::Agent;
        if item.is_current && !empty && !over && !is_digression(item, class.kind, &found.lexicon) {
            let weight = score(item, class.kind, class.strength, &found.lexicon);
            ranked.push((weight, index, class.kind));
        }
    }
    ranked.sort_by(|a, b| b.0.total_cmp(&a.0).then(b.1.cmp(&a.1)));
    // Far more than can fit, but few enough to compare.
    ranked.truncate(200 + room / 8);

    let mut chosen = Vec::new();
    let mut spent: HashMap<StatementKind, usize> = HashMap::new();
    let mut left = room;
    let mut later = Vec::new();
    for (_, index, kind) in ranked {
        let item = &found.items[index];
        let cost = item_cost(&item.text);
        if covered.covers(item, &found.lexicon) {
            continue;
        }
        let firm: usize = spent
            .iter()
            .filter(|(kind, _)| **kind != StatementKind::Fact)
            .map(|(_, spent)| spent)
            .sum();
        let crowds_out =
            kind != StatementKind::Fact && firm + cost > room * (100 - MIN_FACTS_SHARE) / 100;
        let spent = spent.entry(kind).or_default();
        if crowds_out || *spent + cost > room * max_share(kind) / 100 {
            later.push(index);
        } else if cost <= left {
            *spent += cost;
            left -= cost;
            covered.insert(item.terms.clone());
            chosen.push(index);
        }
    }
    for index in later {
        let item = &found.items[index];
        let cost = item_cost(&item.text);
        if cost <= left && !covered.covers(item, &found.lexicon) {
            left -= cost;
            covered.insert(item.terms.clone());
            chosen.push(index);
        }
    }
    chosen.sort_unstable();
    chosen
}

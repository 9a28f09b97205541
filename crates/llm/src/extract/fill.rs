//! Which items go into the summary: the weightiest that fit, each thing once.

use std::collections::HashMap;

use throughline_model::{Noted, Summary};

use crate::Brief;

use super::classify::{Kind, Speaker};
use super::gather::Gathered;
use super::item::Item;
use super::words::{Lexicon, Term, shared, words};

/// What an item weighs.
fn weight(item: &Item, kind: Kind, strength: f64, lexicon: &Lexicon) -> f64 {
    let (base, freshness) = match kind {
        Kind::Decision => (3.0, 0.6),
        Kind::Task => (2.8, 0.6),
        Kind::Blocker => (2.6, 1.0),
        Kind::Next => (2.2, 1.0),
        Kind::Progress => (1.9, 2.0),
        Kind::Done => (1.5, 1.0),
        Kind::Fact if item.output => (0.6, 1.6),
        Kind::Fact => (1.7, 0.6),
    };
    let voice = match item.speaker {
        Speaker::User => 0.3,
        // A long answer is mostly explanation, the more so the less of it is about what
        // the person talks about.
        Speaker::Agent => {
            let strange = 1.0 - lexicon.grounded(&item.terms);
            -0.8 * strange - 0.15 * f64::from(item.crowd).ln()
        }
        Speaker::System => -0.4,
        Speaker::Before => 0.0,
    };
    // A request nobody took up again fades.
    let faded = if item.class.is_some_and(|class| class.request) && item.fresh < 0.9 {
        0.7
    } else {
        1.0
    };
    let length = f64::from(u32::try_from(item.text.len()).unwrap_or(u32::MAX));
    base * (0.4 + 0.6 * strength) * faded
        + 0.7 * item.weight.min(3.0)
        + 0.8 * lexicon.centrality(&item.terms)
        + freshness * item.fresh
        + 0.3 * f64::from(item.mentions).ln()
        + voice
        - length / 500.0
}

/// The largest share of the room one kind may take while others want some, in percent.
fn share(kind: Kind) -> usize {
    match kind {
        Kind::Decision | Kind::Fact => 45,
        Kind::Task => 35,
        Kind::Blocker | Kind::Next => 20,
        Kind::Progress => 12,
        Kind::Done => 22,
    }
}

/// The share of the room that is left to facts while there are any, in percent.
const FACTS: usize = 25;

/// What a summary already says.
#[derive(Default)]
struct Said {
    /// How it all began: told by the background or the first topic.
    opening: Vec<Term>,
    items: Vec<Vec<Term>>,
    by_term: HashMap<Term, Vec<usize>>,
}

impl Said {
    fn insert(&mut self, terms: Vec<Term>) {
        for &term in &terms {
            self.by_term.entry(term).or_default().push(self.items.len());
        }
        self.items.push(terms);
    }

    /// Whether this says nothing that is not said. What is specific is never lost.
    fn says(&self, item: &Item, lexicon: &Lexicon) -> bool {
        if item.kind() == Some(Kind::Fact) && alike(item, &self.opening) {
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
        near.copied().any(|at| alike(item, &self.items[at]))
    }
}

/// Whether most of an item, and all that is specific in it, is among these terms.
fn alike(item: &Item, terms: &[Term]) -> bool {
    let both = shared(&item.terms, terms).len();
    let all = item.terms.len() + terms.len() - both;
    let mostly = both * 20 >= all * 13 || both * 20 >= item.terms.len() * 17;
    mostly && !terms.is_empty() && shared(&item.specific, terms).len() == item.specific.len()
}

/// What is chosen, by kind, oldest first.
pub(super) struct Chosen {
    lists: HashMap<Kind, Vec<String>>,
}

impl Chosen {
    /// Puts the lists into a summary.
    pub(super) fn into_summary(mut self, summary: &mut Summary) {
        let mut take = |kind| self.lists.remove(&kind).unwrap_or_default();
        summary.decisions = take(Kind::Decision);
        summary.open_tasks = take(Kind::Task);
        summary.blockers = take(Kind::Blocker);
        summary.pending = take(Kind::Next);
        summary.in_progress = take(Kind::Progress);
        summary.completed = take(Kind::Done);
        summary.facts = take(Kind::Fact);
    }
}

/// What it costs to say something in a list.
pub(super) fn cost(text: &str) -> usize {
    text.len() + 3
}

/// Chooses items for `room` bytes; what is noted goes in whatever it takes.
pub(super) fn fill(found: &mut Gathered, brief: &Brief<'_>, opening: &str, room: usize) -> Chosen {
    let mut said = Said {
        opening: terms(found, opening),
        ..Said::default()
    };
    let mut lists: HashMap<Kind, Vec<String>> = HashMap::new();
    let mut left = room;
    for (kind, noted) in [(Kind::Fact, brief.pins), (Kind::Decision, brief.decisions)] {
        for Noted { text, .. } in noted {
            said.insert(terms(found, text));
            let list = lists.entry(kind).or_default();
            if !list.contains(text) {
                left = left.saturating_sub(cost(text));
                list.push(text.clone());
            }
        }
    }
    for index in choose(found, &mut said, left) {
        let item = &found.items[index];
        if let Some(kind) = item.kind() {
            let list = lists.entry(kind).or_default();
            if !list.contains(&item.text) {
                list.push(item.text.clone());
            }
        }
    }
    Chosen { lists }
}

fn terms(found: &mut Gathered, text: &str) -> Vec<Term> {
    let mut terms: Vec<Term> = words(text)
        .iter()
        .filter_map(|word| found.lexicon.term(&word.lower))
        .collect();
    terms.sort_unstable();
    terms.dedup();
    terms
}

/// General talk: a fact from a long answer, made of words that come up nowhere else. It
/// is left out even where there is room, because later it could not be told from facts
/// that matter.
fn aside(item: &Item, kind: Kind, lexicon: &Lexicon) -> bool {
    item.speaker == Speaker::Agent
        && matches!(kind, Kind::Fact | Kind::Task)
        && item.crowd > 3
        && !item.codes
        && lexicon.grounded(&item.terms) < 0.34
}

/// The items to keep, in the order they were said.
fn choose(found: &Gathered, said: &mut Said, room: usize) -> Vec<usize> {
    let mut ranked: Vec<(f64, usize, Kind)> = Vec::new();
    for (index, item) in found.items.iter().enumerate() {
        let Some(class) = item.class else { continue };
        // What is neither about anything nor specific says nothing later.
        let least = if class.strength > 0.0 { 2 } else { 3 };
        let bare = item.terms.len() < least && item.weight <= 0.0;
        let empty = (bare || item.terms.is_empty()) && item.speaker != Speaker::Before;
        // What an agent is at was over some messages later.
        let over =
            class.kind == Kind::Progress && item.fresh < 0.6 && item.speaker == Speaker::Agent;
        if item.alive && !empty && !over && !aside(item, class.kind, &found.lexicon) {
            let weight = weight(item, class.kind, class.strength, &found.lexicon);
            ranked.push((weight, index, class.kind));
        }
    }
    ranked.sort_by(|a, b| b.0.total_cmp(&a.0).then(b.1.cmp(&a.1)));
    // Far more than can fit, and few enough to compare.
    ranked.truncate(200 + room / 8);

    let mut chosen = Vec::new();
    let mut spent: HashMap<Kind, usize> = HashMap::new();
    let mut left = room;
    let mut later = Vec::new();
    for (_, index, kind) in ranked {
        let item = &found.items[index];
        let cost = cost(&item.text);
        if said.says(item, &found.lexicon) {
            continue;
        }
        let firm: usize = spent
            .iter()
            .filter(|(kind, _)| **kind != Kind::Fact)
            .map(|(_, spent)| spent)
            .sum();
        let crowds_out = kind != Kind::Fact && firm + cost > room * (100 - FACTS) / 100;
        let spent = spent.entry(kind).or_default();
        if crowds_out || *spent + cost > room * share(kind) / 100 {
            later.push(index);
        } else if cost <= left {
            *spent += cost;
            left -= cost;
            said.insert(item.terms.clone());
            chosen.push(index);
        }
    }
    for index in later {
        let item = &found.items[index];
        let cost = cost(&item.text);
        if cost <= left && !said.says(item, &found.lexicon) {
            left -= cost;
            said.insert(item.terms.clone());
            chosen.push(index);
        }
    }
    chosen.sort_unstable();
    chosen
}

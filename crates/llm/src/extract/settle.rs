//! What became of things: tasks that were done, decisions that were reversed, figures
//! that changed.
//!
//! Items are gone through in the order they were said, so only a later one can settle
//! an earlier one.

use std::collections::HashMap;

use super::classify::{Class, Kind, Speaker};
use super::item::Item;
use super::words::{Lexicon, Term, shared};

/// How many earlier items with a term in common are looked at.
const NEAR: usize = 48;

/// Earlier items by their terms.
#[derive(Default)]
struct Index(HashMap<Term, Vec<usize>>);

impl Index {
    fn insert(&mut self, at: usize, terms: &[Term]) {
        for &term in terms {
            self.0.entry(term).or_default().push(at);
        }
    }

    /// Items that share a term, each once, the latest last.
    fn near(&self, terms: &[Term]) -> Vec<usize> {
        let mut found: Vec<usize> = terms
            .iter()
            .filter_map(|term| self.0.get(term))
            .flat_map(|items| items.iter().rev().take(NEAR).copied())
            .collect();
        found.sort_unstable();
        found.dedup();
        found
    }
}

/// Settles every item that a later one settles.
pub(super) fn settle(items: &mut [Item], lexicon: &Lexicon) {
    let mut open = Index::default();
    let mut held = Index::default();
    // An answer may come first whose question is in the previous summary.
    let mut requests: Vec<usize> = items
        .iter()
        .rposition(|item| item.at == 0 && item.kind() == Some(Kind::Task))
        .into_iter()
        .collect();
    let mut asked_at = 0;
    for now in 0..items.len() {
        let kind = items[now].kind();
        if kind == Some(Kind::Done) {
            finish(items, now, &open, &requests, asked_at, lexicon);
        }
        if items[now].effect.cancels || items[now].effect.unblocks {
            lift(items, now, &open, lexicon);
        }
        if matches!(kind, Some(Kind::Decision | Kind::Fact)) || items[now].effect.reverses {
            reverse(items, now, &held, lexicon);
        }
        match kind {
            Some(Kind::Task | Kind::Next | Kind::Progress | Kind::Blocker) => {
                open.insert(now, &items[now].terms);
            }
            Some(Kind::Decision | Kind::Fact) => held.insert(now, &items[now].terms),
            _ => {}
        }
        if items[now].speaker == Speaker::User {
            if items[now].at != asked_at {
                requests.clear();
                asked_at = items[now].at;
            }
            if items[now].class.is_some_and(|class| class.request) {
                requests.push(now);
            }
        }
    }
}

/// Moves the tasks that `now` says are done.
fn finish(
    items: &mut [Item],
    now: usize,
    open: &Index,
    requests: &[usize],
    asked_at: usize,
    lexicon: &Lexicon,
) {
    let done = items[now].clone();
    let mut matched = false;
    for earlier in open.near(&done.terms) {
        let task = &items[earlier];
        if task.alive
            && task.at <= done.at
            && task.kind() != Some(Kind::Done)
            && covers(&done, task, lexicon)
        {
            complete(&mut items[earlier], &done);
            matched = true;
        }
    }
    // "Done." says what was just asked for is, and so does doing something about it.
    let bare = done.terms.len() < 2 && !matched;
    if done.speaker == Speaker::Agent && done.at > asked_at && done.at <= asked_at + 6 {
        for &request in requests {
            let task = &items[request];
            let about = !shared(&done.terms, &task.terms).is_empty();
            if task.kind() == Some(Kind::Task) && (bare || about) {
                complete(&mut items[request], &done);
            }
        }
    }
}

/// Whether what was done is what the task asked for.
fn covers(done: &Item, task: &Item, lexicon: &Lexicon) -> bool {
    let both = shared(&done.terms, &task.terms);
    let share = lexicon.mass(&both) / lexicon.mass(&task.terms).max(f64::EPSILON);
    let enough = both.len() > 1 || task.terms.len() == 1;
    // Another number, ticket or path is another task.
    let other = task.specific.iter().any(|term| !done.terms.contains(term))
        && done.specific.iter().any(|term| !task.terms.contains(term));
    enough && share >= if other { 0.75 } else { 0.5 }
}

fn complete(task: &mut Item, done: &Item) {
    task.fresh = task.fresh.max(done.fresh);
    task.class = Some(Class::of(Kind::Done, 0.9));
}

/// Takes away the tasks that are not wanted and the blockers that are gone.
fn lift(items: &mut [Item], now: usize, open: &Index, lexicon: &Lexicon) {
    let by = items[now].clone();
    for earlier in open.near(&by.terms) {
        let item = &items[earlier];
        let fits = match item.kind() {
            Some(Kind::Blocker) => by.effect.unblocks,
            Some(Kind::Task | Kind::Next | Kind::Progress) => by.effect.cancels,
            _ => false,
        };
        let both = shared(&by.terms, &item.terms);
        let share = lexicon.mass(&both) / lexicon.mass(&item.terms).max(f64::EPSILON);
        if fits && item.at < by.at && both.len() > 1 && share >= 0.3 {
            if by.effect.cancels {
                items[earlier].alive = false;
            } else {
                complete(&mut items[earlier], &by);
            }
        }
    }
}

/// Takes away the decisions and facts that `now` replaces.
fn reverse(items: &mut [Item], now: usize, held: &Index, lexicon: &Lexicon) {
    let by = items[now].clone();
    for earlier in held.near(&by.terms) {
        let item = &items[earlier];
        // What is said in one message, or was kept together, holds together.
        if !item.alive || item.at >= by.at || item.at == 0 && by.at == 0 {
            continue;
        }
        let gone = if by.rejects.is_empty() {
            by.effect.reverses && by.class.is_some() && same_subject(&by, item, lexicon, 0.5)
                || changed(&by, item)
        } else {
            rejects(&by, item, lexicon) || changed(&by, item)
        };
        if gone {
            items[earlier].alive = false;
        }
    }
}

/// "X instead of Y" against an earlier "let's use Y".
fn rejects(by: &Item, item: &Item, lexicon: &Lexicon) -> bool {
    let named = shared(&by.rejects, &item.terms);
    let share = lexicon.mass(&named) / lexicon.mass(&by.rejects).max(f64::EPSILON);
    let about = named
        .iter()
        .any(|term| item.lead.iter().take(2).any(|lead| lead == term));
    let common = shared(&by.terms, &item.terms).len() > named.len();
    by.kind() == Some(Kind::Decision)
        && item.kind() == by.kind()
        && share >= 0.5
        && (about || common)
}

fn same_subject(by: &Item, item: &Item, lexicon: &Lexicon, least: f64) -> bool {
    if by.kind() != item.kind() {
        return false;
    }
    let both = shared(&by.terms, &item.terms);
    let smaller = lexicon.mass(&by.terms).min(lexicon.mass(&item.terms));
    both.len() > 1 && lexicon.mass(&both) / smaller.max(f64::EPSILON) >= least
}

/// The same sentence with one other figure in it.
fn changed(by: &Item, item: &Item) -> bool {
    if by.kind() != item.kind() || by.output || item.output {
        return false;
    }
    let subject = |of: &Item| -> Vec<Term> {
        let terms = of.terms.iter().filter(|term| !of.values.contains(term));
        terms.copied().collect()
    };
    let (ours, theirs) = (subject(by), subject(item));
    let both = shared(&ours, &theirs).len();
    let all = ours.len() + theirs.len() - both;
    let values = shared(&by.values, &item.values).len();
    // Import and export limits may both hold: only what one says more is forgiven.
    let within = both == ours.len() || both == theirs.len();
    both > 1
        && within
        && both * 3 >= all * 2
        && by.values.len() == item.values.len()
        && by.values.len() == values + 1
}

//! The latest messages, as they were said.
//!
//! Whole turns, the newest first. Where not even the newest turn fits, its query and
//! its newest steps: a model in the middle of a long turn must see where it is.

use throughline_model::Role;

use crate::policy::Retention;
use crate::request::Omission;
use crate::safe_cuts::safe_cuts;
use crate::sendable_blocks::has_visible_content;
use crate::turn::{Step, Turn, saturating_sum};
use crate::{CountedEntry, Encoding, Policy};

/// What the first message says where the user did not begin.
pub(crate) const PLACEHOLDER: &str = "[the conversation was already under way]";

/// The entries that a policy keeps at all, and what it does not.
pub(crate) fn select_by_policy<'a>(
    entries: &'a [CountedEntry],
    policy: &Policy,
) -> (&'a [CountedEntry], Option<Omission>) {
    let Retention::Messages { count, .. } = policy.keep else {
        return (entries, None);
    };
    let from = find_last_messages_start(entries, count);
    if from == 0 {
        return (entries, None);
    }
    let dropped = &entries[..from];
    let messages = dropped
        .iter()
        .filter(|one| has_visible_content(&one.entry))
        .count();
    let note = (messages > 0).then(|| {
        Omission::new(
            format!("{messages} earlier messages"),
            format!("policy keeps last {count} messages"),
        )
        .with_tokens(saturating_sum(dropped.iter().map(|counted| counted.tokens)))
        .with_entries(messages)
    });
    (&entries[from..], note)
}

/// Where the last messages begin; earlier where a call would be separated from its result.
pub(crate) fn find_last_messages_start(entries: &[CountedEntry], count: usize) -> usize {
    let mut left = count;
    let mut from = entries.len();
    while left > 0 && from > 0 {
        from -= 1;
        left -= usize::from(has_visible_content(&entries[from].entry));
    }
    let safe = safe_cuts(entries);
    while from > 0 && !safe[from] {
        from -= 1;
    }
    from
}

/// The turns that fit, and what does not.
pub(crate) struct FittedTurns<'a> {
    pub(crate) turns: Vec<Turn<'a>>,
    pub(crate) left_out: Vec<Omission>,
    /// With the placeholder, where one is needed.
    pub(crate) tokens: u64,
}

/// Keeps the newest turns that fit.
pub(crate) fn fit_turns(
    mut turns: Vec<Turn<'_>>,
    room: u64,
    encoding: Encoding,
) -> FittedTurns<'_> {
    let opening = |role: Option<Role>| match role {
        None | Some(Role::User) => 0,
        _ => crate::token_cost::MESSAGE_TOKENS + encoding.count(PLACEHOLDER),
    };
    let (mut from, mut tokens, mut sum) = (turns.len(), 0, 0_u64);
    for (index, turn) in turns.iter().enumerate().rev() {
        sum = sum.saturating_add(turn.tokens());
        let whole = sum.saturating_add(opening(turn.first_role()));
        if whole <= room {
            (from, tokens) = (index, whole);
        } else if sum > room {
            break;
        }
    }
    let mut kept = turns.split_off(from);
    let mut left_out = Vec::new();
    if kept.is_empty()
        && let Some(newest) = turns.pop()
    {
        let all = newest.steps.len();
        let (steps, cost) = fit_newest_steps(newest, room, opening);
        tokens = cost;
        if steps.len() < all {
            left_out.push(Omission::new(
                format!("{} of {all} steps of the newest turn", all - steps.len()),
                "no room",
            ));
        }
        if !steps.is_empty() {
            kept.push(Turn { steps });
        }
    }
    if !turns.is_empty() {
        let seqs: std::collections::HashSet<_> = turns
            .iter()
            .flat_map(|turn| turn.steps.iter().flat_map(Step::seqs))
            .collect();
        left_out.push(
            Omission::new(format!("{} earlier turns", turns.len()), "no room")
                .with_tokens(saturating_sum(turns.iter().map(Turn::tokens)))
                .with_entries(seqs.len()),
        );
    }
    FittedTurns {
        turns: kept,
        left_out,
        tokens,
    }
}

/// The query of a turn and the newest of its other steps, as far as they fit.
fn fit_newest_steps<'a>(
    turn: Turn<'a>,
    room: u64,
    opening: impl Fn(Option<Role>) -> u64,
) -> (Vec<Step<'a>>, u64) {
    let mut steps = turn.steps;
    let is_query = steps.first().and_then(Step::first_role) == Some(Role::User);
    let query = if is_query && steps[0].tokens() <= room {
        Some(steps.remove(0))
    } else {
        None
    };
    let base = query.as_ref().map_or(0, Step::tokens);
    let (mut from, mut tokens, mut sum) = (steps.len(), base, base);
    for (index, step) in steps.iter().enumerate().rev() {
        sum = sum.saturating_add(step.tokens());
        let first = if query.is_some() {
            0
        } else {
            opening(step.first_role())
        };
        if sum.saturating_add(first) <= room {
            (from, tokens) = (index, sum + first);
        } else if sum > room {
            break;
        }
    }
    let mut kept: Vec<Step<'a>> = query.into_iter().collect();
    kept.extend(steps.drain(from..));
    (kept, tokens)
}

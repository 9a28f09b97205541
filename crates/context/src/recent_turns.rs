//! Selects the latest messages to send verbatim.
//!
//! Whole turns, the newest first. If not even the newest turn fits, its query and its
//! newest steps are sent: in the middle of a long turn, a model must see its latest
//! steps.

use throughline_model::Role;

use crate::policy::Retention;
use crate::request::Omission;
use crate::safe_cuts::safe_cuts;
use crate::sendable_blocks::has_visible_content;
use crate::turn::{Step, Turn, saturating_sum};
use crate::{CountedEntry, Encoding, Policy};

/// The first message, if the conversation does not start with the user.
pub(crate) const PLACEHOLDER: &str = "[the conversation was already under way]";

/// Selects the entries that the policy keeps, and reports the others.
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

/// The index of the last `count` messages; earlier if a call would be separated from
/// its result.
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

/// The turns that fit, and what was left out.
pub(crate) struct FittedTurns<'a> {
    pub(crate) turns: Vec<Turn<'a>>,
    pub(crate) left_out: Vec<Omission>,
    /// Including the placeholder, if one is needed.
    pub(crate) tokens: u64,
}

/// Selects the newest turns that fit.
pub(crate) fn fit_turns(
    mut turns: Vec<Turn<'_>>,
    budget: u64,
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
        if whole <= budget {
            (from, tokens) = (index, whole);
        } else if sum > budget {
            break;
        }
    }
    let mut kept = turns.split_off(from);
    let mut left_out = Vec::new();
    if kept.is_empty()
        && let Some(newest) = turns.pop()
    {
        let all = newest.steps.len();
        let (steps, cost) = fit_newest_steps(newest, budget, opening);
        tokens = cost;
        if steps.len() < all {
            left_out.push(Omission::new(
                format!("{} of {all} steps of the newest turn", all - steps.len()),
                "over the budget",
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
            Omission::new(format!("{} earlier turns", turns.len()), "over the budget")
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

/// Selects the query of a turn and the newest of its other steps that fit.
fn fit_newest_steps<'a>(
    turn: Turn<'a>,
    budget: u64,
    opening: impl Fn(Option<Role>) -> u64,
) -> (Vec<Step<'a>>, u64) {
    let mut steps = turn.steps;
    let is_query = steps.first().and_then(Step::first_role) == Some(Role::User);
    let query = if is_query && steps[0].tokens() <= budget {
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
        if sum.saturating_add(first) <= budget {
            (from, tokens) = (index, sum + first);
        } else if sum > budget {
            break;
        }
    }
    let mut kept: Vec<Step<'a>> = query.into_iter().collect();
    kept.extend(steps.drain(from..));
    (kept, tokens)
}

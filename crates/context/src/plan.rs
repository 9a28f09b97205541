//! Whether to compact now, and how far.
//!
//! Invariant: a plan never separates a call from its result, covers something that was
//! said, and leaves a request of at most half the threshold where the log allows it, so
//! that the next turn does not compact again. On a log to which nothing was said since
//! its last checkpoint there is no plan.

use throughline_model::{Record, Role, Seq};

use crate::elide::elided_tokens;
use crate::pairs::safe_cuts;
use crate::pieces::says_something;
use crate::policy::{Keep, share_of};
use crate::recent::from_last_messages;
use crate::said::is_query;
use crate::turn::total;
use crate::{Counted, Policy};

/// How much room a summary is given after a compaction, at most.
const SUMMARY: u64 = 2_000;
/// How much of a window stays where a policy that keeps everything is made to compact.
const DEFAULT_TAIL: u8 = 30;

/// What to compact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The last entry to summarize.
    pub covers: Seq,
    /// What the uncovered entries cost before.
    pub tokens_before: u64,
    /// What those that stay cost.
    pub tokens_kept: u64,
    /// How many messages are newly covered.
    pub messages: u64,
    /// How many tokens the summary may take.
    pub summary: u64,
}

/// Whether a request of so many tokens calls for compaction. `window` is the model's.
pub fn needs_compaction(tokens: u64, policy: &Policy, window: u64) -> bool {
    policy
        .threshold(window)
        .is_some_and(|threshold| tokens >= threshold)
}

/// Whether to compact now, and which entry is the last to be covered.
///
/// `entries` are those the model may see after the checkpoint in force, all of them;
/// `fixed` is what a request costs besides them: agent, context, memory. `window` is
/// the model's. With `force`, size does not matter.
pub fn plan(
    record: &Record,
    entries: &[Counted],
    policy: &Policy,
    window: u64,
    fixed: u64,
    force: bool,
) -> Option<Plan> {
    let last = entries
        .iter()
        .rfind(|counted| says_something(&counted.entry))?;
    if let Some(mark) = record.standing.checkpoint()
        && mark.seq > last.entry.seq
    {
        return None;
    }
    // Eliding comes first: what it saves need not be summarized away.
    let costs = elided_tokens(entries, policy);
    let now = costs
        .iter()
        .fold(fixed, |sum, cost| sum.saturating_add(*cost));
    if !force && !needs_compaction(now, policy, window) {
        return None;
    }

    let safe = safe_cuts(entries);
    let from = keep_from(entries, &costs, &safe, policy, window, fixed);
    // Someone who asks for a summary gets one, even if all would fit.
    let from = if force && covered(&entries[..from]) == 0 {
        newest_turn(entries, &safe)
    } else {
        from
    };
    let (gone, kept) = entries.split_at(from);
    let messages = covered(gone);
    let covers = gone.last()?.entry.seq;
    let sum = |some: &[Counted]| total(some.iter().map(|counted| counted.tokens));
    (messages > 0).then(|| Plan {
        covers,
        tokens_before: sum(entries),
        tokens_kept: sum(kept),
        messages,
        summary: room_for_summary(half_of_threshold(policy, window)),
    })
}

/// What a request may cost after a compaction: half of what makes the next one due.
fn half_of_threshold(policy: &Policy, window: u64) -> u64 {
    let own = policy.window(window);
    policy.threshold(window).unwrap_or(own) / 2
}

fn room_for_summary(half: u64) -> u64 {
    SUMMARY.min(half / 4)
}

fn covered(entries: &[Counted]) -> u64 {
    entries
        .iter()
        .filter(|counted| says_something(&counted.entry))
        .count() as u64
}

/// Where what stays begins.
fn keep_from(
    entries: &[Counted],
    costs: &[u64],
    safe: &[bool],
    policy: &Policy,
    window: u64,
    fixed: u64,
) -> usize {
    let own = policy.window(window);
    let half = half_of_threshold(policy, window);
    let allowance = half
        .saturating_sub(fixed)
        .saturating_sub(room_for_summary(half));
    match policy.keep {
        Keep::Nothing => last_safe(safe),
        Keep::AfterCheckpoint => under_way(entries, safe),
        Keep::Messages { count, .. } => {
            let wanted = from_last_messages(entries, count);
            wanted.max(tail_from(entries, costs, safe, allowance))
        }
        Keep::Tail { share } => {
            tail_from(entries, costs, safe, allowance.min(share_of(own, share)))
        }
        Keep::Everything => {
            let most = allowance.min(share_of(own, DEFAULT_TAIL));
            tail_from(entries, costs, safe, most)
        }
    }
}

/// The longest tail within an allowance: whole turns, or steps of the newest.
fn tail_from(entries: &[Counted], costs: &[u64], safe: &[bool], allowance: u64) -> usize {
    let mut sum = 0_u64;
    let mut turn = None;
    let mut step = last_safe(safe);
    for index in (0..entries.len()).rev() {
        sum = sum.saturating_add(costs[index]);
        if sum > allowance {
            break;
        }
        if safe[index] {
            if index == 0 || is_query(&entries[index].entry) {
                turn = Some(index);
            }
            step = step.min(index);
        }
    }
    turn.unwrap_or(step)
}

/// The last place to cut at all: after everything, or before a call that waits.
fn last_safe(safe: &[bool]) -> usize {
    safe.iter().rposition(|safe| *safe).unwrap_or(0)
}

/// Before the newest turn where it is not finished, otherwise after everything.
fn under_way(entries: &[Counted], safe: &[bool]) -> usize {
    let last = entries
        .iter()
        .filter_map(|counted| counted.entry.message())
        .next_back();
    let finished = last.is_none_or(|message| {
        message.role == Role::Assistant && message.content.tool_calls().next().is_none()
    });
    if finished {
        last_safe(safe)
    } else {
        newest_turn(entries, safe)
    }
}

/// Before the newest query.
fn newest_turn(entries: &[Counted], safe: &[bool]) -> usize {
    (0..entries.len())
        .rev()
        .find(|&index| safe[index] && is_query(&entries[index].entry))
        .unwrap_or(0)
}

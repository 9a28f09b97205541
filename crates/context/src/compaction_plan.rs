//! Decides whether to compact a session now, and how far.
//!
//! Invariant: a plan never separates a call from its result, covers at least one
//! message, and where possible leaves a request of at most half the threshold, so that
//! the next turn does not compact again. A log without new messages since its last
//! checkpoint yields no plan.

use throughline_model::{Record, Role, Seq};

use crate::elide::count_elided_tokens;
use crate::policy::{Retention, percent_of};
use crate::recent_turns::find_last_messages_start;
use crate::safe_cuts::safe_cuts;
use crate::sendable_blocks::has_visible_content;
use crate::turn::saturating_sum;
use crate::visible_entries::is_query;
use crate::{CountedEntry, Policy};

/// The maximum number of tokens for a summary.
const MAX_SUMMARY_TOKENS: u64 = 2_000;
/// The share of the window that stays verbatim if compaction is forced under a policy
/// that keeps everything.
const DEFAULT_TAIL_PERCENT: u8 = 30;

/// What to compact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompactionPlan {
    /// The last entry to summarize.
    pub covers: Seq,
    /// The tokens of the uncovered entries before compaction.
    pub tokens_before: u64,
    /// The tokens of the entries that stay verbatim.
    pub tokens_kept: u64,
    /// The number of newly covered messages.
    pub messages: u64,
    /// The maximum number of tokens for the summary.
    pub summary_tokens: u64,
}

/// Whether a request of `tokens` requires compaction. `window` is the model's context
/// window.
pub fn needs_compaction(tokens: u64, policy: &Policy, window: u64) -> bool {
    policy
        .compaction_threshold(window)
        .is_some_and(|threshold| tokens >= threshold)
}

/// Decides whether to compact now, and which entry is the last to be covered.
///
/// `entries` are all visible entries after the checkpoint in effect; `fixed` is the
/// cost of the rest of a request: agent, context, memory. `window` is the model's
/// context window. With `force`, the size is ignored.
pub fn plan_compaction(
    record: &Record,
    entries: &[CountedEntry],
    policy: &Policy,
    window: u64,
    fixed: u64,
    force: bool,
) -> Option<CompactionPlan> {
    let last = entries
        .iter()
        .rfind(|counted| has_visible_content(&counted.entry))?;
    if let Some(mark) = record.state.checkpoint()
        && mark.seq > last.entry.seq
    {
        return None;
    }
    // Eliding comes first: what it saves does not have to be summarized.
    let costs = count_elided_tokens(entries, policy);
    let now = costs
        .iter()
        .fold(fixed, |sum, cost| sum.saturating_add(*cost));
    if !force && !needs_compaction(now, policy, window) {
        return None;
    }

    let safe = safe_cuts(entries);
    let from = find_kept_start(entries, &costs, &safe, policy, window, fixed);
    // A forced compaction always covers something, even if everything would fit.
    let from = if force && count_messages(&entries[..from]) == 0 {
        find_newest_turn_start(entries, &safe)
    } else {
        from
    };
    let (gone, kept) = entries.split_at(from);
    let messages = count_messages(gone);
    let covers = gone.last()?.entry.seq;
    let sum = |some: &[CountedEntry]| saturating_sum(some.iter().map(|counted| counted.tokens));
    (messages > 0).then(|| CompactionPlan {
        covers,
        tokens_before: sum(entries),
        tokens_kept: sum(kept),
        messages,
        summary_tokens: summary_budget(target_tokens(policy, window)),
    })
}

/// The target size of a request after compaction: half of the threshold.
fn target_tokens(policy: &Policy, window: u64) -> u64 {
    let own = policy.effective_window(window);
    policy.compaction_threshold(window).unwrap_or(own) / 2
}

fn summary_budget(half: u64) -> u64 {
    MAX_SUMMARY_TOKENS.min(half / 4)
}

fn count_messages(entries: &[CountedEntry]) -> u64 {
    entries
        .iter()
        .filter(|counted| has_visible_content(&counted.entry))
        .count() as u64
}

/// The index where the verbatim part begins.
fn find_kept_start(
    entries: &[CountedEntry],
    costs: &[u64],
    safe: &[bool],
    policy: &Policy,
    window: u64,
    fixed: u64,
) -> usize {
    let own = policy.effective_window(window);
    let half = target_tokens(policy, window);
    let allowance = half
        .saturating_sub(fixed)
        .saturating_sub(summary_budget(half));
    match policy.keep {
        Retention::Nothing => find_last_safe_cut(safe),
        Retention::AfterCheckpoint => find_unfinished_turn_start(entries, safe),
        Retention::Messages { count, .. } => {
            let start = find_last_messages_start(entries, count);
            start.max(find_tail_start(entries, costs, safe, allowance))
        }
        Retention::Tail { share } => {
            find_tail_start(entries, costs, safe, allowance.min(percent_of(own, share)))
        }
        Retention::Everything => {
            let most = allowance.min(percent_of(own, DEFAULT_TAIL_PERCENT));
            find_tail_start(entries, costs, safe, most)
        }
    }
}

/// Finds the start of the longest tail within an allowance: whole turns, or steps of
/// the newest.
fn find_tail_start(
    entries: &[CountedEntry],
    costs: &[u64],
    safe: &[bool],
    allowance: u64,
) -> usize {
    let mut sum = 0_u64;
    let mut turn = None;
    let mut step = find_last_safe_cut(safe);
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

/// The last safe cut: after all entries, or before a pending call.
fn find_last_safe_cut(safe: &[bool]) -> usize {
    safe.iter().rposition(|safe| *safe).unwrap_or(0)
}

/// The start of the newest turn if it is unfinished; otherwise the end.
fn find_unfinished_turn_start(entries: &[CountedEntry], safe: &[bool]) -> usize {
    let last = entries
        .iter()
        .filter_map(|counted| counted.entry.message())
        .next_back();
    let finished = last.is_none_or(|message| {
        message.role == Role::Assistant && message.content.tool_calls().next().is_none()
    });
    if finished {
        find_last_safe_cut(safe)
    } else {
        find_newest_turn_start(entries, safe)
    }
}

/// The start of the newest turn.
fn find_newest_turn_start(entries: &[CountedEntry], safe: &[bool]) -> usize {
    (0..entries.len())
        .rev()
        .find(|&index| safe[index] && is_query(&entries[index].entry))
        .unwrap_or(0)
}

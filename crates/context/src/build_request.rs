//! Builds a request: fits every section into the budget, then orders them.
//!
//! Budget is allocated by priority: the new message, the agent, the checkpoint with
//! pins and decisions, the newest turn, memory, context, older turns, recalled
//! excerpts. Sections are sent in a different order, the stable ones first. Memory and
//! context are limited to shares of the budget and give way only to the newest turn,
//! not to older ones, so that the start of a request does not change with every
//! message.
//!
//! Invariant: a request never has more tokens than its budget.

use std::collections::HashSet;

use throughline_model::{Block, Content, Seq, ToolResult};

use crate::assemble_messages::{MessageAssembler, render_blocks};
use crate::elide::elide_bulky_blocks;
use crate::list_section::Budget;
use crate::policy::{Retention, percent_of};
use crate::recent_turns::{fit_turns, select_by_policy};
use crate::repair::{RepairedTurns, count_orphan_tokens, repair_turns};
use crate::request::{Repair, RepairKind, Section};
use crate::sendable_blocks::{BlockOptions, extract_blocks};
use crate::token_cost::{MESSAGE_TOKENS, count_sent_tokens, describe_attachment, is_image};
use crate::turn::{Step, Turn, saturating_sum};
use crate::{
    CountedEntry, Encoding, EntryRef, Omission, Policy, Request, RequestError, RequestInputs,
    SectionName, recalled_section, system_sections,
};

/// Builds the request that fits a budget, counted in tokens of `encoding`.
///
/// Fails only if the new message alone does not fit.
pub fn build_request(
    inputs: &RequestInputs<'_>,
    policy: &Policy,
    budget: u64,
    encoding: Encoding,
) -> Result<Request, RequestError> {
    let mut repairs = Vec::new();
    let new = NewMessage::of(inputs.message, encoding, &mut repairs);
    if new.tokens > budget {
        return Err(RequestError::MessageTooLarge {
            tokens: new.tokens,
            budget,
        });
    }
    let mut left = budget - new.tokens;

    let agent = system_sections::build_agent_section(inputs.agent, left, encoding);
    left = left.saturating_sub(agent.tokens);
    let checkpoint = system_sections::build_checkpoint_section(inputs, left, encoding);
    left = left.saturating_sub(checkpoint.tokens);

    let (entries, not_kept) = select_by_policy(inputs.entries, policy);
    let options = BlockOptions {
        encoding,
        max_chars: match policy.keep {
            Retention::Messages { chars, .. } => chars,
            _ => None,
        },
        continues_turn: new.continues_turn(),
    };
    let taken = extract_blocks(entries, options, &mut repairs);
    let RepairedTurns {
        mut turns,
        pending_calls: waiting,
    } = repair_turns(taken, &new.answered_call_ids(), encoding, &mut repairs);

    let newest = turns.last().map_or(0, Turn::tokens);
    let share = |percent| percent_of(budget, percent);
    let spare = |left: u64| left.saturating_sub(newest);
    let section_budget = Budget::capped(spare(left), share(policy.shares.memory));
    let memory = system_sections::build_memory_section(inputs.memory, section_budget, encoding);
    left = left.saturating_sub(memory.tokens);
    let section_budget = Budget::capped(spare(left), share(policy.shares.context));
    let context =
        system_sections::build_context_section(inputs.documents, section_budget, encoding);
    left = left.saturating_sub(context.tokens);

    let mut recent = Section::new(SectionName::Recent);
    recent
        .left_out
        .extend(unloaded_omission(inputs.unloaded_entries));
    recent.left_out.extend(not_kept);
    recent.left_out.extend(truncated_omission(policy, entries));
    let comfortable = policy
        .compaction_threshold(budget)
        .map_or(left, |most| left.saturating_sub(budget - most.min(budget)));
    if saturating_sum(turns.iter().map(Turn::tokens)) > comfortable {
        recent
            .left_out
            .extend(elide_bulky_blocks(&mut turns, policy, encoding));
    }
    // Recalled excerpts have a reserved share, if there are any.
    let offered = recalled_section::collect_candidates(inputs, policy, encoding);
    let reserved = if policy.recall {
        recalled_section::count_candidate_tokens(&offered, encoding)
            .min(share(policy.shares.recall))
            .min(policy.recall_tokens)
            .min(spare(left))
    } else {
        0
    };
    let kept = fit_turns(turns, left - reserved, encoding);
    recent.tokens = kept.tokens;
    recent.left_out.extend(kept.left_out);
    let in_view: HashSet<Seq> = collect_seqs(&kept.turns).collect();
    recent.entries = entries
        .iter()
        .filter(|counted| in_view.contains(&counted.entry.seq))
        .map(|counted| EntryRef {
            session: inputs.session.clone(),
            seq: counted.entry.seq,
            external_id: counted.entry.external_id.clone(),
        })
        .collect();
    left = left.saturating_sub(recent.tokens);

    let section_budget = Budget::capped(left, policy.recall_tokens);
    let recalled = recalled_section::build_recalled_section(
        inputs,
        &offered,
        &in_view,
        section_budget,
        encoding,
    );

    let mut message = Section::new(SectionName::Message);
    message.tokens = new.tokens;
    message.text = render_blocks(&new.blocks);

    // Report only repairs of entries that are sent.
    let first = in_view.iter().min().copied();
    repairs.retain(|repair| match (repair.seq, first) {
        (Some(seq), Some(first)) => seq >= first,
        (Some(_), None) => false,
        (None, _) => true,
    });
    let mut sections = vec![
        agent, context, memory, checkpoint, recent, recalled, message,
    ];
    mark_cache_breakpoints(&mut sections);
    let sending = MessageAssembler {
        sections: &mut sections,
        turns: kept.turns,
        pending_calls: waiting,
        new_blocks: new.blocks,
        repairs: &mut repairs,
    };
    let messages = sending.assemble();
    let tokens = sections.iter().map(|section| section.tokens).sum();
    for section in &mut sections {
        section.share = percent(section.tokens, tokens);
    }
    Ok(Request {
        policy: policy.name.clone(),
        budget,
        tokens,
        sections,
        messages,
        repairs,
    })
}

/// The new message, prepared for sending.
struct NewMessage {
    blocks: Vec<Block>,
    tokens: u64,
}

impl NewMessage {
    fn of(content: Option<&Content>, encoding: Encoding, repairs: &mut Vec<Repair>) -> Self {
        let blocks: Vec<Block> = content
            .map_or(&[][..], |content| &content.0)
            .iter()
            .filter_map(|block| match block {
                Block::Text(text) if text.trim().is_empty() => None,
                Block::Thinking { .. } => None,
                Block::ToolCall(call) => Some(Block::Text(format!(
                    "[tool call: {} {}]",
                    call.name, call.input
                ))),
                Block::Attachment(attachment) if !is_image(attachment) => {
                    Some(Block::Text(describe_attachment(attachment)))
                }
                other => Some(other.clone()),
            })
            .collect();
        if blocks.is_empty() && content.is_some() {
            let what = "the new message is empty and was left out";
            repairs.push(Repair::new(RepairKind::EmptyMessage, None, what));
        }
        // Results are sent in their own message, or as text if no call is pending.
        let results = blocks
            .iter()
            .filter(|block| matches!(block, Block::ToolResult(_)));
        let messages = u64::from(!blocks.is_empty()) + u64::from(results.count() > 0);
        let cost = |block: &Block| match block {
            Block::ToolResult(result) => {
                count_sent_tokens(encoding, block).max(count_orphan_tokens(encoding, result))
            }
            other => count_sent_tokens(encoding, other),
        };
        Self {
            tokens: messages * MESSAGE_TOKENS + blocks.iter().map(cost).sum::<u64>(),
            blocks,
        }
    }

    fn results(&self) -> impl Iterator<Item = &ToolResult> {
        self.blocks.iter().filter_map(|block| match block {
            Block::ToolResult(result) => Some(result),
            _ => None,
        })
    }

    fn answered_call_ids(&self) -> HashSet<&str> {
        self.results()
            .map(|result| result.call_id.as_str())
            .collect()
    }

    /// Whether this continues the newest turn: there is no new message, or it is a tool
    /// result.
    fn continues_turn(&self) -> bool {
        self.blocks.is_empty() || self.results().next().is_some()
    }
}

/// Marks where a provider's prompt cache can resume: after agent, context, memory with
/// checkpoint, and the messages of earlier requests.
fn mark_cache_breakpoints(sections: &mut [Section]) {
    let has_content = |section: &Section| section.tokens > 0;
    let has_checkpoint = sections
        .iter()
        .any(|section| section.name == SectionName::Checkpoint && has_content(section));
    for section in sections {
        section.cache_breakpoint = has_content(section)
            && match section.name {
                SectionName::Agent
                | SectionName::Context
                | SectionName::Checkpoint
                | SectionName::Recent => true,
                SectionName::Memory => !has_checkpoint,
                SectionName::Recalled | SectionName::Message => false,
            };
    }
}

fn unloaded_omission(earlier: u64) -> Option<Omission> {
    (earlier > 0).then(|| Omission {
        entries: earlier,
        ..Omission::new(format!("{earlier} earlier entries"), "not loaded")
    })
}

/// Reports that messages were truncated, if any was.
fn truncated_omission(policy: &Policy, entries: &[CountedEntry]) -> Option<Omission> {
    let Retention::Messages {
        chars: Some(chars), ..
    } = policy.keep
    else {
        return None;
    };
    let long = entries
        .iter()
        .filter_map(|counted| counted.entry.message())
        .filter(|message| message.content.to_text().chars().nth(chars).is_some())
        .count();
    (long > 0).then(|| {
        Omission::new(
            format!("the rest of {long} long messages"),
            format!("policy keeps {chars} characters of each message"),
        )
        .with_entries(long)
    })
}

fn collect_seqs(turns: &[Turn<'_>]) -> impl Iterator<Item = Seq> {
    turns
        .iter()
        .flat_map(|turn| turn.steps.iter().flat_map(Step::seqs))
}

#[allow(clippy::cast_precision_loss, reason = "a percentage to one decimal")]
fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        return 0.0;
    }
    (part as f64 * 1_000.0 / whole as f64).round() / 10.0
}

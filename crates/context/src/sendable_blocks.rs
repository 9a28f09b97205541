//! Splits entries into blocks that can be sent.
//!
//! Handles everything that concerns a single block: drops blank texts, converts system
//! notes to text, keeps thinking only where the provider requires it. The structure
//! between blocks is handled by [`repair`](crate::repair).
//!
//! Invariant: an entry sent unchanged costs its stored count; only changed blocks and
//! those that may be separated are counted again.

use std::borrow::Cow;

use throughline_model::{Block, Content, Entry, Role, Seq, ToolCall, ToolResult};

use crate::lone_surrogates::replace_lone_surrogates;
use crate::token_cost::{MESSAGE_TOKENS, count_sent_tokens, describe_attachment, is_image};
use crate::turn::CountedBlock;
use crate::visible_entries::{is_query, visible_messages};
use crate::{CountedEntry, Encoding, Repair, RepairKind};

/// Options for splitting entries into blocks.
#[derive(Clone, Copy)]
pub(crate) struct BlockOptions {
    pub(crate) encoding: Encoding,
    /// The maximum number of characters of each message.
    pub(crate) max_chars: Option<usize>,
    /// Whether the new message continues the newest turn.
    pub(crate) continues_turn: bool,
}

/// A block ready to be sent, and whether it was changed.
struct SendableBlock<'a> {
    role: Role,
    block: Cow<'a, Block>,
    changed: bool,
}

/// The blocks of all entries, in order.
pub(crate) fn extract_blocks<'a>(
    entries: &'a [CountedEntry],
    taking: BlockOptions,
    repairs: &mut Vec<Repair>,
) -> Vec<CountedBlock<'a>> {
    let newest_turn = if taking.continues_turn {
        entries
            .iter()
            .rposition(|counted| is_query(&counted.entry))
            .unwrap_or(0)
    } else {
        entries.len()
    };
    let mut all = Vec::new();
    for (index, counted) in entries.iter().enumerate() {
        let thinking = index >= newest_turn;
        all.extend(extract_entry_blocks(counted, thinking, taking, repairs));
    }
    all
}

fn extract_entry_blocks<'a>(
    counted: &'a CountedEntry,
    thinking: bool,
    taking: BlockOptions,
    repairs: &mut Vec<Repair>,
) -> Vec<CountedBlock<'a>> {
    let entry = &counted.entry;
    let seq = entry.seq;
    let messages = visible_messages(entry);
    let several = messages.len() > 1;
    let mut ready = Vec::new();
    for message in messages {
        let mut left = taking.max_chars;
        match message.content {
            Cow::Borrowed(content) => ready.extend(content.0.iter().filter_map(|block| {
                prepare_block(
                    message.role,
                    Cow::Borrowed(block),
                    thinking,
                    &mut left,
                    seq,
                    repairs,
                )
            })),
            Cow::Owned(content) => ready.extend(content.0.into_iter().filter_map(|block| {
                prepare_block(
                    message.role,
                    Cow::Owned(block),
                    thinking,
                    &mut left,
                    seq,
                    repairs,
                )
            })),
        }
    }
    if ready.is_empty() && entry.message().is_some() {
        repairs.push(Repair::new(
            RepairKind::EmptyMessage,
            Some(seq),
            "an empty message was left out",
        ));
    }
    count_blocks(counted, ready, several, taking.encoding)
}

/// Assigns each block its cost, and marks the first block of a query.
fn count_blocks<'a>(
    counted: &CountedEntry,
    ready: Vec<SendableBlock<'a>>,
    several: bool,
    encoding: Encoding,
) -> Vec<CountedBlock<'a>> {
    let is_thinking = |block: &Block| matches!(block, Block::Thinking { .. });
    let stays = |one: &SendableBlock| {
        !one.changed && matches!(*one.block, Block::Text(_) | Block::ToolCall(_))
    };
    let others = ready.iter().filter(|one| !is_thinking(&one.block)).count();
    // Blocks that are never separated share the entry's stored cost.
    let whole = !several
        && (ready
            .iter()
            .all(|one| is_thinking(&one.block) || stays(one))
            || (others == 1 && !ready.iter().any(|one| one.changed)));
    let mut rest = counted.tokens.saturating_sub(MESSAGE_TOKENS);
    let mut opens_turn = is_query(&counted.entry);
    ready
        .into_iter()
        .map(|one| CountedBlock {
            tokens: if whole && !is_thinking(&one.block) {
                std::mem::take(&mut rest)
            } else {
                count_sent_tokens(encoding, &one.block)
            },
            role: one.role,
            block: one.block,
            seq: counted.entry.seq,
            opens_turn: std::mem::take(&mut opens_turn),
        })
        .collect()
}

/// Prepares a block for sending; returns `None` if it is not sent.
fn prepare_block<'a>(
    role: Role,
    block: Cow<'a, Block>,
    thinking: bool,
    left: &mut Option<usize>,
    seq: Seq,
    repairs: &mut Vec<Repair>,
) -> Option<SendableBlock<'a>> {
    let speaker = if role == Role::Assistant {
        Role::Assistant
    } else {
        Role::User
    };
    let mut repair = |kind, what: &str| repairs.push(Repair::new(kind, Some(seq), what));
    let text = |text: String| SendableBlock {
        role: speaker,
        block: Cow::Owned(Block::Text(text)),
        changed: true,
    };
    Some(match &*block {
        Block::Text(full) => {
            let kept = take_chars(full, left);
            if kept.trim().is_empty() {
                return None;
            }
            match role {
                Role::System => {
                    repair(
                        RepairKind::SystemNote,
                        "a system message was sent as a note",
                    );
                    text(format!("[system note] {kept}"))
                }
                Role::Tool => {
                    repair(
                        RepairKind::UnpairedResult,
                        "a tool message without a call was sent as text",
                    );
                    text(format!("[tool] {kept}"))
                }
                Role::User | Role::Assistant if kept.len() < full.len() => text(kept.to_owned()),
                Role::User | Role::Assistant => SendableBlock {
                    role: speaker,
                    block,
                    changed: false,
                },
            }
        }
        Block::Thinking { signature, .. } => {
            if !thinking || signature.is_none() || role != Role::Assistant {
                return None;
            }
            SendableBlock {
                role: speaker,
                block,
                changed: false,
            }
        }
        Block::ToolCall(call) => {
            if role != Role::Assistant {
                repair(
                    RepairKind::MisplacedCall,
                    "a tool call outside an assistant message was sent as text",
                );
                return Some(text(format!("[tool call: {} {}]", call.name, call.input)));
            }
            match replace_lone_surrogates(&call.input) {
                None => SendableBlock {
                    role: speaker,
                    block,
                    changed: false,
                },
                Some(input) => {
                    repair(RepairKind::LoneSurrogate, "a lone surrogate was replaced");
                    SendableBlock {
                        role: speaker,
                        block: Cow::Owned(Block::ToolCall(ToolCall {
                            input,
                            ..call.clone()
                        })),
                        changed: true,
                    }
                }
            }
        }
        Block::ToolResult(result) => {
            let changed = truncate_result(result, left);
            SendableBlock {
                role: Role::Tool,
                changed: changed.is_some(),
                block: changed.map_or(block, |result| Cow::Owned(Block::ToolResult(result))),
            }
        }
        Block::Attachment(attachment) => {
            if is_image(attachment) && speaker == Role::User {
                SendableBlock {
                    role: speaker,
                    block,
                    changed: false,
                }
            } else {
                text(describe_attachment(attachment))
            }
        }
        Block::Foreign(json) => {
            if replace_lone_surrogates(json).is_some() {
                repair(RepairKind::LoneSurrogate, "a lone surrogate was replaced");
            }
            let mended = replace_lone_surrogates(json).map(Block::Foreign);
            SendableBlock {
                role: speaker,
                changed: mended.is_some(),
                block: mended.map_or(block, Cow::Owned),
            }
        }
        _ => return None,
    })
}

/// Truncates a result, or fills it if it is empty; returns `None` if it is unchanged.
fn truncate_result(result: &ToolResult, left: &mut Option<usize>) -> Option<ToolResult> {
    let mut changed = false;
    let mut blocks = Vec::new();
    for block in &result.content.0 {
        match block {
            Block::Text(text) => {
                let kept = take_chars(text, left);
                changed |= kept.len() < text.len();
                if !kept.is_empty() {
                    blocks.push(Block::Text(kept.to_owned()));
                }
            }
            other => blocks.push(other.clone()),
        }
    }
    if blocks.is_empty() {
        changed = true;
        blocks.push(Block::Text("[no output]".to_owned()));
    }
    changed.then(|| ToolResult {
        content: Content(blocks),
        ..result.clone()
    })
}

/// Takes as many characters as are left, and reduces that number.
fn take_chars<'t>(text: &'t str, left: &mut Option<usize>) -> &'t str {
    let Some(left) = left else {
        return text;
    };
    let end = text.char_indices().nth(*left).map(|(at, _)| at);
    let kept = end.map_or(text, |end| &text[..end]);
    *left = left.saturating_sub(kept.chars().count());
    kept
}

/// Whether a message has content that can be sent.
pub(crate) fn has_visible_content(entry: &Entry) -> bool {
    visible_messages(entry).iter().any(|message| {
        message.content.0.iter().any(|block| match block {
            Block::Text(text) => !text.trim().is_empty(),
            Block::Thinking { .. } => false,
            _ => true,
        })
    })
}

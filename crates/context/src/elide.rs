//! Replaces large old tool results and attachments with references.
//!
//! They are removed first when a request is too large: the log still has them, and the
//! model can request them again. The newest are always sent.

use std::borrow::Cow;

use throughline_model::{Block, Content, ToolResult};

use crate::token_cost::{count_sent_tokens, is_image};
use crate::turn::{CountedBlock, Turn};
use crate::{CountedEntry, Encoding, Omission, Policy};

/// Elides large blocks that are not among the newest; returns what was elided.
pub(crate) fn elide_bulky_blocks(
    turns: &mut [Turn<'_>],
    policy: &Policy,
    encoding: Encoding,
) -> Option<Omission> {
    let newest_first = turns
        .iter_mut()
        .rev()
        .flat_map(|turn| turn.steps.iter_mut().rev())
        .flat_map(|step| step.messages.iter_mut().rev())
        .flat_map(|message| message.blocks.iter_mut().rev())
        .filter(|piece| is_elidable(&piece.block));
    let (mut elided, mut saved) = (0, 0_u64);
    for piece in newest_first.skip(policy.keep_results) {
        if piece.tokens > policy.elide_over
            && let Some(saving) = elide_block(piece, encoding)
        {
            elided += 1;
            saved = saved.saturating_add(saving);
        }
    }
    (elided > 0).then(|| {
        Omission::new(
            "large tool results and attachments",
            "replaced by references",
        )
        .with_tokens(saved)
        .with_entries(elided)
    })
}

fn is_elidable(block: &Block) -> bool {
    match block {
        Block::ToolResult(_) | Block::Foreign(_) => true,
        Block::Attachment(attachment) => is_image(attachment),
        _ => false,
    }
}

/// Replaces a block with a reference and returns the number of tokens saved, if any.
fn elide_block(piece: &mut CountedBlock<'_>, encoding: Encoding) -> Option<u64> {
    let note = |what: &str| {
        format!(
            "[{what} elided, {} tokens, entry {}]",
            piece.tokens, piece.seq
        )
    };
    let block = match &*piece.block {
        Block::ToolResult(result) => Block::ToolResult(ToolResult {
            call_id: result.call_id.clone(),
            content: Content::text(note("tool result")),
            is_error: result.is_error,
        }),
        Block::Attachment(_) => Block::Text(note("attachment")),
        _ => Block::Text(note("block")),
    };
    let tokens = count_sent_tokens(encoding, &block);
    let saving = piece
        .tokens
        .checked_sub(tokens)
        .filter(|&saving| saving > 0)?;
    piece.block = Cow::Owned(block);
    piece.tokens = tokens;
    Some(saving)
}

/// The approximate cost of a reference.
const REFERENCE_TOKENS: u64 = 24;

/// The cost of entries with their large old results elided, without building them.
pub(crate) fn count_elided_tokens(entries: &[CountedEntry], policy: &Policy) -> Vec<u64> {
    let mut kept = 0;
    let mut costs: Vec<u64> = entries
        .iter()
        .rev()
        .map(|counted| {
            let content = counted.entry.message().map(|message| &message.content.0);
            let elidable = content
                .into_iter()
                .flatten()
                .filter(|block| is_elidable(block))
                .count();
            let others = content.map_or(0, Vec::len) - elidable;
            kept += elidable;
            let old = elidable > 0 && kept > policy.keep_results;
            if old && others == 0 && counted.tokens > policy.elide_over {
                counted.tokens.min(REFERENCE_TOKENS * elidable as u64)
            } else {
                counted.tokens
            }
        })
        .collect();
    costs.reverse();
    costs
}

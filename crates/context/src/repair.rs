//! Repairs the message structure so that every provider accepts it.
//!
//! Invariant: in the output, each message with tool calls is directly followed by one
//! message with exactly their results, in the same order; call ids are unique; no
//! message is empty. Every repair is reported.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use throughline_model::{Block, Content, Role, Seq, ToolResult};

use crate::token_cost::{count_content_tokens, count_sent_tokens};
use crate::turn::{CountedBlock, Step, Turn, TurnMessage};
use crate::{Encoding, Repair, RepairKind};

/// The placeholder for a missing result.
const NO_RESULT: &str = "[no result was recorded]";

/// The repaired turns, and the calls of the last step that the new message answers.
#[derive(Debug, Default)]
pub(crate) struct RepairedTurns<'a> {
    pub(crate) turns: Vec<Turn<'a>>,
    /// The id of the recorded call, and the id it is sent with.
    pub(crate) pending_calls: Vec<(String, String)>,
}

/// Groups blocks into turns. `answers` are the calls that the new message answers.
pub(crate) fn repair_turns<'a>(
    pieces: Vec<CountedBlock<'a>>,
    answers: &HashSet<&str>,
    encoding: Encoding,
    repairs: &mut Vec<Repair>,
) -> RepairedTurns<'a> {
    let (answered_by, claimed) = pair_results(&pieces);
    let seqs: Vec<Seq> = pieces.iter().map(|piece| piece.seq).collect();
    let last = (0..pieces.len()).rfind(|index| !claimed.contains_key(index));
    let nobody = HashSet::new();
    let mut pieces: Vec<Option<CountedBlock<'a>>> = pieces.into_iter().map(Some).collect();
    let mut repairer = TurnRepairer {
        encoding,
        repairs,
        used_ids: HashMap::new(),
        repaired: RepairedTurns::default(),
        group: Vec::new(),
        calls: Vec::new(),
        placed_count: 0,
        placed_when_closed: HashMap::new(),
    };
    for index in 0..pieces.len() {
        if let Some(&call) = claimed.get(&index) {
            // Skip results that were already moved to an earlier call.
            if repairer.calls.iter().any(|(at, _)| *at == call) {
                let is_last = last.is_none_or(|last| last < index);
                let answers = if is_last { answers } else { &nobody };
                repairer.flush_group(&mut pieces, &answered_by, answers);
            } else if repairer.placed_when_closed.get(&call) != Some(&repairer.placed_count) {
                repairer.repairs.push(Repair::new(
                    RepairKind::MovedResult,
                    Some(seqs[index]),
                    format!(
                        "a tool result was moved to its call in entry {}",
                        seqs[call]
                    ),
                ));
            }
            continue;
        }
        let Some(piece) = pieces[index].take() else {
            continue;
        };
        let piece = repairer.convert_orphan_result(piece);
        let role = repairer
            .group
            .first()
            .map(|first: &CountedBlock<'_>| first.role);
        if piece.opens_turn || role != Some(piece.role) {
            repairer.flush_group(&mut pieces, &answered_by, &nobody);
        } else if let Some(last) = repairer.group.last()
            && last.seq != piece.seq
        {
            repairer.repairs.push(Repair::new(
                RepairKind::SameRole,
                Some(piece.seq),
                format!("joined with entry {}: the same speaker", last.seq),
            ));
        }
        if piece.opens_turn {
            repairer.repaired.turns.push(Turn::default());
        }
        repairer.push(index, piece);
    }
    repairer.flush_group(&mut pieces, &answered_by, answers);
    repairer.repaired
}

/// Pairs results with calls: both ways, by index.
fn pair_results(pieces: &[CountedBlock<'_>]) -> (HashMap<usize, usize>, HashMap<usize, usize>) {
    let mut open: HashMap<&str, Vec<usize>> = HashMap::new();
    let mut answered_by = HashMap::new();
    let mut claimed = HashMap::new();
    for (index, piece) in pieces.iter().enumerate() {
        match &*piece.block {
            Block::ToolCall(call) => open.entry(&call.id).or_default().push(index),
            Block::ToolResult(result) => {
                let call = open.get_mut(result.call_id.as_str()).and_then(Vec::pop);
                if let Some(call) = call {
                    answered_by.insert(call, index);
                    claimed.insert(index, call);
                }
            }
            _ => {}
        }
    }
    (answered_by, claimed)
}

struct TurnRepairer<'a, 'r> {
    encoding: Encoding,
    repairs: &'r mut Vec<Repair>,
    /// The ids in use, each with the number for its next duplicate.
    used_ids: HashMap<String, usize>,
    repaired: RepairedTurns<'a>,
    /// Consecutive blocks of one role.
    group: Vec<CountedBlock<'a>>,
    /// The calls among them, by index, with their original ids.
    calls: Vec<(usize, String)>,
    /// The number of blocks placed so far.
    placed_count: usize,
    /// That number when each call's results were placed.
    placed_when_closed: HashMap<usize, usize>,
}

impl<'a> TurnRepairer<'a, '_> {
    fn push(&mut self, index: usize, mut piece: CountedBlock<'a>) {
        if let Block::ToolCall(call) = &*piece.block {
            let original = call.id.clone();
            let id = self.allocate_id(&original);
            if id != original {
                self.repairs.push(Repair::new(
                    RepairKind::RepeatedId,
                    Some(piece.seq),
                    format!("tool call {original:?} was sent as {id:?}"),
                ));
                let mut call = call.clone();
                call.id.clone_from(&id);
                piece.block = Cow::Owned(Block::ToolCall(call));
            }
            self.calls.push((index, original));
        }
        self.placed_count += 1;
        self.group.push(piece);
    }

    /// Returns the id, or a similar unused one, and marks it as used.
    fn allocate_id(&mut self, id: &str) -> String {
        let mut free = id.to_owned();
        while free.is_empty() || self.used_ids.contains_key(&free) {
            let number = self.used_ids.entry(id.to_owned()).or_insert(1);
            *number += 1;
            let base = if id.is_empty() { "call" } else { id };
            free = format!("{base}_{number}");
        }
        self.used_ids.insert(free.clone(), 1);
        free
    }

    /// Converts a result without a call to text.
    fn convert_orphan_result(&mut self, mut piece: CountedBlock<'a>) -> CountedBlock<'a> {
        if let Block::ToolResult(result) = &*piece.block {
            self.repairs.push(Repair::new(
                RepairKind::UnpairedResult,
                Some(piece.seq),
                format!(
                    "result of unknown call {:?} was sent as text",
                    result.call_id
                ),
            ));
            piece.role = Role::User;
            piece.block = Cow::Owned(render_orphan_result(result));
            piece.tokens = count_sent_tokens(self.encoding, &piece.block);
        }
        piece
    }

    /// Ends the group and emits it with the results of its calls.
    fn flush_group(
        &mut self,
        pieces: &mut [Option<CountedBlock<'a>>],
        answered_by: &HashMap<usize, usize>,
        answers: &HashSet<&str>,
    ) {
        let Some(first) = self.group.first() else {
            return;
        };
        let role = first.role;
        let group = std::mem::take(&mut self.group);
        let calls = std::mem::take(&mut self.calls);
        let seq = group.last().map(|piece| piece.seq);
        let ids: Vec<String> = group
            .iter()
            .filter_map(|piece| match &*piece.block {
                Block::ToolCall(call) => Some(call.id.clone()),
                _ => None,
            })
            .collect();
        let mut step = Step::default();
        step.messages.push(TurnMessage {
            role,
            blocks: group,
        });
        let mut results = Vec::new();
        for ((index, original), id) in calls.into_iter().zip(ids) {
            let answer = answered_by
                .get(&index)
                .and_then(|&result| pieces[result].take());
            self.placed_when_closed.insert(index, self.placed_count);
            if let Some(answer) = answer {
                results.push(with_call_id(answer, &id));
            } else if answers.contains(original.as_str())
                && !self
                    .repaired
                    .pending_calls
                    .iter()
                    .any(|(known, _)| *known == original)
            {
                self.repaired.pending_calls.push((original, id));
            } else if let Some(seq) = seq {
                self.repairs.push(Repair::new(
                    RepairKind::UnpairedCall,
                    Some(seq),
                    format!("tool call {original:?} has no result; a placeholder was added"),
                ));
                let block = Block::ToolResult(ToolResult {
                    call_id: id,
                    content: Content::text(NO_RESULT),
                    is_error: true,
                });
                results.push(CountedBlock {
                    role: Role::Tool,
                    tokens: count_sent_tokens(self.encoding, &block),
                    block: Cow::Owned(block),
                    seq,
                    opens_turn: false,
                });
            }
        }
        if !results.is_empty() {
            step.messages.push(TurnMessage {
                role: Role::Tool,
                blocks: results,
            });
        }
        if self.repaired.turns.is_empty() {
            self.repaired.turns.push(Turn::default());
        }
        if let Some(turn) = self.repaired.turns.last_mut() {
            turn.steps.push(step);
        }
    }
}

/// Renders a result whose call is not in the request as text.
pub(crate) fn render_orphan_result(result: &ToolResult) -> Block {
    let mut text = "[result of a tool call that is not in view]".to_owned();
    for block in &result.content.0 {
        text.push('\n');
        match block {
            Block::Text(part) => text.push_str(part),
            Block::Attachment(attachment) => {
                text.push_str(&crate::token_cost::describe_attachment(attachment));
            }
            _ => text.push_str("[something else]"),
        }
    }
    Block::Text(text)
}

/// Counts the tokens of that text.
pub(crate) fn count_orphan_tokens(encoding: Encoding, result: &ToolResult) -> u64 {
    count_content_tokens(encoding, &Content(vec![render_orphan_result(result)]))
}

/// Returns the result with the id of the call as sent.
pub(crate) fn with_call_id<'a>(mut piece: CountedBlock<'a>, id: &str) -> CountedBlock<'a> {
    if let Block::ToolResult(result) = &*piece.block
        && result.call_id != id
    {
        let mut result = result.clone();
        id.clone_into(&mut result.call_id);
        piece.block = Cow::Owned(Block::ToolResult(result));
    }
    piece
}

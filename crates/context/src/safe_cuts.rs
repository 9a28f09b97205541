//! Finds where a log can be cut without separating a tool call from its result.

use std::collections::HashMap;

use throughline_model::Block;

use crate::CountedEntry;
use crate::visible_entries::is_query;

/// For each position before an entry, and the one after the last, whether cutting there
/// keeps every call with its result.
///
/// A pending call of the current turn belongs with what follows, since its result will
/// be there.
pub(crate) fn safe_cuts(entries: &[CountedEntry]) -> Vec<bool> {
    let mut opened = vec![0_usize; entries.len() + 2];
    let mut closed = vec![0_usize; entries.len() + 2];
    let mut forbid = |call: usize, result: usize| {
        opened[call + 1] += 1;
        closed[result + 1] += 1;
    };
    let mut open: HashMap<&str, Vec<usize>> = HashMap::new();
    let mut newest_turn = 0;
    for (index, counted) in entries.iter().enumerate() {
        if is_query(&counted.entry) {
            newest_turn = index;
        }
        let blocks = counted.entry.message().map(|message| &message.content.0);
        for block in blocks.into_iter().flatten() {
            match block {
                Block::ToolCall(call) => open.entry(&call.id).or_default().push(index),
                Block::ToolResult(result) => {
                    let call = open.get_mut(result.call_id.as_str()).and_then(Vec::pop);
                    if let Some(call) = call {
                        forbid(call, index);
                    }
                }
                _ => {}
            }
        }
    }
    let waiting = open.into_values().flatten();
    if let Some(first) = waiting.filter(|&call| call >= newest_turn).min() {
        forbid(first, entries.len());
    }
    let mut across = 0;
    opened
        .iter()
        .zip(&closed)
        .take(entries.len() + 1)
        .map(|(opened, closed)| {
            across = across + opened - closed;
            across == 0
        })
        .collect()
}

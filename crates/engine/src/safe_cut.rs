//! Where a log may be cut: never between a tool's call and its result.

use std::collections::HashSet;

use throughline_model::{Entry, Role, Seq};
use throughline_store::ReadRange;

use crate::{Error, Session};

/// How far back an unanswered call is looked for, and forward its result.
const SCAN_LIMIT: usize = 256;

/// The first entry at or after `at` at which no tool call waits for a result that comes
/// later. Calls that were never answered hold nothing up.
pub(crate) async fn next_safe_cut(session: &Session, at: Seq, head: Seq) -> Result<Seq, Error> {
    if at == Seq::ZERO || at >= head {
        return Ok(at);
    }
    let before = session.read(ReadRange::up_to(Some(at), SCAN_LIMIT)).await?;
    let mut waiting = unanswered_calls(&before);
    if waiting.is_empty() {
        return Ok(at);
    }
    let after = session
        .read(ReadRange::starting_at(at.next(), SCAN_LIMIT))
        .await?;
    let mut whole = at;
    for entry in &after {
        for result in entry
            .message()
            .into_iter()
            .flat_map(|m| m.content.tool_results())
        {
            if waiting.remove(&result.call_id) {
                whole = entry.seq;
            }
        }
        // A new question: whatever was not answered by now was never answered.
        if waiting.is_empty() || is_question(entry) {
            break;
        }
    }
    Ok(whole)
}

fn is_question(entry: &Entry) -> bool {
    entry.message().is_some_and(|message| {
        message.role == Role::User && message.content.tool_results().next().is_none()
    })
}

/// The calls of the turn under way at the end of these entries that have no result.
fn unanswered_calls(entries: &[Entry]) -> HashSet<String> {
    let start = entries.iter().rposition(is_question).unwrap_or(0);
    let mut waiting = HashSet::new();
    for message in entries[start..].iter().filter_map(Entry::message) {
        waiting.extend(message.content.tool_calls().map(|call| call.id.clone()));
        for result in message.content.tool_results() {
            waiting.remove(&result.call_id);
        }
    }
    waiting
}

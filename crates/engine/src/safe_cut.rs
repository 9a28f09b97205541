//! Finds safe places to cut a log: never between a tool call and its result.

use std::collections::HashSet;

use throughline_model::{Entry, Role, Seq};
use throughline_store::ReadRange;

use crate::{Error, Session};

/// The number of entries searched backward for unanswered calls and forward for their
/// results.
const SCAN_LIMIT: usize = 256;

/// Returns the first entry at or after `at` where no tool call waits for a later
/// result. Calls that never got a result are ignored.
pub(crate) async fn next_safe_cut(session: &Session, at: Seq, head: Seq) -> Result<Seq, Error> {
    if at == Seq::ZERO || at >= head {
        return Ok(at);
    }
    let before = session.read(ReadRange::up_to(Some(at), SCAN_LIMIT)).await?;
    let mut pending = unanswered_calls(&before);
    if pending.is_empty() {
        return Ok(at);
    }
    let after = session
        .read(ReadRange::starting_at(at.next(), SCAN_LIMIT))
        .await?;
    let mut cut = at;
    for entry in &after {
        for result in entry
            .message()
            .into_iter()
            .flat_map(|m| m.content.tool_results())
        {
            if pending.remove(&result.call_id) {
                cut = entry.seq;
            }
        }
        // A new question: calls without a result by now never got one.
        if pending.is_empty() || is_question(entry) {
            break;
        }
    }
    Ok(cut)
}

fn is_question(entry: &Entry) -> bool {
    entry.message().is_some_and(|message| {
        message.role == Role::User && message.content.tool_results().next().is_none()
    })
}

/// Returns the calls without a result in the turn under way at the end of these
/// entries.
fn unanswered_calls(entries: &[Entry]) -> HashSet<String> {
    let start = entries.iter().rposition(is_question).unwrap_or(0);
    let mut pending = HashSet::new();
    for message in entries[start..].iter().filter_map(Entry::message) {
        pending.extend(message.content.tool_calls().map(|call| call.id.clone()));
        for result in message.content.tool_results() {
            pending.remove(&result.call_id);
        }
    }
    pending
}

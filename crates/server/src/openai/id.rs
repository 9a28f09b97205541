//! What conversations, items and responses are called, and what that says of sessions
//! and entries.

use throughline::{EntryId, SessionId};

/// What a session is called as a conversation.
pub(super) fn conversation(session: &SessionId) -> String {
    format!("conv_{session}")
}

/// The sessions that a conversation's id may mean, the likeliest first: a session may be
/// called by its own id too, and an imported one may have an id of this kind itself.
pub(super) fn candidate_sessions(conversation: &str) -> Vec<SessionId> {
    let stripped = conversation.strip_prefix("conv_");
    let ids = stripped.into_iter().chain([conversation]);
    ids.filter_map(|id| id.parse().ok()).collect()
}

/// What the ids of items of a type begin with.
pub(super) fn prefix(kind: &str) -> &str {
    match kind {
        "message" => "msg",
        "reasoning" => "rs",
        "function_call" => "fc",
        "function_call_output" => "fco",
        "compaction" => "cmp",
        "web_search_call" => "ws",
        "file_search_call" => "fs",
        "computer_call" => "cu",
        "computer_call_output" => "cuo",
        "code_interpreter_call" => "ci",
        "image_generation_call" => "ig",
        "custom_tool_call" => "ctc",
        "custom_tool_call_output" => "ctco",
        "mcp_call" => "mcp",
        "mcp_list_tools" => "mcpl",
        "mcp_approval_request" => "mcpr",
        "mcp_approval_response" => "mcpa",
        _ => "item",
    }
}

/// The id of an item: the `nth` with this prefix that an entry comes as.
pub(super) fn item(prefix: &str, entry: &EntryId, nth: usize) -> String {
    let hex = hex(entry);
    match nth {
        0 => format!("{prefix}_{hex}"),
        nth => format!("{prefix}_{hex}_{nth}"),
    }
}

/// The entry that an item's id was made from, if it was made here.
pub(super) fn parse_item(item: &str) -> Option<EntryId> {
    let (_, rest) = item.split_once('_')?;
    let hex = rest.split('_').next()?;
    parse_hex(hex)
}

/// Whether an id that came with an item can be kept.
pub(super) fn is_storable(id: &str) -> bool {
    // The client for agents calls what has no id so.
    const NO_ID: &str = "__fake_id__";
    let fit = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    !id.is_empty() && id.len() <= 128 && id != NO_ID && id.chars().all(fit)
}

/// The id of the response to what was asked at an entry.
pub(super) fn response(session: Option<&SessionId>, question: &EntryId) -> String {
    match session {
        Some(session) => format!("resp_{session}_{}", hex(question)),
        None => format!("resp_{}", hex(question)),
    }
}

/// The session and the question of a response that was kept.
pub(super) fn parse_response(response: &str) -> Option<(SessionId, EntryId)> {
    let (session, hex) = response.strip_prefix("resp_")?.rsplit_once('_')?;
    Some((session.parse().ok()?, parse_hex(hex)?))
}

fn hex(entry: &EntryId) -> String {
    entry
        .as_bytes()
        .iter()
        .map(|b| format!("{b:02x}"))
        .collect()
}

fn parse_hex(text: &str) -> Option<EntryId> {
    let fit = text.len() == 32 && text.bytes().all(|b| b.is_ascii_hexdigit());
    text.parse().ok().filter(|_| fit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_lead_back_to_what_they_were_made_from() {
        let entry_id = EntryId::from_bytes([0xab; 16]);
        for nth in [0, 1, 12] {
            assert_eq!(parse_item(&item("msg", &entry_id, nth)), Some(entry_id));
        }
        let session: SessionId = "a_b_c".parse().unwrap();
        let response = response(Some(&session), &entry_id);
        assert_eq!(parse_response(&response), Some((session.clone(), entry_id)));
        assert_eq!(candidate_sessions(&conversation(&session))[0], session);
    }

    #[test]
    fn other_ids_lead_nowhere() {
        for id in [
            "",
            "msg",
            "msg_1",
            "msg_zz",
            "_",
            "msg_abababab-abab-abab-abab-abababababab",
        ] {
            assert_eq!(parse_item(id), None, "{id}");
        }
        assert_eq!(
            parse_response("resp_abababababababababababababababab"),
            None
        );
        assert!(candidate_sessions("conv_../x").is_empty());
    }
}

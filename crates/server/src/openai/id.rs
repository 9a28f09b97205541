//! Maps ids of conversations, items and responses to sessions and entries.

use throughline::{EntryId, SessionId};

/// The conversation id of a session.
pub(super) fn conversation(session: &SessionId) -> String {
    format!("conv_{session}")
}

/// The sessions a conversation id may refer to, likeliest first: a session may also be named by its
/// own id, and an imported session's id may have the same form.
pub(super) fn candidate_sessions(conversation: &str) -> Vec<SessionId> {
    let stripped = conversation.strip_prefix("conv_");
    let ids = stripped.into_iter().chain([conversation]);
    ids.filter_map(|id| id.parse().ok()).collect()
}

/// The id prefix for items of a type.
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

/// The id of an item: the `nth` item with this prefix in an entry.
pub(super) fn item(prefix: &str, entry: &EntryId, nth: usize) -> String {
    let hex = hex(entry);
    match nth {
        0 => format!("{prefix}_{hex}"),
        nth => format!("{prefix}_{hex}_{nth}"),
    }
}

/// Parses the entry id from an item id that was generated here.
pub(super) fn parse_item(item: &str) -> Option<EntryId> {
    let (_, rest) = item.split_once('_')?;
    let hex = rest.split('_').next()?;
    parse_hex(hex)
}

/// Returns whether an id supplied with an item can be stored.
pub(super) fn is_storable(id: &str) -> bool {
    // OpenAI's agents package uses this for an item without an id.
    const NO_ID: &str = "__fake_id__";
    let fit = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    !id.is_empty() && id.len() <= 128 && id != NO_ID && id.chars().all(fit)
}

/// The id of the response to the question at an entry.
pub(super) fn response(session: Option<&SessionId>, question: &EntryId) -> String {
    match session {
        Some(session) => format!("resp_{session}_{}", hex(question)),
        None => format!("resp_{}", hex(question)),
    }
}

/// Parses the session and question from the id of a stored response.
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
    fn ids_round_trip() {
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

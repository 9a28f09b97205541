//! Reads the chat bot's sessions: one JSON document with the session of every user.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::emitter::Emitter;
use super::message_array::emit_messages;
use super::{ReadError, source_document};

#[derive(Deserialize)]
struct UserSession<'a> {
    created_at: Option<String>,
    #[serde(borrow, default)]
    history: Vec<&'a RawValue>,
    current_workspace: Option<String>,
}

pub(super) fn read(emitter: &mut Emitter<'_>) -> Result<(), ReadError> {
    let Some(whole) = source_document::read_source_text(emitter)? else {
        return Ok(());
    };
    let users: BTreeMap<String, &RawValue> = source_document::parse(emitter, &whole)?;
    for (place, (user, raw)) in users.into_iter().enumerate() {
        let session: UserSession<'_> = match serde_json::from_str(raw.get()) {
            Ok(session) => session,
            Err(error) => {
                emitter.emit_damaged(place as u64 + 1, format!("user {user}: {error}"));
                continue;
            }
        };
        let mut found = emitter.new_session(&user);
        found.at = session.created_at.and_then(|at| at.parse().ok());
        found.workspace = session.current_workspace;
        emitter.emit_session(found);
        emit_messages(emitter, &session.history)?;
    }
    Ok(())
}

//! The chat bot: one JSON document with the session of every user.

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

pub(super) fn read(telling: &mut Emitter<'_>) -> Result<(), ReadError> {
    let Some(whole) = source_document::read_source_text(telling)? else {
        return Ok(());
    };
    let users: BTreeMap<String, &RawValue> = source_document::parse(telling, &whole)?;
    for (place, (user, raw)) in users.into_iter().enumerate() {
        let session: UserSession<'_> = match serde_json::from_str(raw.get()) {
            Ok(session) => session,
            Err(error) => {
                telling.emit_damaged(place as u64 + 1, format!("user {user}: {error}"));
                continue;
            }
        };
        let mut found = telling.new_session(&user);
        found.at = session.created_at.and_then(|at| at.parse().ok());
        found.workspace = session.current_workspace;
        telling.emit_session(found);
        emit_messages(telling, &session.history)?;
    }
    Ok(())
}

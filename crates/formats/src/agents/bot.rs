//! The chat bot: one JSON document with the session of every user.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::plain::tell_all;
use super::telling::Telling;
use super::{ReadError, document};

#[derive(Deserialize)]
struct Session<'a> {
    created_at: Option<String>,
    #[serde(borrow, default)]
    history: Vec<&'a RawValue>,
    current_workspace: Option<String>,
}

pub(super) fn read(telling: &mut Telling<'_>) -> Result<(), ReadError> {
    let Some(whole) = document::whole(telling)? else {
        return Ok(());
    };
    let users: BTreeMap<String, &RawValue> = document::parsed(telling, &whole)?;
    for (place, (user, raw)) in users.into_iter().enumerate() {
        let session: Session<'_> = match serde_json::from_str(raw.get()) {
            Ok(session) => session,
            Err(error) => {
                telling.damaged(place as u64 + 1, format!("user {user}: {error}"));
                continue;
            }
        };
        let mut found = telling.found(&user);
        found.at = session.created_at.and_then(|at| at.parse().ok());
        found.workspace = session.current_workspace;
        telling.session(found);
        tell_all(telling, &session.history)?;
    }
    Ok(())
}

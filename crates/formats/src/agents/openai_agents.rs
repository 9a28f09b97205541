//! The SQLite sessions of the OpenAI Agents SDK: a row an item.

use super::content;
use super::database::Database;
use super::goose::sqlite_time;
use super::item::item;
use super::telling::Telling;
use super::{Bookmark, ReadError};

pub(super) fn read(
    telling: &mut Telling<'_>,
    from: Option<&Bookmark>,
) -> Result<Option<Bookmark>, ReadError> {
    let (database, mut until) = Database::open(telling, from)?;
    let since = until.until;
    let sessions: Vec<(String, Option<String>)> = database.all(
        telling,
        "SELECT session_id, created_at FROM agent_sessions WHERE session_id IN
         (SELECT session_id FROM agent_messages WHERE id > ?1) ORDER BY created_at, session_id",
        &[&since],
        |row| Ok((row.get(0)?, row.get(1)?)),
    )?;
    for (id, created) in sessions {
        let mut found = telling.found(&id);
        found.at = created.as_deref().and_then(sqlite_time);
        telling.session(found);
        database.each(
            telling,
            "SELECT id, message_data, created_at FROM agent_messages
             WHERE session_id = ?1 ORDER BY id",
            &[&id],
            |telling, row| {
                let number: i64 = row.get(0)?;
                let data: String = row.get(1)?;
                let at: Option<String> = row.get(2)?;
                let at = at.as_deref().and_then(sqlite_time);
                until.until = until.until.max(number);
                let place = u64::try_from(number).unwrap_or(0);
                match item(telling, &data) {
                    // Items may come again with the id they had; rows do not.
                    Ok(item) => telling.message(place, Some(number.to_string()), at, item.message),
                    Err(_) if content::is_json(&data) => {
                        telling.foreign(place, Some(number.to_string()), at, &data);
                    }
                    Err(wrong) => telling.damaged(place, wrong),
                }
                Ok(())
            },
        )?;
    }
    Ok(until.bookmark())
}

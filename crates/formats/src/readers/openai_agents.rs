//! The SQLite sessions of the OpenAI Agents SDK: a row an item.

use super::emitter::Emitter;
use super::foreign_database::ForeignDatabase;
use super::goose::parse_sqlite_time;
use super::message_content;
use super::openai_item::parse_item;
use super::{ReadError, SourceCursor};

pub(super) fn read(
    telling: &mut Emitter<'_>,
    from: Option<&SourceCursor>,
) -> Result<Option<SourceCursor>, ReadError> {
    let (database, mut until) = ForeignDatabase::open(telling, from)?;
    let since = until.until;
    let sessions: Vec<(String, Option<String>)> = database.query_rows(
        telling,
        "SELECT session_id, created_at FROM agent_sessions WHERE session_id IN
         (SELECT session_id FROM agent_messages WHERE id > ?1) ORDER BY created_at, session_id",
        &[&since],
        |row| Ok((row.get(0)?, row.get(1)?)),
    )?;
    for (id, created) in sessions {
        let mut found = telling.new_session(&id);
        found.at = created.as_deref().and_then(parse_sqlite_time);
        telling.emit_session(found);
        database.for_each_row(
            telling,
            "SELECT id, message_data, created_at FROM agent_messages
             WHERE session_id = ?1 ORDER BY id",
            &[&id],
            |telling, row| {
                let number: i64 = row.get(0)?;
                let data: String = row.get(1)?;
                let at: Option<String> = row.get(2)?;
                let at = at.as_deref().and_then(parse_sqlite_time);
                until.until = until.until.max(number);
                let place = u64::try_from(number).unwrap_or(0);
                match parse_item(telling, &data) {
                    // Items may come again with the id they had; rows do not.
                    Ok(item) => {
                        telling.emit_message(place, Some(number.to_string()), at, item.message);
                    }
                    Err(_) if message_content::is_json(&data) => {
                        telling.emit_foreign(place, Some(number.to_string()), at, &data);
                    }
                    Err(wrong) => telling.emit_damaged(place, wrong),
                }
                Ok(())
            },
        )?;
    }
    Ok(until.to_cursor())
}

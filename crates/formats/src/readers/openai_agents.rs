//! Reads the SQLite sessions of the OpenAI Agents SDK: one row per item.

use super::emitter::Emitter;
use super::foreign_database::ForeignDatabase;
use super::goose::parse_sqlite_time;
use super::message_content;
use super::openai_item::parse_item;
use super::{ReadError, SourceCursor};

pub(super) fn read(
    emitter: &mut Emitter<'_>,
    from: Option<&SourceCursor>,
) -> Result<Option<SourceCursor>, ReadError> {
    let (database, mut until) = ForeignDatabase::open(emitter, from)?;
    let since = until.until;
    let sessions: Vec<(String, Option<String>)> = database.query_rows(
        emitter,
        "SELECT session_id, created_at FROM agent_sessions WHERE session_id IN
         (SELECT session_id FROM agent_messages WHERE id > ?1) ORDER BY created_at, session_id",
        &[&since],
        |row| Ok((row.get(0)?, row.get(1)?)),
    )?;
    for (id, created) in sessions {
        let mut found = emitter.new_session(&id);
        found.at = created.as_deref().and_then(parse_sqlite_time);
        emitter.emit_session(found);
        database.for_each_row(
            emitter,
            "SELECT id, message_data, created_at FROM agent_messages
             WHERE session_id = ?1 ORDER BY id",
            &[&id],
            |emitter, row| {
                let number: i64 = row.get(0)?;
                let data: String = row.get(1)?;
                let at: Option<String> = row.get(2)?;
                let at = at.as_deref().and_then(parse_sqlite_time);
                until.until = until.until.max(number);
                let place = u64::try_from(number).unwrap_or(0);
                match parse_item(emitter, &data) {
                    // Row numbers are unique; item ids may repeat.
                    Ok(item) => {
                        emitter.emit_message(place, Some(number.to_string()), at, item.message);
                    }
                    Err(_) if message_content::is_json(&data) => {
                        emitter.emit_foreign(place, Some(number.to_string()), at, &data);
                    }
                    Err(wrong) => emitter.emit_damaged(place, wrong),
                }
                Ok(())
            },
        )?;
    }
    Ok(until.to_cursor())
}

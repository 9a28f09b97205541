//! Reads the database of llm: rows of responses in older versions, a message tree in newer.

use std::collections::HashSet;

use serde::Deserialize;
use throughline_model::{
    Block, Content, Json, Message, Role, Timestamp, ToolCall, ToolResult, Usage,
};

use super::emitter::Emitter;
use super::foreign_database::{ForeignDatabase, Watermark};
use super::goose::parse_sqlite_time;
use super::{ReadError, SourceCursor};

pub(super) fn read(
    emitter: &mut Emitter<'_>,
    from: Option<&SourceCursor>,
) -> Result<Option<SourceCursor>, ReadError> {
    // Rows are selected by time; rows without a time are emitted every time.
    let (database, Watermark { until: since }) = ForeignDatabase::open(emitter, from)?;
    let mut until = since;
    if database.has_columns("responses", &["prompt", "response", "conversation_id"]) {
        until = until.max(read_responses(emitter, &database, since)?);
    }
    if database.has_columns("turns", &["thread_id", "tip_message_hash"]) {
        until = until.max(read_turns(emitter, &database, since)?);
    }
    Watermark { until }
        .to_cursor()
        .map_or(Ok(None), |b| Ok(Some(b)))
}

fn parse_micros(at: Option<&String>) -> (Option<Timestamp>, i64) {
    let at = at.and_then(|at| parse_sqlite_time(at));
    (at, at.map_or(0, Timestamp::as_microsecond))
}

struct ResponseRow {
    id: String,
    model: Option<String>,
    prompt: Option<String>,
    system: Option<String>,
    response: Option<String>,
    millis: Option<i64>,
    at: Option<String>,
    input: Option<i64>,
    output: Option<i64>,
    reasoning: Option<String>,
}

fn read_responses(
    emitter: &mut Emitter<'_>,
    database: &ForeignDatabase,
    since: i64,
) -> Result<i64, ReadError> {
    let conversations: Vec<(Option<String>, Option<String>, Option<String>)> = database
        .query_rows(
            emitter,
            "SELECT responses.conversation_id, conversations.name, max(responses.datetime_utc)
         FROM responses LEFT JOIN conversations ON conversations.id = conversation_id
         GROUP BY responses.conversation_id ORDER BY min(responses.datetime_utc)",
            &[],
            |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
        )?;
    let optional = |column| database.column_or("responses", column, "NULL");
    let question = format!(
        "SELECT id, model, prompt, system, response, duration_ms, datetime_utc, {}, {}, {}
         FROM responses WHERE conversation_id IS ?1 ORDER BY datetime_utc, id",
        optional("input_tokens"),
        optional("output_tokens"),
        optional("reasoning"),
    );
    let mut until = since;
    for (conversation, name, latest) in conversations {
        let (_, latest) = parse_micros(latest.as_ref());
        if latest != 0 && latest < since {
            continue;
        }
        until = until.max(latest);
        let rows: Vec<ResponseRow> =
            database.query_rows(emitter, &question, &[&conversation], |row| {
                Ok(ResponseRow {
                    id: row.get(0)?,
                    model: row.get(1)?,
                    prompt: row.get(2)?,
                    system: row.get(3)?,
                    response: row.get(4)?,
                    millis: row.get(5)?,
                    at: row.get(6)?,
                    input: row.get(7)?,
                    output: row.get(8)?,
                    reasoning: row.get(9)?,
                })
            })?;
        let loose = conversation.is_none();
        let mut system = None;
        for (index, row) in rows.iter().enumerate() {
            let at = parse_micros(row.at.as_ref()).0;
            // A response without a conversation is a separate session.
            if index == 0 || loose {
                let id = conversation.as_ref().unwrap_or(&row.id);
                let mut found = emitter.new_session(id);
                found.at = at;
                emitter.emit_session(found);
                if let Some(name) = &name {
                    emitter.emit_title(0, "name", at, name, false);
                }
                system = None;
            }
            emit_response(emitter, database, index as u64 + 1, row, &mut system)?;
        }
    }
    Ok(until)
}

fn emit_response(
    emitter: &mut Emitter<'_>,
    database: &ForeignDatabase,
    place: u64,
    row: &ResponseRow,
    system: &mut Option<String>,
) -> Result<(), ReadError> {
    let at = parse_micros(row.at.as_ref()).0;
    if row.system.is_some() && row.system != *system {
        system.clone_from(&row.system);
        let text = row.system.clone().unwrap_or_default();
        let id = format!("{}/system", row.id);
        emitter.emit_message(place, Some(id), at, Message::text(Role::System, text));
    }
    let results = read_tool_results(emitter, database, &row.id)?;
    if !results.is_empty() {
        let id = format!("{}/results", row.id);
        emitter.emit_message(
            place,
            Some(id),
            at,
            Message::new(Role::Tool, Content(results)),
        );
    }
    let mut asked = Vec::new();
    if let Some(prompt) = row.prompt.clone().filter(|prompt| !prompt.is_empty()) {
        asked.push(Block::Text(prompt));
    }
    if database.has_columns("prompt_attachments", &["response_id"]) {
        let question = "SELECT type, path, url, content FROM attachments JOIN prompt_attachments
             ON attachments.id = attachment_id WHERE response_id = ?1 ORDER BY \"order\"";
        asked.extend(read_attachments(emitter, database, question, &row.id)?);
    }
    if !asked.is_empty() {
        let id = format!("{}/prompt", row.id);
        emitter.emit_message(
            place,
            Some(id),
            at,
            Message::new(Role::User, Content(asked)),
        );
    }
    let mut blocks = Vec::new();
    if let Some(text) = row.reasoning.clone().filter(|text| !text.is_empty()) {
        blocks.push(Block::Thinking {
            text,
            signature: None,
        });
    }
    if let Some(text) = row.response.clone().filter(|text| !text.is_empty()) {
        blocks.push(Block::Text(text));
    }
    blocks.extend(read_tool_calls(emitter, database, &row.id)?);
    let mut message = Message::new(Role::Assistant, Content(blocks));
    message.model.clone_from(&row.model);
    message.latency_ms = row.millis.and_then(|millis| u64::try_from(millis).ok());
    message.usage = to_usage(row.input, row.output);
    emitter.emit_message(place, Some(row.id.clone()), at, message);
    emitter.check_stopped()
}

fn to_usage(input: Option<i64>, output: Option<i64>) -> Option<Usage> {
    if input.is_none() && output.is_none() {
        return None;
    }
    let number = |count: Option<i64>| u64::try_from(count.unwrap_or(0)).unwrap_or(0);
    Some(Usage {
        input: number(input),
        output: number(output),
        ..Usage::default()
    })
}

fn read_tool_calls(
    emitter: &mut Emitter<'_>,
    database: &ForeignDatabase,
    response: &str,
) -> Result<Vec<Block>, ReadError> {
    if !database.has_columns("tool_calls", &["response_id"]) {
        return Ok(Vec::new());
    }
    database.query_rows(
        emitter,
        "SELECT id, name, arguments, tool_call_id FROM tool_calls WHERE response_id = ?1
         ORDER BY id",
        &[&response],
        |row| {
            let number: i64 = row.get(0)?;
            let arguments: Option<String> = row.get(2)?;
            let id: Option<String> = row.get(3)?;
            let input = arguments.and_then(|json| Json::parse(json).ok());
            Ok(Block::ToolCall(ToolCall {
                id: id.unwrap_or_else(|| format!("call-{number}")),
                name: row.get::<_, Option<String>>(1)?.unwrap_or_default(),
                input: match input {
                    Some(input) => input,
                    None => Json::parse("{}").map_err(|_| rusqlite::Error::InvalidQuery)?,
                },
            }))
        },
    )
}

fn read_tool_results(
    emitter: &mut Emitter<'_>,
    database: &ForeignDatabase,
    response: &str,
) -> Result<Vec<Block>, ReadError> {
    if !database.has_columns("tool_results", &["response_id"]) {
        return Ok(Vec::new());
    }
    let exception = database.column_or("tool_results", "exception", "NULL");
    let question = format!(
        "SELECT id, output, tool_call_id, {exception} FROM tool_results WHERE response_id = ?1
         ORDER BY id"
    );
    database.query_rows(emitter, &question, &[&response], |row| {
        let number: i64 = row.get(0)?;
        let output: Option<String> = row.get(1)?;
        let id: Option<String> = row.get(2)?;
        Ok(Block::ToolResult(ToolResult {
            call_id: id.unwrap_or_else(|| format!("call-{number}")),
            content: Content::text(output.unwrap_or_default()),
            is_error: row.get::<_, Option<String>>(3)?.is_some(),
        }))
    })
}

/// Reads attachments: their bytes, or their locations.
fn read_attachments(
    emitter: &mut Emitter<'_>,
    database: &ForeignDatabase,
    question: &str,
    of: &dyn rusqlite::ToSql,
) -> Result<Vec<Block>, ReadError> {
    type AttachmentRow = (
        Option<String>,
        Option<String>,
        Option<String>,
        Option<Vec<u8>>,
    );
    let found: Vec<AttachmentRow> = database.query_rows(emitter, question, &[of], |row| {
        Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
    })?;
    let mut blocks = Vec::new();
    for (type_of, path, url, content) in found {
        let type_of = type_of.unwrap_or_else(|| "application/octet-stream".to_owned());
        match content {
            Some(bytes) => blocks.push(emitter.attach_bytes(&type_of, bytes, None)),
            None => {
                let place = path.or(url).unwrap_or_default();
                let value = serde_json::json!({"mime": type_of, "type": "file", "url": place});
                if let Ok(json) = Json::of(&value) {
                    blocks.push(Block::from_foreign(json));
                }
            }
        }
    }
    Ok(blocks)
}

struct TurnRow {
    tip: String,
    model: Option<String>,
    input: Option<i64>,
    output: Option<i64>,
    millis: Option<i64>,
    at: Option<String>,
}

fn read_turns(
    emitter: &mut Emitter<'_>,
    database: &ForeignDatabase,
    since: i64,
) -> Result<i64, ReadError> {
    let threads: Vec<(String, Option<String>, Option<String>)> = database.query_rows(
        emitter,
        "SELECT threads.id, threads.name, max(turns.datetime_utc) FROM threads
         JOIN turns ON thread_id = threads.id GROUP BY threads.id ORDER BY min(turns.datetime_utc)",
        &[],
        |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
    )?;
    let mut until = since;
    for (thread, name, latest) in threads {
        let (_, latest) = parse_micros(latest.as_ref());
        if latest != 0 && latest < since {
            continue;
        }
        until = until.max(latest);
        let turns: Vec<TurnRow> = database.query_rows(
            emitter,
            "SELECT tip_message_hash, coalesce(resolved_model, model), input_tokens,
             output_tokens, duration_ms, datetime_utc FROM turns
             WHERE thread_id = ?1 AND tip_message_hash IS NOT NULL ORDER BY datetime_utc, id",
            &[&thread],
            |row| {
                Ok(TurnRow {
                    tip: row.get(0)?,
                    model: row.get(1)?,
                    input: row.get(2)?,
                    output: row.get(3)?,
                    millis: row.get(4)?,
                    at: row.get(5)?,
                })
            },
        )?;
        let mut found = emitter.new_session(&thread);
        found.at = turns
            .first()
            .and_then(|turn| parse_micros(turn.at.as_ref()).0);
        emitter.emit_session(found);
        if let Some(name) = &name {
            emitter.emit_title(0, "name", None, name, false);
        }
        let mut seen = HashSet::new();
        for (index, turn) in turns.iter().enumerate() {
            self::emit_turn(emitter, database, index as u64 + 1, turn, &mut seen)?;
        }
    }
    Ok(until)
}

/// Emits the messages of a turn that earlier turns did not contain.
fn emit_turn(
    emitter: &mut Emitter<'_>,
    database: &ForeignDatabase,
    place: u64,
    turn: &TurnRow,
    seen: &mut HashSet<String>,
) -> Result<(), ReadError> {
    // From the last message up to one that was read already. Each is queried separately,
    // since a recursive query would not end if messages form a cycle.
    let mut chain = Vec::new();
    let mut next = Some(turn.tip.clone());
    while let Some(hash) = next {
        if seen.contains(&hash) {
            if chain.iter().any(|(below, _)| *below == hash) {
                emitter.emit_damaged(place, format!("message {hash} is its own ancestor"));
            }
            break;
        }
        let found: Vec<(Option<String>, rusqlite::Result<String>)> = database.query_rows(
            emitter,
            "SELECT parent_hash, role FROM messages WHERE hash = ?1",
            &[&hash],
            |row| Ok((row.get(0)?, row.get(1))),
        )?;
        let Some((parent, role)) = found.into_iter().next() else {
            break;
        };
        seen.insert(hash.clone());
        chain.push((hash, role));
        next = parent;
    }
    let at = parse_micros(turn.at.as_ref()).0;
    for (hash, role) in chain.into_iter().rev() {
        let role = match role {
            Ok(role) => role,
            Err(error) => {
                emitter.emit_damaged(place, error.to_string());
                continue;
            }
        };
        let content = Content(read_parts(emitter, database, &hash)?);
        let role = match role.as_str() {
            "assistant" => Role::Assistant,
            "system" => Role::System,
            "tool" => Role::Tool,
            _ => Role::User,
        };
        let mut message = Message::new(role, content);
        if hash == turn.tip {
            message.model.clone_from(&turn.model);
            message.usage = to_usage(turn.input, turn.output);
            message.latency_ms = turn.millis.and_then(|millis| u64::try_from(millis).ok());
        }
        emitter.emit_message(place, Some(hash), at, message);
        emitter.check_stopped()?;
    }
    Ok(())
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct PartPayload {
    name: Option<String>,
    arguments: Option<Json>,
    tool_call_id: Option<String>,
    output: Option<String>,
    exception: Option<String>,
    text_ref: Option<Vec<TextFragment>>,
}

#[derive(Deserialize)]
struct TextFragment {
    literal: Option<String>,
    fragment: Option<i64>,
}

fn read_parts(
    emitter: &mut Emitter<'_>,
    database: &ForeignDatabase,
    message: &str,
) -> Result<Vec<Block>, ReadError> {
    type PartRow = (i64, String, Option<String>, Option<String>);
    let rows: Vec<PartRow> = database.query_rows(
        emitter,
        "SELECT id, type, text, payload FROM parts WHERE message_hash = ?1 ORDER BY position",
        &[&message],
        |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)),
    )?;
    let mut blocks = Vec::new();
    for (number, type_of, text, json) in rows {
        let payload: PartPayload = json
            .as_deref()
            .and_then(|json| serde_json::from_str(json).ok())
            .unwrap_or_default();
        let text = match (text, payload.text_ref) {
            (Some(text), _) => text,
            (None, Some(pieces)) => join_fragments(emitter, database, pieces)?,
            (None, None) => String::new(),
        };
        let call_id = payload
            .tool_call_id
            .unwrap_or_else(|| format!("part-{number}"));
        match type_of.as_str() {
            "text" => blocks.push(Block::Text(text)),
            "reasoning" => blocks.push(Block::Thinking {
                text,
                signature: None,
            }),
            "tool_call" => {
                if let Some(input) = payload.arguments.or_else(|| Json::parse("{}").ok()) {
                    blocks.push(Block::ToolCall(ToolCall {
                        id: call_id,
                        name: payload.name.unwrap_or_default(),
                        input,
                    }));
                }
            }
            "tool_result" => blocks.push(Block::ToolResult(ToolResult {
                call_id,
                content: Content::text(payload.output.unwrap_or_default()),
                is_error: payload.exception.is_some(),
            })),
            "attachment" => {
                let question = "SELECT type, path, url, content FROM attachments
                     JOIN part_attachments ON attachments.id = attachment_id
                     WHERE part_id = ?1 ORDER BY \"order\"";
                blocks.extend(read_attachments(emitter, database, question, &number)?);
            }
            other => {
                let mut value = serde_json::json!({"type": other, "payload": json});
                if !text.is_empty() {
                    value["text"] = text.into();
                }
                if let Ok(json) = Json::of(&value) {
                    blocks.push(Block::from_foreign(json));
                }
            }
        }
    }
    Ok(blocks)
}

/// Joins a text that refers to shared fragments.
fn join_fragments(
    emitter: &mut Emitter<'_>,
    database: &ForeignDatabase,
    pieces: Vec<TextFragment>,
) -> Result<String, ReadError> {
    let mut whole = String::new();
    for piece in pieces {
        if let Some(literal) = piece.literal {
            whole.push_str(&literal);
        } else if let Some(fragment) = piece.fragment {
            let question = "SELECT content FROM fragments WHERE id = ?1";
            let found: Vec<String> =
                database.query_rows(emitter, question, &[&fragment], |row| row.get(0))?;
            whole.extend(found);
        }
    }
    Ok(whole)
}

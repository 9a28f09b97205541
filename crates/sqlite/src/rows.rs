//! Converts between rows and model types; the only module that names the session columns.

use std::collections::BTreeSet;
use std::str::FromStr;
use std::sync::OnceLock;

use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, Row, params};
use serde::Serialize;
use serde::de::DeserializeOwned;
use throughline_model::{
    AgentRef, Digest, EntryId, Owner, Record, Seq, SessionHeader, SessionInfo, SessionRef,
    SessionState, StoredEntry, Tag, Timestamp, Usage,
};
use throughline_store::StoreError;

use crate::error::{damaged, during};
use crate::skip_list::LogEnd;

pub(crate) fn seq_to_i64(seq: Seq) -> i64 {
    i64::try_from(seq.0).unwrap_or(i64::MAX)
}

pub(crate) fn seq_from_i64(number: i64) -> Seq {
    Seq(u64::try_from(number).unwrap_or(0))
}

/// The columns of the session info, in the order of [`info_values`].
pub(crate) const INFO_COLUMNS: [&str; 23] = [
    "head",
    "digest",
    "last_activity",
    "created_at",
    "messages",
    "queries",
    "tokens",
    "restoration",
    "compactions",
    "last_compaction",
    "status",
    "name",
    "named_by",
    "description",
    "lineage",
    "project",
    "workspace",
    "agent",
    "agent_path",
    "model",
    "provider",
    "tags",
    "preview",
];

/// `UPDATE session SET …` for all columns of the session info and the last entry's row id.
fn update_info_sql() -> &'static str {
    static SQL: OnceLock<String> = OnceLock::new();
    SQL.get_or_init(|| {
        let sets: Vec<_> = INFO_COLUMNS
            .iter()
            .map(|name| format!("{name} = ?"))
            .collect();
        let sets = sets.join(", ");
        format!("UPDATE session SET {sets}, head_entry = ? WHERE pk = ?")
    })
}

/// Writes the whole session info and the last entry's row id.
pub(crate) fn write_info(
    connection: &Connection,
    pk: i64,
    info: &SessionInfo,
    entry: Option<i64>,
) -> Result<(), StoreError> {
    let failed = during("writing a session's info");
    let columns = info_values(info)?;
    let values = columns.iter().map(|value| value as &dyn rusqlite::ToSql);
    let values: Vec<_> = values
        .chain([&entry as &dyn rusqlite::ToSql, &pk])
        .collect();
    connection
        .prepare_cached(update_info_sql())
        .and_then(|mut update| update.execute(values.as_slice()))
        .map_err(failed)?;
    Ok(())
}

/// Writes the columns of the session info that a message changes.
pub(crate) fn write_counts(
    connection: &Connection,
    pk: i64,
    info: &SessionInfo,
    entry: Option<i64>,
) -> Result<(), StoreError> {
    let failed = during("writing a session's info");
    let count = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
    connection
        .prepare_cached(
            "UPDATE session SET head = ?1, digest = ?2, last_activity = ?3, messages = ?4,
                 queries = ?5, tokens = ?6, model = ?7, provider = ?8, head_entry = ?9
             WHERE pk = ?10",
        )
        .map_err(failed)?
        .execute(params![
            seq_to_i64(info.head),
            info.digest.as_bytes(),
            info.last_activity.as_microsecond(),
            count(info.messages),
            count(info.queries),
            to_optional_json(&info.tokens)?,
            info.model,
            info.provider,
            entry,
            pk,
        ])
        .map_err(failed)?;
    Ok(())
}

/// Whether two versions of a session's info differ at most in what [`write_counts`] writes.
pub(crate) fn differ_in_counts_only(a: &SessionInfo, b: &SessionInfo) -> bool {
    (&a.name, a.named_by, &a.key, &a.description) == (&b.name, b.named_by, &b.key, &b.description)
        && (a.status, &a.lineage, &a.project) == (b.status, &b.lineage, &b.project)
        && (&a.workspace, &a.agent, &a.tags) == (&b.workspace, &b.agent, &b.tags)
        && (a.created_at, a.restoration) == (b.created_at, b.restoration)
        && (a.compactions, a.last_compaction) == (b.compactions, b.last_compaction)
        && (&a.id, &a.preview) == (&b.id, &b.preview)
}

/// `SELECT` of everything [`info_from_row`] needs, with `id` and `key` first.
pub(crate) fn select_info_sql() -> &'static str {
    static SQL: OnceLock<String> = OnceLock::new();
    SQL.get_or_init(|| format!("SELECT session.id, key, {}", INFO_COLUMNS.join(", ")))
}

fn to_json<T: Serialize>(value: &T) -> Result<String, StoreError> {
    serde_json::to_string(value)
        .map_err(|source| damaged("a value cannot be encoded as JSON", source))
}

fn to_optional_json<T: Serialize + Default + PartialEq>(value: &T) -> Result<Value, StoreError> {
    if *value == T::default() {
        return Ok(Value::Null);
    }
    to_json(value).map(Value::Text)
}

/// Returns the values of the session info, in the order of [`INFO_COLUMNS`].
pub(crate) fn info_values(info: &SessionInfo) -> Result<[Value; 23], StoreError> {
    let text = |text: Option<&str>| text.map_or(Value::Null, |text| Value::Text(text.to_owned()));
    let count = |count: u64| Value::Integer(i64::try_from(count).unwrap_or(i64::MAX));
    let agent = info.agent.as_ref();
    Ok([
        Value::Integer(seq_to_i64(info.head)),
        Value::Blob(info.digest.as_bytes().to_vec()),
        Value::Integer(info.last_activity.as_microsecond()),
        Value::Integer(info.created_at.as_microsecond()),
        count(info.messages),
        count(info.queries),
        to_optional_json(&info.tokens)?,
        to_optional_json(&info.restoration)?,
        count(info.compactions),
        info.last_compaction
            .map_or(Value::Null, |at| Value::Integer(at.as_microsecond())),
        Value::Text(info.status.as_str().to_owned()),
        text(info.name.as_ref().map(throughline_model::Name::as_str)),
        Value::Text(to_json(&info.named_by)?),
        text(info.description.as_deref()),
        Value::Text(to_json(&info.lineage)?),
        text(
            info.project
                .as_ref()
                .map(throughline_model::ProjectId::as_str),
        ),
        text(info.workspace.as_deref()),
        text(agent.map(|agent| agent.name.as_str())),
        text(agent.and_then(|agent| agent.path.as_deref())),
        text(info.model.as_deref()),
        text(info.provider.as_deref()),
        to_optional_json(&info.tags)?,
        Value::Text(info.preview.clone()),
    ])
}

/// Decodes the session info from a row of [`select_info_sql`].
pub(crate) fn info_from_row(row: &Row<'_>) -> Result<SessionInfo, StoreError> {
    Columns(row).session_info().map_err(|error| {
        let id: String = row.get(0).unwrap_or_else(|_| "?".to_owned());
        damaged(format!("the info of session {id} cannot be decoded"), error)
    })
}

struct Columns<'a>(&'a Row<'a>);

type DecodeResult<T> = Result<T, throughline_store::BoxError>;

impl Columns<'_> {
    fn text(&self, column: &str) -> DecodeResult<Option<String>> {
        Ok(self.0.get(column)?)
    }

    fn parse<T: FromStr>(&self, column: &str) -> DecodeResult<Option<T>>
    where
        T::Err: Into<throughline_store::BoxError>,
    {
        self.text(column)?
            .map(|text| text.parse().map_err(Into::into))
            .transpose()
    }

    fn json<T: DeserializeOwned>(&self, column: &str) -> DecodeResult<Option<T>> {
        let text = self.text(column)?;
        Ok(text.map(|text| serde_json::from_str(&text)).transpose()?)
    }

    fn count(&self, column: &str) -> DecodeResult<u64> {
        Ok(u64::try_from(self.0.get::<_, i64>(column)?)?)
    }

    fn time(&self, column: &str) -> DecodeResult<Timestamp> {
        Ok(Timestamp::from_microsecond(self.0.get(column)?)?)
    }

    fn session_info(&self) -> DecodeResult<SessionInfo> {
        let agent_path = self.text("agent_path")?;
        let missing = |column: &'static str| move || format!("{column} is empty");
        let compacted: Option<i64> = self.0.get("last_compaction")?;
        Ok(SessionInfo {
            id: self.parse("id")?.ok_or_else(missing("id"))?,
            key: self.parse("key")?,
            head: Seq(self.count("head")?),
            digest: Digest::from_bytes(self.0.get("digest")?),
            last_activity: self.time("last_activity")?,
            created_at: self.time("created_at")?,
            messages: self.count("messages")?,
            queries: self.count("queries")?,
            tokens: self.json::<Usage>("tokens")?.unwrap_or_default(),
            restoration: self.json::<Usage>("restoration")?.unwrap_or_default(),
            compactions: self.count("compactions")?,
            last_compaction: compacted.map(Timestamp::from_microsecond).transpose()?,
            status: self.parse("status")?.ok_or_else(missing("status"))?,
            name: self.parse("name")?,
            named_by: self.json("named_by")?.ok_or_else(missing("named_by"))?,
            description: self.text("description")?,
            lineage: self.json("lineage")?.ok_or_else(missing("lineage"))?,
            project: self.parse("project")?,
            workspace: self.text("workspace")?,
            agent: self.text("agent")?.map(|name| AgentRef {
                name,
                path: agent_path,
            }),
            model: self.text("model")?,
            provider: self.text("provider")?,
            tags: self.json("tags")?.unwrap_or_default(),
            preview: self.text("preview")?.ok_or_else(missing("preview"))?,
        })
    }
}

/// Returns the row id of an owner, if the owner is known.
pub(crate) fn find_owner(
    connection: &Connection,
    owner: &Owner,
) -> Result<Option<i64>, StoreError> {
    connection
        .prepare_cached("SELECT pk FROM owner WHERE id = ?1")
        .and_then(|mut query| {
            query
                .query_row([owner.as_str()], |row| row.get(0))
                .optional()
        })
        .map_err(during("looking up an owner"))
}

/// The location of a session in the database.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SessionRow {
    pub(crate) pk: i64,
    pub(crate) owner: i64,
    pub(crate) shared: Seq,
    pub(crate) end: LogEnd,
    pub(crate) trashed: bool,
}

/// Finds a session, live or in the trash.
pub(crate) fn find_session(
    connection: &Connection,
    session: &SessionRef,
) -> Result<Option<SessionRow>, StoreError> {
    connection
        .prepare_cached(
            "SELECT session.pk, session.owner, shared, head, trashed_at IS NOT NULL, head_entry
             FROM session JOIN owner ON owner.pk = session.owner
             WHERE owner.id = ?1 AND session.id = ?2 AND gone = 0",
        )
        .and_then(|mut query| {
            query
                .query_row([session.owner.as_str(), session.id.as_str()], |row| {
                    Ok(SessionRow {
                        pk: row.get(0)?,
                        owner: row.get(1)?,
                        shared: seq_from_i64(row.get(2)?),
                        end: LogEnd {
                            head: seq_from_i64(row.get(3)?),
                            entry: row.get(5)?,
                        },
                        trashed: row.get(4)?,
                    })
                })
                .optional()
        })
        .map_err(during("looking up a session"))
}

/// Finds a live session.
pub(crate) fn find_live_session(
    connection: &Connection,
    session: &SessionRef,
) -> Result<SessionRow, StoreError> {
    match find_session(connection, session)? {
        None => Err(StoreError::NoSuchSession(session.id.clone())),
        Some(found) if found.trashed => Err(StoreError::InTrash(session.id.clone())),
        Some(found) => Ok(found),
    }
}

/// Loads a session's record: its info and state.
pub(crate) fn load_record(connection: &Connection, pk: i64) -> Result<Record, StoreError> {
    static SQL: OnceLock<String> = OnceLock::new();
    let failed = during("reading a session's record");
    let sql = SQL.get_or_init(|| format!("{} FROM session WHERE pk = ?1", select_info_sql()));
    let mut query = connection.prepare_cached(sql).map_err(failed)?;
    let mut rows = query.query([pk]).map_err(failed)?;
    let row = rows
        .next()
        .map_err(failed)?
        .ok_or_else(|| StoreError::DamagedStore {
            what: format!("session number {pk} has no row"),
            source: None,
        })?;
    let info = info_from_row(row)?;
    Ok(Record {
        info,
        state: load_state(connection, pk)?,
    })
}

fn load_state(connection: &Connection, pk: i64) -> Result<SessionState, StoreError> {
    let json: Option<String> = connection
        .prepare_cached("SELECT json FROM standing WHERE session = ?1")
        .and_then(|mut query| query.query_row([pk], |row| row.get(0)).optional())
        .map_err(during("reading a session's state"))?;
    match json {
        None => Ok(SessionState::default()),
        Some(json) => serde_json::from_str(&json)
            .map_err(|error| damaged("a session's state cannot be decoded", error)),
    }
}

/// Writes a session's state.
pub(crate) fn write_state(
    connection: &Connection,
    pk: i64,
    state: &SessionState,
) -> Result<(), StoreError> {
    let failed = during("writing a session's state");
    if *state == SessionState::default() {
        connection
            .prepare_cached("DELETE FROM standing WHERE session = ?1")
            .and_then(|mut delete| delete.execute([pk]))
            .map_err(failed)?;
        return Ok(());
    }
    connection
        .prepare_cached("INSERT OR REPLACE INTO standing (session, json) VALUES (?1, ?2)")
        .map_err(failed)?
        .execute(params![pk, to_json(state)?])
        .map_err(failed)?;
    Ok(())
}

/// Writes a session's tags.
pub(crate) fn write_tags(
    connection: &Connection,
    owner: i64,
    pk: i64,
    tags: &BTreeSet<Tag>,
) -> Result<(), StoreError> {
    let failed = during("writing a session's tags");
    connection
        .prepare_cached("DELETE FROM session_tag WHERE session = ?1")
        .and_then(|mut delete| delete.execute([pk]))
        .map_err(failed)?;
    let mut insert = connection
        .prepare_cached("INSERT INTO session_tag (owner, tag, session) VALUES (?1, ?2, ?3)")
        .map_err(failed)?;
    for tag in tags {
        insert
            .execute(params![owner, tag.as_str(), pk])
            .map_err(failed)?;
    }
    Ok(())
}

/// Loads a session's header.
pub(crate) fn load_header(connection: &Connection, pk: i64) -> Result<SessionHeader, StoreError> {
    let json: String = connection
        .prepare_cached("SELECT json FROM birth WHERE session = ?1")
        .and_then(|mut query| query.query_row([pk], |row| row.get(0)))
        .map_err(during("reading a session's header"))?;
    serde_json::from_str(&json)
        .map_err(|error| damaged("a session's header cannot be decoded", error))
}

/// Decodes an entry from a row with all columns of its table.
pub(crate) fn stored_entry_from_row(row: &Row<'_>) -> Result<StoredEntry, StoreError> {
    let seq: i64 = row.get(2).map_err(during("reading an entry"))?;
    let decode = || -> DecodeResult<StoredEntry> {
        Ok(StoredEntry {
            seq: seq_from_i64(seq),
            id: EntryId::from_bytes(row.get(5)?),
            at: Timestamp::from_microsecond(row.get(6)?)?,
            digest: Digest::from_bytes(row.get(7)?),
            payload: row.get(8)?,
        })
    };
    decode().map_err(|error| damaged(format!("entry {seq} cannot be read"), error))
}

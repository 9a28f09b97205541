//! Converts between rows and the model; the only module that names columns of session rows.

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use throughline_model::{
    Digest, EntryId, Owner, ProjectId, Record, Seq, SessionHeader, SessionId, SessionInfo,
    SessionRef, SessionState, StoredEntry, Tag, Timestamp, Usage,
};
use throughline_store::{BoxError, StoreError};
use tokio_postgres::Row;
use tokio_postgres::types::FromSql;
use uuid::Uuid;

use crate::error::{Fault, damaged};
use crate::tx::Tx;

pub(crate) fn seq_to_i64(seq: Seq) -> i64 {
    u64_to_i64(seq.0)
}

pub(crate) fn seq_from_i64(number: i64) -> Seq {
    Seq(u64::try_from(number).unwrap_or(0))
}

pub(crate) fn u64_to_i64(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

pub(crate) fn entry_id_to_uuid(id: EntryId) -> Uuid {
    Uuid::from_bytes(*id.as_bytes())
}

/// Escapes NUL, which PostgreSQL text cannot contain, in text that sessions are looked up
/// by. The encoding is injective.
pub(crate) fn escape_nul(text: &str) -> Cow<'_, str> {
    if text.contains(['\0', '\\']) {
        Cow::Owned(text.replace('\\', "\\\\").replace('\0', "\\0"))
    } else {
        Cow::Borrowed(text)
    }
}

pub(crate) fn to_json<T: Serialize>(value: &T) -> Result<String, StoreError> {
    serde_json::to_string(value)
        .map_err(|source| damaged("a value cannot be encoded as JSON", source))
}

fn from_json<T: DeserializeOwned>(what: &str, text: &str) -> Result<T, StoreError> {
    serde_json::from_str(text).map_err(|error| damaged(format!("{what} cannot be decoded"), error))
}

/// Reads a column; an unexpected type or value means a damaged row.
pub(crate) fn get<'a, T: FromSql<'a>>(row: &'a Row, column: usize) -> Result<T, StoreError> {
    row.try_get(column)
        .map_err(|error| damaged(format!("column {column} of a row"), error))
}

/// Reads a text column and parses it.
pub(crate) fn parse_column<T: std::str::FromStr<Err: Into<BoxError>>>(
    row: &Row,
    column: usize,
) -> Result<T, StoreError> {
    let text: &str = get(row, column)?;
    text.parse()
        .map_err(|error: T::Err| damaged(format!("{text:?} in a row"), error))
}

/// Session info that messages change besides the counts; stored as JSON in `head.latest`.
#[derive(Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct LatestUsage {
    tokens: Usage,
    model: Option<String>,
    provider: Option<String>,
}

/// The session info columns of `head`, in stored form.
#[derive(Debug)]
pub(crate) struct HeadColumns {
    pub(crate) head: i64,
    pub(crate) digest: Vec<u8>,
    pub(crate) last_activity: i64,
    pub(crate) messages: i64,
    pub(crate) queries: i64,
    pub(crate) latest: Option<String>,
}

impl HeadColumns {
    pub(crate) fn of(info: &SessionInfo) -> Result<Self, StoreError> {
        let latest = LatestUsage {
            tokens: info.tokens,
            model: info.model.clone(),
            provider: info.provider.clone(),
        };
        Ok(Self {
            head: seq_to_i64(info.head),
            digest: info.digest.as_bytes().to_vec(),
            last_activity: info.last_activity.as_microsecond(),
            messages: u64_to_i64(info.messages),
            queries: u64_to_i64(info.queries),
            latest: if latest == LatestUsage::default() {
                None
            } else {
                Some(to_json(&latest)?)
            },
        })
    }
}

/// Whether two versions of a session's info differ only in what [`HeadColumns`] stores.
pub(crate) fn differ_only_in_head_columns(a: &SessionInfo, b: &SessionInfo) -> bool {
    let counted = SessionInfo {
        head: b.head,
        digest: b.digest,
        last_activity: b.last_activity,
        messages: b.messages,
        queries: b.queries,
        tokens: b.tokens,
        model: b.model.clone(),
        provider: b.provider.clone(),
        ..a.clone()
    };
    counted == *b
}

/// The columns of `session` that are derived from its info.
#[derive(Debug)]
pub(crate) struct SessionColumns {
    pub(crate) card: String,
    pub(crate) status: &'static str,
    pub(crate) name: Option<String>,
    pub(crate) project: Option<String>,
    pub(crate) agent: Option<String>,
}

impl SessionColumns {
    pub(crate) fn of(info: &SessionInfo) -> Result<Self, StoreError> {
        let agent = info.agent.as_ref().map(|agent| agent.name.as_str());
        let project = info.project.as_ref().map(ProjectId::as_str);
        Ok(Self {
            card: to_json(info)?,
            status: info.status.as_str(),
            name: info.name.as_ref().map(ToString::to_string),
            project: project.map(|text| escape_nul(text).into_owned()),
            agent: agent.map(|text| escape_nul(text).into_owned()),
        })
    }
}

/// The columns of `session AS s` and `head AS h` that [`info_from_row`] reads, in order.
pub(crate) const INFO_COLUMNS: &str =
    "s.card, h.head, h.digest, h.last_activity, h.messages, h.queries, h.latest";
/// How many columns [`INFO_COLUMNS`] has.
pub(crate) const INFO_COLUMN_COUNT: usize = 7;

/// `FROM` clause joining sessions and their heads.
pub(crate) const FROM_SESSIONS: &str = "FROM throughline.head h
    JOIN throughline.session s ON s.owner = h.owner AND s.log = h.log";

/// Decodes session info from [`INFO_COLUMNS`], after `skip` other columns.
pub(crate) fn info_from_row(row: &Row, skip: usize) -> Result<SessionInfo, StoreError> {
    let text: &str = get(row, skip)?;
    let info: SessionInfo = from_json("a session's info", text)?;
    let latest: Option<&str> = get(row, skip + 6)?;
    let latest: LatestUsage = latest
        .map(|text| from_json("a session's latest usage", text))
        .transpose()?
        .unwrap_or_default();
    let count = |column| -> Result<u64, StoreError> {
        u64::try_from(get::<i64>(row, column)?).map_err(|error| damaged("a count", error))
    };
    Ok(SessionInfo {
        head: Seq(count(skip + 1)?),
        digest: decode_digest(get(row, skip + 2)?)?,
        last_activity: decode_time(get(row, skip + 3)?)?,
        messages: count(skip + 4)?,
        queries: count(skip + 5)?,
        tokens: latest.tokens,
        model: latest.model,
        provider: latest.provider,
        ..info
    })
}

pub(crate) fn decode_digest(bytes: &[u8]) -> Result<Digest, StoreError> {
    let bytes: [u8; 32] = bytes
        .try_into()
        .map_err(|error| damaged("a digest of the wrong length", error))?;
    Ok(Digest::from_bytes(bytes))
}

pub(crate) fn decode_time(micros: i64) -> Result<Timestamp, StoreError> {
    Timestamp::from_microsecond(micros).map_err(|error| damaged("a time out of range", error))
}

pub(crate) fn decode_state(text: Option<&str>) -> Result<SessionState, StoreError> {
    match text {
        None => Ok(SessionState::default()),
        Some(text) => from_json("a session's state", text),
    }
}

pub(crate) fn decode_header(text: &str) -> Result<SessionHeader, StoreError> {
    from_json("a session's header", text)
}

pub(crate) fn decode_record(text: &str) -> Result<Record, StoreError> {
    from_json("a record", text)
}

/// A run of entries shared from log `base`, up to `upto`, starting where the previous run
/// ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SharedSegment {
    pub(crate) upto: Seq,
    pub(crate) base: i64,
}

/// The identity of a session, and which logs hold its entries.
#[derive(Clone, Debug)]
pub(crate) struct SessionRow {
    pub(crate) log: i64,
    pub(crate) id: SessionId,
    pub(crate) shared: Seq,
    pub(crate) head: Seq,
    pub(crate) trashed: bool,
    pub(crate) segments: Vec<SharedSegment>,
}

impl SessionRow {
    /// The log that holds an entry.
    pub(crate) fn log_holding(&self, seq: Seq) -> i64 {
        let part = self.segments.iter().find(|part| seq <= part.upto);
        part.map_or(self.log, |part| part.base)
    }

    /// The same session with an earlier head.
    pub(crate) fn with_head(&self, head: Seq) -> Self {
        Self {
            head,
            ..self.clone()
        }
    }

    /// The logs that hold a range of entries, as (log, first, last).
    pub(crate) fn log_ranges(&self, from: Seq, to: Seq) -> Vec<(i64, Seq, Seq)> {
        let own = SharedSegment {
            upto: Seq(u64::MAX),
            base: self.log,
        };
        let mut stretches = Vec::new();
        let mut first = from.max(Seq(1));
        for part in self.segments.iter().chain([&own]) {
            if first > to {
                break;
            }
            if part.upto >= first {
                stretches.push((part.base, first, part.upto.min(to)));
                first = Seq(part.upto.0.saturating_add(1));
            }
        }
        stretches
    }
}

/// Selects what [`session_from_row`] reads, from live or from removed sessions.
fn select_session_row(removed: bool) -> String {
    let (columns, from) = if removed {
        ("s.head, false", "FROM throughline.kept s")
    } else {
        ("h.head, h.trashed", FROM_SESSIONS)
    };
    format!(
        "SELECT s.log, s.id, s.shared, {columns},
             ARRAY(SELECT i.upto FROM throughline.inherits i
                   WHERE i.owner = s.owner AND i.log = s.log ORDER BY i.upto),
             ARRAY(SELECT i.base FROM throughline.inherits i
                   WHERE i.owner = s.owner AND i.log = s.log ORDER BY i.upto)
         {from}"
    )
}

fn session_from_row(row: &Row) -> Result<SessionRow, StoreError> {
    let upto: Vec<i64> = get(row, 5)?;
    let bases: Vec<i64> = get(row, 6)?;
    Ok(SessionRow {
        log: get(row, 0)?,
        id: parse_column(row, 1)?,
        shared: seq_from_i64(get(row, 2)?),
        head: seq_from_i64(get(row, 3)?),
        trashed: get(row, 4)?,
        segments: to_segments(upto, bases),
    })
}

/// Builds the shared segments of a log from its `inherits` rows.
pub(crate) fn to_segments(upto: Vec<i64>, bases: Vec<i64>) -> Vec<SharedSegment> {
    let parts = upto.into_iter().map(seq_from_i64).zip(bases);
    parts
        .map(|(upto, base)| SharedSegment { upto, base })
        .collect()
}

/// Finds a session, live or in the trash.
pub(crate) async fn find_session(
    tx: &Tx,
    session: &SessionRef,
) -> Result<Option<SessionRow>, Fault> {
    let sql = format!(
        "{} WHERE s.owner = $1 AND s.id = $2",
        select_session_row(false)
    );
    let row = tx
        .query_opt(
            "looking up a session",
            &sql,
            &[&session.owner.as_str(), &session.id.as_str()],
        )
        .await?;
    Ok(row.as_ref().map(session_from_row).transpose()?)
}

/// Finds a log by number, including one retained for a removed session.
pub(crate) async fn find_log(
    tx: &Tx,
    owner: &Owner,
    log: i64,
) -> Result<Option<SessionRow>, Fault> {
    for removed in [false, true] {
        let sql = format!(
            "{} WHERE s.owner = $1 AND s.log = $2",
            select_session_row(removed)
        );
        let params = params![owner.as_str(), log];
        let row = tx.query_opt("looking up a log", &sql, params).await?;
        if let Some(row) = row {
            return Ok(Some(session_from_row(&row)?));
        }
    }
    Ok(None)
}

/// Finds a live session.
pub(crate) async fn find_live_session(tx: &Tx, session: &SessionRef) -> Result<SessionRow, Fault> {
    match find_session(tx, session).await? {
        None => Err(StoreError::NoSuchSession(session.id.clone()).into()),
        Some(found) if found.trashed => Err(StoreError::InTrash(session.id.clone()).into()),
        Some(found) => Ok(found),
    }
}

/// Locks a session's head against appends and changes, then reads it.
pub(crate) async fn lock_session(
    tx: &Tx,
    session: &SessionRef,
) -> Result<Option<SessionRow>, Fault> {
    // Read again after locking: joined rows may have been read before the lock was granted.
    tx.execute(
        "locking a session",
        "SELECT FROM throughline.head h
         JOIN throughline.session s ON s.owner = h.owner AND s.log = h.log
         WHERE s.owner = $1 AND s.id = $2 FOR NO KEY UPDATE OF h",
        &[&session.owner.as_str(), &session.id.as_str()],
    )
    .await?;
    find_session(tx, session).await
}

/// Locks a live session.
pub(crate) async fn lock_live_session(tx: &Tx, session: &SessionRef) -> Result<SessionRow, Fault> {
    lock_session(tx, session).await?;
    find_live_session(tx, session).await
}

/// Locks the relations among an owner's sessions: forks, removals and erasures.
pub(crate) async fn lock_owner(tx: &Tx, owner: &Owner) -> Result<(), Fault> {
    tx.execute(
        "locking an owner",
        "SELECT FROM throughline.owner WHERE owner = $1 FOR NO KEY UPDATE",
        &[&owner.as_str()],
    )
    .await?;
    Ok(())
}

/// Inserts the owner's row if there is none.
pub(crate) async fn ensure_owner(tx: &Tx, owner: &Owner) -> Result<(), Fault> {
    tx.execute(
        "creating an owner",
        "INSERT INTO throughline.owner (owner) VALUES ($1) ON CONFLICT DO NOTHING",
        &[&owner.as_str()],
    )
    .await?;
    Ok(())
}

/// Loads the stored record of a session.
pub(crate) async fn load_record(tx: &Tx, owner: &Owner, log: i64) -> Result<Record, Fault> {
    let sql = format!(
        "SELECT {INFO_COLUMNS}, t.json {FROM_SESSIONS}
         LEFT JOIN throughline.standing t ON t.owner = h.owner AND t.log = h.log
         WHERE h.owner = $1 AND h.log = $2"
    );
    let params = params![owner.as_str(), log];
    let row = tx
        .query_opt("reading a session's record", &sql, params)
        .await?
        .ok_or_else(|| StoreError::DamagedStore {
            what: format!("log {log} has no row"),
            source: None,
        })?;
    Ok(Record {
        info: info_from_row(&row, 0)?,
        state: decode_state(get(&row, INFO_COLUMN_COUNT)?)?,
    })
}

/// Loads the header of a session, even of a removed one.
pub(crate) async fn load_header(tx: &Tx, owner: &Owner, log: i64) -> Result<SessionHeader, Fault> {
    let row = tx
        .query_opt(
            "reading a session's header",
            "SELECT birth FROM throughline.session WHERE owner = $1 AND log = $2
             UNION ALL SELECT birth FROM throughline.kept WHERE owner = $1 AND log = $2",
            params![owner.as_str(), log],
        )
        .await?
        .ok_or_else(|| StoreError::DamagedStore {
            what: format!("log {log} has no header"),
            source: None,
        })?;
    Ok(decode_header(get(&row, 0)?)?)
}

/// Writes all of a session's info.
pub(crate) async fn write_record(
    tx: &Tx,
    owner: &Owner,
    log: i64,
    record: &Record,
) -> Result<(), Fault> {
    let doing = "writing a session's info";
    let columns = SessionColumns::of(&record.info)?;
    tx.execute(
        doing,
        "UPDATE throughline.session SET card = $3, status = $4, name = $5, project = $6,
             agent = $7 WHERE owner = $1 AND log = $2",
        params![
            owner.as_str(),
            log,
            columns.card,
            columns.status,
            columns.name,
            columns.project,
            columns.agent
        ],
    )
    .await?;
    let counts = HeadColumns::of(&record.info)?;
    tx.execute(
        doing,
        "UPDATE throughline.head SET epoch = epoch + 1, head = $3, digest = $4,
             last_activity = $5, messages = $6, queries = $7, latest = $8
         WHERE owner = $1 AND log = $2",
        params![
            owner.as_str(),
            log,
            counts.head,
            counts.digest,
            counts.last_activity,
            counts.messages,
            counts.queries,
            counts.latest
        ],
    )
    .await?;
    write_tags(tx, owner, log, &record.info.tags).await?;
    write_state(tx, owner, log, &record.state).await
}

/// Writes the session state.
pub(crate) async fn write_state(
    tx: &Tx,
    owner: &Owner,
    log: i64,
    state: &SessionState,
) -> Result<(), Fault> {
    let doing = "writing a session's state";
    if *state == SessionState::default() {
        tx.execute(
            doing,
            "DELETE FROM throughline.standing WHERE owner = $1 AND log = $2",
            params![owner.as_str(), log],
        )
        .await?;
        return Ok(());
    }
    tx.execute(
        doing,
        "INSERT INTO throughline.standing (owner, log, json) VALUES ($1, $2, $3)
         ON CONFLICT (owner, log) DO UPDATE SET json = excluded.json",
        params![owner.as_str(), log, to_json(state)?],
    )
    .await?;
    Ok(())
}

/// Writes a session's tags.
pub(crate) async fn write_tags(
    tx: &Tx,
    owner: &Owner,
    log: i64,
    tags: &BTreeSet<Tag>,
) -> Result<(), Fault> {
    let doing = "storing a session's tags";
    let tags: Vec<_> = tags.iter().map(|tag| escape_nul(tag.as_str())).collect();
    let tags: Vec<&str> = tags.iter().map(AsRef::as_ref).collect();
    tx.execute(
        doing,
        "DELETE FROM throughline.session_tag WHERE owner = $1 AND log = $2 AND tag <> ALL ($3)",
        params![owner.as_str(), log, tags],
    )
    .await?;
    tx.execute(
        doing,
        "INSERT INTO throughline.session_tag (owner, tag, log)
         SELECT $1, tag, $2 FROM unnest($3::text[]) AS tag ON CONFLICT DO NOTHING",
        params![owner.as_str(), log, tags],
    )
    .await?;
    Ok(())
}

/// The columns of an entry that [`stored_entry_from_row`] reads, in order.
pub(crate) const ENTRY_COLUMNS: &str = "e.seq, e.id, e.at, e.digest, e.payload";

/// Decodes an entry from [`ENTRY_COLUMNS`], after `skip` other columns.
pub(crate) fn stored_entry_from_row(row: &Row, skip: usize) -> Result<StoredEntry, StoreError> {
    let id: Uuid = get(row, skip + 1)?;
    Ok(StoredEntry {
        seq: seq_from_i64(get(row, skip)?),
        id: EntryId::from_bytes(id.into_bytes()),
        at: decode_time(get(row, skip + 2)?)?,
        digest: decode_digest(get(row, skip + 3)?)?,
        payload: get(row, skip + 4)?,
    })
}

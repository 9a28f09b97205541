//! Between rows and the model: the one place where columns are named.

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

/// A text of people's that sessions are found by, in a form without NUL. No two texts
/// have one form.
pub(crate) fn escape_nul(text: &str) -> Cow<'_, str> {
    if text.contains(['\0', '\\']) {
        Cow::Owned(text.replace('\\', "\\\\").replace('\0', "\\0"))
    } else {
        Cow::Borrowed(text)
    }
}

pub(crate) fn to_json<T: Serialize>(value: &T) -> Result<String, StoreError> {
    serde_json::to_string(value).map_err(|source| damaged("a value has no JSON", source))
}

fn from_json<T: DeserializeOwned>(what: &str, text: &str) -> Result<T, StoreError> {
    serde_json::from_str(text).map_err(|error| damaged(format!("{what} cannot be decoded"), error))
}

/// A column that must be what this program writes.
pub(crate) fn get<'a, T: FromSql<'a>>(row: &'a Row, column: usize) -> Result<T, StoreError> {
    row.try_get(column)
        .map_err(|error| damaged(format!("column {column} of a row"), error))
}

/// A text column that must parse.
pub(crate) fn parse_column<T: std::str::FromStr<Err: Into<BoxError>>>(
    row: &Row,
    column: usize,
) -> Result<T, StoreError> {
    let text: &str = get(row, column)?;
    text.parse()
        .map_err(|error: T::Err| damaged(format!("{text:?} in a row"), error))
}

/// What a message changes of a card besides the counts.
#[derive(Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct LatestUsage {
    tokens: Usage,
    model: Option<String>,
    provider: Option<String>,
}

/// The columns of `head` that are a card's, as they are written.
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
    pub(crate) fn of(card: &SessionInfo) -> Result<Self, StoreError> {
        let latest = LatestUsage {
            tokens: card.tokens,
            model: card.model.clone(),
            provider: card.provider.clone(),
        };
        Ok(Self {
            head: seq_to_i64(card.head),
            digest: card.digest.as_bytes().to_vec(),
            last_activity: card.last_activity.as_microsecond(),
            messages: u64_to_i64(card.messages),
            queries: u64_to_i64(card.queries),
            latest: if latest == LatestUsage::default() {
                None
            } else {
                Some(to_json(&latest)?)
            },
        })
    }
}

/// Whether two cards of a session differ at most in what [`Counts`] has.
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

/// The columns of `session` that follow from a card.
#[derive(Debug)]
pub(crate) struct SessionColumns {
    pub(crate) card: String,
    pub(crate) status: &'static str,
    pub(crate) name: Option<String>,
    pub(crate) project: Option<String>,
    pub(crate) agent: Option<String>,
}

impl SessionColumns {
    pub(crate) fn of(card: &SessionInfo) -> Result<Self, StoreError> {
        let agent = card.agent.as_ref().map(|agent| agent.name.as_str());
        let project = card.project.as_ref().map(ProjectId::as_str);
        Ok(Self {
            card: to_json(card)?,
            status: card.status.as_str(),
            name: card.name.as_ref().map(ToString::to_string),
            project: project.map(|text| escape_nul(text).into_owned()),
            agent: agent.map(|text| escape_nul(text).into_owned()),
        })
    }
}

/// What [`card`] needs, of `session AS s` and `head AS h`, in the order it needs it.
pub(crate) const INFO_COLUMNS: &str =
    "s.info, h.head, h.digest, h.last_activity, h.messages, h.queries, h.latest";
/// How many columns that is.
pub(crate) const INFO_COLUMN_COUNT: usize = 7;

/// `FROM` with sessions and their heads.
pub(crate) const FROM_SESSIONS: &str = "FROM throughline.head h
    JOIN throughline.session s ON s.owner = h.owner AND s.log = h.log";

/// The card in a row that starts with [`CARD`], after `skip` other columns.
pub(crate) fn info_from_row(row: &Row, skip: usize) -> Result<SessionInfo, StoreError> {
    let text: &str = get(row, skip)?;
    let kept: SessionInfo = from_json("a session's card", text)?;
    let latest: Option<&str> = get(row, skip + 6)?;
    let latest: LatestUsage = latest
        .map(|text| from_json("the latest of a session", text))
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
        ..kept
    })
}

pub(crate) fn decode_digest(bytes: &[u8]) -> Result<Digest, StoreError> {
    let bytes: [u8; 32] = bytes
        .try_into()
        .map_err(|error| damaged("a digest of another length", error))?;
    Ok(Digest::from_bytes(bytes))
}

pub(crate) fn decode_time(micros: i64) -> Result<Timestamp, StoreError> {
    Timestamp::from_microsecond(micros).map_err(|error| damaged("a time is none", error))
}

pub(crate) fn decode_state(text: Option<&str>) -> Result<SessionState, StoreError> {
    match text {
        None => Ok(SessionState::default()),
        Some(text) => from_json("what stands in a session", text),
    }
}

pub(crate) fn decode_header(text: &str) -> Result<SessionHeader, StoreError> {
    from_json("a session's birth", text)
}

pub(crate) fn decode_record(text: &str) -> Result<Record, StoreError> {
    from_json("a record that was kept", text)
}

/// A stretch of a log that is another's: up to this entry, from where the one before ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SharedSegment {
    pub(crate) upto: Seq,
    pub(crate) base: i64,
}

/// Where a session is, and where its entries are.
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
    /// Whose log an entry is in.
    pub(crate) fn log_holding(&self, seq: Seq) -> i64 {
        let part = self.segments.iter().find(|part| seq <= part.upto);
        part.map_or(self.log, |part| part.base)
    }

    /// The log up to an entry.
    pub(crate) fn with_head(&self, head: Seq) -> Self {
        Self {
            head,
            ..self.clone()
        }
    }

    /// Where the entries from one to another are: log, first, last.
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

/// What [`found`] needs, of sessions or of those that are kept.
fn select_session_row(kept: bool) -> String {
    let (columns, from) = if kept {
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

/// Whose entries a log shares.
pub(crate) fn to_segments(upto: Vec<i64>, bases: Vec<i64>) -> Vec<SharedSegment> {
    let parts = upto.into_iter().map(seq_from_i64).zip(bases);
    parts
        .map(|(upto, base)| SharedSegment { upto, base })
        .collect()
}

/// Finds a session, in use or in the trash.
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

/// Finds a log by its number, even one that is only kept.
pub(crate) async fn find_log(
    tx: &Tx,
    owner: &Owner,
    log: i64,
) -> Result<Option<SessionRow>, Fault> {
    for kept in [false, true] {
        let sql = format!(
            "{} WHERE s.owner = $1 AND s.log = $2",
            select_session_row(kept)
        );
        let params = params![owner.as_str(), log];
        let row = tx.query_opt("looking up a log", &sql, params).await?;
        if let Some(row) = row {
            return Ok(Some(session_from_row(&row)?));
        }
    }
    Ok(None)
}

/// Finds a session in use.
pub(crate) async fn find_live_session(tx: &Tx, session: &SessionRef) -> Result<SessionRow, Fault> {
    match find_session(tx, session).await? {
        None => Err(StoreError::NoSuchSession(session.id.clone()).into()),
        Some(found) if found.trashed => Err(StoreError::InTrash(session.id.clone()).into()),
        Some(found) => Ok(found),
    }
}

/// Locks a session's head, so that nobody appends to it or changes it; then finds it.
pub(crate) async fn lock_session(
    tx: &Tx,
    session: &SessionRef,
) -> Result<Option<SessionRow>, Fault> {
    // The row is found again afterwards: what was joined to it was read before the lock.
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

/// Locks a session in use.
pub(crate) async fn lock_live_session(tx: &Tx, session: &SessionRef) -> Result<SessionRow, Fault> {
    lock_session(tx, session).await?;
    find_live_session(tx, session).await
}

/// Locks what hangs together among an owner's sessions: forks, removals, erasures.
pub(crate) async fn lock_owner(tx: &Tx, owner: &Owner) -> Result<(), Fault> {
    tx.execute(
        "locking an owner",
        "SELECT FROM throughline.owner WHERE owner = $1 FOR NO KEY UPDATE",
        &[&owner.as_str()],
    )
    .await?;
    Ok(())
}

/// Makes an owner known.
pub(crate) async fn ensure_owner(tx: &Tx, owner: &Owner) -> Result<(), Fault> {
    tx.execute(
        "making an owner",
        "INSERT INTO throughline.owner (owner) VALUES ($1) ON CONFLICT DO NOTHING",
        &[&owner.as_str()],
    )
    .await?;
    Ok(())
}

/// What is kept about a session.
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

/// How a session was born, even one that is only kept.
pub(crate) async fn load_header(tx: &Tx, owner: &Owner, log: i64) -> Result<SessionHeader, Fault> {
    let row = tx
        .query_opt(
            "reading a session's birth",
            "SELECT birth FROM throughline.session WHERE owner = $1 AND log = $2
             UNION ALL SELECT birth FROM throughline.kept WHERE owner = $1 AND log = $2",
            params![owner.as_str(), log],
        )
        .await?
        .ok_or_else(|| StoreError::DamagedStore {
            what: format!("log {log} has no birth"),
            source: None,
        })?;
    Ok(decode_header(get(&row, 0)?)?)
}

/// Writes all of a session's card.
pub(crate) async fn write_record(
    tx: &Tx,
    owner: &Owner,
    log: i64,
    record: &Record,
) -> Result<(), Fault> {
    let doing = "writing a session's card";
    let shown = SessionColumns::of(&record.info)?;
    tx.execute(
        doing,
        "UPDATE throughline.session SET card = $3, status = $4, name = $5, project = $6,
             agent = $7 WHERE owner = $1 AND log = $2",
        params![
            owner.as_str(),
            log,
            shown.card,
            shown.status,
            shown.name,
            shown.project,
            shown.agent
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

/// Writes what stands in a session.
pub(crate) async fn write_state(
    tx: &Tx,
    owner: &Owner,
    log: i64,
    standing: &SessionState,
) -> Result<(), Fault> {
    let doing = "writing what stands in a session";
    if *standing == SessionState::default() {
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
        params![owner.as_str(), log, to_json(standing)?],
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
    let doing = "writing a session's tags";
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

/// The columns of an entry, in the order [`stored`] needs them.
pub(crate) const ENTRY_COLUMNS: &str = "e.seq, e.id, e.at, e.digest, e.payload";

/// The entry in a row that starts with [`ENTRY`], after `skip` other columns.
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

//! Lists, counts and finds sessions, from indexes only; no log is read.

use std::fmt::Write as _;

use async_trait::async_trait;
use rusqlite::types::Value;
use rusqlite::{Connection, params, params_from_iter};
use throughline_model::{Owner, Project, SessionInfo, SessionRef, Timestamp};
use throughline_store::{
    Candidate, Catalog, Cursor, Fence, Page, SessionFilter, SessionScope, StoreError,
    TrashedSession,
};

use crate::error::{damaged, during};
use crate::open::SqliteStore;
use crate::rows;

/// Matches the keys of internal sessions, as a range that the key index can serve: `;` is the
/// character after the `:` that ends their prefix.
const INTERNAL_KEYS: &str = "key >= 'throughline:' AND key < 'throughline;'";

/// A session filter as SQL conditions and their parameters.
struct FilterSql {
    sql: String,
    values: Vec<Value>,
}

impl FilterSql {
    fn new(owner: i64, filter: &SessionFilter) -> Self {
        let scope = match filter.scope {
            SessionScope::Live => "trashed_at IS NULL AND gone = 0",
            SessionScope::Trash => "trashed_at IS NOT NULL AND gone = 0",
        };
        let mut conditions = Self {
            sql: format!("FROM session WHERE owner = ? AND {scope}"),
            values: vec![Value::Integer(owner)],
        };
        let mut and = |sql: &str, value: String| {
            let _ = write!(conditions.sql, " AND {sql}");
            conditions.values.push(Value::Text(value));
        };
        for tag in &filter.tags {
            and(
                "pk IN (SELECT session FROM session_tag AS t
                 WHERE t.owner = session.owner AND tag = ?)",
                tag.to_string(),
            );
        }
        if let Some(agent) = &filter.agent {
            and("agent = ?", agent.clone());
        }
        if let Some(project) = &filter.project {
            and("project = ?", project.to_string());
        }
        if let Some(parent) = &filter.parent {
            and("parent = ?", parent.to_string());
        }
        if let Some(status) = filter.status {
            // As a literal, so that the partial index on archived sessions is used.
            let _ = write!(conditions.sql, " AND status = '{}'", status.as_str());
        }
        if let Some(since) = filter.since {
            conditions.sql.push_str(" AND last_activity >= ?");
            conditions
                .values
                .push(Value::Integer(since.as_microsecond()));
        }
        conditions
    }

    /// Excludes internal sessions.
    fn exclude_internal(&mut self) {
        // For a row without a key the condition is NULL, which counts as not internal.
        let _ = write!(self.sql, " AND NOT ifnull({INTERNAL_KEYS}, 0)");
    }

    fn start_after(&mut self, cursor: &Cursor) {
        self.sql.push_str(" AND (last_activity, id) < (?, ?)");
        let micros = cursor.last_activity.as_microsecond();
        self.values.push(Value::Integer(micros));
        self.values.push(Value::Text(cursor.id.to_string()));
    }
}

fn query_session_infos(
    connection: &Connection,
    sql: &str,
    values: Vec<Value>,
) -> Result<Vec<SessionInfo>, StoreError> {
    let failed = during("listing sessions");
    let mut query = connection.prepare_cached(sql).map_err(failed)?;
    let mut found = query.query(params_from_iter(values)).map_err(failed)?;
    let mut infos = Vec::new();
    while let Some(row) = found.next().map_err(failed)? {
        infos.push(rows::info_from_row(row)?);
    }
    Ok(infos)
}

fn list(
    connection: &Connection,
    owner: &Owner,
    filter: &SessionFilter,
    after: Option<&Cursor>,
    limit: usize,
) -> Result<Page<SessionInfo>, StoreError> {
    let Some(owner) = rows::find_owner(connection, owner)? else {
        return Ok(Page {
            items: Vec::new(),
            next: None,
        });
    };
    let mut conditions = FilterSql::new(owner, filter);
    if !filter.include_internal {
        conditions.exclude_internal();
    }
    if let Some(cursor) = after {
        conditions.start_after(cursor);
    }
    let sql = format!(
        "{} {} ORDER BY last_activity DESC, id DESC LIMIT ?",
        rows::select_info_sql(),
        conditions.sql
    );
    // One more than requested, to learn whether there is another page.
    let page_limit = i64::try_from(limit.saturating_add(1)).unwrap_or(i64::MAX);
    conditions.values.push(Value::Integer(page_limit));
    let items = query_session_infos(connection, &sql, conditions.values)?;
    Ok(Page::from_overfetch(items, limit))
}

fn count(
    connection: &Connection,
    owner: &Owner,
    filter: &SessionFilter,
) -> Result<u64, StoreError> {
    let Some(owner) = rows::find_owner(connection, owner)? else {
        return Ok(0);
    };
    let conditions = FilterSql::new(owner, filter);
    let counted = |sql: &str| {
        connection
            .prepare_cached(sql)
            .and_then(|mut query| {
                let values = params_from_iter(&conditions.values);
                query.query_row(values, |row| row.get::<_, i64>(0))
            })
            .map_err(during("counting sessions"))
    };
    let mut count = counted(&format!("SELECT count(*) {}", conditions.sql))?;
    if !filter.include_internal {
        // The few internal sessions are counted separately and subtracted: filtering on the key
        // would read rows where an index is enough.
        count -= counted(&format!(
            "SELECT count(*) {} AND {INTERNAL_KEYS}",
            conditions.sql
        ))?;
    }
    Ok(u64::try_from(count).unwrap_or(0))
}

fn find_candidates(
    connection: &Connection,
    owner: &Owner,
    text: &str,
    limit: usize,
) -> Result<Vec<Candidate>, StoreError> {
    let failed = during("looking for sessions");
    let Some(owner) = rows::find_owner(connection, owner)? else {
        return Ok(Vec::new());
    };
    let sql = format!(
        "{}, trashed_at IS NOT NULL FROM session WHERE owner = ?1 AND gone = 0
         AND pk IN (
             SELECT pk FROM session WHERE owner = ?1 AND id >= ?2 AND id < ?3 AND gone = 0
                 AND (id = ?2 OR NOT ifnull({INTERNAL_KEYS}, 0))
             UNION ALL
             SELECT pk FROM session WHERE owner = ?1 AND key = ?2
             UNION ALL
             SELECT pk FROM session WHERE owner = ?1 AND name = ?2
         )
         ORDER BY (session.id = ?2 OR ifnull(key = ?2, 0) OR ifnull(name = ?2, 0)) DESC,
             last_activity DESC, session.id DESC LIMIT ?4",
        rows::select_info_sql()
    );
    // Ids are ASCII, so everything that begins with the text sorts before this.
    let beyond = format!("{text}\u{10ffff}");
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut query = connection.prepare_cached(&sql).map_err(failed)?;
    let mut found = query
        .query(params![owner, text, beyond, limit])
        .map_err(failed)?;
    let mut candidates = Vec::new();
    while let Some(row) = found.next().map_err(failed)? {
        candidates.push(Candidate {
            info: rows::info_from_row(row)?,
            trashed: row.get(2 + rows::INFO_COLUMNS.len()).map_err(failed)?,
        });
    }
    Ok(candidates)
}

fn list_trashed(
    connection: &Connection,
    owner: &Owner,
    before: Timestamp,
) -> Result<Vec<TrashedSession>, StoreError> {
    let failed = during("listing the trash");
    let Some(owner) = rows::find_owner(connection, owner)? else {
        return Ok(Vec::new());
    };
    let sql = format!(
        "{}, trashed_at FROM session
         WHERE owner = ?1 AND trashed_at < ?2 AND trashed_at IS NOT NULL AND gone = 0
         ORDER BY trashed_at, id",
        rows::select_info_sql()
    );
    let mut query = connection.prepare_cached(&sql).map_err(failed)?;
    let mut found = query
        .query(params![owner, before.as_microsecond()])
        .map_err(failed)?;
    let mut trashed = Vec::new();
    while let Some(row) = found.next().map_err(failed)? {
        let micros = row.get(2 + rows::INFO_COLUMNS.len()).map_err(failed)?;
        trashed.push(TrashedSession {
            info: rows::info_from_row(row)?,
            at: Timestamp::from_microsecond(micros)
                .map_err(|error| damaged("a time in the trash cannot be decoded", error))?,
        });
    }
    Ok(trashed)
}

fn list_projects(connection: &Connection, owner: &Owner) -> Result<Vec<Project>, StoreError> {
    let failed = during("reading projects");
    let Some(owner) = rows::find_owner(connection, owner)? else {
        return Ok(Vec::new());
    };
    let mut query = connection
        .prepare_cached("SELECT json FROM project WHERE owner = ?1 ORDER BY id")
        .map_err(failed)?;
    let found = query
        .query_map([owner], |row| row.get::<_, String>(0))
        .map_err(failed)?;
    found
        .map(|json| {
            serde_json::from_str(&json.map_err(failed)?)
                .map_err(|error| damaged("a project cannot be decoded", error))
        })
        .collect()
}

#[async_trait]
impl Catalog for SqliteStore {
    async fn list(
        &self,
        owner: &Owner,
        filter: &SessionFilter,
        after: Option<&Cursor>,
        limit: usize,
    ) -> Result<Page<SessionInfo>, StoreError> {
        let (owner, filter, after) = (owner.clone(), filter.clone(), after.cloned());
        self.reader_pool
            .read(move |connection| list(connection, &owner, &filter, after.as_ref(), limit))
            .await
    }

    async fn count(&self, owner: &Owner, filter: &SessionFilter) -> Result<u64, StoreError> {
        let (owner, filter) = (owner.clone(), filter.clone());
        self.reader_pool
            .read(move |connection| count(connection, &owner, &filter))
            .await
    }

    async fn find_candidates(
        &self,
        owner: &Owner,
        text: &str,
        limit: usize,
    ) -> Result<Vec<Candidate>, StoreError> {
        let (owner, text) = (owner.clone(), text.to_owned());
        self.reader_pool
            .read(move |connection| find_candidates(connection, &owner, &text, limit))
            .await
    }

    async fn trash_fenced(
        &self,
        session: &SessionRef,
        at: Timestamp,
        fence: Option<&Fence>,
    ) -> Result<(), StoreError> {
        self.trash_session(session, at, fence).await
    }

    async fn restore(&self, session: &SessionRef) -> Result<(), StoreError> {
        self.restore_session(session).await
    }

    async fn list_trashed(
        &self,
        owner: &Owner,
        before: Timestamp,
    ) -> Result<Vec<TrashedSession>, StoreError> {
        let owner = owner.clone();
        self.reader_pool
            .read(move |connection| list_trashed(connection, &owner, before))
            .await
    }

    async fn remove_fenced(
        &self,
        session: &SessionRef,
        trashed_at: Option<Timestamp>,
        fence: Option<&Fence>,
    ) -> Result<(), StoreError> {
        self.remove_session(session, trashed_at, fence).await
    }

    async fn list_projects(&self, owner: &Owner) -> Result<Vec<Project>, StoreError> {
        let owner = owner.clone();
        self.reader_pool
            .read(move |connection| list_projects(connection, &owner))
            .await
    }

    async fn put_project(&self, owner: &Owner, project: &Project) -> Result<(), StoreError> {
        let (owner, project) = (owner.clone(), project.clone());
        self.writer
            .write(move |tx| {
                let owner = tx.ensure_owner(&owner)?;
                let json = serde_json::to_string(&project)
                    .map_err(|error| damaged("a project cannot be encoded as JSON", error))?;
                tx.prepare_write(
                    "INSERT OR REPLACE INTO project (owner, id, json) VALUES (?1, ?2, ?3)",
                )
                .and_then(|mut insert| insert.execute(params![owner, project.id.as_str(), json]))
                .map_err(during("storing a project"))?;
                Ok(())
            })
            .await
    }
}

//! Lists, counts and finds sessions through indexes, without reading any log.

use std::fmt::Write as _;

use async_trait::async_trait;
use throughline_model::{Owner, Project, SessionInfo, SessionRef, Timestamp};
use throughline_store::{
    Candidate, Catalog, Cursor, Fence, Page, SessionFilter, SessionScope, StoreError,
    TrashedSession,
};
use tokio_postgres::types::ToSql;

use crate::error::{Fault, damaged};
use crate::log::{in_read_transaction, in_write_transaction};
use crate::open::PostgresStore;
use crate::rows::{self, FROM_SESSIONS, INFO_COLUMN_COUNT, INFO_COLUMNS};
use crate::tx::{Params, PlannerHints, Tx};

/// Matches the keys of internal sessions as a range, so that the index on keys can be used:
/// a semicolon follows the colon that ends their prefix.
const INTERNAL_KEYS: &str = "s.key >= 'throughline:' AND s.key < 'throughline;'";

/// A filter as SQL: the conditions and their parameters.
struct FilterSql {
    sql: String,
    values: Vec<Box<dyn ToSql + Sync + Send>>,
}

impl FilterSql {
    fn new(owner: &Owner, filter: &SessionFilter) -> Self {
        let scope = match filter.scope {
            SessionScope::Live => "NOT h.trashed AND s.trashed_at IS NULL",
            SessionScope::Trash => "s.trashed_at IS NOT NULL",
        };
        let mut conditions = Self {
            sql: format!("{FROM_SESSIONS} WHERE h.owner = $1 AND s.owner = $1 AND {scope}"),
            values: vec![Box::new(owner.as_str().to_owned())],
        };
        for tag in &filter.tags {
            let tag = rows::escape_nul(tag.as_str()).into_owned();
            conditions.and(
                |n| {
                    format!(
                        "EXISTS (SELECT FROM throughline.session_tag t
                         WHERE t.owner = $1 AND t.tag = ${n} AND t.log = h.log)"
                    )
                },
                tag,
            );
        }
        if let Some(agent) = &filter.agent {
            let agent = rows::escape_nul(agent).into_owned();
            conditions.and(|n| format!("s.agent = ${n}"), agent);
        }
        if let Some(project) = &filter.project {
            let project = rows::escape_nul(project.as_str()).into_owned();
            conditions.and(|n| format!("s.project = ${n}"), project);
        }
        if let Some(parent) = &filter.parent {
            conditions.and(|n| format!("s.parent = ${n}"), parent.to_string());
        }
        if let Some(status) = filter.status {
            // A literal, so that the partial index on archived sessions can be used.
            let _ = write!(conditions.sql, " AND s.status = '{}'", status.as_str());
        }
        if let Some(since) = filter.since {
            let micros = since.as_microsecond();
            conditions.and(|n| format!("h.last_activity >= ${n}"), micros);
        }
        if !filter.include_internal {
            // For a row without a key the condition is NULL, which must count as false.
            let _ = write!(conditions.sql, " AND NOT coalesce({INTERNAL_KEYS}, false)");
        }
        conditions
    }

    fn and(
        &mut self,
        condition: impl FnOnce(usize) -> String,
        value: impl ToSql + Sync + Send + 'static,
    ) {
        self.values.push(Box::new(value));
        let _ = write!(self.sql, " AND {}", condition(self.values.len()));
    }

    fn start_after(&mut self, cursor: &Cursor) {
        self.values
            .push(Box::new(cursor.last_activity.as_microsecond()));
        let micros = self.values.len();
        self.and(
            |n| format!("(h.last_activity, h.id) < (${micros}, ${n})"),
            cursor.id.to_string(),
        );
    }

    fn params(&self) -> Vec<&(dyn ToSql + Sync)> {
        let values = self.values.iter();
        values
            .map(|value| &**value as &(dyn ToSql + Sync))
            .collect()
    }
}

async fn list(
    tx: &Tx,
    owner: &Owner,
    filter: &SessionFilter,
    after: Option<&Cursor>,
    limit: usize,
) -> Result<Page<SessionInfo>, Fault> {
    let mut conditions = FilterSql::new(owner, filter);
    if let Some(cursor) = after {
        conditions.start_after(cursor);
    }
    // One extra row shows whether there is another page.
    let wanted = rows::u64_to_i64(limit.saturating_add(1) as u64);
    conditions.values.push(Box::new(wanted));
    let sql = format!(
        "SELECT {INFO_COLUMNS} {} ORDER BY h.last_activity DESC, h.id DESC LIMIT ${}",
        conditions.sql,
        conditions.values.len()
    );
    if filter.scope == SessionScope::Live && filter.status.is_none() && filter.parent.is_none() {
        // Read in `head` order. Other filters match few rows and have their own indexes.
        tx.set_planner_hints(PlannerHints::IndexOrder).await?;
    }
    let found = tx
        .query("listing sessions", &sql, &conditions.params())
        .await?;
    let infos = found.iter().map(|row| rows::info_from_row(row, 0));
    let items = infos.collect::<Result<Vec<_>, _>>()?;
    Ok(Page::from_overfetch(items, limit))
}

async fn count(tx: &Tx, owner: &Owner, filter: &SessionFilter) -> Result<u64, Fault> {
    let conditions = FilterSql::new(owner, filter);
    let sql = format!("SELECT count(*) {}", conditions.sql);
    let found = tx
        .query_opt("counting sessions", &sql, &conditions.params())
        .await?;
    let count: i64 = found.map_or(Ok(0), |row| rows::get(&row, 0))?;
    Ok(u64::try_from(count).unwrap_or(0))
}

async fn find_candidates(
    tx: &Tx,
    owner: &Owner,
    text: &str,
    limit: usize,
) -> Result<Vec<Candidate>, Fault> {
    if text.contains('\0') {
        // No id, key or name contains NUL.
        return Ok(Vec::new());
    }
    let sql = format!(
        "SELECT {INFO_COLUMNS}, h.trashed {FROM_SESSIONS} WHERE h.owner = $1 AND s.owner = $1
         AND s.log IN (
             SELECT s.log FROM throughline.session s
             WHERE s.owner = $1 AND s.id >= $2 AND s.id < $3
                 AND (s.id = $2 OR NOT coalesce({INTERNAL_KEYS}, false))
             UNION ALL
             SELECT s.log FROM throughline.session s WHERE s.owner = $1 AND s.key = $2
             UNION ALL
             SELECT s.log FROM throughline.session s WHERE s.owner = $1 AND s.name = $2
         )
         ORDER BY (s.id = $2 OR coalesce(s.key = $2, false) OR coalesce(s.name = $2, false)) DESC,
             h.last_activity DESC, h.id DESC LIMIT $4"
    );
    // Ids are ASCII, so everything with this prefix sorts before this.
    let beyond = format!("{text}\u{10ffff}");
    let limit = rows::u64_to_i64(limit as u64);
    let found = tx
        .query(
            "finding sessions",
            &sql,
            params![owner.as_str(), text, beyond, limit],
        )
        .await?;
    let candidates = found.iter().map(|row| {
        Ok(Candidate {
            info: rows::info_from_row(row, 0)?,
            trashed: rows::get(row, INFO_COLUMN_COUNT)?,
        })
    });
    Ok(candidates.collect::<Result<_, StoreError>>()?)
}

async fn list_trashed(
    tx: &Tx,
    owner: &Owner,
    before: Timestamp,
) -> Result<Vec<TrashedSession>, Fault> {
    let sql = format!(
        "SELECT {INFO_COLUMNS}, s.trashed_at {FROM_SESSIONS}
         WHERE h.owner = $1 AND s.owner = $1 AND s.trashed_at < $2 AND s.trashed_at IS NOT NULL
         ORDER BY s.trashed_at, s.id"
    );
    let found = tx
        .query(
            "listing the trash",
            &sql,
            params![owner.as_str(), before.as_microsecond()],
        )
        .await?;
    let trashed = found.iter().map(|row| {
        Ok(TrashedSession {
            info: rows::info_from_row(row, 0)?,
            at: rows::decode_time(rows::get(row, INFO_COLUMN_COUNT)?)?,
        })
    });
    Ok(trashed.collect::<Result<_, StoreError>>()?)
}

async fn list_projects(tx: &Tx, owner: &Owner) -> Result<Vec<Project>, Fault> {
    let found = tx
        .query(
            "reading projects",
            "SELECT json FROM throughline.project WHERE owner = $1 ORDER BY id",
            params![owner.as_str()],
        )
        .await?;
    let projects = found.iter().map(|row| {
        serde_json::from_str(rows::get(row, 0)?)
            .map_err(|error| damaged("a project cannot be decoded", error))
    });
    Ok(projects.collect::<Result<_, StoreError>>()?)
}

#[async_trait]
impl Catalog for PostgresStore {
    async fn list(
        &self,
        owner: &Owner,
        filter: &SessionFilter,
        after: Option<&Cursor>,
        limit: usize,
    ) -> Result<Page<SessionInfo>, StoreError> {
        in_read_transaction!(self, owner, |tx| list(tx, owner, filter, after, limit)
            .await)
    }

    async fn count(&self, owner: &Owner, filter: &SessionFilter) -> Result<u64, StoreError> {
        in_read_transaction!(self, owner, |tx| count(tx, owner, filter).await)
    }

    async fn find_candidates(
        &self,
        owner: &Owner,
        text: &str,
        limit: usize,
    ) -> Result<Vec<Candidate>, StoreError> {
        in_read_transaction!(self, owner, |tx| find_candidates(tx, owner, text, limit)
            .await)
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
        in_read_transaction!(self, owner, |tx| list_trashed(tx, owner, before).await)
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
        in_read_transaction!(self, owner, |tx| list_projects(tx, owner).await)
    }

    async fn put_project(&self, owner: &Owner, project: &Project) -> Result<(), StoreError> {
        in_write_transaction!(self, owner, |tx| put_project(tx, owner, project).await)
    }
}

async fn put_project(tx: &Tx, owner: &Owner, project: &Project) -> Result<(), Fault> {
    rows::ensure_owner(tx, owner).await?;
    let id = rows::escape_nul(project.id.as_str());
    let values: Params<'_> = params![owner.as_str(), id.as_ref(), rows::to_json(project)?];
    tx.execute(
        "storing a project",
        "INSERT INTO throughline.project (owner, id, json) VALUES ($1, $2, $3)
         ON CONFLICT (owner, id) DO UPDATE SET json = excluded.json",
        values,
    )
    .await?;
    Ok(())
}

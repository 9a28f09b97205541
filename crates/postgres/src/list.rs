//! Finding sessions: walks along an index, touching no log.

use std::fmt::Write as _;

use async_trait::async_trait;
use throughline_model::{Card, Owner, Project, SessionRef, Timestamp};
use throughline_store::{
    Candidate, Catalog, Cursor, Fence, Filter, Page, Scope, StoreError, Trashed,
};
use tokio_postgres::types::ToSql;

use crate::error::{Fault, damaged};
use crate::log::{reading, writing};
use crate::open::PostgresStore;
use crate::rows::{self, CARD, CARD_COLUMNS, SESSIONS};
use crate::tx::{Params, Plan, Tx};

/// The keys of the program's own sessions, as a range that the index of keys can answer:
/// the colon that ends their prefix is followed by a semicolon.
const OWN: &str = "s.key >= 'throughline:' AND s.key < 'throughline;'";

/// A filter as SQL: conditions, and the values they stand for.
struct Conditions {
    sql: String,
    values: Vec<Box<dyn ToSql + Sync + Send>>,
}

impl Conditions {
    fn new(owner: &Owner, filter: &Filter) -> Self {
        let scope = match filter.scope {
            Scope::Live => "NOT h.trashed AND s.trashed_at IS NULL",
            Scope::Trash => "s.trashed_at IS NOT NULL",
        };
        let mut conditions = Self {
            sql: format!("{SESSIONS} WHERE h.owner = $1 AND s.owner = $1 AND {scope}"),
            values: vec![Box::new(owner.as_str().to_owned())],
        };
        for tag in &filter.tags {
            let tag = rows::plain(tag.as_str()).into_owned();
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
            let agent = rows::plain(agent).into_owned();
            conditions.and(|n| format!("s.agent = ${n}"), agent);
        }
        if let Some(project) = &filter.project {
            let project = rows::plain(project.as_str()).into_owned();
            conditions.and(|n| format!("s.project = ${n}"), project);
        }
        if let Some(parent) = &filter.parent {
            conditions.and(|n| format!("s.parent = ${n}"), parent.to_string());
        }
        if let Some(status) = filter.status {
            // As a literal, so that the index of what is archived can be used.
            let _ = write!(conditions.sql, " AND s.status = '{}'", status.as_str());
        }
        if let Some(since) = filter.since {
            let micros = since.as_microsecond();
            conditions.and(|n| format!("h.last_activity >= ${n}"), micros);
        }
        if !filter.own {
            // A row without a key has no answer to give, which is not a yes.
            let _ = write!(conditions.sql, " AND NOT coalesce({OWN}, false)");
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

    fn after(&mut self, cursor: &Cursor) {
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
    filter: &Filter,
    after: Option<&Cursor>,
    limit: usize,
) -> Result<Page<Card>, Fault> {
    let mut conditions = Conditions::new(owner, filter);
    if let Some(cursor) = after {
        conditions.after(cursor);
    }
    // One more than asked for tells whether there is another page.
    let wanted = rows::number(limit.saturating_add(1) as u64);
    conditions.values.push(Box::new(wanted));
    let sql = format!(
        "SELECT {CARD} {} ORDER BY h.last_activity DESC, h.id DESC LIMIT ${}",
        conditions.sql,
        conditions.values.len()
    );
    if filter.scope == Scope::Live && filter.status.is_none() && filter.parent.is_none() {
        // In the order of the heads. Others are few, and found by their own indexes.
        tx.plan(Plan::AlongAnIndex).await?;
    }
    let found = tx
        .query("listing sessions", &sql, &conditions.params())
        .await?;
    let cards = found.iter().map(|row| rows::card(row, 0));
    let items = cards.collect::<Result<Vec<_>, _>>()?;
    Ok(Page::cut(items, limit))
}

async fn count(tx: &Tx, owner: &Owner, filter: &Filter) -> Result<u64, Fault> {
    let conditions = Conditions::new(owner, filter);
    let sql = format!("SELECT count(*) {}", conditions.sql);
    let found = tx
        .optional("counting sessions", &sql, &conditions.params())
        .await?;
    let count: i64 = found.map_or(Ok(0), |row| rows::get(&row, 0))?;
    Ok(u64::try_from(count).unwrap_or(0))
}

async fn candidates(
    tx: &Tx,
    owner: &Owner,
    text: &str,
    limit: usize,
) -> Result<Vec<Candidate>, Fault> {
    if text.contains('\0') {
        // Nothing is called so.
        return Ok(Vec::new());
    }
    let sql = format!(
        "SELECT {CARD}, h.trashed {SESSIONS} WHERE h.owner = $1 AND s.owner = $1
         AND s.log IN (
             SELECT s.log FROM throughline.session s
             WHERE s.owner = $1 AND s.id >= $2 AND s.id < $3
                 AND (s.id = $2 OR NOT coalesce({OWN}, false))
             UNION ALL
             SELECT s.log FROM throughline.session s WHERE s.owner = $1 AND s.key = $2
             UNION ALL
             SELECT s.log FROM throughline.session s WHERE s.owner = $1 AND s.name = $2
         )
         ORDER BY (s.id = $2 OR coalesce(s.key = $2, false) OR coalesce(s.name = $2, false)) DESC,
             h.last_activity DESC, h.id DESC LIMIT $4"
    );
    // Ids are ASCII, so everything that begins with the text comes before this.
    let beyond = format!("{text}\u{10ffff}");
    let limit = rows::number(limit as u64);
    let found = tx
        .query(
            "looking for sessions",
            &sql,
            params![owner.as_str(), text, beyond, limit],
        )
        .await?;
    let candidates = found.iter().map(|row| {
        Ok(Candidate {
            card: rows::card(row, 0)?,
            trashed: rows::get(row, CARD_COLUMNS)?,
        })
    });
    Ok(candidates.collect::<Result<_, StoreError>>()?)
}

async fn trashed(tx: &Tx, owner: &Owner, before: Timestamp) -> Result<Vec<Trashed>, Fault> {
    let sql = format!(
        "SELECT {CARD}, s.trashed_at {SESSIONS}
         WHERE h.owner = $1 AND s.owner = $1 AND s.trashed_at < $2 AND s.trashed_at IS NOT NULL
         ORDER BY s.trashed_at, s.id"
    );
    let found = tx
        .query(
            "looking into the trash",
            &sql,
            params![owner.as_str(), before.as_microsecond()],
        )
        .await?;
    let trashed = found.iter().map(|row| {
        Ok(Trashed {
            card: rows::card(row, 0)?,
            at: rows::time(rows::get(row, CARD_COLUMNS)?)?,
        })
    });
    Ok(trashed.collect::<Result<_, StoreError>>()?)
}

async fn projects(tx: &Tx, owner: &Owner) -> Result<Vec<Project>, Fault> {
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
        filter: &Filter,
        after: Option<&Cursor>,
        limit: usize,
    ) -> Result<Page<Card>, StoreError> {
        reading!(self, owner, |tx| list(tx, owner, filter, after, limit)
            .await)
    }

    async fn count(&self, owner: &Owner, filter: &Filter) -> Result<u64, StoreError> {
        reading!(self, owner, |tx| count(tx, owner, filter).await)
    }

    async fn candidates(
        &self,
        owner: &Owner,
        text: &str,
        limit: usize,
    ) -> Result<Vec<Candidate>, StoreError> {
        reading!(self, owner, |tx| candidates(tx, owner, text, limit).await)
    }

    async fn trash_under(
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

    async fn trashed(&self, owner: &Owner, before: Timestamp) -> Result<Vec<Trashed>, StoreError> {
        reading!(self, owner, |tx| trashed(tx, owner, before).await)
    }

    async fn remove_under(
        &self,
        session: &SessionRef,
        trashed_at: Option<Timestamp>,
        fence: Option<&Fence>,
    ) -> Result<(), StoreError> {
        self.remove_session(session, trashed_at, fence).await
    }

    async fn projects(&self, owner: &Owner) -> Result<Vec<Project>, StoreError> {
        reading!(self, owner, |tx| projects(tx, owner).await)
    }

    async fn put_project(&self, owner: &Owner, project: &Project) -> Result<(), StoreError> {
        writing!(self, owner, |tx| put_project(tx, owner, project).await)
    }
}

async fn put_project(tx: &Tx, owner: &Owner, project: &Project) -> Result<(), Fault> {
    rows::know(tx, owner).await?;
    let id = rows::plain(project.id.as_str());
    let values: Params<'_> = params![owner.as_str(), id.as_ref(), rows::json(project)?];
    tx.execute(
        "keeping a project",
        "INSERT INTO throughline.project (owner, id, json) VALUES ($1, $2, $3)
         ON CONFLICT (owner, id) DO UPDATE SET json = excluded.json",
        values,
    )
    .await?;
    Ok(())
}

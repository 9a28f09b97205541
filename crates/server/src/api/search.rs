//! Search and statistics API.

use std::time::Duration;

use axum::Json as JsonResponse;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use throughline::recall::Mode;
use throughline::{
    IndexWait, Project, ProjectId, Role, SearchOptions, Seq, SessionFilter, SessionId,
    SessionScope, Status, Timestamp,
};
use utoipa::{IntoParams, ToSchema};

use super::page_limit;
use crate::extract::Query;
use crate::wire::SessionView;
use crate::{App, Caller, Problem};

/// Default number of hits.
const DEFAULT_LIMIT: usize = 20;
/// How long a search waits for recent entries to be indexed.
const INDEX_WAIT: Duration = Duration::from_millis(1_500);

/// Search by words, by meaning, or both.
#[derive(Clone, Copy, Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ModeQuery {
    /// By words.
    Text,
    /// By meaning.
    Semantic,
    /// By both.
    #[default]
    Hybrid,
}

/// What to search for.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub(crate) struct SearchQuery {
    /// Words, "phrases" and filters: `redis role:user after:2026-11-01 tag:auth`.
    q: String,
    /// Search mode.
    #[serde(default)]
    #[param(inline)]
    mode: ModeQuery,
    /// Only in this project.
    project: Option<String>,
    /// Whether the last word is still being typed; it then matches as a prefix.
    #[serde(default)]
    typing: bool,
    /// Maximum number of hits.
    limit: Option<usize>,
}

/// A search hit.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct HitView {
    /// The session.
    #[schema(value_type = String)]
    session: SessionId,
    /// The entry number.
    #[schema(value_type = u64)]
    seq: Seq,
    /// The message's role.
    #[schema(value_type = String)]
    role: Role,
    /// The message's author.
    author: Option<String>,
    /// When it was written.
    #[schema(value_type = String, format = DateTime)]
    at: Timestamp,
    /// The best matching excerpt.
    snippet: String,
    /// Matched ranges in the snippet: start and end, in bytes.
    #[schema(value_type = Vec<Vec<usize>>)]
    marks: Vec<(usize, usize)>,
    /// Relevance, relative to the other hits.
    score: f32,
}

/// Search results.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct FoundView {
    /// The hits, best first.
    hits: Vec<HitView>,
    /// The sessions of the hits.
    sessions: Vec<SessionView>,
    /// The corrected query, if the original one had no matches.
    corrected: Option<String>,
    /// Number of changes that are not indexed yet.
    behind: u64,
}

/// Logs an automatic rebuild of the index, if there was one.
pub(crate) fn log_index_rebuild(tl: &throughline::Throughline) {
    if let Some(rebuild) = tl.take_index_rebuild() {
        tracing::warn!("{rebuild}");
    }
}

/// Search all messages of the caller
#[utoipa::path(get, path = "/api/search", tag = "sessions", params(SearchQuery),
    responses((status = 200, body = FoundView)))]
pub(crate) async fn search(
    State(app): State<App>,
    caller: Caller,
    Query(query): Query<SearchQuery>,
) -> Result<JsonResponse<FoundView>, Problem> {
    let limit = page_limit(&app, query.limit, DEFAULT_LIMIT)?;
    let project = parse_project(query.project.as_deref())?;
    let searched = caller
        .tl
        .search(&SearchOptions {
            query: &query.q,
            mode: match query.mode {
                ModeQuery::Text => Mode::Text,
                ModeQuery::Semantic => Mode::Semantic,
                ModeQuery::Hybrid => Mode::Hybrid,
            },
            limit,
            typing: query.typing,
            project: project.as_ref(),
            listing: &[],
            zone: &app.config.time_zone,
            index_wait: IndexWait::For(INDEX_WAIT),
        })
        .await;
    log_index_rebuild(&caller.tl);
    let searched = searched?;
    let hits = searched.found.hits.into_iter().map(|hit| HitView {
        session: hit.session,
        seq: hit.seq,
        role: hit.role,
        author: hit.author,
        at: hit.at,
        snippet: hit.snippet.text,
        marks: hit
            .snippet
            .marks
            .into_iter()
            .map(|mark| (mark.start, mark.end))
            .collect(),
        score: hit.score,
    });
    Ok(JsonResponse(FoundView {
        hits: hits.collect(),
        sessions: searched
            .sessions
            .into_iter()
            .map(SessionView::from)
            .collect(),
        corrected: searched.found.corrected,
        behind: searched.lag,
    }))
}

/// Parses a project id.
pub(super) fn parse_project(text: Option<&str>) -> Result<Option<ProjectId>, Problem> {
    let id = text.map(str::parse).transpose();
    id.map_err(|error: throughline::IdError| {
        Problem::bad_request("bad_query_string", format!("project: {error}"))
    })
}

/// Statistics over all sessions.
#[derive(Debug, Default, Serialize, ToSchema)]
pub(crate) struct Stats {
    /// Sessions, including archived ones.
    sessions: u64,
    /// Archived sessions.
    archived: u64,
    /// Sessions in the trash.
    trashed: u64,
    /// Messages in all sessions.
    messages: u64,
    /// User messages.
    queries: u64,
    /// Tokens reported by providers.
    tokens: u64,
    /// Compactions.
    compactions: u64,
}

/// Get statistics over all sessions of the caller
#[utoipa::path(get, path = "/api/stats", tag = "sessions",
    responses((status = 200, body = Stats)))]
pub(crate) async fn stats(caller: Caller) -> Result<JsonResponse<Stats>, Problem> {
    let mut stats = Stats::default();
    let mut after = None;
    loop {
        let page = caller
            .tl
            .list(&SessionFilter::default(), after.as_ref(), 1_000)
            .await?;
        for info in &page.items {
            stats.sessions += 1;
            stats.archived += u64::from(info.status == Status::Archived);
            stats.messages += info.messages;
            stats.queries += info.queries;
            stats.tokens += info.tokens.total();
            stats.compactions += info.compactions;
        }
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    let trash = SessionFilter {
        scope: SessionScope::Trash,
        ..SessionFilter::default()
    };
    stats.trashed = caller.tl.count(&trash).await?;
    Ok(JsonResponse(stats))
}

/// The caller's projects.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Projects {
    #[schema(value_type = Vec<Object>)]
    projects: Vec<Project>,
}

/// List the caller's projects
#[utoipa::path(get, path = "/api/projects", tag = "sessions",
    responses((status = 200, body = Projects)))]
pub(crate) async fn projects(caller: Caller) -> Result<JsonResponse<Projects>, Problem> {
    let projects = caller.tl.projects().await?;
    Ok(JsonResponse(Projects { projects }))
}

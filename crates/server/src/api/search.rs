//! Finding what was said, and figures about all of it.

use std::time::Duration;

use axum::Json as Answer;
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

/// How many hits where nobody says.
const DEFAULT_LIMIT: usize = 20;
/// How long what was just said is waited for.
const INDEX_WAIT: Duration = Duration::from_millis(1_500);

/// By words, by meaning, or by both.
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

/// What to look for.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub(crate) struct SearchQuery {
    /// Words, "phrases" and filters: `redis role:user after:2026-11-01 tag:auth`.
    q: String,
    /// How.
    #[serde(default)]
    #[param(inline)]
    mode: ModeQuery,
    /// Only in this project.
    project: Option<String>,
    /// Whether the last word is still being typed.
    #[serde(default)]
    typing: bool,
    /// How many hits, at most.
    limit: Option<usize>,
}

/// Something that was found.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct HitView {
    /// The session it is in.
    #[schema(value_type = String)]
    session: SessionId,
    /// Its entry there.
    #[schema(value_type = u64)]
    seq: Seq,
    /// Who speaks.
    #[schema(value_type = String)]
    role: Role,
    /// Their name.
    author: Option<String>,
    /// When.
    #[schema(value_type = String, format = DateTime)]
    at: Timestamp,
    /// The best place in it.
    snippet: String,
    /// What of the snippet was looked for: beginnings and ends, in bytes.
    #[schema(value_type = Vec<Vec<usize>>)]
    marks: Vec<(usize, usize)>,
    /// How well it matches, compared with the other hits.
    score: f32,
}

/// What was found.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct FoundView {
    /// The hits, the best first.
    hits: Vec<HitView>,
    /// The sessions they are in.
    sessions: Vec<SessionView>,
    /// What was searched for instead, when nothing had the words as they were typed.
    corrected: Option<String>,
    /// How many changes could not be searched yet.
    behind: u64,
}

/// Logs that the index was rebuilt by itself, if it was.
pub(crate) fn log_index_rebuild(tl: &throughline::Throughline) {
    if let Some(rebuild) = tl.take_index_rebuild() {
        tracing::warn!("{rebuild}");
    }
}

/// Look for something in everything that was ever said
#[utoipa::path(get, path = "/api/search", tag = "sessions", params(SearchQuery),
    responses((status = 200, body = FoundView)))]
pub(crate) async fn search(
    State(app): State<App>,
    caller: Caller,
    Query(query): Query<SearchQuery>,
) -> Result<Answer<FoundView>, Problem> {
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
    Ok(Answer(FoundView {
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

/// A project by its id.
pub(super) fn parse_project(text: Option<&str>) -> Result<Option<ProjectId>, Problem> {
    let id = text.map(str::parse).transpose();
    id.map_err(|error: throughline::IdError| {
        Problem::bad_request("bad_query_string", format!("project: {error}"))
    })
}

/// Figures about everything.
#[derive(Debug, Default, Serialize, ToSchema)]
pub(crate) struct Stats {
    /// Sessions, archived ones among them.
    sessions: u64,
    /// Of those, the archived.
    archived: u64,
    /// Sessions in the trash.
    trashed: u64,
    /// Messages in all sessions.
    messages: u64,
    /// Of those, the user's own.
    queries: u64,
    /// Tokens reported.
    tokens: u64,
    /// Compactions.
    compactions: u64,
}

/// Figures about all sessions of the caller
#[utoipa::path(get, path = "/api/stats", tag = "sessions",
    responses((status = 200, body = Stats)))]
pub(crate) async fn stats(caller: Caller) -> Result<Answer<Stats>, Problem> {
    let mut stats = Stats::default();
    let mut after = None;
    loop {
        let page = caller
            .tl
            .list(&SessionFilter::default(), after.as_ref(), 1_000)
            .await?;
        for card in &page.items {
            stats.sessions += 1;
            stats.archived += u64::from(card.status == Status::Archived);
            stats.messages += card.messages;
            stats.queries += card.queries;
            stats.tokens += card.tokens.total();
            stats.compactions += card.compactions;
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
    Ok(Answer(stats))
}

/// Projects of the caller.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Projects {
    #[schema(value_type = Vec<Object>)]
    projects: Vec<Project>,
}

/// The projects of the caller
#[utoipa::path(get, path = "/api/projects", tag = "sessions",
    responses((status = 200, body = Projects)))]
pub(crate) async fn projects(caller: Caller) -> Result<Answer<Projects>, Problem> {
    let projects = caller.tl.projects().await?;
    Ok(Answer(Projects { projects }))
}

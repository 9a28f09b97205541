//! Memory: facts that outlive sessions, of a project or of the caller's own.

use axum::Json as Answer;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use throughline::{AddFactStatus, Fact, Memory, MemoryScope, NewFact, Seq};
use utoipa::{IntoParams, ToSchema};

use super::search::parse_project;
use crate::extract::{Json, PathSeq, Query};
use crate::guard::empty_response;
use crate::{Caller, Problem};

/// Whose memory.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub(crate) struct ScopeQuery {
    /// The project's; the owner-wide one, where it is left out.
    project: Option<String>,
}

fn scoped_memory(caller: &Caller, named: Option<&str>) -> Result<Memory, Problem> {
    let scope = match parse_project(named)? {
        Some(project) => MemoryScope::Project(project),
        None => MemoryScope::Owner,
    };
    Ok(caller.tl.memory(scope))
}

/// Which facts.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub(crate) struct FactsQuery {
    /// Of this project; of the owner-wide memory, where it is left out.
    project: Option<String>,
    /// Whether those too that no longer count, or not yet.
    #[serde(default)]
    all: bool,
    /// Only those that bear on this, the best first.
    q: Option<String>,
}

/// Facts.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct FactsView {
    #[schema(value_type = Vec<Object>)]
    facts: Vec<Fact>,
}

/// What is remembered
#[utoipa::path(get, path = "/api/memory", tag = "memory", params(FactsQuery),
    responses((status = 200, body = FactsView)))]
pub(crate) async fn list(
    caller: Caller,
    Query(query): Query<FactsQuery>,
) -> Result<Answer<FactsView>, Problem> {
    let memory = scoped_memory(&caller, query.project.as_deref())?;
    let facts = match (query.q, query.all) {
        (Some(q), _) => {
            let found = memory.search(&q).await?;
            found.into_iter().map(|found| found.fact).collect()
        }
        (None, true) => memory.facts().await?.iter().cloned().collect(),
        (None, false) => memory.list().await?,
    };
    Ok(Answer(FactsView { facts }))
}

/// Something to remember.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct FactBody {
    /// What.
    text: String,
    /// Of which project; of all the caller's, where it is left out.
    project: Option<String>,
    /// Files and folders it belongs to, relative to the project's top.
    #[serde(default)]
    files: Vec<String>,
    /// Older facts that it replaces.
    #[serde(default)]
    #[schema(value_type = Vec<u64>)]
    supersedes: Vec<Seq>,
    /// Whether it waits for somebody's word.
    #[serde(default)]
    proposed: bool,
    /// Whether it is remembered even if it looks like a secret.
    #[serde(default)]
    force: bool,
}

/// A fact, and how it came to be remembered.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AddedView {
    /// The fact.
    #[schema(value_type = Object)]
    fact: Fact,
    /// `new`, `known` or `accepted`.
    how: &'static str,
}

impl From<throughline::AddFactOutcome> for AddedView {
    fn from(added: throughline::AddFactOutcome) -> Self {
        let how = match added.status {
            AddFactStatus::New => "new",
            AddFactStatus::Known => "known",
            AddFactStatus::Accepted => "accepted",
        };
        Self {
            fact: added.fact,
            how,
        }
    }
}

/// Remember something
#[utoipa::path(post, path = "/api/memory", tag = "memory", request_body = FactBody,
    responses((status = 200, body = AddedView), (status = 201, body = AddedView),
        (status = 404, body = Problem, content_type = "application/problem+json",
            description = "No fact that it could supersede")))]
pub(crate) async fn add(caller: Caller, Json(body): Json<FactBody>) -> Result<Response, Problem> {
    let memory = scoped_memory(&caller, body.project.as_deref())?;
    let added = memory
        .add(NewFact {
            files: body.files,
            supersedes: body.supersedes,
            proposed: body.proposed,
            force: body.force,
            ..NewFact::from_person(body.text)
        })
        .await?;
    let status = match added.status {
        AddFactStatus::New => StatusCode::CREATED,
        AddFactStatus::Known | AddFactStatus::Accepted => StatusCode::OK,
    };
    Ok((status, Answer(AddedView::from(added))).into_response())
}

/// Other words for a fact.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct FactPatch {
    /// What it says now.
    text: String,
    /// Whether it is remembered even if it looks like a secret.
    #[serde(default)]
    force: bool,
}

/// Put a fact into other words; the old one stays readable
#[utoipa::path(patch, path = "/api/memory/{seq}", tag = "memory", request_body = FactPatch,
    params(ScopeQuery, ("seq" = u64, Path, description = "The fact")),
    responses((status = 200, body = AddedView)))]
pub(crate) async fn edit(
    caller: Caller,
    PathSeq(seq): PathSeq,
    Query(query): Query<ScopeQuery>,
    Json(body): Json<FactPatch>,
) -> Result<Answer<AddedView>, Problem> {
    let memory = scoped_memory(&caller, query.project.as_deref())?;
    let added = memory.edit(seq, &body.text, body.force).await?;
    Ok(Answer(added.into()))
}

/// Forget a fact; it stays readable
#[utoipa::path(delete, path = "/api/memory/{seq}", tag = "memory",
    params(ScopeQuery, ("seq" = u64, Path, description = "The fact")),
    responses((status = 204, description = "Done")))]
pub(crate) async fn forget(
    caller: Caller,
    PathSeq(seq): PathSeq,
    Query(query): Query<ScopeQuery>,
) -> Result<Response, Problem> {
    let memory = scoped_memory(&caller, query.project.as_deref())?;
    memory.forget(seq, None).await?;
    Ok(empty_response(StatusCode::NO_CONTENT))
}

/// Accept what was proposed
#[utoipa::path(post, path = "/api/memory/{seq}/accept", tag = "memory",
    params(ScopeQuery, ("seq" = u64, Path, description = "The fact")),
    responses((status = 200, body = FactsView)))]
pub(crate) async fn accept(
    caller: Caller,
    PathSeq(seq): PathSeq,
    Query(query): Query<ScopeQuery>,
) -> Result<Answer<FactsView>, Problem> {
    let memory = scoped_memory(&caller, query.project.as_deref())?;
    let facts = memory.accept(&[seq]).await?;
    Ok(Answer(FactsView { facts }))
}

//! Memory API: facts that outlive sessions, per project or owner-wide.

use axum::Json as JsonResponse;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use throughline::{AddFactStatus, Fact, Memory, MemoryScope, NewFact, Seq};
use utoipa::{IntoParams, ToSchema};

use super::search::parse_project;
use crate::extract::{Json, PathSeq, Query};
use crate::guard::empty_response;
use crate::{Caller, Problem};

/// Which memory.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub(crate) struct ScopeQuery {
    /// The project. Defaults to the owner-wide memory.
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
    /// The project. Defaults to the owner-wide memory.
    project: Option<String>,
    /// Whether to include superseded, forgotten and proposed facts.
    #[serde(default)]
    all: bool,
    /// Only facts relevant to this query, best first.
    q: Option<String>,
}

/// A list of facts.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct FactsView {
    #[schema(value_type = Vec<Object>)]
    facts: Vec<Fact>,
}

/// List facts
#[utoipa::path(get, path = "/api/memory", tag = "memory", params(FactsQuery),
    responses((status = 200, body = FactsView)))]
pub(crate) async fn list(
    caller: Caller,
    Query(query): Query<FactsQuery>,
) -> Result<JsonResponse<FactsView>, Problem> {
    let memory = scoped_memory(&caller, query.project.as_deref())?;
    let facts = match (query.q, query.all) {
        (Some(q), _) => {
            let found = memory.search(&q).await?;
            found.into_iter().map(|found| found.fact).collect()
        }
        (None, true) => memory.facts().await?.iter().cloned().collect(),
        (None, false) => memory.list().await?,
    };
    Ok(JsonResponse(FactsView { facts }))
}

/// A fact to remember.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct FactBody {
    /// The fact.
    text: String,
    /// The project. Defaults to the owner-wide memory.
    project: Option<String>,
    /// Files and folders the fact is about, relative to the project's root.
    #[serde(default)]
    files: Vec<String>,
    /// Older facts that this one replaces.
    #[serde(default)]
    #[schema(value_type = Vec<u64>)]
    supersedes: Vec<Seq>,
    /// Whether the fact is only proposed and needs acceptance.
    #[serde(default)]
    proposed: bool,
    /// Whether to store the fact even if it looks like a secret.
    #[serde(default)]
    force: bool,
}

/// A fact, and how it was added.
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

/// Remember a fact
#[utoipa::path(post, path = "/api/memory", tag = "memory", request_body = FactBody,
    responses((status = 200, body = AddedView), (status = 201, body = AddedView),
        (status = 404, body = Problem, content_type = "application/problem+json",
            description = "There is no fact to supersede")))]
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
    Ok((status, JsonResponse(AddedView::from(added))).into_response())
}

/// New wording of a fact.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct FactPatch {
    /// The new text.
    text: String,
    /// Whether to store the fact even if it looks like a secret.
    #[serde(default)]
    force: bool,
}

/// Reword a fact; the old wording remains readable
#[utoipa::path(patch, path = "/api/memory/{seq}", tag = "memory", request_body = FactPatch,
    params(ScopeQuery, ("seq" = u64, Path, description = "The fact's entry number")),
    responses((status = 200, body = AddedView)))]
pub(crate) async fn edit(
    caller: Caller,
    PathSeq(seq): PathSeq,
    Query(query): Query<ScopeQuery>,
    Json(body): Json<FactPatch>,
) -> Result<JsonResponse<AddedView>, Problem> {
    let memory = scoped_memory(&caller, query.project.as_deref())?;
    let added = memory.edit(seq, &body.text, body.force).await?;
    Ok(JsonResponse(added.into()))
}

/// Forget a fact; it remains readable
#[utoipa::path(delete, path = "/api/memory/{seq}", tag = "memory",
    params(ScopeQuery, ("seq" = u64, Path, description = "The fact's entry number")),
    responses((status = 204, description = "Success")))]
pub(crate) async fn forget(
    caller: Caller,
    PathSeq(seq): PathSeq,
    Query(query): Query<ScopeQuery>,
) -> Result<Response, Problem> {
    let memory = scoped_memory(&caller, query.project.as_deref())?;
    memory.forget(seq, None).await?;
    Ok(empty_response(StatusCode::NO_CONTENT))
}

/// Accept a proposed fact
#[utoipa::path(post, path = "/api/memory/{seq}/accept", tag = "memory",
    params(ScopeQuery, ("seq" = u64, Path, description = "The fact's entry number")),
    responses((status = 200, body = FactsView)))]
pub(crate) async fn accept(
    caller: Caller,
    PathSeq(seq): PathSeq,
    Query(query): Query<ScopeQuery>,
) -> Result<JsonResponse<FactsView>, Problem> {
    let memory = scoped_memory(&caller, query.project.as_deref())?;
    let facts = memory.accept(&[seq]).await?;
    Ok(JsonResponse(FactsView { facts }))
}

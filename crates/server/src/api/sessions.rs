//! Sessions API: create, list, update, delete and restore sessions.

use axum::Json as JsonResponse;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use throughline::{
    AgentRef, Body, ConflictPolicy, Cursor, Key, Name, NameSource, NewEntry, NewSession, Session,
    SessionFilter, SessionId, SessionScope, SessionSpec, Status, Tag, Timestamp,
};
use utoipa::{IntoParams, ToSchema};

use super::{etag, page_limit};
use crate::extract::{CallerSession, IfMatch, Json, PathSessionId, Query};
use crate::guard::empty_response;
use crate::wire::{PatchField, SessionDetail, SessionView};
use crate::{App, Caller, Problem};

/// Default page size.
const DEFAULT_PAGE_SIZE: usize = 50;

/// Which sessions to list.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub(crate) struct ListQuery {
    /// With all of these tags, separated by commas.
    tag: Option<String>,
    /// Last used with this agent.
    agent: Option<String>,
    /// In this project.
    project: Option<String>,
    /// `active` or `archived`. Defaults to both.
    status: Option<String>,
    /// Active at or after this time.
    #[param(value_type = Option<String>, format = DateTime)]
    since: Option<Timestamp>,
    /// Forked or continued from this session.
    parent: Option<String>,
    /// Whether to list the trash instead.
    #[serde(default)]
    trash: bool,
    /// Cursor: `next` of the previous page.
    after: Option<String>,
    /// Maximum number of sessions.
    limit: Option<usize>,
    /// Whether to also count all matches.
    #[serde(default)]
    count: bool,
}

/// One page of sessions, latest activity first.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SessionPage {
    sessions: Vec<SessionView>,
    /// Cursor of the next page, if there is one.
    next: Option<String>,
    /// Number of matches, if requested.
    total: Option<u64>,
}

/// The problem for an invalid query parameter.
fn bad_query(what: &'static str) -> impl Fn(String) -> Problem {
    move |why| Problem::bad_request("bad_query_string", format!("{what}: {why}"))
}

impl ListQuery {
    fn filter(&self) -> Result<SessionFilter, Problem> {
        let tags = self.tag.iter().flat_map(|tags| tags.split(','));
        let tags: Result<Vec<Tag>, _> = tags.map(|tag| tag.trim().parse()).collect();
        let parse = |text: &Option<String>| text.as_deref().map(str::parse).transpose();
        Ok(SessionFilter {
            scope: if self.trash {
                SessionScope::Trash
            } else {
                SessionScope::Live
            },
            tags: tags.map_err(|error| bad_query("tag")(error.to_string()))?,
            agent: self.agent.clone(),
            project: self
                .project
                .as_deref()
                .map(str::parse)
                .transpose()
                .map_err(|error: throughline::IdError| bad_query("project")(error.to_string()))?,
            status: parse(&self.status).map_err(bad_query("status"))?,
            since: self.since,
            parent: self
                .parent
                .as_deref()
                .map(str::parse)
                .transpose()
                .map_err(|error: throughline::IdError| bad_query("parent")(error.to_string()))?,
            include_internal: false,
        })
    }
}

/// List sessions, latest activity first
#[utoipa::path(get, path = "/api/sessions", tag = "sessions", params(ListQuery),
    responses((status = 200, body = SessionPage)))]
pub(crate) async fn list(
    State(app): State<App>,
    caller: Caller,
    Query(query): Query<ListQuery>,
) -> Result<JsonResponse<SessionPage>, Problem> {
    let limit = page_limit(&app, query.limit, DEFAULT_PAGE_SIZE)?;
    let filter = query.filter()?;
    let after: Option<Cursor> = query
        .after
        .as_deref()
        .map(str::parse)
        .transpose()
        .map_err(|error: throughline::CursorError| bad_query("after")(error.to_string()))?;
    let page = caller.tl.list(&filter, after.as_ref(), limit).await?;
    let total = if query.count {
        Some(caller.tl.count(&filter).await?)
    } else {
        None
    };
    Ok(JsonResponse(SessionPage {
        sessions: page.items.into_iter().map(SessionView::from).collect(),
        next: page.next.map(|next| next.to_string()),
        total,
    }))
}

/// A session to create; every field is optional.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewSessionBody {
    /// Session id. Generated from the time if omitted.
    #[schema(value_type = Option<String>)]
    id: Option<SessionId>,
    /// Stable key chosen by an agent; if a session has it, that session is returned instead.
    #[schema(value_type = Option<String>, example = "telegram:123456")]
    key: Option<Key>,
    /// Name, which is sanitized.
    name: Option<String>,
    /// Description.
    description: Option<String>,
    /// Tags.
    #[serde(default)]
    tags: Vec<String>,
    /// Name of the agent.
    agent: Option<String>,
    /// The project it belongs to.
    project: Option<String>,
    /// Working folder, as the caller knows it.
    workspace: Option<String>,
}

impl NewSessionBody {
    pub(super) fn to_new_session(&self) -> Result<NewSession, Problem> {
        let agent = self.agent.clone().map(|name| AgentRef { name, path: None });
        let project = self.project.as_deref().map(str::parse).transpose();
        Ok(NewSession {
            id: self.id.clone(),
            key: self.key.clone(),
            name: parse_name(self.name.as_deref())?,
            agent,
            project: project.map_err(throughline::Error::from)?,
            workspace: self.workspace.clone(),
            at: None,
            continued_from: None,
        })
    }
}

fn parse_name(text: Option<&str>) -> Result<Option<Name>, Problem> {
    let name = text.map(str::parse).transpose();
    Ok(name.map_err(throughline::Error::from)?)
}

fn parse_tags(texts: &[String]) -> Result<Vec<Tag>, Problem> {
    let tags = texts.iter().map(|text| text.parse()).collect();
    let tags: Result<Vec<Tag>, throughline::NameError> = tags;
    Ok(tags.map_err(throughline::Error::from)?)
}

/// Create a session, or get the one that has the key
#[utoipa::path(post, path = "/api/sessions", tag = "sessions", request_body = NewSessionBody,
    responses((status = 201, body = SessionDetail), (status = 200, body = SessionDetail)))]
pub(crate) async fn create(
    caller: Caller,
    crate::extract::OptionalJson(body): crate::extract::OptionalJson<NewSessionBody>,
) -> Result<Response, Problem> {
    let tags = parse_tags(&body.tags)?;
    let (session, existed) = caller.tl.get_or_create(body.to_new_session()?).await?;
    if !existed {
        let mut first: Vec<Body> = Vec::new();
        first.extend(body.description.map(|text| Body::Described {
            description: Some(text),
        }));
        first.extend((!tags.is_empty()).then_some(Body::Tagged { tags }));
        append_bodies(&session, first, throughline::Expect::Any).await?;
    }
    let status = if existed {
        StatusCode::OK
    } else {
        StatusCode::CREATED
    };
    session_response(&session, status).await
}

async fn append_bodies(
    session: &Session,
    bodies: Vec<Body>,
    expect: throughline::Expect,
) -> Result<(), Problem> {
    if bodies.is_empty() {
        return Ok(());
    }
    let entries: Vec<NewEntry> = bodies
        .into_iter()
        .map(|body| session.new_entry(body))
        .collect();
    session
        .append_all(entries, expect, ConflictPolicy::Reject)
        .await?;
    Ok(())
}

/// A session as a response, with `ETag` and `Location`.
pub(super) async fn session_response(
    session: &Session,
    status: StatusCode,
) -> Result<Response, Problem> {
    let record = session.record().await?;
    let mut headers: HeaderMap = etag(record.info.head);
    if status == StatusCode::CREATED
        && let Ok(location) = HeaderValue::from_str(&format!("/api/sessions/{}", session.id()))
    {
        headers.insert(header::LOCATION, location);
    }
    let detail = SessionDetail::from(record);
    Ok((status, headers, JsonResponse(detail)).into_response())
}

/// Get a session
#[utoipa::path(get, path = "/api/sessions/{id}", tag = "sessions",
    params(CallerSession),
    responses((status = 200, body = SessionDetail)))]
pub(crate) async fn get(opened: CallerSession) -> Result<Response, Problem> {
    session_response(&opened.session, StatusCode::OK).await
}

/// Changes to a session. Omitted fields stay unchanged; null removes the value.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SessionPatch {
    /// Name, which is sanitized.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    name: PatchField<String>,
    /// Description.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    description: PatchField<String>,
    /// Whether it is archived.
    archived: Option<bool>,
    /// Name of the agent.
    agent: Option<String>,
    /// Working folder.
    workspace: Option<String>,
    /// Tags to add.
    #[serde(default)]
    add_tags: Vec<String>,
    /// Tags to remove.
    #[serde(default)]
    remove_tags: Vec<String>,
}

/// Update a session, atomically
#[utoipa::path(patch, path = "/api/sessions/{id}", tag = "sessions", request_body = SessionPatch,
    params(CallerSession,
        IfMatch),
    responses((status = 200, body = SessionDetail)))]
pub(crate) async fn patch(
    opened: CallerSession,
    IfMatch(expect): IfMatch,
    Json(patch): Json<SessionPatch>,
) -> Result<Response, Problem> {
    let session = &opened.session;
    let mut bodies = Vec::new();
    if let PatchField::Set(new) = &patch.name {
        bodies.push(Body::Renamed {
            name: parse_name(new.as_deref())?,
            by: NameSource::Person,
        });
    }
    if let PatchField::Set(description) = patch.description {
        bodies.push(Body::Described { description });
    }
    if let Some(name) = patch.agent {
        bodies.push(Body::AgentSet(AgentRef { name, path: None }));
    }
    if let Some(workspace) = patch.workspace {
        bodies.push(Body::Moved {
            workspace,
            project: None,
        });
    }
    let (added, removed) = (
        parse_tags(&patch.add_tags)?,
        parse_tags(&patch.remove_tags)?,
    );
    bodies.extend((!added.is_empty()).then_some(Body::Tagged { tags: added }));
    bodies.extend((!removed.is_empty()).then_some(Body::Untagged { tags: removed }));
    if let Some(archived) = patch.archived {
        let is = session.record().await?.info.status == Status::Archived;
        if archived != is {
            bodies.push(if archived {
                Body::Archived
            } else {
                Body::Unarchived
            });
        }
    }
    append_bodies(session, bodies, expect).await?;
    session_response(session, StatusCode::OK).await
}

/// How to delete a session.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub(crate) struct DeleteQuery {
    /// Whether to delete it permanently from the trash.
    #[serde(default)]
    forever: bool,
}

/// Move a session to the trash, or delete it permanently from there
#[utoipa::path(delete, path = "/api/sessions/{id}", tag = "sessions", params(DeleteQuery,
    CallerSession),
    responses((status = 204, description = "Success")))]
pub(crate) async fn delete(
    caller: Caller,
    PathSessionId(id): PathSessionId,
    Query(query): Query<DeleteQuery>,
) -> Result<Response, Problem> {
    if query.forever {
        let session = caller.owner().session(&id);
        caller.tl.store().remove(&session).await?;
    } else {
        caller.tl.trash(&id).await?;
    }
    Ok(empty_response(StatusCode::NO_CONTENT))
}

/// Restore a session from the trash
#[utoipa::path(post, path = "/api/sessions/{id}/restore", tag = "sessions",
    params(CallerSession),
    responses((status = 200, body = SessionDetail)))]
pub(crate) async fn restore(
    caller: Caller,
    PathSessionId(id): PathSessionId,
) -> Result<Response, Problem> {
    let session = caller.tl.restore(&id).await?;
    session_response(&session, StatusCode::OK).await
}

/// A reference to a session.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub(crate) struct ResolveQuery {
    /// An id, a unique prefix of one, a name, a key, or `last`.
    session: String,
}

/// Resolve a reference to a session
#[utoipa::path(get, path = "/api/resolve", tag = "sessions", params(ResolveQuery),
    responses((status = 200, body = SessionDetail)))]
pub(crate) async fn resolve(
    caller: Caller,
    Query(query): Query<ResolveQuery>,
) -> Result<Response, Problem> {
    // Never a path: callers must not read files on this machine.
    let spec = match query.session.trim() {
        "" => return Err(bad_query("session")("it is empty".to_owned())),
        "last" => SessionSpec::Last,
        text => SessionSpec::Text {
            text: text.to_owned(),
            number: None,
        },
    };
    let session = caller.tl.resolve(&spec, &[]).await?;
    session_response(&session, StatusCode::OK).await
}

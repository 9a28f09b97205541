//! Lineage API: fork, merge and continue sessions.

use axum::Json as JsonResponse;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use throughline::{Key, MergeOutcome, MergeStyle, NewSession, Seq, SessionId, SessionTree};
use utoipa::ToSchema;

use super::context::propose_facts;
use super::sessions::session_response;
use crate::extract::{CallerSession, Json, OptionalJson};
use crate::wire::{SessionDetail, SessionView};
use crate::{App, Problem};

/// A fork to create.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ForkBody {
    /// The last entry the fork shares. Defaults to the head.
    #[schema(value_type = Option<u64>)]
    at: Option<Seq>,
    /// The new session's id.
    #[schema(value_type = Option<String>)]
    id: Option<SessionId>,
    /// The new session's key.
    #[schema(value_type = Option<String>)]
    key: Option<Key>,
    /// The new session's name.
    name: Option<String>,
}

fn new_session(
    id: Option<SessionId>,
    key: Option<Key>,
    name: Option<&str>,
) -> Result<NewSession, Problem> {
    let name = name.map(str::parse).transpose();
    Ok(NewSession {
        id,
        key,
        name: name.map_err(throughline::Error::from)?,
        ..NewSession::default()
    })
}

/// Result of a fork.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ForkedView {
    /// The new session.
    session: SessionDetail,
    /// The last entry it shares. Later than requested if a tool call would otherwise lose its
    /// result.
    #[schema(value_type = u64)]
    at: Seq,
}

/// Fork a session
///
/// Both share their history up to the fork; after it, neither changes the other.
#[utoipa::path(post, path = "/api/sessions/{id}/fork", tag = "lineage", request_body = ForkBody,
    params(CallerSession),
    responses((status = 201, body = ForkedView)))]
pub(crate) async fn fork(
    opened: CallerSession,
    OptionalJson(body): OptionalJson<ForkBody>,
) -> Result<Response, Problem> {
    let new = new_session(body.id, body.key, body.name.as_deref())?;
    let forked = opened.session.fork(body.at, new).await?;
    let view = ForkedView {
        session: forked.session.record().await?.into(),
        at: forked.at,
    };
    Ok((StatusCode::CREATED, JsonResponse(view)).into_response())
}

/// How to merge if both sessions have new entries.
#[derive(Clone, Copy, Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum StyleBody {
    /// Refuse.
    #[default]
    FastForward,
    /// Append the fork's messages.
    Append,
    /// Append only a summary of the fork.
    Summary,
}

/// A fork to merge.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct MergeBody {
    /// The fork.
    #[schema(value_type = String)]
    from: SessionId,
    /// How to merge if both sessions have new entries.
    #[serde(default)]
    style: StyleBody,
    /// The summary, for the style `summary`.
    summary: Option<String>,
}

/// Result of a merge.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct MergedView {
    /// `up_to_date`, `fast_forwarded`, `appended` or `summarized`.
    how: &'static str,
    /// Number of merged entries.
    entries: u64,
}

impl From<MergeOutcome> for MergedView {
    fn from(merged: MergeOutcome) -> Self {
        let (how, entries) = match merged {
            MergeOutcome::UpToDate => ("up_to_date", 0),
            MergeOutcome::FastForwarded { entries } => ("fast_forwarded", entries),
            MergeOutcome::Appended { entries } => ("appended", entries),
            MergeOutcome::Summarized => ("summarized", 1),
        };
        Self { how, entries }
    }
}

/// Merge a fork back into its origin
#[utoipa::path(post, path = "/api/sessions/{id}/merge", tag = "lineage",
    request_body = MergeBody, params(CallerSession),
    responses((status = 200, body = MergedView)))]
pub(crate) async fn merge(
    opened: CallerSession,
    Json(body): Json<MergeBody>,
) -> Result<JsonResponse<MergedView>, Problem> {
    let style = match (body.style, body.summary) {
        (StyleBody::FastForward, None) => MergeStyle::FastForward,
        (StyleBody::Append, None) => MergeStyle::Append,
        (StyleBody::Summary, Some(summary)) if !summary.trim().is_empty() => {
            MergeStyle::Summary(summary)
        }
        (StyleBody::Summary, _) => {
            return Err(Problem::invalid(
                "the style `summary` requires the field `summary`",
            ));
        }
        (_, Some(_)) => {
            return Err(Problem::invalid(
                "the field `summary` requires the style `summary`",
            ));
        }
    };
    let fork = opened.caller.tl.session(&body.from).await?;
    Ok(JsonResponse(
        opened.session.merge(&fork, &style).await?.into(),
    ))
}

/// A session in a lineage.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Relative {
    /// The session.
    session: SessionView,
    /// The session it was forked or continued from, if that is in the list.
    #[schema(value_type = Option<String>)]
    parent: Option<SessionId>,
    /// Whether all of it was merged into the session it was forked from.
    merged: bool,
}

/// The lineage of a session.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LineageView {
    /// The sessions, starting with the oldest ancestor; parents before their children.
    sessions: Vec<Relative>,
}

/// Get the lineage of a session: its ancestors and descendants
#[utoipa::path(get, path = "/api/sessions/{id}/lineage", tag = "lineage",
    params(CallerSession),
    responses((status = 200, body = LineageView)))]
pub(crate) async fn lineage(opened: CallerSession) -> Result<JsonResponse<LineageView>, Problem> {
    let mut waiting = vec![(opened.session.tree().await?, None)];
    let mut sessions = Vec::new();
    // Iterative: a chain of continuations may be thousands long.
    while let Some((tree, parent)) = waiting.pop() {
        let SessionTree {
            info,
            merged,
            children,
        } = tree;
        let id = info.id.clone();
        let children = children.into_iter().rev();
        waiting.extend(children.map(|child| (child, Some(id.clone()))));
        sessions.push(Relative {
            session: info.into(),
            parent,
            merged,
        });
    }
    Ok(JsonResponse(LineageView { sessions }))
}

/// A session that continues another from its summary.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ContinueBody {
    /// The new session's id.
    #[schema(value_type = Option<String>)]
    id: Option<SessionId>,
    /// The new session's key.
    #[schema(value_type = Option<String>)]
    key: Option<Key>,
    /// The new session's name.
    name: Option<String>,
}

/// Continue in a new session that starts from this one's summary
///
/// If there are messages after the last summary, a new summary is written first.
#[utoipa::path(post, path = "/api/sessions/{id}/continue", tag = "lineage",
    request_body = ContinueBody, params(CallerSession),
    responses((status = 201, body = SessionDetail)))]
pub(crate) async fn go_on(
    State(app): State<App>,
    opened: CallerSession,
    OptionalJson(body): OptionalJson<ContinueBody>,
) -> Result<Response, Problem> {
    let new = new_session(body.id, body.key, body.name.as_deref())?;
    let responder = app.responder(&opened.session).await?;
    let summarizer = responder.summarizer.as_deref();
    if let Some(left) = opened.session.append_exit_summary(summarizer).await? {
        propose_facts(&opened.session, &left.entry, &responder).await;
    }
    let session = opened.session.continue_from_summary(new, None).await?;
    session_response(&session, StatusCode::CREATED).await
}

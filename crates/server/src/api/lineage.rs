//! Where sessions come from: forks, merges, continuations.

use axum::Json as Answer;
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

/// A session that comes of another.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ForkBody {
    /// The last entry it shares; the head, where nobody says.
    #[schema(value_type = Option<u64>)]
    at: Option<Seq>,
    /// Its id.
    #[schema(value_type = Option<String>)]
    id: Option<SessionId>,
    /// Its key.
    #[schema(value_type = Option<String>)]
    key: Option<Key>,
    /// Its name.
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

/// A fork.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ForkedView {
    /// The new session.
    session: SessionDetail,
    /// The last entry it shares: later than asked for where that would have parted a
    /// tool's call from its result.
    #[schema(value_type = u64)]
    at: Seq,
}

/// Fork a session
///
/// Both share their history up to the fork; neither changes the other after it.
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
    Ok((StatusCode::CREATED, Answer(view)).into_response())
}

/// How to merge where both have gone on.
#[derive(Clone, Copy, Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum StyleBody {
    /// Not at all.
    #[default]
    FastForward,
    /// Its messages after what is there.
    Append,
    /// A summary of it and nothing else.
    Summary,
}

/// A fork to merge.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct MergeBody {
    /// The fork.
    #[schema(value_type = String)]
    from: SessionId,
    /// How, where both have gone on.
    #[serde(default)]
    style: StyleBody,
    /// What it came to, for the style `summary`.
    summary: Option<String>,
}

/// What a merge came to.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct MergedView {
    /// `up_to_date`, `fast_forwarded`, `appended` or `summarized`.
    how: &'static str,
    /// How many entries came over.
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

/// Merge a fork of a session back into it
#[utoipa::path(post, path = "/api/sessions/{id}/merge", tag = "lineage",
    request_body = MergeBody, params(CallerSession),
    responses((status = 200, body = MergedView)))]
pub(crate) async fn merge(
    opened: CallerSession,
    Json(body): Json<MergeBody>,
) -> Result<Answer<MergedView>, Problem> {
    let style = match (body.style, body.summary) {
        (StyleBody::FastForward, None) => MergeStyle::FastForward,
        (StyleBody::Append, None) => MergeStyle::Append,
        (StyleBody::Summary, Some(summary)) if !summary.trim().is_empty() => {
            MergeStyle::Summary(summary)
        }
        (StyleBody::Summary, _) => {
            return Err(Problem::invalid("the style summary needs a `summary`"));
        }
        (_, Some(_)) => {
            return Err(Problem::invalid("a `summary` goes with the style summary"));
        }
    };
    let fork = opened.caller.tl.session(&body.from).await?;
    Ok(Answer(opened.session.merge(&fork, &style).await?.into()))
}

/// A session among its family.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Relative {
    /// The session.
    session: SessionView,
    /// What it was forked or continued from, where that is in the list.
    #[schema(value_type = Option<String>)]
    parent: Option<SessionId>,
    /// Whether all of it is in the session it was forked from.
    merged: bool,
}

/// The family of a session.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LineageView {
    /// From the oldest ancestor on, parents before their children.
    sessions: Vec<Relative>,
}

/// The family of a session: where it came from and what came of it
#[utoipa::path(get, path = "/api/sessions/{id}/lineage", tag = "lineage",
    params(CallerSession),
    responses((status = 200, body = LineageView)))]
pub(crate) async fn lineage(opened: CallerSession) -> Result<Answer<LineageView>, Problem> {
    let mut waiting = vec![(opened.session.tree().await?, None)];
    let mut sessions = Vec::new();
    // Without recursion: a chain of continuations may be thousands long.
    while let Some((tree, parent)) = waiting.pop() {
        let SessionTree {
            info: card,
            merged,
            children,
        } = tree;
        let id = card.id.clone();
        let children = children.into_iter().rev();
        waiting.extend(children.map(|child| (child, Some(id.clone()))));
        sessions.push(Relative {
            session: card.into(),
            parent,
            merged,
        });
    }
    Ok(Answer(LineageView { sessions }))
}

/// A session that goes on from another's summary.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ContinueBody {
    /// Its id.
    #[schema(value_type = Option<String>)]
    id: Option<SessionId>,
    /// Its key.
    #[schema(value_type = Option<String>)]
    key: Option<Key>,
    /// Its name.
    name: Option<String>,
}

/// Make a session that goes on from this one's summary, and knows of no more
///
/// Where something was said since the last summary, one is written first.
#[utoipa::path(post, path = "/api/sessions/{id}/continue", tag = "lineage",
    request_body = ContinueBody, params(CallerSession),
    responses((status = 201, body = SessionDetail)))]
pub(crate) async fn go_on(
    State(app): State<App>,
    opened: CallerSession,
    OptionalJson(body): OptionalJson<ContinueBody>,
) -> Result<Response, Problem> {
    let new = new_session(body.id, body.key, body.name.as_deref())?;
    let voice = app.responder(&opened.session).await?;
    let summarizer = voice.summarizer.as_deref();
    if let Some(left) = opened.session.append_exit_summary(summarizer).await? {
        propose_facts(&opened.session, &left.entry, &voice).await;
    }
    let session = opened.session.continue_from_summary(new, None).await?;
    session_response(&session, StatusCode::CREATED).await
}

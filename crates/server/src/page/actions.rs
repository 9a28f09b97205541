//! Form handlers that change a session and redirect back to it.

use axum::response::{IntoResponse, Redirect, Response};
use serde::Deserialize;
use throughline::{
    Body, CompactOutcome, ConflictPolicy, Content, Expect, Lineage, MergeOutcome, MergeStyle,
    NameSource, NewSession, Seq, SessionId, Tag,
};

use super::page_format::{entry_path, session_path};
use super::visitor::{Form, PageError, Visitor, VisitorSession};
use crate::extract::PathSessionId;
use crate::turns::{TurnOptions, TurnRequest, WhenBusy};
use crate::{Problem, ResponderChoice};

type ActionResult = Result<Response, PageError>;

/// Redirects to a session with a message about what was done.
fn redirect_to_session(id: &SessionId, code: &str) -> Response {
    Redirect::to(&format!("{}?said={code}", session_path(id))).into_response()
}

pub(super) async fn create(visitor: Visitor) -> ActionResult {
    let session = visitor.caller.tl.create(NewSession::default()).await?;
    Ok(Redirect::to(&session_path(session.id())).into_response())
}

#[derive(Deserialize)]
pub(super) struct AskForm {
    message: String,
    #[serde(default)]
    model: String,
    #[serde(default)]
    agent: String,
}

impl AskForm {
    /// The chosen model and agent; an empty field means the default.
    fn responder_choice(&self) -> ResponderChoice {
        let chosen = |text: &String| (!text.is_empty()).then(|| text.clone());
        ResponderChoice {
            model: chosen(&self.model),
            agent: chosen(&self.agent),
        }
    }
}

/// Asks without scripts: waits for the answer and shows it.
pub(super) async fn ask(opened: VisitorSession, Form(form): Form<AskForm>) -> ActionResult {
    let visitor = &opened.visitor;
    if form.message.trim().is_empty() {
        return Err(Problem::invalid("the message is empty").into());
    }
    let question = TurnRequest {
        content: Some(Content::text(form.message.replace("\r\n", "\n"))),
        author: None,
        expect: Expect::Any,
        conflict: ConflictPolicy::Reject,
        key: None,
        when_busy: WhenBusy::Queue,
        options: TurnOptions {
            choice: form.responder_choice(),
            ..TurnOptions::default()
        },
    };
    let live =
        crate::turns::start_turn(&visitor.app, &visitor.caller, &opened.session, question).await?;
    live.wait().await;
    match live.outcome() {
        Some(Ok(outcome)) => match (&outcome.failed, &outcome.answer) {
            (Some(problem), None) => Err(problem.clone().into()),
            _ => Ok(
                Redirect::to(&entry_path(&outcome.session, outcome.question.seq)).into_response(),
            ),
        },
        Some(Err(problem)) => Err(problem.clone().into()),
        None => Ok(redirect_to_session(opened.session.id(), "")),
    }
}

pub(super) async fn compact(opened: VisitorSession) -> ActionResult {
    let compacted = crate::api::compact_session(&opened.visitor.app, &opened.session).await?;
    let code = match compacted {
        CompactOutcome::Done(_) => "compacted",
        CompactOutcome::NotNeeded => "not_needed",
        CompactOutcome::NotSmaller(_) => "not_worth_it",
        CompactOutcome::Superseded => "overtaken",
    };
    Ok(redirect_to_session(opened.session.id(), code))
}

pub(super) async fn undo_compaction(opened: VisitorSession) -> ActionResult {
    opened.session.undo_compaction().await?;
    Ok(redirect_to_session(opened.session.id(), "undone"))
}

pub(super) async fn clear(opened: VisitorSession) -> ActionResult {
    opened.session.clear().await?;
    Ok(redirect_to_session(opened.session.id(), "cleared"))
}

pub(super) async fn archive(opened: VisitorSession) -> ActionResult {
    opened.session.archive().await?;
    Ok(redirect_to_session(opened.session.id(), "archived"))
}

pub(super) async fn unarchive(opened: VisitorSession) -> ActionResult {
    opened.session.unarchive().await?;
    Ok(redirect_to_session(opened.session.id(), "unarchived"))
}

pub(super) async fn trash(opened: VisitorSession) -> ActionResult {
    opened.visitor.caller.tl.trash(opened.session.id()).await?;
    Ok(Redirect::to("/?said=trashed").into_response())
}

pub(super) async fn restore(visitor: Visitor, PathSessionId(id): PathSessionId) -> ActionResult {
    visitor.caller.tl.restore(&id).await?;
    Ok(redirect_to_session(&id, "restored"))
}

pub(super) async fn remove(visitor: Visitor, PathSessionId(id): PathSessionId) -> ActionResult {
    let session = visitor.caller.owner().session(&id);
    visitor.caller.tl.store().remove(&session).await?;
    Ok(Redirect::to("/trash?said=removed").into_response())
}

#[derive(Deserialize)]
pub(super) struct RenameForm {
    name: String,
    #[serde(default)]
    description: String,
}

pub(super) async fn rename(opened: VisitorSession, Form(form): Form<RenameForm>) -> ActionResult {
    let info = &opened.record.info;
    let name = match form.name.trim() {
        "" => None,
        name => Some(name.parse().map_err(throughline::Error::from)?),
    };
    let description = Some(form.description.trim().to_owned()).filter(|text| !text.is_empty());
    let mut entries = Vec::new();
    if name != info.name {
        let by = NameSource::Person;
        entries.push(opened.session.new_entry(Body::Renamed { name, by }));
    }
    if description != info.description {
        entries.push(opened.session.new_entry(Body::Described { description }));
    }
    if !entries.is_empty() {
        let appended = opened
            .session
            .append_all(entries, Expect::Any, ConflictPolicy::Reject);
        appended.await?;
    }
    Ok(redirect_to_session(opened.session.id(), "renamed"))
}

#[derive(Deserialize)]
pub(super) struct TagsForm {
    tags: String,
}

pub(super) async fn set_tags(opened: VisitorSession, Form(form): Form<TagsForm>) -> ActionResult {
    let tags: Result<Vec<Tag>, _> = form.tags.split_whitespace().map(str::parse).collect();
    let tags = tags.map_err(throughline::Error::from)?;
    let current = &opened.record.info.tags;
    let added: Vec<Tag> = tags
        .iter()
        .filter(|tag| !current.contains(*tag))
        .cloned()
        .collect();
    let removed: Vec<Tag> = current
        .iter()
        .filter(|tag| !tags.contains(tag))
        .cloned()
        .collect();
    let mut entries = Vec::new();
    if !added.is_empty() {
        entries.push(opened.session.new_entry(Body::Tagged { tags: added }));
    }
    if !removed.is_empty() {
        entries.push(opened.session.new_entry(Body::Untagged { tags: removed }));
    }
    if !entries.is_empty() {
        let appended = opened
            .session
            .append_all(entries, Expect::Any, ConflictPolicy::Reject);
        appended.await?;
    }
    Ok(redirect_to_session(opened.session.id(), "tagged"))
}

#[derive(Deserialize)]
pub(super) struct PinForm {
    text: String,
}

pub(super) async fn pin(opened: VisitorSession, Form(form): Form<PinForm>) -> ActionResult {
    let text = form.text.trim().replace("\r\n", "\n");
    if text.is_empty() {
        return Err(Problem::invalid("the fact to pin is empty").into());
    }
    opened.session.pin(&text).await?;
    Ok(redirect_to_session(opened.session.id(), "pinned"))
}

#[derive(Deserialize)]
pub(super) struct UnpinForm {
    pin: String,
}

pub(super) async fn unpin(opened: VisitorSession, Form(form): Form<UnpinForm>) -> ActionResult {
    opened.session.unpin(&form.pin).await?;
    Ok(redirect_to_session(opened.session.id(), "unpinned"))
}

#[derive(Deserialize)]
pub(super) struct ForkForm {
    at: Option<u64>,
    #[serde(default)]
    name: String,
}

pub(super) async fn fork(opened: VisitorSession, Form(form): Form<ForkForm>) -> ActionResult {
    let new = match form.name.trim() {
        "" => NewSession::default(),
        name => NewSession::named(name).map_err(throughline::Error::from)?,
    };
    let forked = opened.session.fork(form.at.map(Seq), new).await?;
    Ok(redirect_to_session(forked.session.id(), "forked"))
}

#[derive(Deserialize)]
pub(super) struct MergeForm {
    /// The fork to merge into this session; if empty, this session is merged into its origin.
    #[serde(default)]
    which: String,
    #[serde(default)]
    style: String,
    #[serde(default)]
    summary: String,
}

pub(super) async fn merge(opened: VisitorSession, Form(form): Form<MergeForm>) -> ActionResult {
    let tl = &opened.visitor.caller.tl;
    let style = match (form.style.as_str(), form.summary.trim()) {
        ("append", _) => MergeStyle::Append,
        ("summary", "") => {
            return Err(Problem::invalid("the summary is empty").into());
        }
        ("summary", text) => MergeStyle::Summary(text.to_owned()),
        _ => MergeStyle::FastForward,
    };
    let (into, fork) = if form.which.is_empty() {
        let Lineage::Forked { session, .. } = &opened.record.info.lineage else {
            return Err(throughline::Error::NoOrigin(opened.session.id().clone()).into());
        };
        (tl.session(session).await?, opened.session.clone())
    } else {
        let id: SessionId = form.which.parse().map_err(throughline::Error::from)?;
        (opened.session.clone(), tl.session(&id).await?)
    };
    let code = match into.merge(&fork, &style).await? {
        MergeOutcome::UpToDate => "up_to_date",
        MergeOutcome::FastForwarded { .. }
        | MergeOutcome::Appended { .. }
        | MergeOutcome::Summarized => "merged",
    };
    Ok(redirect_to_session(into.id(), code))
}

#[derive(Deserialize)]
pub(super) struct RewindForm {
    to: u64,
}

pub(super) async fn rewind(opened: VisitorSession, Form(form): Form<RewindForm>) -> ActionResult {
    opened.session.rewind(Seq(form.to)).await?;
    Ok(redirect_to_session(opened.session.id(), "rewound"))
}

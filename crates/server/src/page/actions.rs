//! What a person does to a session: forms that change something and lead back.

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

/// Back to a session, with a word about what was done.
fn redirect_to_session(id: &SessionId, said: &str) -> Response {
    Redirect::to(&format!("{}?said={said}", session_path(id))).into_response()
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
    /// Who is to answer; nobody in particular is an empty choice in a form.
    fn responder_choice(&self) -> ResponderChoice {
        let chosen = |text: &String| (!text.is_empty()).then(|| text.clone());
        ResponderChoice {
            model: chosen(&self.model),
            agent: chosen(&self.agent),
        }
    }
}

/// Without scripts: asks, waits for the answer and shows it.
pub(super) async fn ask(opened: VisitorSession, Form(asking): Form<AskForm>) -> ActionResult {
    let visitor = &opened.visitor;
    if asking.message.trim().is_empty() {
        return Err(Problem::invalid("say something: the message is empty").into());
    }
    let question = TurnRequest {
        content: Some(Content::text(asking.message.replace("\r\n", "\n"))),
        author: None,
        expect: Expect::Any,
        conflict: ConflictPolicy::Reject,
        key: None,
        when_busy: WhenBusy::Queue,
        options: TurnOptions {
            choice: asking.responder_choice(),
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
    let said = match compacted {
        CompactOutcome::Done(_) => "compacted",
        CompactOutcome::NotNeeded => "not_needed",
        CompactOutcome::NotSmaller(_) => "not_worth_it",
        CompactOutcome::Superseded => "overtaken",
    };
    Ok(redirect_to_session(opened.session.id(), said))
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

pub(super) async fn rename(
    opened: VisitorSession,
    Form(renaming): Form<RenameForm>,
) -> ActionResult {
    let card = &opened.record.info;
    let name = match renaming.name.trim() {
        "" => None,
        name => Some(name.parse().map_err(throughline::Error::from)?),
    };
    let description = Some(renaming.description.trim().to_owned()).filter(|text| !text.is_empty());
    let mut entries = Vec::new();
    if name != card.name {
        let by = NameSource::Person;
        entries.push(opened.session.new_entry(Body::Renamed { name, by }));
    }
    if description != card.description {
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

pub(super) async fn set_tags(
    opened: VisitorSession,
    Form(tagging): Form<TagsForm>,
) -> ActionResult {
    let wanted: Result<Vec<Tag>, _> = tagging.tags.split_whitespace().map(str::parse).collect();
    let wanted = wanted.map_err(throughline::Error::from)?;
    let there = &opened.record.info.tags;
    let added: Vec<Tag> = wanted
        .iter()
        .filter(|tag| !there.contains(*tag))
        .cloned()
        .collect();
    let removed: Vec<Tag> = there
        .iter()
        .filter(|tag| !wanted.contains(tag))
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

pub(super) async fn pin(opened: VisitorSession, Form(pinning): Form<PinForm>) -> ActionResult {
    let text = pinning.text.trim().replace("\r\n", "\n");
    if text.is_empty() {
        return Err(Problem::invalid("say what to pin: the fact is empty").into());
    }
    opened.session.pin(&text).await?;
    Ok(redirect_to_session(opened.session.id(), "pinned"))
}

#[derive(Deserialize)]
pub(super) struct UnpinForm {
    pin: String,
}

pub(super) async fn unpin(
    opened: VisitorSession,
    Form(unpinning): Form<UnpinForm>,
) -> ActionResult {
    opened.session.unpin(&unpinning.pin).await?;
    Ok(redirect_to_session(opened.session.id(), "unpinned"))
}

#[derive(Deserialize)]
pub(super) struct ForkForm {
    at: Option<u64>,
    #[serde(default)]
    name: String,
}

pub(super) async fn fork(opened: VisitorSession, Form(forking): Form<ForkForm>) -> ActionResult {
    let new = match forking.name.trim() {
        "" => NewSession::default(),
        name => NewSession::named(name).map_err(throughline::Error::from)?,
    };
    let forked = opened.session.fork(forking.at.map(Seq), new).await?;
    Ok(redirect_to_session(forked.session.id(), "forked"))
}

#[derive(Deserialize)]
pub(super) struct MergeForm {
    /// The fork that is merged into this session; this one into its origin, where empty.
    #[serde(default)]
    which: String,
    #[serde(default)]
    style: String,
    #[serde(default)]
    summary: String,
}

pub(super) async fn merge(opened: VisitorSession, Form(merging): Form<MergeForm>) -> ActionResult {
    let tl = &opened.visitor.caller.tl;
    let style = match (merging.style.as_str(), merging.summary.trim()) {
        ("append", _) => MergeStyle::Append,
        ("summary", "") => {
            return Err(Problem::invalid("say what the fork came to: the summary is empty").into());
        }
        ("summary", text) => MergeStyle::Summary(text.to_owned()),
        _ => MergeStyle::FastForward,
    };
    let (into, fork) = if merging.which.is_empty() {
        let Lineage::Forked { session, .. } = &opened.record.info.lineage else {
            return Err(throughline::Error::NoOrigin(opened.session.id().clone()).into());
        };
        (tl.session(session).await?, opened.session.clone())
    } else {
        let id: SessionId = merging.which.parse().map_err(throughline::Error::from)?;
        (opened.session.clone(), tl.session(&id).await?)
    };
    let said = match into.merge(&fork, &style).await? {
        MergeOutcome::UpToDate => "up_to_date",
        MergeOutcome::FastForwarded { .. }
        | MergeOutcome::Appended { .. }
        | MergeOutcome::Summarized => "merged",
    };
    Ok(redirect_to_session(into.id(), said))
}

#[derive(Deserialize)]
pub(super) struct RewindForm {
    to: u64,
}

pub(super) async fn rewind(
    opened: VisitorSession,
    Form(rewinding): Form<RewindForm>,
) -> ActionResult {
    opened.session.rewind(Seq(rewinding.to)).await?;
    Ok(redirect_to_session(opened.session.id(), "rewound"))
}

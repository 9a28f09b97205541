//! What a person does to a session: forms that change something and lead back.

use axum::response::{IntoResponse, Redirect, Response};
use serde::Deserialize;
use throughline::{
    Body, Compacted, Conflict, Content, Expect, Lineage, MergeStyle, Merged, NamedBy, NewSession,
    Seq, SessionId, Tag,
};

use super::visitor::{Fault, Form, Opened, Visitor};
use super::words::{entry_place, place};
use crate::extract::Id;
use crate::turns::{Manner, Question, WhenBusy};
use crate::{Choice, Problem};

type Done = Result<Response, Fault>;

/// Back to a session, with a word about what was done.
fn back(id: &SessionId, said: &str) -> Response {
    Redirect::to(&format!("{}?said={said}", place(id))).into_response()
}

pub(super) async fn create(visitor: Visitor) -> Done {
    let session = visitor.caller.tl.create(NewSession::default()).await?;
    Ok(Redirect::to(&place(session.id())).into_response())
}

#[derive(Deserialize)]
pub(super) struct Asking {
    message: String,
    #[serde(default)]
    model: String,
    #[serde(default)]
    agent: String,
}

impl Asking {
    /// Who is to answer; nobody in particular is an empty choice in a form.
    fn choice(&self) -> Choice {
        let chosen = |text: &String| (!text.is_empty()).then(|| text.clone());
        Choice {
            model: chosen(&self.model),
            agent: chosen(&self.agent),
        }
    }
}

/// Without scripts: asks, waits for the answer and shows it.
pub(super) async fn ask(opened: Opened, Form(asking): Form<Asking>) -> Done {
    let visitor = &opened.visitor;
    if asking.message.trim().is_empty() {
        return Err(Problem::invalid("say something: the message is empty").into());
    }
    let question = Question {
        content: Some(Content::text(asking.message.replace("\r\n", "\n"))),
        author: None,
        expect: Expect::Any,
        conflict: Conflict::Reject,
        key: None,
        when_busy: WhenBusy::Queue,
        manner: Manner {
            choice: asking.choice(),
            ..Manner::default()
        },
    };
    let live =
        crate::turns::begin(&visitor.app, &visitor.caller, &opened.session, question).await?;
    live.wait().await;
    match live.outcome() {
        Some(Ok(outcome)) => match (&outcome.failed, &outcome.answer) {
            (Some(problem), None) => Err(problem.clone().into()),
            _ => Ok(
                Redirect::to(&entry_place(&outcome.session, outcome.question.seq)).into_response(),
            ),
        },
        Some(Err(problem)) => Err(problem.clone().into()),
        None => Ok(back(opened.session.id(), "")),
    }
}

pub(super) async fn compact(opened: Opened) -> Done {
    let compacted = crate::api::compacted(&opened.visitor.app, &opened.session).await?;
    let said = match compacted {
        Compacted::Done(_) => "compacted",
        Compacted::NotNeeded => "not_needed",
        Compacted::NotWorthIt(_) => "not_worth_it",
        Compacted::Overtaken => "overtaken",
    };
    Ok(back(opened.session.id(), said))
}

pub(super) async fn undo(opened: Opened) -> Done {
    opened.session.undo_compaction().await?;
    Ok(back(opened.session.id(), "undone"))
}

pub(super) async fn clear(opened: Opened) -> Done {
    opened.session.clear().await?;
    Ok(back(opened.session.id(), "cleared"))
}

pub(super) async fn archive(opened: Opened) -> Done {
    opened.session.archive().await?;
    Ok(back(opened.session.id(), "archived"))
}

pub(super) async fn unarchive(opened: Opened) -> Done {
    opened.session.unarchive().await?;
    Ok(back(opened.session.id(), "unarchived"))
}

pub(super) async fn trash(opened: Opened) -> Done {
    opened.visitor.caller.tl.trash(opened.session.id()).await?;
    Ok(Redirect::to("/?said=trashed").into_response())
}

pub(super) async fn restore(visitor: Visitor, Id(id): Id) -> Done {
    visitor.caller.tl.restore(&id).await?;
    Ok(back(&id, "restored"))
}

pub(super) async fn remove(visitor: Visitor, Id(id): Id) -> Done {
    let session = visitor.caller.owner().session(&id);
    visitor.caller.tl.store().remove(&session).await?;
    Ok(Redirect::to("/trash?said=removed").into_response())
}

#[derive(Deserialize)]
pub(super) struct Renaming {
    name: String,
    #[serde(default)]
    description: String,
}

pub(super) async fn rename(opened: Opened, Form(renaming): Form<Renaming>) -> Done {
    let card = &opened.record.card;
    let name = match renaming.name.trim() {
        "" => None,
        name => Some(name.parse().map_err(throughline::Error::from)?),
    };
    let description = Some(renaming.description.trim().to_owned()).filter(|text| !text.is_empty());
    let mut entries = Vec::new();
    if name != card.name {
        let by = NamedBy::Person;
        entries.push(opened.session.entry(Body::Renamed { name, by }));
    }
    if description != card.description {
        entries.push(opened.session.entry(Body::Described { description }));
    }
    if !entries.is_empty() {
        let appended = opened
            .session
            .append_all(entries, Expect::Any, Conflict::Reject);
        appended.await?;
    }
    Ok(back(opened.session.id(), "renamed"))
}

#[derive(Deserialize)]
pub(super) struct Tagging {
    tags: String,
}

pub(super) async fn tags(opened: Opened, Form(tagging): Form<Tagging>) -> Done {
    let wanted: Result<Vec<Tag>, _> = tagging.tags.split_whitespace().map(str::parse).collect();
    let wanted = wanted.map_err(throughline::Error::from)?;
    let there = &opened.record.card.tags;
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
        entries.push(opened.session.entry(Body::Tagged { tags: added }));
    }
    if !removed.is_empty() {
        entries.push(opened.session.entry(Body::Untagged { tags: removed }));
    }
    if !entries.is_empty() {
        let appended = opened
            .session
            .append_all(entries, Expect::Any, Conflict::Reject);
        appended.await?;
    }
    Ok(back(opened.session.id(), "tagged"))
}

#[derive(Deserialize)]
pub(super) struct Pinning {
    text: String,
}

pub(super) async fn pin(opened: Opened, Form(pinning): Form<Pinning>) -> Done {
    let text = pinning.text.trim().replace("\r\n", "\n");
    if text.is_empty() {
        return Err(Problem::invalid("say what to pin: the fact is empty").into());
    }
    opened.session.pin(&text).await?;
    Ok(back(opened.session.id(), "pinned"))
}

#[derive(Deserialize)]
pub(super) struct Unpinning {
    pin: String,
}

pub(super) async fn unpin(opened: Opened, Form(unpinning): Form<Unpinning>) -> Done {
    opened.session.unpin(&unpinning.pin).await?;
    Ok(back(opened.session.id(), "unpinned"))
}

#[derive(Deserialize)]
pub(super) struct Forking {
    at: Option<u64>,
    #[serde(default)]
    name: String,
}

pub(super) async fn fork(opened: Opened, Form(forking): Form<Forking>) -> Done {
    let new = match forking.name.trim() {
        "" => NewSession::default(),
        name => NewSession::named(name).map_err(throughline::Error::from)?,
    };
    let forked = opened.session.fork(forking.at.map(Seq), new).await?;
    Ok(back(forked.session.id(), "forked"))
}

#[derive(Deserialize)]
pub(super) struct Merging {
    /// The fork that is merged into this session; this one into its origin, where empty.
    #[serde(default)]
    which: String,
    #[serde(default)]
    style: String,
    #[serde(default)]
    summary: String,
}

pub(super) async fn merge(opened: Opened, Form(merging): Form<Merging>) -> Done {
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
        let Lineage::Forked { session, .. } = &opened.record.card.lineage else {
            return Err(throughline::Error::NoOrigin(opened.session.id().clone()).into());
        };
        (tl.session(session).await?, opened.session.clone())
    } else {
        let id: SessionId = merging.which.parse().map_err(throughline::Error::from)?;
        (opened.session.clone(), tl.session(&id).await?)
    };
    let said = match into.merge(&fork, &style).await? {
        Merged::UpToDate => "up_to_date",
        Merged::FastForwarded { .. } | Merged::Appended { .. } | Merged::Summarized => "merged",
    };
    Ok(back(into.id(), said))
}

#[derive(Deserialize)]
pub(super) struct Rewinding {
    to: u64,
}

pub(super) async fn rewind(opened: Opened, Form(rewinding): Form<Rewinding>) -> Done {
    opened.session.rewind(Seq(rewinding.to)).await?;
    Ok(back(opened.session.id(), "rewound"))
}

//! What the model is sent: requests, checkpoints, the working set, context documents.

use axum::Json as Answer;
use axum::extract::{FromRequestParts, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use throughline::context::{Repair, Request, RequestMessage, Section};
use throughline::{
    CheckpointView, CompactOptions, CompactOutcome, CompactionEvent, Content, Entry,
    RequestOptions, Responder, Seq, Session, Summary, WorkingSet,
};
use utoipa::{IntoParams, ToSchema};

use crate::extract::{CallerSession, IfMatch, Json, OptionalJson, Query, path_param};
use crate::guard::empty_response;
use crate::wire::EntryView;
use crate::{App, Problem};

/// The checkpoint in force, as a document
///
/// What everything it covers came to, by completed, in progress, pending, blockers and
/// decisions, with figures.
#[utoipa::path(get, path = "/api/sessions/{id}/checkpoint", tag = "context",
    params(CallerSession),
    responses((status = 200, body = Object)))]
pub(crate) async fn checkpoint(opened: CallerSession) -> Result<Answer<CheckpointView>, Problem> {
    Ok(Answer(opened.session.checkpoint_view().await?))
}

/// How much of a working set.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub(crate) struct WorkingSetQuery {
    /// How many of the latest messages.
    recent: Option<usize>,
    /// The budget, in tokens.
    limit: Option<u64>,
}

/// What the agent keeps in mind, as one document
#[utoipa::path(get, path = "/api/sessions/{id}/working-set", tag = "context",
    params(WorkingSetQuery, CallerSession),
    responses((status = 200, body = Object)))]
pub(crate) async fn working_set(
    opened: CallerSession,
    Query(query): Query<WorkingSetQuery>,
) -> Result<Answer<WorkingSet>, Problem> {
    const RECENT: usize = 20;
    const LIMIT: u64 = 100_000;
    const WINDOW: usize = 2_000;
    let (recent, limit) = (
        query.recent.unwrap_or(RECENT).min(WINDOW),
        query.limit.unwrap_or(LIMIT),
    );
    let set = opened.session.working_set(recent, limit, WINDOW).await?;
    Ok(Answer(set))
}

/// What a request is to be built for.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RequestBody {
    /// The message to be sent with it: a text, or blocks.
    #[schema(value_type = Option<serde_json::Value>)]
    message: Option<Content>,
    /// The most tokens, where less than the policy's window.
    budget: Option<u64>,
}

async fn build_request(
    app: &App,
    opened: &CallerSession,
    body: &RequestBody,
) -> Result<Request, Problem> {
    let voice = app.responder(&opened.session).await?;
    let asking = RequestOptions {
        budget: body.budget,
        ..voice.request_options(body.message.as_ref())
    };
    Ok(opened.session.request(&asking).await?)
}

/// What would be sent.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RequestView {
    /// The policy it was made by.
    policy: String,
    /// The most tokens it could have had.
    budget: u64,
    /// The tokens it has.
    tokens: u64,
    /// What to send to the model.
    #[schema(value_type = Vec<Object>)]
    messages: Vec<RequestMessage>,
}

/// Build what the model would be sent now
#[utoipa::path(post, path = "/api/sessions/{id}/request", tag = "context",
    request_body = RequestBody, params(CallerSession),
    responses((status = 200, body = RequestView)))]
pub(crate) async fn request(
    State(app): State<App>,
    opened: CallerSession,
    OptionalJson(body): OptionalJson<RequestBody>,
) -> Result<Answer<RequestView>, Problem> {
    let request = build_request(&app, &opened, &body).await?;
    Ok(Answer(RequestView {
        policy: request.policy,
        budget: request.budget,
        tokens: request.tokens,
        messages: request.messages,
    }))
}

/// What would be sent, section by section.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RequestPreview {
    /// The policy it was made by.
    policy: String,
    /// The most tokens it could have had.
    budget: u64,
    /// The tokens it has: the sum over the sections.
    tokens: u64,
    /// The sections, with what each costs, what it is made from and what was left out.
    #[schema(value_type = Vec<Object>)]
    sections: Vec<Section>,
    /// What was wrong in the log and is right in the request.
    #[schema(value_type = Vec<Object>)]
    repairs: Vec<Repair>,
}

/// Show what the model would be sent now, section by section
#[utoipa::path(post, path = "/api/sessions/{id}/request/preview", tag = "context",
    request_body = RequestBody, params(CallerSession),
    responses((status = 200, body = RequestPreview)))]
pub(crate) async fn preview(
    State(app): State<App>,
    opened: CallerSession,
    OptionalJson(body): OptionalJson<RequestBody>,
) -> Result<Answer<RequestPreview>, Problem> {
    let request = build_request(&app, &opened, &body).await?;
    Ok(Answer(RequestPreview {
        policy: request.policy,
        budget: request.budget,
        tokens: request.tokens,
        sections: request.sections,
        repairs: request.repairs,
    }))
}

/// What became of a compaction.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CompactedView {
    /// `compacted`, `not_needed`, `not_worth_it`, or `overtaken` by somebody else.
    how: &'static str,
    /// The checkpoint's entry.
    #[schema(value_type = Option<u64>)]
    seq: Option<Seq>,
    /// The last entry it covers.
    #[schema(value_type = Option<u64>)]
    covers: Option<Seq>,
    /// What wrote it.
    by: Option<String>,
    /// What the messages cost before.
    tokens_before: Option<u64>,
    /// What is left of them costs.
    tokens_kept: Option<u64>,
    /// What they came to.
    #[schema(value_type = Option<Object>)]
    summary: Option<Summary>,
    /// What somebody should know.
    warnings: Vec<String>,
}

impl From<CompactOutcome> for CompactedView {
    fn from(compacted: CompactOutcome) -> Self {
        let (how, done, warnings) = match compacted {
            CompactOutcome::Done(done) => ("compacted", Some(done), Vec::new()),
            CompactOutcome::NotNeeded => ("not_needed", None, Vec::new()),
            CompactOutcome::NotSmaller(warnings) => ("not_worth_it", None, warnings),
            CompactOutcome::Superseded => ("overtaken", None, Vec::new()),
        };
        let done = done.as_deref();
        Self {
            how,
            seq: done.map(|done| done.entry.seq),
            covers: done.map(|done| done.checkpoint.covers),
            by: done.map(|done| done.checkpoint.by.clone()),
            tokens_before: done.map(|done| done.tokens_before),
            tokens_kept: done.map(|done| done.tokens_kept),
            summary: done.map(|done| done.checkpoint.summary.clone()),
            warnings: done.map_or(warnings, |done| done.warnings.clone()),
        }
    }
}

/// Summarize what came before
///
/// The model is sent the summary in place of the messages it covers; they all stay.
#[utoipa::path(post, path = "/api/sessions/{id}/compact", tag = "context",
    params(CallerSession),
    responses((status = 200, body = CompactedView)))]
pub(crate) async fn compact(
    State(app): State<App>,
    opened: CallerSession,
) -> Result<Answer<CompactedView>, Problem> {
    Ok(Answer(compact_session(&app, &opened.session).await?.into()))
}

/// Compacts as the session's voice would, and tells of it. It comes to its end whether or
/// not somebody waits for it.
pub(crate) async fn compact_session(
    app: &App,
    session: &Session,
) -> Result<CompactOutcome, Problem> {
    let voice = app.responder(session).await?;
    let (app, session) = (app.clone(), session.clone());
    let compaction = tokio::spawn(async move {
        let tell = |event: CompactionEvent| {
            let data = compaction_event_data(&event, session.id());
            app.hub
                .publish_transient(session.reference(), event.name(), &data);
        };
        let compacted = session
            .compact(&CompactOptions {
                policy: &voice.policy,
                window: voice.window,
                encoding: voice.encoding,
                fixed_tokens: 0,
                before: None,
                force: true,
                allow_larger: false,
                summarizer: voice.summarizer.as_deref(),
                on_event: Some(&tell),
            })
            .await;
        if let Ok(CompactOutcome::Done(done)) = &compacted {
            propose_facts(&session, &done.entry, &voice).await;
        }
        app.hub.wake();
        compacted
    });
    let compacted = compaction.await.map_err(|_| {
        Problem::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "compaction_broke",
            "the compaction ended unexpectedly; nothing is lost",
        )
    })?;
    Ok(compacted?)
}

/// Proposes for memory what a summary found. That is not worth failing for.
pub(super) async fn propose_facts(session: &Session, summary: &Entry, voice: &Responder) {
    if let Err(error) = session.propose_facts(summary, voice.fact_proposals).await {
        tracing::warn!(%error, "what a summary found cannot be proposed");
    }
}

/// What is told of a compaction as it goes. That it is complete is told by its entry.
fn compaction_event_data(
    event: &CompactionEvent,
    session: &throughline::SessionId,
) -> serde_json::Value {
    let mut data = crate::turns::compaction_event_data(event);
    if let Some(members) = data.as_object_mut() {
        members.insert("session".to_owned(), session.as_str().into());
    }
    data
}

/// A checkpoint that was taken back.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Retracted {
    /// Its entry.
    #[schema(value_type = u64)]
    retracted: Seq,
}

/// Take the last summary back
#[utoipa::path(delete, path = "/api/sessions/{id}/checkpoint", tag = "context",
    params(CallerSession),
    responses((status = 200, body = Retracted)))]
pub(crate) async fn undo(opened: CallerSession) -> Result<Answer<Retracted>, Problem> {
    let retracted = opened.session.undo_compaction().await?;
    Ok(Answer(Retracted { retracted }))
}

/// Start anew: the model no longer sees what came before, people still do
#[utoipa::path(post, path = "/api/sessions/{id}/clear", tag = "context",
    params(CallerSession,
        IfMatch),
    responses((status = 200, body = EntryView)))]
pub(crate) async fn clear(
    opened: CallerSession,
    IfMatch(expect): IfMatch,
) -> Result<Answer<EntryView>, Problem> {
    Ok(Answer(EntryView(opened.session.clear_after(expect).await?)))
}

/// Where to go back to.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RewindBody {
    /// The last entry that stays.
    #[schema(value_type = u64)]
    to: Seq,
}

/// Where it went back to.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Rewound {
    /// Later than asked for where that would have parted a tool's call from its result.
    #[schema(value_type = u64)]
    to: Seq,
}

/// Take back what was said after an entry
#[utoipa::path(post, path = "/api/sessions/{id}/rewind", tag = "context",
    request_body = RewindBody, params(CallerSession,
        IfMatch),
    responses((status = 200, body = Rewound)))]
pub(crate) async fn rewind(
    opened: CallerSession,
    IfMatch(expect): IfMatch,
    Json(body): Json<RewindBody>,
) -> Result<Answer<Rewound>, Problem> {
    let to = opened.session.rewind_after(body.to, expect).await?;
    Ok(Answer(Rewound { to }))
}

/// A context document's name in the path.
#[derive(Debug)]
pub(crate) struct PathDocumentName(String);

impl FromRequestParts<App> for PathDocumentName {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        const LONGEST: usize = 200;
        let name = path_param(parts, app, "document").await?;
        let fit = !name.trim().is_empty()
            && name.chars().count() <= LONGEST
            && !name.chars().any(char::is_control);
        if fit {
            return Ok(Self(name));
        }
        Err(Problem::invalid(format!(
            "a document's name has 1 to {LONGEST} characters, none of them control characters"
        )))
    }
}

/// A context document.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct DocumentBody {
    /// What it says.
    text: String,
}

/// Read a context document
#[utoipa::path(get, path = "/api/sessions/{id}/context/{document}", tag = "context",
    params(CallerSession,
        ("document" = String, Path, description = "Its name")),
    responses((status = 200, body = DocumentBody)))]
pub(crate) async fn document(
    opened: CallerSession,
    PathDocumentName(name): PathDocumentName,
) -> Result<Answer<DocumentBody>, Problem> {
    let text = opened.session.context_document(&name).await?;
    match text {
        Some(text) => Ok(Answer(DocumentBody { text })),
        None => Err(document_not_found(&name)),
    }
}

fn document_not_found(name: &str) -> Problem {
    Problem::not_found(
        "document_not_found",
        format!("the session has no context document {name:?}"),
    )
}

/// Set a context document, which is part of every request of the session
///
/// `policy` says how the session's requests are made: `bot`, or `default; window=50000`.
#[utoipa::path(put, path = "/api/sessions/{id}/context/{document}", tag = "context",
    request_body = DocumentBody,
    params(CallerSession,
        ("document" = String, Path, description = "Its name")),
    responses((status = 200, body = EntryView)))]
pub(crate) async fn set_document(
    opened: CallerSession,
    PathDocumentName(name): PathDocumentName,
    Json(body): Json<DocumentBody>,
) -> Result<Answer<EntryView>, Problem> {
    if name == throughline::POLICY_DOCUMENT {
        // Found out now, and not when the next request is built.
        throughline::context::Policy::default()
            .with_spec(&body.text)
            .map_err(throughline::Error::from)?;
    }
    let entry = opened.session.set_context(&name, Some(&body.text)).await?;
    Ok(Answer(EntryView(entry)))
}

/// Remove a context document
#[utoipa::path(delete, path = "/api/sessions/{id}/context/{document}", tag = "context",
    params(CallerSession,
        ("document" = String, Path, description = "Its name")),
    responses((status = 204, description = "Done")))]
pub(crate) async fn remove_document(
    opened: CallerSession,
    PathDocumentName(name): PathDocumentName,
) -> Result<Response, Problem> {
    if !opened
        .session
        .record()
        .await?
        .state
        .context
        .contains_key(&name)
    {
        return Err(document_not_found(&name));
    }
    opened.session.set_context(&name, None).await?;
    Ok(empty_response(StatusCode::NO_CONTENT).into_response())
}

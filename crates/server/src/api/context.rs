//! Model context API: requests, checkpoints, the working set and context documents.

use axum::Json as JsonResponse;
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

/// Get the current checkpoint as a document
///
/// Summarizes the covered entries as completed, in progress, pending, blockers and decisions, with
/// statistics.
#[utoipa::path(get, path = "/api/sessions/{id}/checkpoint", tag = "context",
    params(CallerSession),
    responses((status = 200, body = Object)))]
pub(crate) async fn checkpoint(
    opened: CallerSession,
) -> Result<JsonResponse<CheckpointView>, Problem> {
    Ok(JsonResponse(opened.session.checkpoint_view().await?))
}

/// Size of the working set.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub(crate) struct WorkingSetQuery {
    /// Number of recent messages.
    recent: Option<usize>,
    /// Budget in tokens.
    limit: Option<u64>,
}

/// Get the working set as one document
#[utoipa::path(get, path = "/api/sessions/{id}/working-set", tag = "context",
    params(WorkingSetQuery, CallerSession),
    responses((status = 200, body = Object)))]
pub(crate) async fn working_set(
    opened: CallerSession,
    Query(query): Query<WorkingSetQuery>,
) -> Result<JsonResponse<WorkingSet>, Problem> {
    const RECENT: usize = 20;
    const LIMIT: u64 = 100_000;
    const WINDOW: usize = 2_000;
    let (recent, limit) = (
        query.recent.unwrap_or(RECENT).min(WINDOW),
        query.limit.unwrap_or(LIMIT),
    );
    let set = opened.session.working_set(recent, limit, WINDOW).await?;
    Ok(JsonResponse(set))
}

/// Inputs for building a request.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RequestBody {
    /// The message to send with the request: text or blocks.
    #[schema(value_type = Option<serde_json::Value>)]
    message: Option<Content>,
    /// Maximum tokens, if lower than the policy's window.
    budget: Option<u64>,
}

async fn build_request(
    app: &App,
    opened: &CallerSession,
    body: &RequestBody,
) -> Result<Request, Problem> {
    let responder = app.responder(&opened.session).await?;
    let options = RequestOptions {
        budget: body.budget,
        ..responder.request_options(body.message.as_ref())
    };
    Ok(opened.session.request(&options).await?)
}

/// The request that would be sent to the model.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RequestView {
    /// The policy that built the request.
    policy: String,
    /// Maximum tokens of the request.
    budget: u64,
    /// Tokens in the request.
    tokens: u64,
    /// The messages to send to the model.
    #[schema(value_type = Vec<Object>)]
    messages: Vec<RequestMessage>,
}

/// Build the request that the model would receive now
#[utoipa::path(post, path = "/api/sessions/{id}/request", tag = "context",
    request_body = RequestBody, params(CallerSession),
    responses((status = 200, body = RequestView)))]
pub(crate) async fn request(
    State(app): State<App>,
    opened: CallerSession,
    OptionalJson(body): OptionalJson<RequestBody>,
) -> Result<JsonResponse<RequestView>, Problem> {
    let request = build_request(&app, &opened, &body).await?;
    Ok(JsonResponse(RequestView {
        policy: request.policy,
        budget: request.budget,
        tokens: request.tokens,
        messages: request.messages,
    }))
}

/// The request that would be sent, by section.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RequestPreview {
    /// The policy that built the request.
    policy: String,
    /// Maximum tokens of the request.
    budget: u64,
    /// Tokens in the request: the sum over the sections.
    tokens: u64,
    /// The sections, with tokens, sources and omissions of each.
    #[schema(value_type = Vec<Object>)]
    sections: Vec<Section>,
    /// Problems in the log that were repaired in the request.
    #[schema(value_type = Vec<Object>)]
    repairs: Vec<Repair>,
}

/// Preview the request that the model would receive now, by section
#[utoipa::path(post, path = "/api/sessions/{id}/request/preview", tag = "context",
    request_body = RequestBody, params(CallerSession),
    responses((status = 200, body = RequestPreview)))]
pub(crate) async fn preview(
    State(app): State<App>,
    opened: CallerSession,
    OptionalJson(body): OptionalJson<RequestBody>,
) -> Result<JsonResponse<RequestPreview>, Problem> {
    let request = build_request(&app, &opened, &body).await?;
    Ok(JsonResponse(RequestPreview {
        policy: request.policy,
        budget: request.budget,
        tokens: request.tokens,
        sections: request.sections,
        repairs: request.repairs,
    }))
}

/// Result of a compaction.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CompactedView {
    /// `compacted`, `not_needed`, `not_worth_it`, or `overtaken` by a concurrent writer.
    how: &'static str,
    /// The checkpoint's entry number.
    #[schema(value_type = Option<u64>)]
    seq: Option<Seq>,
    /// The last entry it covers.
    #[schema(value_type = Option<u64>)]
    covers: Option<Seq>,
    /// What wrote the summary.
    by: Option<String>,
    /// Tokens of the messages before compaction.
    tokens_before: Option<u64>,
    /// Tokens of the messages that remain.
    tokens_kept: Option<u64>,
    /// The summary.
    #[schema(value_type = Option<Object>)]
    summary: Option<Summary>,
    /// Warnings.
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

/// Compact the session: summarize earlier messages
///
/// The model receives the summary instead of the covered messages; the messages remain stored.
#[utoipa::path(post, path = "/api/sessions/{id}/compact", tag = "context",
    params(CallerSession),
    responses((status = 200, body = CompactedView)))]
pub(crate) async fn compact(
    State(app): State<App>,
    opened: CallerSession,
) -> Result<JsonResponse<CompactedView>, Problem> {
    Ok(JsonResponse(
        compact_session(&app, &opened.session).await?.into(),
    ))
}

/// Compacts with the session's responder and publishes events about it. The compaction runs to
/// completion even if the caller disconnects.
pub(crate) async fn compact_session(
    app: &App,
    session: &Session,
) -> Result<CompactOutcome, Problem> {
    let responder = app.responder(session).await?;
    let (app, session) = (app.clone(), session.clone());
    let compaction = tokio::spawn(async move {
        let tell = |event: CompactionEvent| {
            let data = compaction_event_data(&event, session.id());
            app.hub
                .publish_transient(session.reference(), event.name(), &data);
        };
        let compacted = session
            .compact(&CompactOptions {
                policy: &responder.policy,
                window: responder.window,
                encoding: responder.encoding,
                fixed_tokens: 0,
                before: None,
                force: true,
                allow_larger: false,
                summarizer: responder.summarizer.as_deref(),
                on_event: Some(&tell),
            })
            .await;
        if let Ok(CompactOutcome::Done(done)) = &compacted {
            propose_facts(&session, &done.entry, &responder).await;
        }
        app.hub.wake();
        compacted
    });
    let compacted = compaction.await.map_err(|_| {
        Problem::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "compaction_broke",
            "the compaction ended unexpectedly; nothing was lost",
        )
    })?;
    Ok(compacted?)
}

/// Proposes facts found in a summary for memory. A failure is only logged.
pub(super) async fn propose_facts(session: &Session, summary: &Entry, responder: &Responder) {
    if let Err(error) = session
        .propose_facts(summary, responder.fact_proposals)
        .await
    {
        tracing::warn!(%error, "cannot propose the facts found in a summary");
    }
}

/// Event data for the progress of a compaction. Completion is reported by the checkpoint entry.
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

/// An undone checkpoint.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Retracted {
    /// Its entry number.
    #[schema(value_type = u64)]
    retracted: Seq,
}

/// Undo the last checkpoint
#[utoipa::path(delete, path = "/api/sessions/{id}/checkpoint", tag = "context",
    params(CallerSession),
    responses((status = 200, body = Retracted)))]
pub(crate) async fn undo(opened: CallerSession) -> Result<JsonResponse<Retracted>, Problem> {
    let retracted = opened.session.undo_compaction().await?;
    Ok(JsonResponse(Retracted { retracted }))
}

/// Clear the context: the model no longer sees earlier messages; they remain readable
#[utoipa::path(post, path = "/api/sessions/{id}/clear", tag = "context",
    params(CallerSession,
        IfMatch),
    responses((status = 200, body = EntryView)))]
pub(crate) async fn clear(
    opened: CallerSession,
    IfMatch(expect): IfMatch,
) -> Result<JsonResponse<EntryView>, Problem> {
    Ok(JsonResponse(EntryView(
        opened.session.clear_after(expect).await?,
    )))
}

/// Where to rewind to.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RewindBody {
    /// The last entry to keep.
    #[schema(value_type = u64)]
    to: Seq,
}

/// Result of a rewind.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Rewound {
    /// The last entry kept. Later than requested if a tool call would otherwise lose its result.
    #[schema(value_type = u64)]
    to: Seq,
}

/// Rewind: undo everything after an entry
#[utoipa::path(post, path = "/api/sessions/{id}/rewind", tag = "context",
    request_body = RewindBody, params(CallerSession,
        IfMatch),
    responses((status = 200, body = Rewound)))]
pub(crate) async fn rewind(
    opened: CallerSession,
    IfMatch(expect): IfMatch,
    Json(body): Json<RewindBody>,
) -> Result<JsonResponse<Rewound>, Problem> {
    let to = opened.session.rewind_after(body.to, expect).await?;
    Ok(JsonResponse(Rewound { to }))
}

/// The name of a context document in the path.
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
            "a document name must have 1 to {LONGEST} characters and no control characters"
        )))
    }
}

/// A context document.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct DocumentBody {
    /// The document's text.
    text: String,
}

/// Get a context document
#[utoipa::path(get, path = "/api/sessions/{id}/context/{document}", tag = "context",
    params(CallerSession,
        ("document" = String, Path, description = "Document name")),
    responses((status = 200, body = DocumentBody)))]
pub(crate) async fn document(
    opened: CallerSession,
    PathDocumentName(name): PathDocumentName,
) -> Result<JsonResponse<DocumentBody>, Problem> {
    let text = opened.session.context_document(&name).await?;
    match text {
        Some(text) => Ok(JsonResponse(DocumentBody { text })),
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
/// The document `policy` selects the session's policy, such as `sliding-window` or
/// `default; window=50000`.
#[utoipa::path(put, path = "/api/sessions/{id}/context/{document}", tag = "context",
    request_body = DocumentBody,
    params(CallerSession,
        ("document" = String, Path, description = "Document name")),
    responses((status = 200, body = EntryView)))]
pub(crate) async fn set_document(
    opened: CallerSession,
    PathDocumentName(name): PathDocumentName,
    Json(body): Json<DocumentBody>,
) -> Result<JsonResponse<EntryView>, Problem> {
    if name == throughline::POLICY_DOCUMENT {
        // Validated now rather than when the next request is built.
        throughline::context::Policy::default()
            .with_spec(&body.text)
            .map_err(throughline::Error::from)?;
    }
    let entry = opened.session.set_context(&name, Some(&body.text)).await?;
    Ok(JsonResponse(EntryView(entry)))
}

/// Delete a context document
#[utoipa::path(delete, path = "/api/sessions/{id}/context/{document}", tag = "context",
    params(CallerSession,
        ("document" = String, Path, description = "Document name")),
    responses((status = 204, description = "Success")))]
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

//! Responses API: runs a turn in a conversation, or answers a standalone input.
//!
//! With `conversation` or `previous_response_id`, the input is appended to that session and
//! answered there. Without either, a session is created, unless `store` is false: then nothing is
//! stored. The caller runs the tools: tool calls end a response, and their results are sent with
//! the next one.

use axum::Json as JsonResponse;
use axum::extract::{FromRequestParts, State};
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use throughline::{
    ConflictPolicy, Entry, EntryId, Expect, NewEntry, NewSession, OpenOptions, ReadRange,
    Responder, Role, Seq, Session, SessionId, StoreAddress, Throughline,
};

use super::conversation::Conversation;
use super::item::{NewItem, items_of_entry};
use super::response_request::{CreateResponseBody, ResponseRequest, unsupported_option};
use super::response_view::ResponseView;
use super::{OpenAiError, id, response_stream};
use crate::extract::{IdempotencyKey, Json as JsonBody, path_param};
use crate::turns::{TurnOptions, TurnReport, TurnRequest, WhenBusy, start_turn};
use crate::{App, Caller, Problem};

/// How many entries after a question are searched for its answer.
const ANSWER_SCAN_LIMIT: usize = 16;

/// Where the question is asked.
enum Target {
    /// In a conversation, at its end.
    Existing(Conversation),
    /// In a conversation, after an entry.
    AfterEntry(Conversation, Seq),
    /// In a new conversation.
    New,
    /// In a temporary session that is not stored.
    Ephemeral,
}

impl Target {
    /// Resolves the target, which must exist.
    async fn resolve(caller: &Caller, body: &CreateResponseBody) -> Result<Self, OpenAiError> {
        match (body.conversation_id()?, &body.previous_response_id) {
            (Some(_), Some(_)) => {
                let why = "send either `conversation` or `previous_response_id`";
                Err(OpenAiError::invalid_param("previous_response_id", why))
            }
            (Some(id), None) => Ok(Self::Existing(
                Conversation::open(caller.clone(), &id).await?,
            )),
            (None, Some(previous)) => {
                let missing = || OpenAiError::response_not_found(previous);
                let loaded = load_response(caller, previous).await?;
                let (conversation, question, answer) = loaded.ok_or_else(missing)?;
                let last = answer.map_or(question.seq, |answer| answer.seq);
                Ok(Self::AfterEntry(conversation, last))
            }
            (None, None) if body.store == Some(false) => Ok(Self::Ephemeral),
            (None, None) => Ok(Self::New),
        }
    }

    /// The session, if there is one.
    fn session(&self) -> Option<&Session> {
        match self {
            Self::Existing(conversation) | Self::AfterEntry(conversation, _) => {
                Some(&conversation.session)
            }
            Self::New | Self::Ephemeral => None,
        }
    }

    /// Creates what does not exist yet. Called after the request has been validated.
    async fn prepare(
        self,
        app: &App,
        caller: &Caller,
        items: Vec<NewItem>,
    ) -> Result<TurnInput, OpenAiError> {
        let conversation = match self {
            Self::Ephemeral => return prepare_ephemeral(caller, items).await,
            Self::Existing(conversation) => conversation,
            Self::AfterEntry(conversation, last) => fork_unless_last(conversation, last).await?,
            Self::New => {
                let session = caller.tl.create(NewSession::default()).await?;
                Conversation {
                    caller: caller.clone(),
                    record: session.record().await?,
                    session,
                }
            }
        };
        conversation.check_unlocked(app)?;
        let asked = !items.is_empty();
        let fresh = conversation.plan_append(items, "input").await?;
        if asked && fresh.entries.is_empty() {
            let why = "every item in the input is already in the conversation";
            return Err(OpenAiError::invalid_param("input", why));
        }
        Ok(TurnInput {
            session: conversation.session,
            tl: caller.tl.clone(),
            stored: true,
            entries: fresh.entries,
        })
    }
}

/// Where and with what the turn starts.
struct TurnInput {
    session: Session,
    tl: Throughline,
    /// Whether the session is stored.
    stored: bool,
    /// The new entries; empty to answer the last message.
    entries: Vec<NewEntry>,
}

/// Creates a response.
pub(super) async fn create(
    State(app): State<App>,
    caller: Caller,
    IdempotencyKey(key): IdempotencyKey,
    JsonBody(body): JsonBody<CreateResponseBody>,
) -> Result<Response, OpenAiError> {
    let ResponseRequest {
        items,
        tools,
        metadata,
        sampling,
    } = body.parse()?;
    let target = Target::resolve(&caller, &body).await?;
    if items.is_empty() && target.session().is_none() {
        return Err(OpenAiError::invalid_param(
            "input",
            "there is nothing to answer",
        ));
    }
    let responders = &*app.config.responders;
    let choice = body.responder_choice(responders);
    let responder = responders.responder(target.session(), &choice).await;
    let responder = Responder {
        sampling,
        ..responder.map_err(Problem::from)?
    };
    if let Some(term) = responder.first_unsupported_option() {
        return Err(unsupported_option(term, responder.model_name()));
    }
    let turn_input = target.prepare(&app, &caller, items).await?;
    let options = TurnOptions {
        entries: turn_input.entries,
        instructions: body.instructions.clone(),
        tools,
        ephemeral: !turn_input.stored,
        choice,
        sampling: responder.sampling.clone(),
    };
    let question = TurnRequest {
        content: None,
        author: None,
        expect: Expect::Any,
        conflict: ConflictPolicy::Reject,
        key,
        when_busy: WhenBusy::Refuse,
        options,
    };
    // Stored or not, the turn belongs to the caller.
    let live = start_turn(&app, &caller, &turn_input.session, question).await?;
    let streamed = body.stream == Some(true);
    let mut view = body.into_view(metadata, caller.tl.now());
    view.store = turn_input.stored;
    if let Some(model) = responder.model_name() {
        model.clone_into(&mut view.model);
    }
    let builder = ResponseBuilder {
        view,
        tl: turn_input.tl,
        stored: turn_input.stored,
    };
    if streamed {
        return Ok(response_stream::stream_response(live, builder));
    }
    live.wait().await;
    match live.outcome() {
        Some(Ok(outcome)) => builder.into_http_response(outcome).await,
        Some(Err(problem)) => Err(builder.to_error(problem)),
        None => Err(builder.to_error(&turn_broke())),
    }
}

fn turn_broke() -> Problem {
    let status = axum::http::StatusCode::INTERNAL_SERVER_ERROR;
    Problem::new(status, "turn_broke", "the turn ended unexpectedly")
}

/// Creates a temporary session that is dropped after the answer.
async fn prepare_ephemeral(caller: &Caller, items: Vec<NewItem>) -> Result<TurnInput, OpenAiError> {
    let opening = OpenOptions {
        owner: Some(caller.owner().clone()),
        ..OpenOptions::default()
    };
    let tl = Throughline::open_with(&StoreAddress::Memory, opening).await?;
    let session = tl.create(NewSession::default()).await?;
    let mut entries = Vec::new();
    for item in items {
        item.store_files(&tl).await?;
        entries.push(item.into_entry(&session, false));
    }
    Ok(TurnInput {
        session,
        tl,
        stored: false,
        entries,
    })
}

/// Returns the conversation as of an entry: a fork if there are messages after it.
async fn fork_unless_last(
    conversation: Conversation,
    last: Seq,
) -> Result<Conversation, OpenAiError> {
    if conversation.is_last(last).await? {
        return Ok(conversation);
    }
    let forking = conversation.session.fork(Some(last), NewSession::default());
    let session = forking.await?.session;
    let record = session.record().await?;
    Ok(Conversation {
        session,
        record,
        ..conversation
    })
}

/// Loads a stored response: its conversation, question and answer.
async fn load_response(
    caller: &Caller,
    response: &str,
) -> Result<Option<(Conversation, Entry, Option<Entry>)>, OpenAiError> {
    let Some((session, question)) = id::parse_response(response) else {
        return Ok(None);
    };
    let conversation = id::conversation(&session);
    let Ok(conversation) = Conversation::open(caller.clone(), &conversation).await else {
        return Ok(None);
    };
    let Some(seq) = conversation.locate_entries(&[question]).await?.pop() else {
        return Ok(None);
    };
    let after = conversation
        .session
        .read(ReadRange::starting_at(seq, ANSWER_SCAN_LIMIT))
        .await?;
    let mut messages = after
        .into_iter()
        .filter(|entry| entry.seq == seq || entry.message().is_some());
    let Some(question) = messages.next().filter(|entry| entry.message().is_some()) else {
        return Ok(None);
    };
    let answer = messages.next().filter(|entry| {
        let role = entry.message().map(|message| message.role);
        role == Some(Role::Assistant)
    });
    Ok(Some((conversation, question, answer)))
}

/// Builds a response from the outcome of a turn.
#[derive(Debug)]
pub(super) struct ResponseBuilder {
    pub(super) view: ResponseView,
    tl: Throughline,
    stored: bool,
}

impl ResponseBuilder {
    /// Sets the stored question, which determines the response's id.
    pub(super) fn set_question(&mut self, session: &SessionId, question: &EntryId) {
        self.view.id = id::response(self.stored.then_some(session), question);
        if self.stored {
            self.view.set_conversation(session);
        }
    }

    /// Converts a failure. The input is stored, so the client must not send it again.
    pub(super) fn to_error(&self, problem: &Problem) -> OpenAiError {
        let refusal = OpenAiError::from(problem.clone());
        if self.stored {
            refusal.after_storing_input()
        } else {
            refusal
        }
    }

    /// Completes the response; a failure becomes part of it.
    pub(super) async fn complete(&mut self, outcome: &TurnReport) -> Result<(), OpenAiError> {
        self.set_question(&outcome.session, &outcome.question.id);
        match &outcome.answer {
            Some(answer) => {
                let items = items_of_entry(&self.tl, &outcome.session, answer).await?;
                let output = items.into_iter().map(|item| item.json).collect();
                self.view.complete(answer, output, outcome.usage);
                if outcome.cut {
                    self.view.mark_truncated();
                }
            }
            None => self.view.mark_incomplete(),
        }
        if let Some(problem) = &outcome.failed {
            let refusal = self.to_error(problem);
            self.view.mark_failed(&refusal);
        }
        Ok(())
    }

    async fn into_http_response(mut self, outcome: &TurnReport) -> Result<Response, OpenAiError> {
        if let Some(problem) = &outcome.failed {
            return Err(self.to_error(problem));
        }
        self.complete(outcome).await?;
        Ok(JsonResponse(self.view).into_response())
    }
}

/// The response id in the path.
pub(super) struct ResponseId(String);

impl FromRequestParts<App> for ResponseId {
    type Rejection = OpenAiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, OpenAiError> {
        Ok(Self(path_param(parts, app, "response").await?))
    }
}

/// Returns a stored response.
pub(super) async fn retrieve(
    caller: Caller,
    ResponseId(response): ResponseId,
) -> Result<JsonResponse<ResponseView>, OpenAiError> {
    let missing = || OpenAiError::response_not_found(&response);
    let (conversation, question, answer) = load_response(&caller, &response)
        .await?
        .ok_or_else(missing)?;
    let mut view = ResponseView::in_progress(response.clone(), question.at);
    view.store = true;
    view.set_conversation(conversation.session.id());
    match &answer {
        Some(answer) => {
            let items = conversation.items_of(answer).await?;
            let output = items.into_iter().map(|item| item.json).collect();
            let usage = answer.message().and_then(|message| message.usage);
            view.complete(answer, output, usage);
        }
        None => view.mark_incomplete(),
    }
    Ok(JsonResponse(view))
}

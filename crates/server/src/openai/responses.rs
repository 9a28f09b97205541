//! Responses: a turn in a conversation, or an answer to what is sent alone.
//!
//! With a `conversation`, or a `previous_response_id`, what is sent is said in that
//! session and answered there. Without either a session is made for it, unless `store` is
//! false: then nothing is kept. Tools are run by the caller: their calls are the end
//! of a response, and their results are sent with the next one.

use axum::Json as Answer;
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
use crate::extract::{IdempotencyKey, Json as Sent, path_param};
use crate::turns::{TurnOptions, TurnReport, TurnRequest, WhenBusy, start_turn};
use crate::{App, Caller, Problem};

/// How far after a question its answer is looked for.
const ANSWER_SCAN_LIMIT: usize = 16;

/// Where a question is to be asked.
enum Target {
    /// In a conversation, as it is.
    Existing(Conversation),
    /// In a conversation as it was after an entry.
    AfterEntry(Conversation, Seq),
    /// In one that is yet to be made.
    New,
    /// Nowhere that is kept.
    Ephemeral,
}

impl Target {
    /// Where this is asked, which must be there.
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
                let kept = load_response(caller, previous).await?;
                let (conversation, question, answer) = kept.ok_or_else(missing)?;
                let last = answer.map_or(question.seq, |answer| answer.seq);
                Ok(Self::AfterEntry(conversation, last))
            }
            (None, None) if body.store == Some(false) => Ok(Self::Ephemeral),
            (None, None) => Ok(Self::New),
        }
    }

    /// The session, where there is one.
    fn session(&self) -> Option<&Session> {
        match self {
            Self::Existing(conversation) | Self::AfterEntry(conversation, _) => {
                Some(&conversation.session)
            }
            Self::New | Self::Ephemeral => None,
        }
    }

    /// Makes what is yet to be made: nothing is refused any more for what it says.
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
            let why = "everything in the input is in the conversation already";
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

/// Where a question is asked.
struct TurnInput {
    session: Session,
    tl: Throughline,
    /// Whether it is kept.
    stored: bool,
    /// The new entries; none to have what was said last answered.
    entries: Vec<NewEntry>,
}

/// Answers.
pub(super) async fn create(
    State(app): State<App>,
    caller: Caller,
    IdempotencyKey(key): IdempotencyKey,
    Sent(body): Sent<CreateResponseBody>,
) -> Result<Response, OpenAiError> {
    let ResponseRequest {
        items,
        tools,
        metadata,
        sampling: terms,
    } = body.parse()?;
    let target = Target::resolve(&caller, &body).await?;
    if items.is_empty() && target.session().is_none() {
        return Err(OpenAiError::invalid_param(
            "input",
            "there is nothing to answer",
        ));
    }
    let voices = &*app.config.responders;
    let choice = body.responder_choice(voices);
    let voice = voices.responder(target.session(), &choice).await;
    let voice = Responder {
        sampling: terms,
        ..voice.map_err(Problem::from)?
    };
    if let Some(term) = voice.first_unsupported_option() {
        return Err(unsupported_option(term, voice.model_name()));
    }
    let place = target.prepare(&app, &caller, items).await?;
    let manner = TurnOptions {
        entries: place.entries,
        instructions: body.instructions.clone(),
        tools,
        ephemeral: !place.stored,
        choice,
        sampling: voice.sampling.clone(),
    };
    let question = TurnRequest {
        content: None,
        author: None,
        expect: Expect::Any,
        conflict: ConflictPolicy::Reject,
        key,
        when_busy: WhenBusy::Refuse,
        options: manner,
    };
    // Kept or not: the turn belongs to the caller.
    let live = start_turn(&app, &caller, &place.session, question).await?;
    let streamed = body.stream == Some(true);
    let mut view = body.into_view(metadata, caller.tl.now());
    view.store = place.stored;
    if let Some(model) = voice.model_name() {
        model.clone_into(&mut view.model);
    }
    let answering = ResponseBuilder {
        view,
        tl: place.tl,
        stored: place.stored,
    };
    if streamed {
        return Ok(response_stream::stream_response(live, answering));
    }
    live.wait().await;
    match live.outcome() {
        Some(Ok(outcome)) => answering.into_http_response(outcome).await,
        Some(Err(problem)) => Err(answering.to_error(problem)),
        None => Err(answering.to_error(&turn_broke())),
    }
}

fn turn_broke() -> Problem {
    let status = axum::http::StatusCode::INTERNAL_SERVER_ERROR;
    Problem::new(status, "turn_broke", "the turn ended unexpectedly")
}

/// A session that is gone when the answer is there.
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

/// The conversation as it was after an entry: a fork, where it has gone on since.
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

/// A response that was kept: its conversation, its question and its answer.
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

/// What a response is made with once its answer is there.
#[derive(Debug)]
pub(super) struct ResponseBuilder {
    pub(super) view: ResponseView,
    tl: Throughline,
    stored: bool,
}

impl ResponseBuilder {
    /// The question is kept, which gives the response its id.
    pub(super) fn set_question(&mut self, session: &SessionId, question: &EntryId) {
        self.view.id = id::response(self.stored.then_some(session), question);
        if self.stored {
            self.view.set_conversation(session);
        }
    }

    /// A failure: what was sent is kept, so that a client must not send it again.
    pub(super) fn to_error(&self, problem: &Problem) -> OpenAiError {
        let refusal = OpenAiError::from(problem.clone());
        if self.stored {
            refusal.after_storing_input()
        } else {
            refusal
        }
    }

    /// The whole response; a failure is part of it.
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
        Ok(Answer(self.view).into_response())
    }
}

/// The id of a response in the path.
pub(super) struct ResponseId(String);

impl FromRequestParts<App> for ResponseId {
    type Rejection = OpenAiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, OpenAiError> {
        Ok(Self(path_param(parts, app, "response").await?))
    }
}

/// Looks at a response that was kept.
pub(super) async fn retrieve(
    caller: Caller,
    ResponseId(response): ResponseId,
) -> Result<Answer<ResponseView>, OpenAiError> {
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
    Ok(Answer(view))
}

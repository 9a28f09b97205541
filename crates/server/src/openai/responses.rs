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
    Address, Conflict, Entry, EntryId, Expect, NewEntry, NewSession, Opening, Read, Role, Seq,
    Session, SessionId, Throughline, Voice,
};

use super::asked::{CreateBody, Understood, untaken};
use super::item::{Given, shown};
use super::log::Conversation;
use super::response::ResponseView;
use super::{Refusal, id, stream};
use crate::extract::{IdempotencyKey, Json as Sent, param};
use crate::turns::{Manner, Outcome, Question, WhenBusy, begin};
use crate::{App, Caller, Problem};

/// How far after a question its answer is looked for.
const AMONG: usize = 16;

/// Where a question is to be asked.
enum Target {
    /// In a conversation, as it is.
    Within(Conversation),
    /// In a conversation as it was after an entry.
    After(Conversation, Seq),
    /// In one that is yet to be made.
    New,
    /// Nowhere that is kept.
    Alone,
}

impl Target {
    /// Where this is asked, which must be there.
    async fn of(caller: &Caller, body: &CreateBody) -> Result<Self, Refusal> {
        match (body.conversation()?, &body.previous_response_id) {
            (Some(_), Some(_)) => {
                let why = "send either `conversation` or `previous_response_id`";
                Err(Refusal::param("previous_response_id", why))
            }
            (Some(id), None) => Ok(Self::Within(Conversation::open(caller.clone(), &id).await?)),
            (None, Some(previous)) => {
                let missing = || Refusal::no_response(previous);
                let kept = kept(caller, previous).await?;
                let (conversation, question, answer) = kept.ok_or_else(missing)?;
                let last = answer.map_or(question.seq, |answer| answer.seq);
                Ok(Self::After(conversation, last))
            }
            (None, None) if body.store == Some(false) => Ok(Self::Alone),
            (None, None) => Ok(Self::New),
        }
    }

    /// The session, where there is one.
    fn session(&self) -> Option<&Session> {
        match self {
            Self::Within(conversation) | Self::After(conversation, _) => {
                Some(&conversation.session)
            }
            Self::New | Self::Alone => None,
        }
    }

    /// Makes what is yet to be made: nothing is refused any more for what it says.
    async fn place(self, app: &App, caller: &Caller, items: Vec<Given>) -> Result<Place, Refusal> {
        let conversation = match self {
            Self::Alone => return alone(caller, items).await,
            Self::Within(conversation) => conversation,
            Self::After(conversation, last) => after(conversation, last).await?,
            Self::New => {
                let session = caller.tl.create(NewSession::default()).await?;
                Conversation {
                    caller: caller.clone(),
                    record: session.record().await?,
                    session,
                }
            }
        };
        conversation.refuse_locked(app)?;
        let asked = !items.is_empty();
        let fresh = conversation.fresh(items, "input").await?;
        if asked && fresh.entries.is_empty() {
            let why = "everything in the input is in the conversation already";
            return Err(Refusal::param("input", why));
        }
        Ok(Place {
            session: conversation.session,
            tl: caller.tl.clone(),
            kept: true,
            entries: fresh.entries,
        })
    }
}

/// Where a question is asked.
struct Place {
    session: Session,
    tl: Throughline,
    /// Whether it is kept.
    kept: bool,
    /// The new entries; none to have what was said last answered.
    entries: Vec<NewEntry>,
}

/// Answers.
pub(super) async fn create(
    State(app): State<App>,
    caller: Caller,
    IdempotencyKey(key): IdempotencyKey,
    Sent(body): Sent<CreateBody>,
) -> Result<Response, Refusal> {
    let Understood {
        items,
        tools,
        metadata,
        terms,
    } = body.understood()?;
    let target = Target::of(&caller, &body).await?;
    if items.is_empty() && target.session().is_none() {
        return Err(Refusal::param("input", "there is nothing to answer"));
    }
    let voices = &*app.serving.voices;
    let choice = body.choice(voices);
    let voice = voices.voice(target.session(), &choice).await;
    let voice = Voice {
        terms,
        ..voice.map_err(Problem::from)?
    };
    if let Some(term) = voice.cannot() {
        return Err(untaken(term, voice.model_name()));
    }
    let place = target.place(&app, &caller, items).await?;
    let manner = Manner {
        entries: place.entries,
        instructions: body.instructions.clone(),
        tools,
        quiet: !place.kept,
        choice,
        terms: voice.terms.clone(),
    };
    let question = Question {
        content: None,
        author: None,
        expect: Expect::Any,
        conflict: Conflict::Reject,
        key,
        when_busy: WhenBusy::Refuse,
        manner,
    };
    // Kept or not: the turn belongs to the caller.
    let live = begin(&app, &caller, &place.session, question).await?;
    let streamed = body.stream == Some(true);
    let mut view = body.view(metadata, caller.tl.now());
    view.store = place.kept;
    if let Some(model) = voice.model_name() {
        model.clone_into(&mut view.model);
    }
    let answering = Answering {
        view,
        tl: place.tl,
        kept: place.kept,
    };
    if streamed {
        return Ok(stream::stream(live, answering));
    }
    live.wait().await;
    match live.outcome() {
        Some(Ok(outcome)) => answering.ended(outcome).await,
        Some(Err(problem)) => Err(answering.refused(problem)),
        None => Err(answering.refused(&broke())),
    }
}

fn broke() -> Problem {
    let status = axum::http::StatusCode::INTERNAL_SERVER_ERROR;
    Problem::new(status, "turn_broke", "the turn ended unexpectedly")
}

/// A session that is gone when the answer is there.
async fn alone(caller: &Caller, items: Vec<Given>) -> Result<Place, Refusal> {
    let opening = Opening {
        owner: Some(caller.owner().clone()),
        ..Opening::default()
    };
    let tl = Throughline::open_with(&Address::Memory, opening).await?;
    let session = tl.create(NewSession::default()).await?;
    let mut entries = Vec::new();
    for item in items {
        item.keep_files(&tl).await?;
        entries.push(item.entry(&session, false));
    }
    Ok(Place {
        session,
        tl,
        kept: false,
        entries,
    })
}

/// The conversation as it was after an entry: a fork, where it has gone on since.
async fn after(conversation: Conversation, last: Seq) -> Result<Conversation, Refusal> {
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
async fn kept(
    caller: &Caller,
    response: &str,
) -> Result<Option<(Conversation, Entry, Option<Entry>)>, Refusal> {
    let Some((session, question)) = id::asked(response) else {
        return Ok(None);
    };
    let conversation = id::conversation(&session);
    let Ok(conversation) = Conversation::open(caller.clone(), &conversation).await else {
        return Ok(None);
    };
    let Some(seq) = conversation.located(&[question]).await?.pop() else {
        return Ok(None);
    };
    let after = conversation.session.read(Read::from(seq, AMONG)).await?;
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
pub(super) struct Answering {
    pub(super) view: ResponseView,
    tl: Throughline,
    kept: bool,
}

impl Answering {
    /// The question is kept, which gives the response its id.
    pub(super) fn asked(&mut self, session: &SessionId, question: &EntryId) {
        self.view.id = id::response(self.kept.then_some(session), question);
        if self.kept {
            self.view.within(session);
        }
    }

    /// A failure: what was sent is kept, so that a client must not send it again.
    pub(super) fn refused(&self, problem: &Problem) -> Refusal {
        let refusal = Refusal::from(problem.clone());
        if self.kept {
            refusal.after_keeping()
        } else {
            refusal
        }
    }

    /// The whole response; a failure is part of it.
    pub(super) async fn whole(&mut self, outcome: &Outcome) -> Result<(), Refusal> {
        self.asked(&outcome.session, &outcome.question.id);
        match &outcome.answer {
            Some(answer) => {
                let items = shown(&self.tl, &outcome.session, answer).await?;
                let output = items.into_iter().map(|item| item.json).collect();
                self.view.answered(answer, output, outcome.usage);
                if outcome.cut {
                    self.view.cut();
                }
            }
            None => self.view.stopped(),
        }
        if let Some(problem) = &outcome.failed {
            let refusal = self.refused(problem);
            self.view.failed(&refusal);
        }
        Ok(())
    }

    async fn ended(mut self, outcome: &Outcome) -> Result<Response, Refusal> {
        if let Some(problem) = &outcome.failed {
            return Err(self.refused(problem));
        }
        self.whole(outcome).await?;
        Ok(Answer(self.view).into_response())
    }
}

/// The id of a response in the path.
pub(super) struct ResponseId(String);

impl FromRequestParts<App> for ResponseId {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Refusal> {
        Ok(Self(param(parts, app, "response").await?))
    }
}

/// Looks at a response that was kept.
pub(super) async fn retrieve(
    caller: Caller,
    ResponseId(response): ResponseId,
) -> Result<Answer<ResponseView>, Refusal> {
    let missing = || Refusal::no_response(&response);
    let (conversation, question, answer) = kept(&caller, &response).await?.ok_or_else(missing)?;
    let mut view = ResponseView::begun(response.clone(), question.at);
    view.store = true;
    view.within(conversation.session.id());
    match &answer {
        Some(answer) => {
            let items = conversation.items_of(answer).await?;
            let output = items.into_iter().map(|item| item.json).collect();
            let usage = answer.message().and_then(|message| message.usage);
            view.answered(answer, output, usage);
        }
        None => view.stopped(),
    }
    Ok(Answer(view))
}

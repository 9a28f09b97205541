//! Responses: a turn in a conversation, or an answer to what is sent alone.
//!
//! With a `conversation`, or a `previous_response_id`, what is sent is said in that
//! session and answered there. Without either nothing is kept, unless `store` is true:
//! then a session is made for it. Tools are run by the caller: their calls are the end
//! of a response, and their results are sent with the next one.

use axum::Json as Answer;
use axum::extract::{FromRequestParts, State};
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::{Map, Value};
use throughline::llm::ToolSpec;
use throughline::{
    Address, Conflict, Entry, EntryId, Expect, Json, NewEntry, NewSession, Opening, Read, Role,
    Session, SessionId, Throughline,
};

use super::item::{Given, shown};
use super::log::Conversation;
use super::metadata::{Metadata, or_empty};
use super::response::ResponseView;
use super::{Refusal, id, items, stream};
use crate::extract::{IdempotencyKey, Json as Sent, param};
use crate::turns::{Manner, Outcome, Question, WhenBusy, begin};
use crate::{App, Caller, Problem};

/// How many items may be sent with a question.
const MOST_ITEMS: usize = 10_000;
/// How far after a question its answer is looked for.
const AMONG: usize = 16;

/// What is asked. Members that only tune how a model samples are passed over, and so is
/// `model`: the server says who answers, and the response names it.
#[derive(Debug, Deserialize)]
pub(super) struct CreateBody {
    input: Option<Json>,
    instructions: Option<String>,
    conversation: Option<Json>,
    previous_response_id: Option<String>,
    #[serde(default)]
    stream: Option<bool>,
    store: Option<bool>,
    #[serde(default)]
    tools: Option<Vec<Json>>,
    tool_choice: Option<Value>,
    parallel_tool_calls: Option<bool>,
    #[serde(default, deserialize_with = "or_empty")]
    metadata: Map<String, Value>,
    background: Option<bool>,
    prompt: Option<Json>,
    text: Option<Value>,
}

/// What a request comes to.
struct Understood {
    items: Vec<Given>,
    tools: Vec<ToolSpec>,
    metadata: Metadata,
}

impl CreateBody {
    fn understood(&self) -> Result<Understood, Refusal> {
        if self.background == Some(true) {
            let why = "answers are not made in the background; stream them, or wait";
            return Err(Refusal::unsupported("background", why));
        }
        if self.prompt.is_some() {
            let why = "there are no stored prompts here; send `instructions`";
            return Err(Refusal::unsupported("prompt", why));
        }
        let format = self.text.as_ref().map(|text| &text["format"]["type"]);
        if format.is_some_and(|kind| !kind.is_null() && kind != "text") {
            let why = "answers are text here: ask for another format in `instructions`";
            return Err(Refusal::unsupported("text.format", why));
        }
        let wanted = match self.tool_choice.as_ref().map(Value::as_str) {
            None | Some(Some("auto")) => true,
            Some(Some("none")) => false,
            Some(_) => {
                let why = "a model cannot be made to call a tool here: send \"auto\" or \"none\"";
                return Err(Refusal::unsupported("tool_choice", why));
            }
        };
        let sent = self.tools.as_deref().unwrap_or_default();
        let mut tools = Vec::new();
        for (at, tool) in sent.iter().enumerate() {
            tools.push(tool_spec(tool, &format!("tools[{at}]"))?);
        }
        if !wanted {
            tools.clear();
        }
        Ok(Understood {
            items: self.items()?,
            tools,
            metadata: Metadata::given(self.metadata.clone())?,
        })
    }

    fn items(&self) -> Result<Vec<Given>, Refusal> {
        let Some(input) = &self.input else {
            return Ok(Vec::new());
        };
        if let Ok(text) = input.decode::<String>() {
            let item = serde_json::json!({"role": "user", "content": text});
            let item = Json::of(&item).map_err(|_| wrong_input())?;
            return items::understood(&[item], "input", 1);
        }
        let sent: Vec<Json> = input.decode().map_err(|_| wrong_input())?;
        // What is only referred to is in the conversation already.
        let new: Vec<Json> = sent
            .into_iter()
            .filter(|item| !is_reference(item))
            .collect();
        items::understood(&new, "input", MOST_ITEMS)
    }

    fn conversation(&self) -> Result<Option<String>, Refusal> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Named {
            Id(String),
            Object { id: String },
        }
        let wrong = |_| Refusal::param("conversation", "a conversation is an id, or {\"id\": …}");
        match &self.conversation {
            None => Ok(None),
            Some(json) => match json.decode::<Option<Named>>().map_err(wrong)? {
                None => Ok(None),
                Some(Named::Id(id) | Named::Object { id }) => Ok(Some(id)),
            },
        }
    }
}

fn wrong_input() -> Refusal {
    Refusal::param("input", "input is a text or an array of items")
}

fn is_reference(item: &Json) -> bool {
    let item = item.decode::<Value>().unwrap_or_default();
    item["type"] == "item_reference"
}

fn tool_spec(tool: &Json, param: &str) -> Result<ToolSpec, Refusal> {
    #[derive(Deserialize)]
    struct Tool {
        r#type: String,
        name: Option<String>,
        description: Option<String>,
        parameters: Option<Json>,
    }
    let wrong = |why: &str| Refusal::param(param, why);
    let tool: Tool = tool
        .decode()
        .map_err(|_| wrong("a tool is an object with a `type`"))?;
    if tool.r#type != "function" {
        let why = format!(
            "tools of the type {:?} are not run here; send functions",
            tool.r#type
        );
        return Err(Refusal::unsupported(&format!("{param}.type"), why));
    }
    let anything = || Json::parse(r#"{"type":"object","properties":{}}"#);
    let schema = match tool.parameters.filter(|json| json.as_str() != "null") {
        Some(schema) => Ok(schema),
        None => anything(),
    };
    Ok(ToolSpec {
        name: tool
            .name
            .ok_or_else(|| wrong("a function needs a `name`"))?,
        description: tool.description.unwrap_or_default(),
        schema: schema.map_err(|_| wrong("`parameters` cannot be read"))?,
    })
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
    } = body.understood()?;
    let place = place(&app, &caller, &body, items).await?;
    let manner = Manner {
        entries: place.entries,
        instructions: body.instructions.clone(),
        tools,
        quiet: !place.kept,
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
    let mut view = ResponseView::begun(String::new(), caller.tl.now());
    if let Some(choice) = body.tool_choice {
        view.tool_choice = choice;
    }
    view.instructions.clone_from(&body.instructions);
    view.parallel_tool_calls = body.parallel_tool_calls.unwrap_or(true);
    view.previous_response_id
        .clone_from(&body.previous_response_id);
    view.tools = body.tools.unwrap_or_default();
    view.metadata = metadata.into_value();
    view.store = place.kept;
    if let Some(model) = app.serving.voices.usual() {
        view.model = model;
    }
    let answering = Answering {
        view,
        tl: place.tl,
        kept: place.kept,
    };
    if body.stream == Some(true) {
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

/// Finds or makes the session that a question is asked in.
async fn place(
    app: &App,
    caller: &Caller,
    body: &CreateBody,
    items: Vec<Given>,
) -> Result<Place, Refusal> {
    let conversation = match (body.conversation()?, &body.previous_response_id) {
        (Some(_), Some(_)) => {
            let why = "send either `conversation` or `previous_response_id`";
            return Err(Refusal::param("previous_response_id", why));
        }
        (Some(id), None) => Some(Conversation::open(caller.clone(), &id).await?),
        (None, Some(previous)) => Some(after(caller, previous).await?),
        (None, None) if body.store == Some(true) => {
            let session = caller.tl.create(NewSession::default()).await?;
            let record = session.record().await?;
            Some(Conversation {
                caller: caller.clone(),
                session,
                record,
            })
        }
        (None, None) => None,
    };
    if items.is_empty() && conversation.is_none() {
        return Err(Refusal::param("input", "there is nothing to answer"));
    }
    let Some(conversation) = conversation else {
        return alone(caller, items).await;
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

/// A session that is gone when the answer is there.
async fn alone(caller: &Caller, items: Vec<Given>) -> Result<Place, Refusal> {
    let opening = Opening {
        owner: caller.owner().clone(),
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

/// The conversation as it was after a response: a fork, where it has gone on since.
async fn after(caller: &Caller, previous: &str) -> Result<Conversation, Refusal> {
    let missing = || Refusal::no_response(previous);
    let (conversation, question, answer) = kept(caller, previous).await?.ok_or_else(missing)?;
    let last = answer.map_or(question.seq, |answer| answer.seq);
    if conversation.is_last(last).await? {
        return Ok(conversation);
    }
    let fork = conversation
        .session
        .fork(Some(last), NewSession::default())
        .await?;
    let record = fork.session.record().await?;
    Ok(Conversation {
        session: fork.session,
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

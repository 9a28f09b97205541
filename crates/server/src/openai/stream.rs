//! A response as it comes: the events that OpenAI's clients put together.
//!
//! Words and thoughts are told as they arrive; calls when the answer is whole. The last
//! event has the response as it was kept.

use std::convert::Infallible;
use std::fmt::Write as _;
use std::sync::Arc;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use futures_util::stream;
use serde::Deserialize;
use serde_json::{Value, json};
use throughline::{EntryId, Json, SessionId};

use super::id;
use super::response::ResponseView;
use super::responses::Answering;
use crate::events::event_stream;
use crate::turns::Live;

/// Everything told of a turn, for as long as somebody reads.
pub(super) fn stream(live: Arc<Live>, answering: Answering) -> Response {
    let telling = Telling {
        answering,
        number: 0,
        text: String::new(),
        answer: None,
        open: None,
        done: Vec::new(),
    };
    let frames = stream::unfold((live, telling, 0, false), async |state| {
        let (live, mut telling, seen, ended) = state;
        if ended {
            return None;
        }
        let new = live.after(seen).await;
        for told in &new {
            telling.hear(told.name, &told.data);
        }
        let ended = new.is_empty();
        if ended {
            telling.end(&live).await;
        }
        let text = Bytes::from(std::mem::take(&mut telling.text));
        let seen = seen + new.len();
        Some((Ok::<_, Infallible>(text), (live, telling, seen, ended)))
    });
    event_stream(Body::from_stream(frames))
}

/// What is being told.
struct Telling {
    answering: Answering,
    number: u64,
    /// What has not been sent yet.
    text: String,
    /// The entry that the answer will be.
    answer: Option<EntryId>,
    open: Option<Open>,
    /// The ids of the items that were told whole.
    done: Vec<String>,
}

/// An item that is not whole yet.
struct Open {
    kind: Kind,
    id: String,
    text: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Message,
    Reasoning,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Message => "message",
            Self::Reasoning => "reasoning",
        }
    }

    fn item(self, id: &str, status: &str, text: Option<&str>) -> Value {
        let parts: Vec<Value> = text.map(|text| self.part(text)).into_iter().collect();
        match self {
            Self::Message => json!({
                "id": id, "type": "message", "role": "assistant", "status": status,
                "content": parts,
            }),
            Self::Reasoning => json!({
                "id": id, "type": "reasoning", "status": status, "summary": parts,
            }),
        }
    }

    fn part(self, text: &str) -> Value {
        match self {
            Self::Message => json!({"type": "output_text", "text": text, "annotations": []}),
            Self::Reasoning => json!({"type": "summary_text", "text": text}),
        }
    }
}

impl Telling {
    /// Writes one event. What it says is JSON of an object.
    fn write(&mut self, kind: &str, members: &str) {
        let inner = members.trim_start_matches('{');
        let number = self.number;
        self.number += 1;
        let _ = write!(
            self.text,
            "event: {kind}\ndata: {{\"type\":\"{kind}\",\"sequence_number\":{number},{inner}\n\n"
        );
    }

    fn tell(&mut self, kind: &str, members: &Value) {
        self.write(kind, &members.to_string());
    }

    fn tell_response(&mut self, kind: &str) {
        let view: &ResponseView = &self.answering.view;
        let response = serde_json::to_string(view).unwrap_or_default();
        self.write(kind, &format!("{{\"response\":{response}}}"));
    }

    /// Takes one thing told of the turn.
    fn hear(&mut self, name: &str, data: &str) {
        #[derive(Deserialize)]
        struct Told {
            text: Option<String>,
            entry: Option<EntryId>,
            model: Option<String>,
        }
        let Ok(told) = serde_json::from_str::<Told>(data) else {
            return;
        };
        match (name, told) {
            (
                "turn:started",
                Told {
                    model: Some(model), ..
                },
            ) => {
                self.answering.view.model = model;
                self.begin(data);
            }
            ("turn:started", _) => self.begin(data),
            ("message:started", Told { entry, .. }) => self.answer = entry,
            (
                "message:delta",
                Told {
                    text: Some(text), ..
                },
            ) => self.more(Kind::Message, &text),
            (
                "message:thinking",
                Told {
                    text: Some(text), ..
                },
            ) => self.more(Kind::Reasoning, &text),
            _ => {}
        }
    }

    fn begin(&mut self, data: &str) {
        #[derive(Deserialize)]
        struct Started {
            session: SessionId,
            question: Asked,
        }
        #[derive(Deserialize)]
        struct Asked {
            id: EntryId,
        }
        if let Ok(started) = serde_json::from_str::<Started>(data) {
            self.answering.asked(&started.session, &started.question.id);
        }
        self.tell_response("response.created");
        self.tell_response("response.in_progress");
    }

    fn place(&self) -> Value {
        let id = self.open.as_ref().map(|open| &open.id);
        json!({"item_id": id, "output_index": self.done.len()})
    }

    /// More of a text or a thought.
    fn more(&mut self, kind: Kind, text: &str) {
        if self.open.as_ref().is_none_or(|open| open.kind != kind) {
            self.close();
            self.open(kind);
        }
        let mut members = self.place();
        members["delta"] = json!(text);
        if let Some(open) = &mut self.open {
            open.text.push_str(text);
        }
        match kind {
            Kind::Message => {
                members["content_index"] = json!(0);
                members["logprobs"] = json!([]);
                self.tell("response.output_text.delta", &members);
            }
            Kind::Reasoning => {
                members["summary_index"] = json!(0);
                self.tell("response.reasoning_summary_text.delta", &members);
            }
        }
    }

    fn open(&mut self, kind: Kind) {
        let prefix = id::prefix(kind.name());
        let before = |done: &&String| done.split('_').next() == Some(prefix);
        let nth = self.done.iter().filter(before).count();
        let entry = self.answer.unwrap_or(EntryId::from_bytes([0; 16]));
        let id = id::item(prefix, &entry, nth);
        let item = kind.item(&id, "in_progress", None);
        let index = self.done.len();
        let text = String::new();
        self.open = Some(Open { kind, id, text });
        self.tell(
            "response.output_item.added",
            &json!({"output_index": index, "item": item}),
        );
        self.tell_part("added", "");
    }

    /// Tells of the one part of the open item.
    fn tell_part(&mut self, what: &str, text: &str) {
        let Some(kind) = self.open.as_ref().map(|open| open.kind) else {
            return;
        };
        let mut members = self.place();
        members["part"] = kind.part(text);
        let event = match kind {
            Kind::Message => {
                members["content_index"] = json!(0);
                "response.content_part"
            }
            Kind::Reasoning => {
                members["summary_index"] = json!(0);
                "response.reasoning_summary_part"
            }
        };
        self.tell(&format!("{event}.{what}"), &members);
    }

    /// The open item is whole.
    fn close(&mut self) {
        let Some(Open { kind, text, .. }) = &self.open else {
            return;
        };
        let (kind, text) = (*kind, text.clone());
        let mut members = self.place();
        members["text"] = json!(text);
        let event = match kind {
            Kind::Message => {
                members["content_index"] = json!(0);
                members["logprobs"] = json!([]);
                "response.output_text.done"
            }
            Kind::Reasoning => {
                members["summary_index"] = json!(0);
                "response.reasoning_summary_text.done"
            }
        };
        self.tell(event, &members);
        self.tell_part("done", &text);
        let Some(Open { id, .. }) = self.open.take() else {
            return;
        };
        let item = kind.item(&id, "completed", Some(&text));
        let index = self.done.len();
        self.tell(
            "response.output_item.done",
            &json!({"output_index": index, "item": item}),
        );
        self.done.push(id);
    }

    /// The turn has ended.
    async fn end(&mut self, live: &Live) {
        self.close();
        let failure = match live.outcome() {
            Some(Ok(outcome)) => self.answering.whole(outcome).await.err(),
            Some(Err(problem)) => Some(self.answering.refused(problem)),
            None => None,
        };
        if let Some(refusal) = failure {
            self.answering.view.failed(&refusal);
        }
        // What was not told as it came.
        for item in self.answering.view.output.clone() {
            #[derive(Deserialize)]
            struct Known {
                id: String,
                arguments: Option<String>,
            }
            let Ok(known) = item.decode::<Known>() else {
                continue;
            };
            if self.done.contains(&known.id) {
                continue;
            }
            let index = self.done.len();
            let whole = format!("{{\"output_index\":{index},\"item\":{item}}}");
            match known.arguments {
                Some(arguments) => self.tell_call(&item, &known.id, &arguments),
                None => self.write("response.output_item.added", &whole),
            }
            self.write("response.output_item.done", &whole);
            self.done.push(known.id);
        }
        self.tell_response(self.answering.view.status.event());
    }

    fn tell_call(&mut self, item: &Json, id: &str, arguments: &str) {
        let index = self.done.len();
        let mut begun = item.decode::<Value>().unwrap_or_default();
        begun["arguments"] = json!("");
        begun["status"] = json!("in_progress");
        self.tell(
            "response.output_item.added",
            &json!({"output_index": index, "item": begun}),
        );
        let place = json!({"item_id": id, "output_index": index});
        let mut delta = place.clone();
        delta["delta"] = json!(arguments);
        self.tell("response.function_call_arguments.delta", &delta);
        let mut done = place;
        done["arguments"] = json!(arguments);
        done["name"] = begun["name"].clone();
        self.tell("response.function_call_arguments.done", &done);
    }
}

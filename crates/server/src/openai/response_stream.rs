//! Streams a response as the events that OpenAI clients expect.
//!
//! Text and reasoning are emitted as they arrive, tool calls once the answer is complete. The last
//! event contains the response as stored.

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
use super::response_view::ResponseView;
use super::responses::ResponseBuilder;
use crate::events::event_stream_response;
use crate::turns::TurnStream;

/// Streams a turn for as long as the client reads.
pub(super) fn stream_response(live: Arc<TurnStream>, builder: ResponseBuilder) -> Response {
    let writer = ResponseEventWriter {
        builder,
        sequence_number: 0,
        unsent: String::new(),
        answer: None,
        open_item: None,
        done_item_ids: Vec::new(),
    };
    let frames = stream::unfold((live, writer, 0, false), async |state| {
        let (live, mut writer, seen, ended) = state;
        if ended {
            return None;
        }
        let new = live.events_after(seen).await;
        for event in &new {
            writer.handle_turn_event(event.name, &event.data);
        }
        let ended = new.is_empty();
        if ended {
            writer.finish(&live).await;
        }
        let text = Bytes::from(std::mem::take(&mut writer.unsent));
        let seen = seen + new.len();
        Some((Ok::<_, Infallible>(text), (live, writer, seen, ended)))
    });
    event_stream_response(Body::from_stream(frames))
}

/// Converts the events of a turn to response events.
struct ResponseEventWriter {
    builder: ResponseBuilder,
    sequence_number: u64,
    /// Encoded events not sent yet.
    unsent: String,
    /// The id of the answer's entry.
    answer: Option<EntryId>,
    open_item: Option<OpenItem>,
    /// Ids of the items that were emitted completely.
    done_item_ids: Vec<String>,
}

/// An item being streamed.
struct OpenItem {
    kind: OutputKind,
    id: String,
    text: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum OutputKind {
    Message,
    Reasoning,
}

impl OutputKind {
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

impl ResponseEventWriter {
    /// Writes one event; `members` are the fields of a JSON object.
    fn write_event(&mut self, kind: &str, members: &str) {
        let inner = members.trim_start_matches('{');
        let number = self.sequence_number;
        self.sequence_number += 1;
        let _ = write!(
            self.unsent,
            "event: {kind}\ndata: {{\"type\":\"{kind}\",\"sequence_number\":{number},{inner}\n\n"
        );
    }

    fn emit(&mut self, kind: &str, members: &Value) {
        self.write_event(kind, &members.to_string());
    }

    fn emit_response(&mut self, kind: &str) {
        let view: &ResponseView = &self.builder.view;
        let response = serde_json::to_string(view).unwrap_or_default();
        self.write_event(kind, &format!("{{\"response\":{response}}}"));
    }

    /// Handles one event of the turn.
    fn handle_turn_event(&mut self, name: &str, data: &str) {
        #[derive(Deserialize)]
        struct TurnEventData {
            text: Option<String>,
            entry: Option<EntryId>,
            model: Option<String>,
        }
        let Ok(event_data) = serde_json::from_str::<TurnEventData>(data) else {
            return;
        };
        match (name, event_data) {
            (
                "turn:started",
                TurnEventData {
                    model: Some(model), ..
                },
            ) => {
                self.builder.view.model = model;
                self.start(data);
            }
            ("turn:started", _) => self.start(data),
            ("message:started", TurnEventData { entry, .. }) => self.answer = entry,
            (
                "message:delta",
                TurnEventData {
                    text: Some(text), ..
                },
            ) => self.append_delta(OutputKind::Message, &text),
            (
                "message:thinking",
                TurnEventData {
                    text: Some(text), ..
                },
            ) => self.append_delta(OutputKind::Reasoning, &text),
            _ => {}
        }
    }

    fn start(&mut self, data: &str) {
        #[derive(Deserialize)]
        struct Started {
            session: SessionId,
            question: QuestionRef,
        }
        #[derive(Deserialize)]
        struct QuestionRef {
            id: EntryId,
        }
        if let Ok(started) = serde_json::from_str::<Started>(data) {
            self.builder
                .set_question(&started.session, &started.question.id);
        }
        self.emit_response("response.created");
        self.emit_response("response.in_progress");
    }

    fn item_location(&self) -> Value {
        let id = self.open_item.as_ref().map(|open| &open.id);
        json!({"item_id": id, "output_index": self.done_item_ids.len()})
    }

    /// Appends text or reasoning to the open item.
    fn append_delta(&mut self, kind: OutputKind, text: &str) {
        if self.open_item.as_ref().is_none_or(|open| open.kind != kind) {
            self.finish_item();
            self.start_item(kind);
        }
        let mut members = self.item_location();
        members["delta"] = json!(text);
        if let Some(open) = &mut self.open_item {
            open.text.push_str(text);
        }
        match kind {
            OutputKind::Message => {
                members["content_index"] = json!(0);
                members["logprobs"] = json!([]);
                self.emit("response.output_text.delta", &members);
            }
            OutputKind::Reasoning => {
                members["summary_index"] = json!(0);
                self.emit("response.reasoning_summary_text.delta", &members);
            }
        }
    }

    fn start_item(&mut self, kind: OutputKind) {
        let prefix = id::prefix(kind.name());
        let before = |done: &&String| done.split('_').next() == Some(prefix);
        let nth = self.done_item_ids.iter().filter(before).count();
        let entry = self.answer.unwrap_or(EntryId::from_bytes([0; 16]));
        let id = id::item(prefix, &entry, nth);
        let item = kind.item(&id, "in_progress", None);
        let index = self.done_item_ids.len();
        let text = String::new();
        self.open_item = Some(OpenItem { kind, id, text });
        self.emit(
            "response.output_item.added",
            &json!({"output_index": index, "item": item}),
        );
        self.emit_part("added", "");
    }

    /// Emits an event about the only part of the open item.
    fn emit_part(&mut self, what: &str, text: &str) {
        let Some(kind) = self.open_item.as_ref().map(|open| open.kind) else {
            return;
        };
        let mut members = self.item_location();
        members["part"] = kind.part(text);
        let event = match kind {
            OutputKind::Message => {
                members["content_index"] = json!(0);
                "response.content_part"
            }
            OutputKind::Reasoning => {
                members["summary_index"] = json!(0);
                "response.reasoning_summary_part"
            }
        };
        self.emit(&format!("{event}.{what}"), &members);
    }

    /// Completes the open item.
    fn finish_item(&mut self) {
        let Some(OpenItem { kind, text, .. }) = &self.open_item else {
            return;
        };
        let (kind, text) = (*kind, text.clone());
        let mut members = self.item_location();
        members["text"] = json!(text);
        let event = match kind {
            OutputKind::Message => {
                members["content_index"] = json!(0);
                members["logprobs"] = json!([]);
                "response.output_text.done"
            }
            OutputKind::Reasoning => {
                members["summary_index"] = json!(0);
                "response.reasoning_summary_text.done"
            }
        };
        self.emit(event, &members);
        self.emit_part("done", &text);
        let Some(OpenItem { id, .. }) = self.open_item.take() else {
            return;
        };
        let item = kind.item(&id, "completed", Some(&text));
        let index = self.done_item_ids.len();
        self.emit(
            "response.output_item.done",
            &json!({"output_index": index, "item": item}),
        );
        self.done_item_ids.push(id);
    }

    /// Ends the response.
    async fn finish(&mut self, live: &TurnStream) {
        self.finish_item();
        let failure = match live.outcome() {
            Some(Ok(outcome)) => self.builder.complete(outcome).await.err(),
            Some(Err(problem)) => Some(self.builder.to_error(problem)),
            None => None,
        };
        if let Some(refusal) = failure {
            self.builder.view.mark_failed(&refusal);
        }
        // Items that were not streamed.
        for item in self.builder.view.output.clone() {
            #[derive(Deserialize)]
            struct OutputItem {
                id: String,
                arguments: Option<String>,
            }
            let Ok(known) = item.decode::<OutputItem>() else {
                continue;
            };
            if self.done_item_ids.contains(&known.id) {
                continue;
            }
            let index = self.done_item_ids.len();
            let whole = format!("{{\"output_index\":{index},\"item\":{item}}}");
            match known.arguments {
                Some(arguments) => self.emit_call(&item, &known.id, &arguments),
                None => self.write_event("response.output_item.added", &whole),
            }
            self.write_event("response.output_item.done", &whole);
            self.done_item_ids.push(known.id);
        }
        self.emit_response(self.builder.view.status.event_name());
    }

    fn emit_call(&mut self, item: &Json, id: &str, arguments: &str) {
        let index = self.done_item_ids.len();
        let mut begun = item.decode::<Value>().unwrap_or_default();
        begun["arguments"] = json!("");
        begun["status"] = json!("in_progress");
        self.emit(
            "response.output_item.added",
            &json!({"output_index": index, "item": begun}),
        );
        let base = json!({"item_id": id, "output_index": index});
        let mut delta = base.clone();
        delta["delta"] = json!(arguments);
        self.emit("response.function_call_arguments.delta", &delta);
        let mut done = base;
        done["arguments"] = json!(arguments);
        done["name"] = begun["name"].clone();
        self.emit("response.function_call_arguments.done", &done);
    }
}

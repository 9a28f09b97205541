//! A response, as it is told.

use serde::Serialize;
use serde_json::{Value, json};
use throughline::llm::OFFLINE;
use throughline::{Entry, Json, Message, SessionId, Timestamp, Usage};

use super::id;
use super::refusal::Refusal;

/// A response.
#[derive(Clone, Debug, Serialize)]
pub(super) struct ResponseView {
    pub(super) id: String,
    object: &'static str,
    created_at: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    completed_at: Option<i64>,
    pub(super) status: Status,
    error: Option<Value>,
    incomplete_details: Option<Value>,
    pub(super) instructions: Option<String>,
    pub(super) model: String,
    pub(super) output: Vec<Json>,
    pub(super) parallel_tool_calls: bool,
    pub(super) previous_response_id: Option<String>,
    conversation: Option<Value>,
    pub(super) tool_choice: Value,
    pub(super) tools: Vec<Json>,
    usage: Option<Value>,
    pub(super) metadata: Value,
    pub(super) store: bool,
    pub(super) text: Value,
    truncation: &'static str,
    background: bool,
    pub(super) temperature: Option<f64>,
    pub(super) top_p: Option<f64>,
    pub(super) max_output_tokens: Option<u64>,
}

/// How far a response has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Status {
    InProgress,
    Completed,
    Incomplete,
    Failed,
}

impl Status {
    /// The event that a stream ends with.
    pub(super) fn event(self) -> &'static str {
        match self {
            Self::InProgress => "response.in_progress",
            Self::Completed => "response.completed",
            Self::Incomplete => "response.incomplete",
            Self::Failed => "response.failed",
        }
    }
}

impl ResponseView {
    /// A response that has just begun.
    pub(super) fn begun(id: String, at: Timestamp) -> Self {
        Self {
            id,
            object: "response",
            created_at: at.as_second(),
            completed_at: None,
            status: Status::InProgress,
            error: None,
            incomplete_details: None,
            instructions: None,
            model: OFFLINE.to_owned(),
            output: Vec::new(),
            parallel_tool_calls: true,
            previous_response_id: None,
            conversation: None,
            tool_choice: json!("auto"),
            tools: Vec::new(),
            usage: None,
            metadata: json!({}),
            store: false,
            text: json!({"format": {"type": "text"}}),
            truncation: "auto",
            background: false,
            temperature: None,
            top_p: None,
            max_output_tokens: None,
        }
    }

    /// In which conversation it is.
    pub(super) fn within(&mut self, session: &SessionId) {
        self.conversation = Some(json!({"id": id::conversation(session)}));
    }

    /// It has been answered.
    pub(super) fn answered(&mut self, answer: &Entry, output: Vec<Json>, usage: Option<Usage>) {
        self.output = output;
        self.usage = usage.map(told);
        self.completed_at = Some(answer.at.as_second());
        self.status = Status::Completed;
        if let Some(Message {
            model, incomplete, ..
        }) = answer.message()
        {
            if let Some(model) = model {
                self.model.clone_from(model);
            }
            if *incomplete {
                self.status = Status::Incomplete;
                self.incomplete_details = Some(json!({}));
            }
        }
    }

    /// It grew longer than it may.
    pub(super) fn cut(&mut self) {
        self.incomplete_details = Some(json!({"reason": "max_output_tokens"}));
    }

    /// It will not be answered, or was not answered to the end.
    pub(super) fn failed(&mut self, why: &Refusal) {
        self.status = Status::Failed;
        self.incomplete_details = None;
        self.error = Some(json!({"code": "server_error", "message": why.message()}));
    }

    /// Nothing came of it.
    pub(super) fn stopped(&mut self) {
        self.status = Status::Incomplete;
        self.incomplete_details = Some(json!({}));
    }
}

fn told(usage: Usage) -> Value {
    json!({
        "input_tokens": usage.input,
        "input_tokens_details": {
            "cached_tokens": usage.cache_read,
            "cache_write_tokens": usage.cache_write,
        },
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": usage.total(),
    })
}

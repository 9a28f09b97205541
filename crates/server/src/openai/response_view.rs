//! JSON representation of a response.

use serde::Serialize;
use serde_json::{Value, json};
use throughline::llm::OFFLINE_MODEL;
use throughline::{Entry, Json, Message, SessionId, Timestamp, Usage};

use super::error::OpenAiError;
use super::id;

/// A response.
#[derive(Clone, Debug, Serialize)]
pub(super) struct ResponseView {
    pub(super) id: String,
    object: &'static str,
    created_at: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    completed_at: Option<i64>,
    pub(super) status: ResponseStatus,
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

/// Status of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ResponseStatus {
    InProgress,
    Completed,
    Incomplete,
    Failed,
}

impl ResponseStatus {
    /// The final event of a stream.
    pub(super) fn event_name(self) -> &'static str {
        match self {
            Self::InProgress => "response.in_progress",
            Self::Completed => "response.completed",
            Self::Incomplete => "response.incomplete",
            Self::Failed => "response.failed",
        }
    }
}

impl ResponseView {
    /// A response in progress.
    pub(super) fn in_progress(id: String, at: Timestamp) -> Self {
        Self {
            id,
            object: "response",
            created_at: at.as_second(),
            completed_at: None,
            status: ResponseStatus::InProgress,
            error: None,
            incomplete_details: None,
            instructions: None,
            model: OFFLINE_MODEL.to_owned(),
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

    /// Sets the conversation.
    pub(super) fn set_conversation(&mut self, session: &SessionId) {
        self.conversation = Some(json!({"id": id::conversation(session)}));
    }

    /// Completes the response with an answer.
    pub(super) fn complete(&mut self, answer: &Entry, output: Vec<Json>, usage: Option<Usage>) {
        self.output = output;
        self.usage = usage.map(usage_json);
        self.completed_at = Some(answer.at.as_second());
        self.status = ResponseStatus::Completed;
        if let Some(Message {
            model, incomplete, ..
        }) = answer.message()
        {
            if let Some(model) = model {
                self.model.clone_from(model);
            }
            if *incomplete {
                self.status = ResponseStatus::Incomplete;
                self.incomplete_details = Some(json!({}));
            }
        }
    }

    /// Marks the answer as cut off at its maximum length.
    pub(super) fn mark_truncated(&mut self) {
        self.incomplete_details = Some(json!({"reason": "max_output_tokens"}));
    }

    /// Marks the response as failed.
    pub(super) fn mark_failed(&mut self, why: &OpenAiError) {
        self.status = ResponseStatus::Failed;
        self.incomplete_details = None;
        self.error = Some(json!({"code": "server_error", "message": why.message()}));
    }

    /// Marks the response as incomplete.
    pub(super) fn mark_incomplete(&mut self) {
        self.status = ResponseStatus::Incomplete;
        self.incomplete_details = Some(json!({}));
    }
}

fn usage_json(usage: Usage) -> Value {
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

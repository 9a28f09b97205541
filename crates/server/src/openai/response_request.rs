//! Parses and validates the request body of the Responses API.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use throughline::llm::{
    JsonSchemaFormat, ResponseFormat, SamplingOption, SamplingOptions, ToolSpec,
};
use throughline::{Json, Timestamp};

use super::item::NewItem;
use super::metadata::{Metadata, or_empty};
use super::response_view::ResponseView;
use super::{OpenAiError, items};
use crate::{ResponderChoice, ResponderRegistry};

/// Maximum number of input items.
const MAX_INPUT_ITEMS: usize = 10_000;

/// Request body for creating a response.
///
/// Fields about how to serve the request (`user`, `service_tier`, `prompt_cache_key`, `reasoning`,
/// `truncation`…) are up to the server and are ignored.
#[derive(Debug, Deserialize)]
pub(super) struct CreateResponseBody {
    input: Option<Json>,
    model: Option<String>,
    pub(super) instructions: Option<String>,
    conversation: Option<Json>,
    pub(super) previous_response_id: Option<String>,
    pub(super) stream: Option<bool>,
    pub(super) store: Option<bool>,
    tools: Option<Vec<Json>>,
    tool_choice: Option<Value>,
    parallel_tool_calls: Option<bool>,
    #[serde(default, deserialize_with = "or_empty")]
    metadata: Map<String, Value>,
    background: Option<bool>,
    prompt: Option<Json>,
    temperature: Option<f64>,
    top_p: Option<f64>,
    max_output_tokens: Option<u64>,
    text: Option<TextOptions>,
}

/// Format of the answer.
#[derive(Clone, Debug, Deserialize)]
struct TextOptions {
    format: Option<TextFormat>,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum TextFormat {
    Text,
    JsonObject,
    JsonSchema {
        name: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        description: Option<String>,
        schema: Map<String, Value>,
        strict: Option<bool>,
    },
}

/// A validated request.
pub(super) struct ResponseRequest {
    pub(super) items: Vec<NewItem>,
    pub(super) tools: Vec<ToolSpec>,
    pub(super) metadata: Metadata,
    pub(super) sampling: SamplingOptions,
}

impl CreateResponseBody {
    /// Validates the request.
    pub(super) fn parse(&self) -> Result<ResponseRequest, OpenAiError> {
        if self.background == Some(true) {
            let why = "background responses are not supported; stream the response or wait for it";
            return Err(OpenAiError::unsupported_param("background", why));
        }
        if self.prompt.is_some() {
            let why = "stored prompts are not supported; send `instructions`";
            return Err(OpenAiError::unsupported_param("prompt", why));
        }
        let tools_enabled = match self.tool_choice.as_ref().map(Value::as_str) {
            None | Some(Some("auto")) => true,
            Some(Some("none")) => false,
            Some(_) => {
                let why = "forcing a tool call is not supported; send \"auto\" or \"none\"";
                return Err(OpenAiError::unsupported_param("tool_choice", why));
            }
        };
        let sent = self.tools.as_deref().unwrap_or_default();
        let mut tools = Vec::new();
        for (at, tool) in sent.iter().enumerate() {
            tools.push(parse_tool(tool, &format!("tools[{at}]"))?);
        }
        if !tools_enabled {
            tools.clear();
        }
        Ok(ResponseRequest {
            items: self.parse_input_items()?,
            tools,
            metadata: Metadata::parse(self.metadata.clone())?,
            sampling: self.sampling_options()?,
        })
    }

    /// The chosen model. If the server does not restrict models, it has one model that answers to
    /// any name, since OpenAI clients always send one.
    pub(super) fn responder_choice(&self, responders: &dyn ResponderRegistry) -> ResponderChoice {
        ResponderChoice {
            model: self.model.clone().filter(|_| responders.restricts_models()),
            agent: None,
        }
    }

    /// The sampling options.
    fn sampling_options(&self) -> Result<SamplingOptions, OpenAiError> {
        for (param, value, most) in [
            ("temperature", self.temperature, 2.0),
            ("top_p", self.top_p, 1.0),
        ] {
            if value.is_some_and(|value| !(0.0..=most).contains(&value)) {
                return Err(OpenAiError::invalid_param(
                    param,
                    format!("{param} must be a number from 0 to {most}"),
                ));
            }
        }
        if self.max_output_tokens == Some(0) {
            let why = "max_output_tokens must be at least 1";
            return Err(OpenAiError::invalid_param("max_output_tokens", why));
        }
        let form = match self.text.as_ref().and_then(|text| text.format.as_ref()) {
            None | Some(TextFormat::Text) => ResponseFormat::Text,
            Some(TextFormat::JsonObject) => ResponseFormat::Json,
            Some(TextFormat::JsonSchema {
                name,
                description,
                schema,
                strict,
            }) => ResponseFormat::JsonSchema(JsonSchemaFormat {
                name: name.clone(),
                description: description.clone(),
                schema: schema.clone(),
                strict: *strict == Some(true),
            }),
        };
        Ok(SamplingOptions {
            max_output: self.max_output_tokens,
            temperature: self.temperature,
            top_p: self.top_p,
            format: form,
        })
    }

    /// The initial response, which repeats the request's parameters.
    pub(super) fn into_view(self, metadata: Metadata, at: Timestamp) -> ResponseView {
        let format = self.text.and_then(|text| text.format);
        let mut view = ResponseView::in_progress(String::new(), at);
        if let Some(choice) = self.tool_choice {
            view.tool_choice = choice;
        }
        view.instructions = self.instructions;
        view.parallel_tool_calls = self.parallel_tool_calls.unwrap_or(true);
        view.previous_response_id = self.previous_response_id;
        view.tools = self.tools.unwrap_or_default();
        view.metadata = metadata.into_value();
        view.text = json!({"format": format.unwrap_or(TextFormat::Text)});
        view.temperature = self.temperature;
        view.top_p = self.top_p;
        view.max_output_tokens = self.max_output_tokens;
        view
    }

    fn parse_input_items(&self) -> Result<Vec<NewItem>, OpenAiError> {
        let Some(input) = &self.input else {
            return Ok(Vec::new());
        };
        if let Ok(text) = input.decode::<String>() {
            let item = json!({"role": "user", "content": text});
            let item = Json::of(&item).map_err(|_| invalid_input())?;
            return items::parse_items(&[item], "input", 1);
        }
        let sent: Vec<Json> = input.decode().map_err(|_| invalid_input())?;
        // Referenced items are already in the conversation.
        let new: Vec<Json> = sent
            .into_iter()
            .filter(|item| !is_reference(item))
            .collect();
        items::parse_items(&new, "input", MAX_INPUT_ITEMS)
    }

    /// The id of the requested conversation.
    pub(super) fn conversation_id(&self) -> Result<Option<String>, OpenAiError> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum ConversationRef {
            Id(String),
            Object { id: String },
        }
        let wrong = |_| {
            OpenAiError::invalid_param("conversation", "conversation must be an id or {\"id\": …}")
        };
        match &self.conversation {
            None => Ok(None),
            Some(json) => match json.decode::<Option<ConversationRef>>().map_err(wrong)? {
                None => Ok(None),
                Some(ConversationRef::Id(id) | ConversationRef::Object { id }) => Ok(Some(id)),
            },
        }
    }
}

fn invalid_input() -> OpenAiError {
    OpenAiError::invalid_param("input", "input must be a string or an array of items")
}

fn is_reference(item: &Json) -> bool {
    let item = item.decode::<Value>().unwrap_or_default();
    item["type"] == "item_reference"
}

fn parse_tool(tool: &Json, param: &str) -> Result<ToolSpec, OpenAiError> {
    #[derive(Deserialize)]
    struct Tool {
        r#type: String,
        name: Option<String>,
        description: Option<String>,
        parameters: Option<Json>,
    }
    let wrong = |why: &str| OpenAiError::invalid_param(param, why);
    let tool: Tool = tool
        .decode()
        .map_err(|_| wrong("a tool must be an object with a `type`"))?;
    if tool.r#type != "function" {
        let why = format!(
            "tools of type {:?} are not supported; send functions",
            tool.r#type
        );
        return Err(OpenAiError::unsupported_param(
            &format!("{param}.type"),
            why,
        ));
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
        schema: schema.map_err(|_| wrong("`parameters` is invalid"))?,
    })
}

/// The error for an option that the model does not support, by its parameter name.
pub(super) fn unsupported_option(term: SamplingOption, model: Option<&str>) -> OpenAiError {
    let param = match term {
        SamplingOption::MaxOutput => "max_output_tokens",
        SamplingOption::Temperature => "temperature",
        SamplingOption::TopP => "top_p",
        SamplingOption::Json | SamplingOption::JsonSchema => "text.format",
    };
    let why = match (model, term) {
        (None, _) => {
            format!(
                "'{param}' is not supported by the offline agent, which is not a language model"
            )
        }
        (Some(model), SamplingOption::Json) => format!(
            "{model} does not support plain JSON output; send a \"json_schema\", or ask for \
             JSON in `instructions`"
        ),
        (Some(model), _) => format!("'{param}' is not supported with {model}"),
    };
    OpenAiError::unsupported_param(param, why)
}

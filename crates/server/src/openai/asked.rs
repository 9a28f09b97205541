//! What is asked of a response, and what it comes to.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use throughline::llm::{Form, Shape, Term, Terms, ToolSpec};
use throughline::{Json, Timestamp};

use super::item::Given;
use super::metadata::{Metadata, or_empty};
use super::response::ResponseView;
use super::{Refusal, items};
use crate::{Choice, Voices};

/// How many items may be sent with a question.
const MOST_ITEMS: usize = 10_000;

/// What is asked. What only says how to serve it (`user`, `service_tier`,
/// `prompt_cache_key`, `reasoning`, `truncation`…) is the server's own to decide, and is
/// passed over.
#[derive(Debug, Deserialize)]
pub(super) struct CreateBody {
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
    text: Option<Text>,
}

/// What an answer is to look like.
#[derive(Clone, Debug, Deserialize)]
struct Text {
    format: Option<Format>,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Format {
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

/// What a request comes to.
pub(super) struct Understood {
    pub(super) items: Vec<Given>,
    pub(super) tools: Vec<ToolSpec>,
    pub(super) metadata: Metadata,
    pub(super) terms: Terms,
}

impl CreateBody {
    /// What it comes to, where it can be understood.
    pub(super) fn understood(&self) -> Result<Understood, Refusal> {
        if self.background == Some(true) {
            let why = "answers are not made in the background; stream them, or wait";
            return Err(Refusal::unsupported("background", why));
        }
        if self.prompt.is_some() {
            let why = "there are no stored prompts here; send `instructions`";
            return Err(Refusal::unsupported("prompt", why));
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
            terms: self.terms()?,
        })
    }

    /// Who is to answer. Where nobody has said which models may be chosen, there is one,
    /// and it answers by any name: clients of OpenAI's always send one.
    pub(super) fn choice(&self, voices: &dyn Voices) -> Choice {
        Choice {
            model: self.model.clone().filter(|_| voices.names_models()),
            agent: None,
        }
    }

    /// On which terms.
    fn terms(&self) -> Result<Terms, Refusal> {
        for (param, value, most) in [
            ("temperature", self.temperature, 2.0),
            ("top_p", self.top_p, 1.0),
        ] {
            if value.is_some_and(|value| !(0.0..=most).contains(&value)) {
                return Err(Refusal::param(
                    param,
                    format!("{param} is a number from 0 to {most}"),
                ));
            }
        }
        if self.max_output_tokens == Some(0) {
            let why = "max_output_tokens is at least 1";
            return Err(Refusal::param("max_output_tokens", why));
        }
        let form = match self.text.as_ref().and_then(|text| text.format.as_ref()) {
            None | Some(Format::Text) => Form::Text,
            Some(Format::JsonObject) => Form::Json,
            Some(Format::JsonSchema {
                name,
                description,
                schema,
                strict,
            }) => Form::Shape(Shape {
                name: name.clone(),
                description: description.clone(),
                schema: schema.clone(),
                strict: *strict == Some(true),
            }),
        };
        Ok(Terms {
            max_output: self.max_output_tokens,
            temperature: self.temperature,
            top_p: self.top_p,
            form,
        })
    }

    /// The response as it begins: it says again what was asked.
    pub(super) fn view(self, metadata: Metadata, at: Timestamp) -> ResponseView {
        let format = self.text.and_then(|text| text.format);
        let mut view = ResponseView::begun(String::new(), at);
        if let Some(choice) = self.tool_choice {
            view.tool_choice = choice;
        }
        view.instructions = self.instructions;
        view.parallel_tool_calls = self.parallel_tool_calls.unwrap_or(true);
        view.previous_response_id = self.previous_response_id;
        view.tools = self.tools.unwrap_or_default();
        view.metadata = metadata.into_value();
        view.text = json!({"format": format.unwrap_or(Format::Text)});
        view.temperature = self.temperature;
        view.top_p = self.top_p;
        view.max_output_tokens = self.max_output_tokens;
        view
    }

    fn items(&self) -> Result<Vec<Given>, Refusal> {
        let Some(input) = &self.input else {
            return Ok(Vec::new());
        };
        if let Ok(text) = input.decode::<String>() {
            let item = json!({"role": "user", "content": text});
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

    /// The conversation that is named.
    pub(super) fn conversation(&self) -> Result<Option<String>, Refusal> {
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

/// What a model cannot be held to, by the name it was sent under.
pub(super) fn untaken(term: Term, model: Option<&str>) -> Refusal {
    let param = match term {
        Term::MaxOutput => "max_output_tokens",
        Term::Temperature => "temperature",
        Term::TopP => "top_p",
        Term::Json | Term::Shape => "text.format",
    };
    let why = match (model, term) {
        (None, _) => {
            format!("'{param}' means nothing to the offline agent, which is no language model")
        }
        (Some(model), Term::Json) => format!(
            "{model} cannot be held to JSON alone; send a \"json_schema\", or ask for JSON in \
             `instructions`"
        ),
        (Some(model), _) => format!("'{param}' is not supported with {model}"),
    };
    Refusal::unsupported(param, why)
}

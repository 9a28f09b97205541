//! In which form an answer is asked for, as each provider is told.

use genai::chat::{ChatResponseFormat, JsonSpec};
use serde_json::{Map, Value, json};

use crate::{Form, Shape, Wire};

/// Whether whoever speaks so can be held to a form.
pub(super) fn can(form: &Form, wire: Wire) -> bool {
    match (form, wire) {
        (Form::Text | Form::JsonIfPossible | Form::Shape(_), _)
        | (Form::Json, Wire::Chat | Wire::Responses) => true,
        // They know shapes, and nothing between those and text.
        (Form::Json, Wire::Anthropic | Wire::Gemini) => false,
    }
}

/// What the client is told of it, and members of the request that say what it cannot.
pub(super) fn said(form: &Form, wire: Wire) -> (Option<ChatResponseFormat>, Map<String, Value>) {
    let mut members = Map::new();
    let format = match (form, wire) {
        (Form::Text, _) => None,
        (Form::Json | Form::JsonIfPossible, _) => Some(ChatResponseFormat::JsonMode),
        // The client would make every shape a strict one.
        (Form::Shape(shape), Wire::Chat) => {
            let format = json!({"type": "json_schema", "json_schema": described(shape)});
            members.insert("response_format".to_owned(), format);
            None
        }
        (Form::Shape(shape), Wire::Responses) => {
            let mut format = described(shape);
            format.insert("type".to_owned(), json!("json_schema"));
            members.insert("text".to_owned(), json!({"format": format}));
            None
        }
        (Form::Shape(shape), Wire::Anthropic | Wire::Gemini) => {
            let spec = JsonSpec::new(&shape.name, Value::Object(shape.schema.clone()));
            Some(ChatResponseFormat::JsonSpec(spec))
        }
    };
    (format, members)
}

fn described(shape: &Shape) -> Map<String, Value> {
    let mut members = Map::new();
    members.insert("name".to_owned(), json!(shape.name));
    if let Some(description) = &shape.description {
        members.insert("description".to_owned(), json!(description));
    }
    members.insert("schema".to_owned(), json!(shape.schema));
    members.insert("strict".to_owned(), json!(shape.strict));
    members
}

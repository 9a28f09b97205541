//! Encodes the requested response format for each API protocol.

use genai::chat::{ChatResponseFormat, JsonSpec};
use serde_json::{Map, Value, json};

use crate::{ApiProtocol, JsonSchemaFormat, ResponseFormat};

/// Whether the protocol can enforce the format.
pub(super) fn is_supported(form: &ResponseFormat, wire: ApiProtocol) -> bool {
    match (form, wire) {
        (
            ResponseFormat::Text | ResponseFormat::JsonIfPossible | ResponseFormat::JsonSchema(_),
            _,
        )
        | (ResponseFormat::Json, ApiProtocol::Chat | ApiProtocol::Responses) => true,
        // These APIs enforce a schema, but have no plain JSON mode.
        (ResponseFormat::Json, ApiProtocol::Anthropic | ApiProtocol::Gemini) => false,
    }
}

/// Returns the client's option for the format, and extra request fields where it has none.
pub(super) fn encode_format(
    form: &ResponseFormat,
    wire: ApiProtocol,
) -> (Option<ChatResponseFormat>, Map<String, Value>) {
    let mut members = Map::new();
    let format = match (form, wire) {
        (ResponseFormat::Text, _) => None,
        (ResponseFormat::Json | ResponseFormat::JsonIfPossible, _) => {
            Some(ChatResponseFormat::JsonMode)
        }
        // The client would make every schema strict.
        (ResponseFormat::JsonSchema(shape), ApiProtocol::Chat) => {
            let format = json!({"type": "json_schema", "json_schema": encode_schema(shape)});
            members.insert("response_format".to_owned(), format);
            None
        }
        (ResponseFormat::JsonSchema(shape), ApiProtocol::Responses) => {
            let mut format = encode_schema(shape);
            format.insert("type".to_owned(), json!("json_schema"));
            members.insert("text".to_owned(), json!({"format": format}));
            None
        }
        (ResponseFormat::JsonSchema(shape), ApiProtocol::Anthropic | ApiProtocol::Gemini) => {
            let spec = JsonSpec::new(&shape.name, Value::Object(shape.schema.clone()));
            Some(ChatResponseFormat::JsonSpec(spec))
        }
    };
    (format, members)
}

fn encode_schema(shape: &JsonSchemaFormat) -> Map<String, Value> {
    let mut members = Map::new();
    members.insert("name".to_owned(), json!(shape.name));
    if let Some(description) = &shape.description {
        members.insert("description".to_owned(), json!(description));
    }
    members.insert("schema".to_owned(), json!(shape.schema));
    members.insert("strict".to_owned(), json!(shape.strict));
    members
}

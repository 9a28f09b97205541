//! Tests the requests sent to each provider.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod talk;

use serde_json::{Value, json};
use talk::{KEY, WIRES, ask, hello, provider, request_message, start};
use throughline_context::RequestMessage;
use throughline_llm::{
    ApiProtocol, JsonSchemaFormat, Model, ModelRequest, ResponseFormat, SamplingOption,
    SamplingOptions, ToolSpec,
};
use throughline_mock_provider::{Reply, Request};
use throughline_model::{Block, Content, Json, Role, ToolCall, ToolResult};

/// A turn with all block types: two instructions, thinking, two calls and their results.
fn conversation() -> Vec<RequestMessage> {
    let call = |id: &str| {
        Block::ToolCall(ToolCall {
            id: id.into(),
            name: "read".into(),
            input: Json::parse(r#"{"path":"a.rs"}"#).unwrap(),
        })
    };
    let result = |id: &str, is_error| {
        Block::ToolResult(ToolResult {
            call_id: id.into(),
            content: Content::text("fn main() {}"),
            is_error,
        })
    };
    let system = Content(vec![
        Block::Text("You help.".into()),
        Block::Text("The project.".into()),
    ]);
    vec![
        RequestMessage {
            breakpoints: vec![1],
            ..request_message(Role::System, system)
        },
        request_message(Role::User, Content::text("Read a.rs")),
        request_message(
            Role::Assistant,
            Content(vec![
                Block::Thinking {
                    text: "Look.".into(),
                    signature: Some("signed==".into()),
                },
                Block::Text("I look.".into()),
                call("c1"),
                call("c2"),
            ]),
        ),
        RequestMessage {
            breakpoints: vec![1],
            ..request_message(
                Role::Tool,
                Content(vec![result("c1", false), result("c2", true)]),
            )
        },
        request_message(Role::User, Content::text("And now?")),
    ]
}

fn send(wire: ApiProtocol, messages: &[RequestMessage]) -> Request {
    let tools = [ToolSpec {
        name: "read".into(),
        description: "Reads a file".into(),
        schema: Json::parse(r#"{"type":"object","properties":{"path":{"type":"string"}}}"#)
            .unwrap(),
    }];
    let asked = ModelRequest {
        messages,
        tools: &tools,
        options: &SamplingOptions {
            max_output: Some(777),
            ..SamplingOptions::NONE
        },
    };
    let mock = start([Reply::text("Yes.")]);
    ask(&provider(&mock, wire), &asked).0.unwrap();
    mock.requests().remove(0)
}

fn cache_control() -> Value {
    json!({"type": "ephemeral"})
}

#[test]
fn anthropic_gets_blocks_in_order_with_the_cache_marked() {
    let request = send(ApiProtocol::Anthropic, &conversation());
    assert_eq!(request.path, "/v1/messages");
    assert!(request.headers.contains_key("anthropic-version") && request.has_key);
    let body = request.body;
    assert_eq!(
        (&body["model"], &body["stream"]),
        (&json!("model-max"), &json!(true))
    );
    assert_eq!(body["max_tokens"], 777);
    assert_eq!(body.get("thinking"), None);
    assert_eq!(
        body["system"],
        json!([
            {"type": "text", "text": "You help."},
            {"type": "text", "text": "The project.", "cache_control": cache_control()},
        ])
    );
    assert_eq!(body["tools"][0]["name"], "read");
    assert_eq!(body["tools"][0]["input_schema"]["type"], "object");
    let call =
        |id| json!({"type": "tool_use", "id": id, "name": "read", "input": {"path": "a.rs"}});
    assert_eq!(
        body["messages"],
        json!([
            {"role": "user", "content": [{"type": "text", "text": "Read a.rs"}]},
            {"role": "assistant", "content": [
                {"type": "thinking", "thinking": "Look.", "signature": "signed=="},
                {"type": "text", "text": "I look."},
                call("c1"),
                call("c2"),
            ]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "c1", "content": "fn main() {}"},
                {"type": "tool_result", "tool_use_id": "c2", "content": "fn main() {}",
                    "is_error": true, "cache_control": cache_control()},
            ]},
            {"role": "user", "content": [{"type": "text", "text": "And now?"}]},
        ])
    );
}

#[test]
fn chat_gets_one_system_message_and_pairs_calls_with_results() {
    let request = send(ApiProtocol::Chat, &conversation());
    assert_eq!(request.path, "/v1/chat/completions");
    let body = request.body;
    assert_eq!(
        body["model"], "model-max",
        "the name is not read for an effort"
    );
    assert_eq!(body.get("reasoning_effort"), None);
    assert_eq!(body["max_tokens"], 777);
    assert_eq!(body["stream_options"], json!({"include_usage": true}));
    let call = |id| {
        json!({"type": "function", "id": id,
            "function": {"name": "read", "arguments": r#"{"path":"a.rs"}"#}})
    };
    assert_eq!(
        body["messages"],
        json!([
            {"role": "system", "content": "You help.\n\nThe project."},
            {"role": "user", "content": "Read a.rs"},
            {"role": "assistant", "content": "I look.", "tool_calls": [call("c1"), call("c2")]},
            {"role": "tool", "tool_call_id": "c1", "content": "fn main() {}"},
            {"role": "tool", "tool_call_id": "c2", "content": "The tool failed: fn main() {}"},
            {"role": "user", "content": "And now?"},
        ])
    );
}

#[test]
fn responses_gets_its_own_reasoning_back() {
    let body = send(ApiProtocol::Responses, &conversation()).body;
    assert_eq!(
        (&body["model"], &body["store"]),
        (&json!("model-max"), &json!(false))
    );
    assert_eq!(body["max_output_tokens"], 777);
    assert_eq!(body["include"], json!(["reasoning.encrypted_content"]));
    let input = body["input"].as_array().unwrap();
    let kinds: Vec<&str> = input
        .iter()
        .map(|item| item["type"].as_str().or(item["role"].as_str()).unwrap())
        .collect();
    assert_eq!(
        kinds,
        [
            "system",
            "user",
            "reasoning",
            "message",
            "function_call",
            "function_call",
            "function_call_output",
            "function_call_output",
            "user",
        ]
    );
    assert_eq!(input[2]["encrypted_content"], "signed==");
    assert_eq!(input[4]["call_id"], input[6]["call_id"]);
}

#[test]
fn gemini_gets_its_signatures_back_where_they_belong() {
    let request = send(ApiProtocol::Gemini, &conversation());
    assert_eq!(request.path, "/v1/models/model-max:streamGenerateContent");
    let body = request.body;
    assert_eq!(
        body["systemInstruction"]["parts"][0]["text"],
        "You help.\n\nThe project."
    );
    assert_eq!(body["generationConfig"]["maxOutputTokens"], 777);
    let contents = body["contents"].as_array().unwrap();
    let roles: Vec<&str> = contents
        .iter()
        .map(|content| content["role"].as_str().unwrap())
        .collect();
    assert_eq!(roles, ["user", "model", "user", "user"]);
    let parts = contents[1]["parts"].as_array().unwrap();
    assert_eq!(
        (parts.len(), &parts[0]["thoughtSignature"]),
        (3, &json!("signed=="))
    );
    let answered = &contents[2]["parts"];
    assert_eq!(answered[1]["functionResponse"]["name"], "read");
}

#[test]
fn the_cache_is_marked_at_no_more_places_than_allowed() {
    let mut messages = conversation();
    for message in &mut messages {
        message.breakpoints = (0..message.content.0.len()).collect();
    }
    let body = send(ApiProtocol::Anthropic, &messages).body;
    assert_eq!(body.to_string().matches("cache_control").count(), 4);
    let last = body["messages"].as_array().unwrap().last().unwrap();
    assert_eq!(last["content"][0]["cache_control"], cache_control());
}

#[test]
fn what_anthropic_wrote_itself_goes_back_and_nothing_else_does() {
    let foreign = |json: &str| Block::Foreign(Json::parse(json).unwrap());
    let search = r#"{"type":"server_tool_use","id":"s1","name":"web_search","input":{}}"#;
    let messages = vec![
        request_message(Role::User, Content::text("Search")),
        request_message(
            Role::Assistant,
            Content(vec![
                foreign(search),
                foreign(r#"{"type":"reasoning","encrypted":"of another provider"}"#),
                Block::Thinking {
                    text: "unsigned".into(),
                    signature: None,
                },
            ]),
        ),
        request_message(Role::User, Content(vec![foreign(r#"{"type":"hologram"}"#)])),
    ];
    let body = send(ApiProtocol::Anthropic, &messages).body;
    let search: Value = serde_json::from_str(search).unwrap();
    assert_eq!(body["messages"][1]["content"], json!([search]));
    let left = &body["messages"][2]["content"][0]["text"];
    assert_eq!(left, "[left out: it cannot be sent here]");
    let body = send(ApiProtocol::Chat, &messages).body;
    assert_eq!(body["messages"][2]["content"], *left);
}

/// Returns the request for a person's name and age, with sampling options and a schema.
fn send_with_options(wire: ApiProtocol) -> Value {
    let shape = JsonSchemaFormat {
        name: "person".into(),
        description: None,
        schema: serde_json::from_value(person()).unwrap(),
        strict: false,
    };
    let terms = SamplingOptions {
        max_output: Some(99),
        temperature: Some(0.5),
        top_p: Some(0.25),
        format: ResponseFormat::JsonSchema(shape),
    };
    let mock = start([Reply::text("{}")]);
    let model = provider(&mock, wire);
    assert_eq!(model.unsupported_option(&terms), None);
    let messages = hello();
    let asked = ModelRequest {
        messages: &messages,
        options: &terms,
        ..ModelRequest::default()
    };
    ask(&model, &asked).0.unwrap();
    mock.requests().remove(0).body
}

fn person() -> Value {
    json!({
        "type": "object",
        "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
        "required": ["name", "age"],
        "additionalProperties": false,
    })
}

#[test]
fn every_provider_gets_the_options_in_its_own_words() {
    let body = send_with_options(ApiProtocol::Chat);
    assert_eq!(
        (&body["temperature"], &body["top_p"], &body["max_tokens"]),
        (&json!(0.5), &json!(0.25), &json!(99))
    );
    let named = json!({"name": "person", "schema": person(), "strict": false});
    let format = json!({"type": "json_schema", "json_schema": named});
    assert_eq!(body["response_format"], format);

    let body = send_with_options(ApiProtocol::Responses);
    let max = &body["max_output_tokens"];
    assert_eq!(
        (&body["temperature"], &body["top_p"], max),
        (&json!(0.5), &json!(0.25), &json!(99))
    );
    let format =
        json!({"type": "json_schema", "name": "person", "schema": person(), "strict": false});
    assert_eq!(body["text"]["format"], format);
    assert_eq!(body["include"], json!(["reasoning.encrypted_content"]));

    let body = send_with_options(ApiProtocol::Anthropic);
    assert_eq!(
        (&body["temperature"], &body["top_p"], &body["max_tokens"]),
        (&json!(0.5), &json!(0.25), &json!(99))
    );
    let text = body.to_string();
    assert!(text.contains("\"age\""), "{text}");

    let how = &send_with_options(ApiProtocol::Gemini)["generationConfig"];
    assert_eq!(
        (&how["temperature"], &how["topP"], &how["maxOutputTokens"]),
        (&json!(0.5), &json!(0.25), &json!(99))
    );
    assert_eq!(how["responseJsonSchema"], person());
}

#[test]
fn a_form_that_a_provider_does_not_know_is_named() {
    let terms = SamplingOptions {
        format: ResponseFormat::Json,
        ..SamplingOptions::NONE
    };
    let mock = start([]);
    let cannot = WIRES.map(|wire| provider(&mock, wire).unsupported_option(&terms));
    assert_eq!(
        cannot,
        [
            Some(SamplingOption::Json),
            None,
            None,
            Some(SamplingOption::Json)
        ]
    );
    let offline = throughline_llm::OfflineModel::default();
    assert_eq!(offline.unsupported_option(&SamplingOptions::NONE), None);
    assert_eq!(
        offline.unsupported_option(&terms),
        Some(SamplingOption::Json)
    );
}

#[test]
fn the_key_is_nowhere_but_in_its_header() {
    for wire in WIRES {
        let mock = start([Reply::text("Yes.")]);
        let model = provider(&mock, wire);
        let messages = hello();
        let asked = ModelRequest {
            messages: &messages,
            ..ModelRequest::default()
        };
        let (answer, deltas) = ask(&model, &asked);
        let shown = format!(
            "{model:?} {:?} {answer:?} {deltas:?} {:?}",
            model.endpoint(),
            mock.requests()
        );
        assert!(
            mock.requests()[0].has_key && !shown.contains(KEY),
            "{shown}"
        );
    }
}

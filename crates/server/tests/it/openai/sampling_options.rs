//! Choice of model and sampling options: honored or refused.

use serde_json::{Value, json};
use throughline_mock_provider::{Reply, Script};

use super::{create_conversation, list_items, with_model, with_models};
use crate::harness::{Server, send};
use crate::mock_provider::weather_or_echo;

async fn post_refused(server: &Server, ask: Value) -> (u16, Value) {
    let (status, refused) = send(server.post("/v1/responses", &ask)).await;
    (status.as_u16(), refused["error"].clone())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_is_chosen_among_those_that_are_listed() {
    let (server, mock) = with_models(Script::from_fn(weather_or_echo)).await;
    let (_, listed) = send(server.get("/v1/models")).await;
    let ids: Vec<&Value> = listed["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|model| &model["id"])
        .collect();
    assert_eq!(
        ids,
        [
            "openai/model-max",
            "openai/model-mini",
            "anthropic/model-calm"
        ]
    );
    let (_, one) = send(server.get("/v1/models/openai/model-mini")).await;
    assert_eq!(one, listed["data"][1]);
    let (status, none) = send(server.get("/v1/models/gpt-5")).await;
    assert_eq!(
        (status.as_u16(), &none["error"]["code"]),
        (404, &json!("model_not_found"))
    );

    for (named, expected) in [
        (json!("openai/model-mini"), "model-mini"),
        (json!("model-calm"), "model-calm"),
        (json!(null), "model-max"),
    ] {
        let ask = json!({"model": named, "input": "hi"});
        let (status, response) = send(server.post("/v1/responses", &ask)).await;
        assert_eq!(status, 200, "{response}");
        assert_eq!(response["model"], expected);
        assert_eq!(mock.requests().pop().unwrap().model(), expected);
    }

    let before = send(server.get("/v1/conversations")).await.1;
    let (status, error) = post_refused(&server, json!({"model": "gpt-5", "input": "hi"})).await;
    assert_eq!((status, &error["code"]), (400, &json!("model_not_found")));
    assert_eq!(error["param"], "model");
    assert_eq!(error["type"], "invalid_request_error");
    let why = error["message"].as_str().unwrap();
    assert!(
        why.contains("gpt-5") && why.contains("openai/model-mini"),
        "{why}"
    );
    // A refused request creates nothing.
    assert_eq!(send(server.get("/v1/conversations")).await.1, before);
    assert_eq!(mock.requests().len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unrestricted_server_accepts_any_model_name() {
    let (server, _stand_in) = with_model(Script::from_fn(weather_or_echo)).await;
    let ask = json!({"model": "gpt-5", "input": "hi"});
    let (status, response) = send(server.post("/v1/responses", &ask)).await;
    assert_eq!(status, 200, "{response}");
    assert_eq!(response["model"], "model-max");
}

#[tokio::test(flavor = "multi_thread")]
async fn sampling_options_reach_the_model_and_are_echoed() {
    let (server, mock) = with_models(Script::from_fn(weather_or_echo)).await;
    let schema = json!({
        "type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"],
        "additionalProperties": false,
    });
    let format = json!({"type": "json_schema", "name": "place", "schema": schema, "strict": true});
    let ask = json!({
        "input": "Where?", "temperature": 0.5, "top_p": 0.25, "max_output_tokens": 50,
        "text": {"format": format},
    });
    let (status, response) = send(server.post("/v1/responses", &ask)).await;
    assert_eq!(status, 200, "{response}");
    assert_eq!(response["temperature"], 0.5);
    assert_eq!(response["top_p"], 0.25);
    assert_eq!(response["max_output_tokens"], 50);
    assert_eq!(response["text"]["format"], format);
    let sent = mock.requests().pop().unwrap().body;
    assert_eq!(sent["temperature"], 0.5);
    assert_eq!(sent["top_p"], 0.25);
    assert_eq!(sent["max_tokens"], 50);
    let shape = &sent["response_format"]["json_schema"];
    assert_eq!(
        (&shape["schema"], &shape["strict"]),
        (&schema, &json!(true))
    );

    let ask = json!({"input": "JSON?", "text": {"format": {"type": "json_object"}}});
    let (status, response) = send(server.post("/v1/responses", &ask)).await;
    assert_eq!(status, 200, "{response}");
    let sent = mock.requests().pop().unwrap().body;
    assert_eq!(sent["response_format"], json!({"type": "json_object"}));
    assert_eq!(sent["temperature"], Value::Null);
}

#[tokio::test(flavor = "multi_thread")]
async fn unsupported_sampling_options_are_refused_before_anything_is_posted() {
    let (server, mock) = with_models(Script::from_fn(weather_or_echo)).await;
    let id = create_conversation(&server, json!([])).await;
    let json_object = json!({"format": {"type": "json_object"}});
    for (members, param, code) in [
        (json!({"temperature": 2.5}), "temperature", "invalid_value"),
        (json!({"top_p": -0.1}), "top_p", "invalid_value"),
        (
            json!({"max_output_tokens": 0}),
            "max_output_tokens",
            "invalid_value",
        ),
        (
            json!({"model": "model-calm", "text": json_object}),
            "text.format",
            "unsupported_parameter",
        ),
    ] {
        let mut ask = json!({"conversation": id, "input": "hi"});
        ask.as_object_mut()
            .unwrap()
            .extend(members.as_object().unwrap().clone());
        let (status, error) = post_refused(&server, ask).await;
        assert_eq!((status, &error["param"]), (400, &json!(param)), "{error}");
        assert_eq!(error["code"], code);
    }
    assert_eq!(list_items(&server, &id, "").await["data"], json!([]));
    assert!(mock.requests().is_empty());

    let offline = Server::start().await;
    for (member, value) in [
        ("temperature", json!(0)),
        ("top_p", json!(1)),
        ("max_output_tokens", json!(100)),
        ("text", json_object),
    ] {
        let (status, error) = post_refused(&offline, json!({"input": "hi", member: value})).await;
        assert_eq!(
            (status, &error["code"]),
            (400, &json!("unsupported_parameter")),
            "{error}"
        );
        assert!(
            error["param"].as_str().unwrap().starts_with(member),
            "{error}"
        );
    }
    let (_, listed) = send(offline.get("/v1/conversations")).await;
    assert_eq!(listed["data"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_truncated_answer_reports_the_reason() {
    let cut = || Reply {
        stop: Some("length".to_owned()),
        ..Reply::text("Once upon a")
    };
    let (server, _stand_in) = with_model(Script::replies([cut(), cut()])).await;
    let ask = json!({"input": "A story.", "max_output_tokens": 3});
    let (status, response) = send(server.post("/v1/responses", &ask)).await;
    assert_eq!(status, 200, "{response}");
    assert_eq!(response["status"], "incomplete");
    assert_eq!(
        response["incomplete_details"],
        json!({"reason": "max_output_tokens"})
    );
    assert_eq!(response["output"][0]["status"], "incomplete");

    let ask = json!({"input": "A story.", "max_output_tokens": 3, "stream": true});
    let sent = server.post("/v1/responses", &ask).send().await.unwrap();
    let text = sent.text().await.unwrap();
    let last = text.trim_end().rsplit("data: ").next().unwrap();
    let last: Value = serde_json::from_str(last).unwrap();
    assert_eq!(last["type"], "response.incomplete");
    assert_eq!(
        last["response"]["incomplete_details"]["reason"],
        "max_output_tokens"
    );
}

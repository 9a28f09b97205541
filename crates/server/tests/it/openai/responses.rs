//! Responses: turns in a conversation, or answers to a standalone input.

use std::time::Duration;

use serde_json::{Value, json};
use throughline_mock_provider::{Fault, Reply, Script};

use super::{create_conversation, list_items, with_model};
use crate::harness::{Server, send};
use crate::mock_provider::weather_or_echo;

#[tokio::test(flavor = "multi_thread")]
async fn a_response_is_a_turn_of_the_conversation() {
    let (server, mock) = with_model(Script::from_fn(weather_or_echo)).await;
    let id = create_conversation(&server, json!([{"role": "user", "content": "I am Ada."}])).await;
    let ask = json!({
        "conversation": {"id": id}, "model": "gpt-anything", "instructions": "Speak plainly.",
        "input": [{"role": "user", "content": "Who am I?"}],
    });
    let (status, response) = send(server.post("/v1/responses", &ask)).await;
    assert_eq!(status, 200, "{response}");
    assert_eq!(response["object"], "response");
    assert_eq!(response["status"], "completed");
    assert_eq!(response["model"], "model-max");
    assert_eq!(response["conversation"]["id"], id);
    assert_eq!(response["usage"]["total_tokens"], 120);
    let text = response["output"][0]["content"][0]["text"]
        .as_str()
        .unwrap();
    assert!(text.contains("Who am I?"), "{text}");
    let sent = mock.requests().pop().unwrap();
    assert!(sent.system().contains("Speak plainly.") && sent.system().contains("own agent"));
    assert!(sent.body.to_string().contains("I am Ada."));
    let page = list_items(&server, &id, "order=asc").await;
    assert_eq!(page["data"].as_array().unwrap().len(), 3);
    assert_eq!(page["data"][2], response["output"][0]);

    let path = format!("/v1/responses/{}", response["id"].as_str().unwrap());
    let (status, read) = send(server.get(&path)).await;
    assert_eq!(status, 200, "{read}");
    assert_eq!(read["output"], response["output"]);
    assert_eq!(read["usage"], response["usage"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn tools_are_called_by_the_model_and_run_by_the_caller() {
    let (server, mock) = with_model(Script::from_fn(weather_or_echo)).await;
    let id = create_conversation(&server, json!([])).await;
    let tool = json!({"type": "function", "name": "get_weather", "description": "Weather",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}, "strict": true});
    let ask = json!({"conversation": id, "input": "weather?", "tools": [tool]});
    let (_, response) = send(server.post("/v1/responses", &ask)).await;
    let call = &response["output"][0];
    assert_eq!(call["type"], "function_call", "{response}");
    let result =
        json!({"type": "function_call_output", "call_id": call["call_id"], "output": "sunny"});
    let ask = json!({"conversation": id, "input": [result], "tools": [tool]});
    let (_, response) = send(server.post("/v1/responses", &ask)).await;
    assert_eq!(
        response["output"][0]["content"][0]["text"],
        "The tool says: sunny"
    );
    let sent = mock.requests().pop().unwrap();
    let roles: Vec<_> = sent.body["messages"].as_array().unwrap().iter().collect();
    let roles: Vec<_> = roles.iter().map(|m| m["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["system", "user", "assistant", "tool"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_response_is_stored_unless_store_is_false() {
    let (server, mock) = with_model(Script::from_fn(weather_or_echo)).await;
    let history = json!([
        {"role": "user", "content": "I am Ada."},
        {"type": "message", "role": "assistant", "id": "msg_1", "status": "completed",
            "content": [{"type": "output_text", "text": "Hello Ada", "annotations": []}]},
        {"role": "user", "content": "Who am I?"},
    ]);
    let unkept = json!({"input": history, "store": false});
    let (status, response) = send(server.post("/v1/responses", &unkept)).await;
    assert_eq!(status, 200, "{response}");
    assert_eq!(response["store"], false);
    assert_eq!(response["conversation"], json!(null));
    assert_eq!(
        response["output"][0]["content"][0]["text"],
        "Heard 3 messages, the last one: Who am I?"
    );
    let (_, listed) = send(server.get("/v1/conversations")).await;
    assert_eq!(listed["data"], json!([]));
    let follow = json!({"previous_response_id": response["id"], "input": "?"});
    assert_eq!(send(server.post("/v1/responses", &follow)).await.0, 404);

    let (_, first) = send(server.post("/v1/responses", &json!({"input": "one"}))).await;
    assert_eq!(first["store"], true);
    let second = json!({"previous_response_id": first["id"], "input": "two"});
    let (status, second) = send(server.post("/v1/responses", &second)).await;
    assert_eq!(status, 200, "{second}");
    assert_eq!(second["conversation"], first["conversation"]);
    // Continuing from the first response again does not affect the second.
    let other = json!({"previous_response_id": first["id"], "input": "three"});
    let (_, other) = send(server.post("/v1/responses", &other)).await;
    assert_ne!(other["conversation"], first["conversation"]);
    let sent = mock.requests().pop().unwrap().body.to_string();
    assert!(
        sent.contains("one") && sent.contains("three") && !sent.contains("two"),
        "{sent}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conversation_is_locked_while_it_is_answered() {
    let slow = Reply::text("one two three four five six").with_delay(Duration::from_millis(300));
    let (server, _stand_in) = with_model(Script::replies([slow])).await;
    let id = create_conversation(&server, json!([])).await;
    let ask = json!({"conversation": id, "input": "hi", "stream": true});
    let mut first = server.post("/v1/responses", &ask).send().await.unwrap();
    assert_eq!(first.status(), 200);
    assert!(first.chunk().await.unwrap().is_some());
    let again = json!({"conversation": id, "input": "and?"});
    let item = json!({"items": [{"role": "user", "content": "x"}]});
    for busy in [
        server.post("/v1/responses", &again),
        server.post(&format!("/v1/conversations/{id}/items"), &item),
    ] {
        let (status, refused) = send(busy).await;
        assert_eq!(status, 400, "{refused}");
        assert_eq!(refused["error"]["code"], "conversation_locked");
        assert_eq!(refused["error"]["param"], "conversation");
    }
    while first.chunk().await.unwrap().is_some() {}
    let (status, _) = send(server.post("/v1/responses", &again)).await;
    assert_eq!(status, 200);
    assert_eq!(
        list_items(&server, &id, "").await["data"]
            .as_array()
            .unwrap()
            .len(),
        4
    );
}

/// Parses the events of a stream, in order.
fn parse_events(text: &str) -> Vec<Value> {
    let events = text.split("\n\n").filter(|frame| !frame.is_empty());
    events
        .map(|frame| {
            let (event, data) = frame.split_once('\n').unwrap();
            let data: Value = serde_json::from_str(data.strip_prefix("data: ").unwrap()).unwrap();
            assert_eq!(event.strip_prefix("event: ").unwrap(), data["type"]);
            data
        })
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_reports_the_stored_items() {
    let reply = Reply::text("Hello there, Ada.").and_call("c1", "f", json!({"a": 1}));
    let (server, _stand_in) = with_model(Script::replies([reply])).await;
    let id = create_conversation(&server, json!([])).await;
    let tool = json!({"type": "function", "name": "f"});
    let ask = json!({"conversation": id, "input": "hi", "stream": true, "tools": [tool]});
    let text = server.post("/v1/responses", &ask).send().await.unwrap();
    assert!(
        text.headers()["content-type"]
            .to_str()
            .unwrap()
            .starts_with("text/event-stream")
    );
    let events = parse_events(&text.text().await.unwrap());
    for (number, event) in events.iter().enumerate() {
        assert_eq!(event["sequence_number"], number);
    }
    let kinds: Vec<_> = events.iter().map(|e| e["type"].as_str().unwrap()).collect();
    let mut distinct = kinds.clone();
    distinct.dedup();
    assert_eq!(
        distinct,
        [
            "response.created",
            "response.in_progress",
            "response.output_item.added",
            "response.content_part.added",
            "response.output_text.delta",
            "response.output_text.done",
            "response.content_part.done",
            "response.output_item.done",
            "response.output_item.added",
            "response.function_call_arguments.delta",
            "response.function_call_arguments.done",
            "response.output_item.done",
            "response.completed",
        ]
    );
    let deltas = events
        .iter()
        .filter(|e| e["type"] == "response.output_text.delta");
    let deltas: String = deltas.map(|e| e["delta"].as_str().unwrap()).collect();
    assert_eq!(deltas, "Hello there, Ada.");
    let done: Vec<_> = events
        .iter()
        .filter(|e| e["type"] == "response.output_item.done")
        .map(|e| e["item"].clone())
        .collect();
    let whole = &events.last().unwrap()["response"];
    assert_eq!(whole["output"], json!(done));
    assert_eq!(events[0]["response"]["id"], whole["id"]);
    let page = list_items(&server, &id, "order=asc").await;
    assert_eq!(page["data"][1], done[0]);
    assert_eq!(page["data"][2], done[1]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_failure_is_reported_and_nothing_is_posted_twice() {
    let faults = [0, 1].map(|_| Reply::fault(Fault::Status(500)));
    let (server, _stand_in) = with_model(Script::replies(faults)).await;
    let id = create_conversation(&server, json!([])).await;
    let ask = json!({"conversation": id, "input": "hi"});
    let response = server.post("/v1/responses", &ask).send().await.unwrap();
    assert!(response.status().is_server_error(), "{}", response.status());
    assert_eq!(response.headers()["x-should-retry"], "false");
    let body: Value = response.json().await.unwrap();
    assert_eq!(body["error"]["type"], "server_error", "{body}");

    let ask = json!({"conversation": id, "input": "hi again", "stream": true});
    let text = server.post("/v1/responses", &ask).send().await.unwrap();
    let events = parse_events(&text.text().await.unwrap());
    let last = events.last().unwrap();
    assert_eq!(last["type"], "response.failed");
    assert_eq!(last["response"]["status"], "failed");
    assert!(last["response"]["error"]["message"].is_string());
    assert_eq!(
        list_items(&server, &id, "").await["data"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_model_the_offline_agent_answers() {
    let server = Server::start().await;
    let (status, response) = send(server.post("/v1/responses", &json!({"input": "hello"}))).await;
    assert_eq!(status, 200, "{response}");
    assert_eq!(response["model"], "offline");
    let (_, models) = send(server.get("/v1/models")).await;
    assert_eq!(models["data"][0]["id"], "offline");
}

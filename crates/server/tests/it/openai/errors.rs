//! Errors in the format that OpenAI clients expect.

use serde_json::json;

use super::{add_items, create_conversation};
use crate::harness::{Server, send};

#[tokio::test(flavor = "multi_thread")]
async fn bad_requests_are_answered_as_these_clients_expect() {
    let server = Server::start().await;
    let id = create_conversation(&server, json!([])).await;
    let many: Vec<_> = (0..21)
        .map(|_| json!({"role": "user", "content": "x"}))
        .collect();
    for (bad, param) in [
        (json!(many), "items"),
        (json!([]), "items"),
        (json!([7]), "items[0]"),
        (json!([{}]), "items[0].type"),
        (
            json!([{"role": "user", "content": "x"}, {"role": "judge", "content": "x"}]),
            "items[1].role",
        ),
        (json!([{"role": "user", "content": 7}]), "items[0].content"),
        (
            json!([{"role": "user", "content": [{"type": "input_text"}]}]),
            "items[0].content[0]",
        ),
        (
            json!([{"role": "user", "content": ["x"]}]),
            "items[0].content[0]",
        ),
        (
            json!([{"type": "function_call", "name": "f", "arguments": "{}"}]),
            "items[0].call_id",
        ),
        (
            json!([{"type": "function_call_output", "call_id": "f"}]),
            "items[0].output",
        ),
        (
            json!([{"type": "item_reference", "id": "msg_1"}]),
            "items[0].type",
        ),
    ] {
        let (status, refused) = add_items(&server, &id, bad.clone()).await;
        assert_eq!(status, 400, "{bad}");
        assert_eq!(refused["error"]["param"], param, "{refused}");
        assert_eq!(refused["error"]["type"], "invalid_request_error");
        assert!(refused["error"]["message"].is_string());
    }
    for query in ["limit=0", "limit=101", "limit=x", "order=up"] {
        let path = format!("/v1/conversations/{id}/items?{query}");
        let (status, refused) = send(server.get(&path)).await;
        assert_eq!(status, 400, "{query}");
        assert_eq!(refused["error"]["param"], query.split_once('=').unwrap().0);
    }
    for path in [
        "/v1/conversations/conv_none".to_owned(),
        "/v1/conversations/..%2f..".to_owned(),
        format!("/v1/conversations/{id}/items/msg_none"),
        format!("/v1/conversations/{id}/items?after=msg_none"),
        "/v1/responses/resp_none".to_owned(),
        "/v1/nothing".to_owned(),
    ] {
        let (status, refused) = send(server.get(&path)).await;
        assert_eq!(status, 404, "{path}: {refused}");
        assert_eq!(
            refused["error"]["type"], "invalid_request_error",
            "{refused}"
        );
    }
    let post = server.request("POST", "/v1/conversations").body("{");
    let post = post.header("content-type", "application/json");
    let (status, refused) = send(post).await;
    assert_eq!(status, 400);
    assert_eq!(refused["error"]["code"], "bad_json");
    for (bad, param) in [
        (json!({"input": "x", "background": true}), "background"),
        (
            json!({"input": "x", "tools": [{"type": "web_search"}]}),
            "tools[0].type",
        ),
        (
            json!({"input": "x", "tool_choice": "required"}),
            "tool_choice",
        ),
        (
            json!({"input": "x", "text": {"format": {"type": "json_object"}}}),
            "text.format",
        ),
        (json!({"input": 7}), "input"),
        (json!({}), "input"),
        (json!({"input": "x", "conversation": 7}), "conversation"),
        (
            json!({"input": "x", "conversation": id, "previous_response_id": "resp_1"}),
            "previous_response_id",
        ),
    ] {
        let (status, refused) = send(server.post("/v1/responses", &bad)).await;
        assert_eq!(status, 400, "{bad}: {refused}");
        assert_eq!(refused["error"]["param"], param, "{refused}");
    }
}

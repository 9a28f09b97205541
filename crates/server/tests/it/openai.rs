//! Conversations and responses, as they go over the wire. The clients themselves are in
//! `clients`.

use std::time::Duration;

use reqwest::StatusCode;
use serde_json::{Value, json};
use throughline::TokenRole;
use throughline_stand_in::{Fault, Reply, Script, StandIn};

use crate::harness::{Server, Wish, answer};
use crate::stand_in::{StandInVoices, weather_or_echo};

async fn conversation(server: &Server, items: Value) -> String {
    let (status, made) = answer(server.post("/v1/conversations", &json!({"items": items}))).await;
    assert_eq!(status, 200, "{made}");
    made["id"].as_str().unwrap().to_owned()
}

async fn items(server: &Server, conversation: &str, query: &str) -> Value {
    let path = format!("/v1/conversations/{conversation}/items?{query}");
    let (status, page) = answer(server.get(&path)).await;
    assert_eq!(status, 200, "{page}");
    page
}

async fn add(server: &Server, conversation: &str, items: Value) -> (StatusCode, Value) {
    let path = format!("/v1/conversations/{conversation}/items");
    answer(server.post(&path, &json!({"items": items}))).await
}

async fn with_model(script: Script) -> (Server, StandIn) {
    let stand_in = StandIn::start(script).unwrap();
    let server = Server::with(Wish {
        voices: StandInVoices::new(&stand_in),
        ..Wish::default()
    })
    .await;
    (server, stand_in)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conversation_is_a_session_and_a_session_a_conversation() {
    let server = Server::start().await;
    let body = json!({
        "metadata": {"topic": "demo"},
        "items": [{"role": "user", "content": "hello"}],
    });
    let (status, made) = answer(server.post("/v1/conversations", &body)).await;
    assert_eq!(status, 200, "{made}");
    assert_eq!(made["object"], "conversation");
    assert_eq!(made["metadata"], json!({"topic": "demo"}));
    let id = made["id"].as_str().unwrap();
    let session = id.strip_prefix("conv_").unwrap();
    let (status, page) = answer(server.get(&format!("/api/sessions/{session}/entries"))).await;
    assert_eq!(status, 200);
    assert_eq!(page["entries"][1]["content"], "hello");

    let other = server.session(&["from the native API"]).await;
    let listed = items(&server, &format!("conv_{other}"), "").await;
    assert_eq!(
        listed["data"][0]["content"][0]["text"],
        "from the native API"
    );

    let (_, all) = answer(server.get("/v1/conversations?limit=1")).await;
    assert_eq!(all["has_more"], true);
    assert_eq!(all["data"][0]["id"], format!("conv_{other}"));
    let (_, rest) = answer(server.get(&format!("/v1/conversations?after=conv_{other}"))).await;
    assert_eq!(rest["data"], json!([made]));
    assert_eq!(rest["has_more"], false);
}

#[tokio::test(flavor = "multi_thread")]
async fn metadata_is_replaced_and_never_sent_to_the_model() {
    let (server, stand_in) = with_model(Script::by(weather_or_echo)).await;
    let id = conversation(&server, json!([])).await;
    let path = format!("/v1/conversations/{id}");
    let (status, _) = answer(server.post(&path, &json!({"metadata": {"a": "zzz-noted"}}))).await;
    assert_eq!(status, 200);
    let (_, read) = answer(server.get(&path)).await;
    assert_eq!(read["metadata"], json!({"a": "zzz-noted"}));
    let ask = json!({"conversation": id, "input": "hi", "model": "any"});
    let (status, _) = answer(server.post("/v1/responses", &ask)).await;
    assert_eq!(status, 200);
    let sent = format!("{:?}", stand_in.requests());
    assert!(!sent.contains("zzz-noted"), "{sent}");
    answer(server.post(&path, &json!({"metadata": {}}))).await;
    let (_, read) = answer(server.get(&path)).await;
    assert_eq!(read["metadata"], json!({}));

    for bad in [
        json!({"metadata": {"a": 1}}),
        json!({"metadata": {"a": "x".repeat(513)}}),
        json!({"metadata": {"x".repeat(65): "a"}}),
        json!({"metadata": (0..17).map(|n| (n.to_string(), json!("x"))).collect::<serde_json::Map<_, _>>()}),
    ] {
        let (status, refused) = answer(server.post(&path, &bad)).await;
        assert_eq!(status, 400, "{refused}");
        assert_eq!(refused["error"]["type"], "invalid_request_error");
    }
}

/// Items that have everything written out come back as they are, but for their ids.
#[tokio::test(flavor = "multi_thread")]
async fn items_come_back_as_they_were_given() {
    let server = Server::start().await;
    let given = json!([
        {"type": "message", "role": "user", "status": "completed", "content": [
            {"type": "input_text", "text": "look"},
            {"type": "input_image", "image_url": "data:image/png;base64,aGVsbG8=", "detail": "high"},
            {"type": "input_image", "image_url": "https://example.org/a.png", "detail": "auto"},
            {"type": "input_file", "file_data": "data:application/pdf;base64,cGRm", "filename": "a.pdf"},
        ]},
        {"type": "message", "role": "developer", "status": "completed", "content": [
            {"type": "input_text", "text": "be brief"}]},
        {"type": "reasoning", "status": "completed", "encrypted_content": "xyz", "summary": [
            {"type": "summary_text", "text": "one"}, {"type": "summary_text", "text": "two"}]},
        {"type": "message", "role": "assistant", "status": "incomplete", "phase": "commentary", "content": [
            {"type": "output_text", "text": "see", "annotations": [
                {"type": "url_citation", "url": "https://example.org", "title": "t", "start_index": 0, "end_index": 3}]},
            {"type": "refusal", "refusal": "no"}]},
        {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{\"b\": 1,\"a\":1.10}", "status": "completed"},
        {"type": "function_call", "call_id": "c2", "name": "g", "arguments": "not json", "status": "incomplete"},
        {"type": "function_call_output", "call_id": "c1", "output": "sunny", "status": "completed"},
        {"type": "function_call_output", "call_id": "c2", "status": "completed", "output": [
            {"type": "input_text", "text": "a"},
            {"type": "input_image", "image_url": "data:image/gif;base64,R0lG", "detail": "low"}]},
    ]);
    let id = conversation(&server, given.clone()).await;
    let page = items(&server, &id, "order=asc").await;
    let mut listed = page["data"].clone();
    let prefixes = ["msg", "msg", "rs", "msg", "fc", "fc", "fco", "fco"];
    for (item, prefix) in listed.as_array_mut().unwrap().iter_mut().zip(prefixes) {
        let own = item["id"].as_str().unwrap().to_owned();
        assert!(own.starts_with(&format!("{prefix}_")), "{own}");
        let path = format!("/v1/conversations/{id}/items/{own}");
        let (status, alone) = answer(server.get(&path)).await;
        assert_eq!(status, 200);
        assert_eq!(alone, *item);
        item.as_object_mut().unwrap().remove("id");
    }
    assert_eq!(listed, given);
    assert_eq!(page["has_more"], false);
}

#[tokio::test(flavor = "multi_thread")]
async fn shorthand_is_written_out() {
    let server = Server::start().await;
    let short = json!([
        {"role": "user", "content": "hello"},
        {"role": "assistant", "content": "hi"},
        {"role": "user", "content": [{"type": "input_text", "text": "x"}], "type": null},
    ]);
    let id = conversation(&server, short).await;
    let mut listed = items(&server, &id, "order=asc").await["data"].clone();
    for item in listed.as_array_mut().unwrap() {
        item.as_object_mut().unwrap().remove("id");
    }
    let user = |text: &str| {
        json!({"type": "message", "role": "user", "status": "completed",
            "content": [{"type": "input_text", "text": text}]})
    };
    let assistant = json!({"type": "message", "role": "assistant", "status": "completed",
        "content": [{"type": "output_text", "text": "hi", "annotations": []}]});
    assert_eq!(listed, json!([user("hello"), assistant, user("x")]));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_item_of_an_unknown_type_comes_back_to_the_byte() {
    let server = Server::start().await;
    let id = conversation(&server, json!([])).await;
    let path = format!("/v1/conversations/{id}/items");
    let odd = r#"{"z":1e400,"id":"odd_1","type":"hologram","a":[ 1,  2.50 ]}"#;
    let nameless = r#"{ "type":"text","depth": 3.0}"#;
    let body = format!(r#"{{"items":[{odd},{nameless}]}}"#);
    let send = server.request("POST", &path);
    let send = send.header("content-type", "application/json").body(body);
    let text = send.send().await.unwrap().text().await.unwrap();
    assert!(text.contains(odd), "{text}");
    let listed = server
        .get(&format!("{path}?order=asc"))
        .send()
        .await
        .unwrap();
    let listed = listed.text().await.unwrap();
    assert!(listed.contains(odd), "{listed}");
    assert!(listed.contains(r#"","#), "{listed}");
    assert!(
        listed.contains(r#" "type":"text","depth": 3.0}"#),
        "{listed}"
    );
    let (status, _) = answer(server.get(&format!("{path}/odd_1"))).await;
    assert_eq!(status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_go_both_ways_and_meet() {
    let server = Server::start().await;
    let id = conversation(&server, json!([])).await;
    for n in 0..3 {
        let some: Vec<_> = (0..15)
            .map(|m| json!({"role": "user", "content": format!("{}", n * 15 + m)}))
            .collect();
        add(&server, &id, json!(some)).await;
    }
    for (order, first) in [("asc", "0"), ("desc", "44")] {
        let mut seen = Vec::new();
        let mut after = String::new();
        loop {
            let page = items(&server, &id, &format!("order={order}&limit=7{after}")).await;
            let data = page["data"].as_array().unwrap();
            assert_eq!(page["first_id"], data[0]["id"]);
            assert_eq!(page["last_id"], data[data.len() - 1]["id"]);
            seen.extend(data.iter().map(|item| item["content"][0]["text"].clone()));
            if page["has_more"] == false {
                break;
            }
            after = format!("&after={}", page["last_id"].as_str().unwrap());
        }
        assert_eq!(seen.len(), 45, "{order}");
        assert_eq!(seen[0], first);
        let mut numbers: Vec<u32> = seen
            .iter()
            .map(|text| text.as_str().unwrap().parse().unwrap())
            .collect();
        if order == "desc" {
            numbers.reverse();
        }
        assert!(numbers.is_sorted() && numbers.windows(2).all(|w| w[0] != w[1]));
    }
    // Latest first, twenty of them, where nobody says.
    let page = items(&server, &id, "").await;
    assert_eq!(page["data"].as_array().unwrap().len(), 20);
    assert_eq!(page["data"][0]["content"][0]["text"], "44");

    let empty = conversation(&server, json!([])).await;
    let page = items(&server, &empty, "").await;
    assert_eq!(
        page,
        json!({"object": "list", "data": [], "first_id": null, "last_id": null, "has_more": false})
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_item_is_gone_from_everywhere() {
    let (server, stand_in) = with_model(Script::by(weather_or_echo)).await;
    let said = json!([
        {"role": "user", "content": "the secret word is zanzibar"},
        {"role": "assistant", "content": "noted"},
        {"role": "user", "content": "xylophone"},
    ]);
    let id = conversation(&server, said).await;
    let page = items(&server, &id, "order=asc").await;
    for which in [0, 2] {
        let item = page["data"][which]["id"].as_str().unwrap();
        let path = format!("/v1/conversations/{id}/items/{item}");
        let (status, left) = answer(server.request("DELETE", &path)).await;
        assert_eq!(status, 200, "{left}");
        assert_eq!(left["id"], id);
        assert_eq!(left["object"], "conversation");
        let (status, gone) = answer(server.get(&path)).await;
        assert_eq!(status, 404, "{gone}");
        let (status, _) = answer(server.request("DELETE", &path)).await;
        assert_eq!(status, 404);
    }
    let page = items(&server, &id, "").await;
    assert_eq!(page["data"].as_array().unwrap().len(), 1);
    let ask = json!({"conversation": id, "input": "What is the secret word, zanzibar or what?"});
    answer(server.post("/v1/responses", &ask)).await;
    let sent = stand_in.requests().pop().unwrap().body.to_string();
    assert!(
        !sent.contains("the secret word is") && !sent.contains("xylophone"),
        "{sent}"
    );
    let report = server.tl.check(&|_, _| {}).await.unwrap();
    assert!(report.findings.is_empty(), "{:?}", report.findings);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_answer_can_be_taken_apart_item_by_item() {
    let reply = Reply::text("Let me see.").and_call("c1", "get_weather", json!({"city": "Rome"}));
    let (server, _stand_in) = with_model(Script::replies([reply])).await;
    let tool = json!({"type": "function", "name": "get_weather", "parameters": {"type": "object"}});
    let id = conversation(&server, json!([])).await;
    let ask = json!({"conversation": id, "input": "weather?", "tools": [tool]});
    let (status, response) = answer(server.post("/v1/responses", &ask)).await;
    assert_eq!(status, 200, "{response}");
    let kinds: Vec<_> = response["output"].as_array().unwrap().iter().collect();
    assert_eq!(kinds[0]["type"], "message");
    assert_eq!(kinds[1]["type"], "function_call");
    assert_eq!(kinds[1]["arguments"], r#"{"city":"Rome"}"#);
    // What a response names is what the conversation has.
    let page = items(&server, &id, "order=asc").await;
    assert_eq!(page["data"][1], *kinds[0]);
    assert_eq!(page["data"][2], *kinds[1]);

    let delete = async |item: &Value| {
        let path = format!(
            "/v1/conversations/{id}/items/{}",
            item["id"].as_str().unwrap()
        );
        answer(server.request("DELETE", &path)).await.0
    };
    assert_eq!(delete(kinds[1]).await, 200);
    let page = items(&server, &id, "order=asc").await;
    assert_eq!(page["data"].as_array().unwrap().len(), 2);
    assert_eq!(page["data"][1], *kinds[0]);
    assert_eq!(delete(kinds[0]).await, 200);
    assert_eq!(
        items(&server, &id, "").await["data"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_item_that_comes_again_under_its_id_is_there_once() {
    let server = Server::start().await;
    let id = conversation(&server, json!([])).await;
    let item = json!({"type": "message", "role": "user", "id": "msg_mine", "content": "hello"});
    for _ in 0..2 {
        let batch = json!([item, {"role": "user", "content": "and more"}]);
        let (status, added) = add(&server, &id, batch).await;
        assert_eq!(status, 200, "{added}");
        assert_eq!(added["data"][0]["id"], "msg_mine");
    }
    let page = items(&server, &id, "order=asc").await;
    let mine = page["data"].as_array().unwrap().iter();
    assert_eq!(mine.filter(|item| item["id"] == "msg_mine").count(), 1);
    let other = json!([{"role": "user", "id": "msg_mine", "content": "other words"}]);
    let (status, refused) = add(&server, &id, other).await;
    assert_eq!(status, 400, "{refused}");
    assert_eq!(refused["error"]["param"], "items[0].id");
    let twice = json!([
        {"role": "user", "id": "msg_twice", "content": "a"},
        {"role": "user", "id": "msg_twice", "content": "b"},
    ]);
    assert_eq!(add(&server, &id, twice).await.0, 400);

    // Deleted, it can be said again; it is another item then.
    let path = format!("/v1/conversations/{id}/items/msg_mine");
    assert_eq!(answer(server.request("DELETE", &path)).await.0, 200);
    let (status, again) = add(&server, &id, json!([item])).await;
    assert_eq!(status, 200);
    assert_ne!(again["data"][0]["id"], "msg_mine");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fork_shows_what_it_shares_under_ids_that_lead_to_it() {
    let server = Server::start().await;
    let shared = json!([
        {"role": "user", "id": "msg_given", "content": "one"},
        {"role": "assistant", "content": "two"},
    ]);
    let id = conversation(&server, shared).await;
    let session: throughline::SessionId = id.strip_prefix("conv_").unwrap().parse().unwrap();
    let session = server.tl.session(&session).await.unwrap();
    let fork = session.fork(None, throughline::NewSession::default()).await;
    let fork = format!("conv_{}", fork.unwrap().session.id());
    let page = items(&server, &fork, "order=asc").await;
    assert_eq!(page["data"].as_array().unwrap().len(), 2);
    for item in page["data"].as_array().unwrap() {
        let own = item["id"].as_str().unwrap();
        let path = format!("/v1/conversations/{fork}/items/{own}");
        assert_eq!(
            answer(server.get(&path)).await,
            (StatusCode::OK, item.clone())
        );
        let (status, refused) = answer(server.request("DELETE", &path)).await;
        assert_eq!(status, 400, "{refused}");
    }
    let after = page["first_id"].as_str().unwrap();
    let rest = items(&server, &fork, &format!("order=asc&after={after}")).await;
    assert_eq!(rest["data"].as_array().unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_requests_are_answered_as_these_clients_expect() {
    let server = Server::start().await;
    let id = conversation(&server, json!([])).await;
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
        let (status, refused) = add(&server, &id, bad.clone()).await;
        assert_eq!(status, 400, "{bad}");
        assert_eq!(refused["error"]["param"], param, "{refused}");
        assert_eq!(refused["error"]["type"], "invalid_request_error");
        assert!(refused["error"]["message"].is_string());
    }
    for query in ["limit=0", "limit=101", "limit=x", "order=up"] {
        let path = format!("/v1/conversations/{id}/items?{query}");
        let (status, refused) = answer(server.get(&path)).await;
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
        let (status, refused) = answer(server.get(&path)).await;
        assert_eq!(status, 404, "{path}: {refused}");
        assert_eq!(
            refused["error"]["type"], "invalid_request_error",
            "{refused}"
        );
    }
    let post = server.request("POST", "/v1/conversations").body("{");
    let post = post.header("content-type", "application/json");
    let (status, refused) = answer(post).await;
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
        let (status, refused) = answer(server.post("/v1/responses", &bad)).await;
        assert_eq!(status, 400, "{bad}: {refused}");
        assert_eq!(refused["error"]["param"], param, "{refused}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_sees_the_conversations_of_others() {
    let server = Server::guarded().await;
    let alice = server.token("alice", TokenRole::User).await;
    let bob = server.token("bob", TokenRole::User).await;
    let body = json!({"items": [{"role": "user", "content": "mine"}]});
    let (_, made) = answer(server.post("/v1/conversations", &body).bearer_auth(&alice)).await;
    let id = made["id"].as_str().unwrap();
    let (_, page) = answer(
        server
            .get(&format!("/v1/conversations/{id}/items"))
            .bearer_auth(&alice),
    )
    .await;
    let item = page["data"][0]["id"].as_str().unwrap();
    let ask = json!({"conversation": id, "input": "hi"});
    let (status, asked) = answer(server.post("/v1/responses", &ask).bearer_auth(&alice)).await;
    assert_eq!(status, 200);
    let response = asked["id"].as_str().unwrap();
    let follow = json!({"previous_response_id": response, "input": "hi"});
    let conversation = format!("/v1/conversations/{id}");
    for request in [
        server.get(&conversation),
        server.post(&conversation, &json!({"metadata": {}})),
        server.request("DELETE", &conversation),
        server.get(&format!("{conversation}/items")),
        server.post(&format!("{conversation}/items"), &body),
        server.get(&format!("{conversation}/items/{item}")),
        server.request("DELETE", &format!("{conversation}/items/{item}")),
        server.get(&format!("/v1/conversations?after={id}")),
        server.get(&format!("/v1/responses/{response}")),
        server.post("/v1/responses", &ask),
        server.post("/v1/responses", &follow),
    ] {
        let without = request.try_clone().unwrap();
        let (status, refused) = answer(request.bearer_auth(&bob)).await;
        assert_eq!(status, 404, "{refused}");
        let (status, refused) = answer(without).await;
        assert_eq!(status, 401, "{refused}");
        assert_eq!(refused["error"]["code"], "invalid_api_key");
    }
    let (_, listed) = answer(server.get("/v1/conversations").bearer_auth(&bob)).await;
    assert_eq!(listed["data"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thrown_away_conversation_is_not_found() {
    let server = Server::start().await;
    let id = conversation(&server, json!([])).await;
    let path = format!("/v1/conversations/{id}");
    let (status, gone) = answer(server.request("DELETE", &path)).await;
    assert_eq!(status, 200);
    assert_eq!(
        gone,
        json!({"id": id, "object": "conversation.deleted", "deleted": true})
    );
    let (status, refused) = answer(server.get(&path)).await;
    assert_eq!(status, 404);
    assert_eq!(refused["error"]["code"], "conversation_not_found");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_response_is_a_turn_of_the_conversation() {
    let (server, stand_in) = with_model(Script::by(weather_or_echo)).await;
    let id = conversation(&server, json!([{"role": "user", "content": "I am Ada."}])).await;
    let ask = json!({
        "conversation": {"id": id}, "model": "gpt-anything", "instructions": "Speak plainly.",
        "input": [{"role": "user", "content": "Who am I?"}],
    });
    let (status, response) = answer(server.post("/v1/responses", &ask)).await;
    assert_eq!(status, 200, "{response}");
    assert_eq!(response["object"], "response");
    assert_eq!(response["status"], "completed");
    assert_eq!(response["model"], "model-max");
    assert_eq!(response["conversation"]["id"], id);
    assert_eq!(response["usage"]["total_tokens"], 120);
    let said = response["output"][0]["content"][0]["text"]
        .as_str()
        .unwrap();
    assert!(said.contains("Who am I?"), "{said}");
    let sent = stand_in.requests().pop().unwrap();
    assert!(sent.system().contains("Speak plainly.") && sent.system().contains("own agent"));
    assert!(sent.body.to_string().contains("I am Ada."));
    let page = items(&server, &id, "order=asc").await;
    assert_eq!(page["data"].as_array().unwrap().len(), 3);
    assert_eq!(page["data"][2], response["output"][0]);

    let path = format!("/v1/responses/{}", response["id"].as_str().unwrap());
    let (status, read) = answer(server.get(&path)).await;
    assert_eq!(status, 200, "{read}");
    assert_eq!(read["output"], response["output"]);
    assert_eq!(read["usage"], response["usage"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn tools_are_called_by_the_model_and_run_by_the_caller() {
    let (server, stand_in) = with_model(Script::by(weather_or_echo)).await;
    let id = conversation(&server, json!([])).await;
    let tool = json!({"type": "function", "name": "get_weather", "description": "Weather",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}, "strict": true});
    let ask = json!({"conversation": id, "input": "weather?", "tools": [tool]});
    let (_, response) = answer(server.post("/v1/responses", &ask)).await;
    let call = &response["output"][0];
    assert_eq!(call["type"], "function_call", "{response}");
    let result =
        json!({"type": "function_call_output", "call_id": call["call_id"], "output": "sunny"});
    let ask = json!({"conversation": id, "input": [result], "tools": [tool]});
    let (_, response) = answer(server.post("/v1/responses", &ask)).await;
    assert_eq!(
        response["output"][0]["content"][0]["text"],
        "The tool says: sunny"
    );
    let sent = stand_in.requests().pop().unwrap();
    let roles: Vec<_> = sent.body["messages"].as_array().unwrap().iter().collect();
    let roles: Vec<_> = roles.iter().map(|m| m["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["system", "user", "assistant", "tool"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_conversation_nothing_is_kept_unless_asked_for() {
    let (server, stand_in) = with_model(Script::by(weather_or_echo)).await;
    let history = json!([
        {"role": "user", "content": "I am Ada."},
        {"type": "message", "role": "assistant", "id": "msg_1", "status": "completed",
            "content": [{"type": "output_text", "text": "Hello Ada", "annotations": []}]},
        {"role": "user", "content": "Who am I?"},
    ]);
    let (status, response) = answer(server.post("/v1/responses", &json!({"input": history}))).await;
    assert_eq!(status, 200, "{response}");
    assert_eq!(response["store"], false);
    assert_eq!(response["conversation"], json!(null));
    assert_eq!(
        response["output"][0]["content"][0]["text"],
        "Heard 3 messages, the last one: Who am I?"
    );
    let (_, listed) = answer(server.get("/v1/conversations")).await;
    assert_eq!(listed["data"], json!([]));
    let follow = json!({"previous_response_id": response["id"], "input": "?"});
    assert_eq!(answer(server.post("/v1/responses", &follow)).await.0, 404);

    let (_, first) =
        answer(server.post("/v1/responses", &json!({"input": "one", "store": true}))).await;
    let second = json!({"previous_response_id": first["id"], "input": "two"});
    let (status, second) = answer(server.post("/v1/responses", &second)).await;
    assert_eq!(status, 200, "{second}");
    assert_eq!(second["conversation"], first["conversation"]);
    // Going on from the first once more leaves the second alone.
    let other = json!({"previous_response_id": first["id"], "input": "three"});
    let (_, other) = answer(server.post("/v1/responses", &other)).await;
    assert_ne!(other["conversation"], first["conversation"]);
    let sent = stand_in.requests().pop().unwrap().body.to_string();
    assert!(
        sent.contains("one") && sent.contains("three") && !sent.contains("two"),
        "{sent}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conversation_is_locked_while_it_is_answered() {
    let slow = Reply::text("one two three four five six").slowly(Duration::from_millis(300));
    let (server, _stand_in) = with_model(Script::replies([slow])).await;
    let id = conversation(&server, json!([])).await;
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
        let (status, refused) = answer(busy).await;
        assert_eq!(status, 400, "{refused}");
        assert_eq!(refused["error"]["code"], "conversation_locked");
        assert_eq!(refused["error"]["param"], "conversation");
    }
    while first.chunk().await.unwrap().is_some() {}
    let (status, _) = answer(server.post("/v1/responses", &again)).await;
    assert_eq!(status, 200);
    assert_eq!(
        items(&server, &id, "").await["data"]
            .as_array()
            .unwrap()
            .len(),
        4
    );
}

/// The events of a stream, in order.
fn events(text: &str) -> Vec<Value> {
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
async fn a_stream_tells_of_the_items_that_are_kept() {
    let reply = Reply::text("Hello there, Ada.").and_call("c1", "f", json!({"a": 1}));
    let (server, _stand_in) = with_model(Script::replies([reply])).await;
    let id = conversation(&server, json!([])).await;
    let tool = json!({"type": "function", "name": "f"});
    let ask = json!({"conversation": id, "input": "hi", "stream": true, "tools": [tool]});
    let text = server.post("/v1/responses", &ask).send().await.unwrap();
    assert!(
        text.headers()["content-type"]
            .to_str()
            .unwrap()
            .starts_with("text/event-stream")
    );
    let events = events(&text.text().await.unwrap());
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
    let page = items(&server, &id, "order=asc").await;
    assert_eq!(page["data"][1], done[0]);
    assert_eq!(page["data"][2], done[1]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_model_is_told_and_nothing_is_said_twice() {
    let faults = [0, 1].map(|_| Reply::fault(Fault::Status(500)));
    let (server, _stand_in) = with_model(Script::replies(faults)).await;
    let id = conversation(&server, json!([])).await;
    let ask = json!({"conversation": id, "input": "hi"});
    let response = server.post("/v1/responses", &ask).send().await.unwrap();
    assert!(response.status().is_server_error(), "{}", response.status());
    assert_eq!(response.headers()["x-should-retry"], "false");
    let body: Value = response.json().await.unwrap();
    assert_eq!(body["error"]["type"], "server_error", "{body}");

    let ask = json!({"conversation": id, "input": "hi again", "stream": true});
    let text = server.post("/v1/responses", &ask).send().await.unwrap();
    let events = events(&text.text().await.unwrap());
    let last = events.last().unwrap();
    assert_eq!(last["type"], "response.failed");
    assert_eq!(last["response"]["status"], "failed");
    assert!(last["response"]["error"]["message"].is_string());
    assert_eq!(
        items(&server, &id, "").await["data"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_model_the_offline_agent_answers() {
    let server = Server::start().await;
    let (status, response) = answer(server.post("/v1/responses", &json!({"input": "hello"}))).await;
    assert_eq!(status, 200, "{response}");
    assert_eq!(response["model"], "offline");
    let (_, models) = answer(server.get("/v1/models")).await;
    assert_eq!(models["data"][0]["id"], "offline");
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_of_the_program_itself_are_no_conversations() {
    let server = Server::start().await;
    let fact = json!({"text": "the tests run on Tuesdays"});
    let (status, kept) = answer(server.post("/api/memory", &fact)).await;
    assert_eq!(status, 201, "{kept}");
    let own = throughline::Filter {
        own: true,
        ..throughline::Filter::default()
    };
    let own = server.tl.list_all(&own).await.unwrap();
    assert_eq!(own.len(), 1);
    let path = format!("/v1/conversations/conv_{}/items", own[0].id);
    assert_eq!(answer(server.get(&path)).await.0, 404);
    let (_, listed) = answer(server.get("/v1/conversations")).await;
    assert_eq!(listed["data"], json!([]));
}

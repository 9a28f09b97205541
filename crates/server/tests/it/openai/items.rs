//! Items: add, retrieve, page and delete.

use serde_json::{Value, json};
use throughline_mock_provider::{Reply, Script};

use super::{add_items, create_conversation, list_items, with_model};
use crate::harness::{Server, send};
use crate::mock_provider::weather_or_echo;

/// Items without shorthand are returned unchanged, except for their ids.
#[tokio::test(flavor = "multi_thread")]
async fn items_are_returned_as_sent() {
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
    let id = create_conversation(&server, given.clone()).await;
    let page = list_items(&server, &id, "order=asc").await;
    let mut listed = page["data"].clone();
    let prefixes = ["msg", "msg", "rs", "msg", "fc", "fc", "fco", "fco"];
    for (item, prefix) in listed.as_array_mut().unwrap().iter_mut().zip(prefixes) {
        let own = item["id"].as_str().unwrap().to_owned();
        assert!(own.starts_with(&format!("{prefix}_")), "{own}");
        let path = format!("/v1/conversations/{id}/items/{own}");
        let (status, alone) = send(server.get(&path)).await;
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
    let id = create_conversation(&server, short).await;
    let mut listed = list_items(&server, &id, "order=asc").await["data"].clone();
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
async fn an_item_of_an_unknown_type_is_returned_verbatim() {
    let server = Server::start().await;
    let id = create_conversation(&server, json!([])).await;
    let path = format!("/v1/conversations/{id}/items");
    let odd = r#"{"z":1e400,"id":"odd_1","type":"hologram","a":[ 1,  2.50 ]}"#;
    let nameless = r#"{ "type":"text","depth": 3.0}"#;
    let body = format!(r#"{{"items":[{odd},{nameless}]}}"#);
    let request = server.request("POST", &path);
    let request = request
        .header("content-type", "application/json")
        .body(body);
    let text = request.send().await.unwrap().text().await.unwrap();
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
    let (status, _) = send(server.get(&format!("{path}/odd_1"))).await;
    assert_eq!(status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn items_are_paged_in_both_orders() {
    let server = Server::start().await;
    let id = create_conversation(&server, json!([])).await;
    for n in 0..3 {
        let some: Vec<_> = (0..15)
            .map(|m| json!({"role": "user", "content": format!("{}", n * 15 + m)}))
            .collect();
        add_items(&server, &id, json!(some)).await;
    }
    for (order, first) in [("asc", "0"), ("desc", "44")] {
        let mut seen = Vec::new();
        let mut after = String::new();
        loop {
            let page = list_items(&server, &id, &format!("order={order}&limit=7{after}")).await;
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
    // By default, the latest twenty, newest first.
    let page = list_items(&server, &id, "").await;
    assert_eq!(page["data"].as_array().unwrap().len(), 20);
    assert_eq!(page["data"][0]["content"][0]["text"], "44");

    let empty = create_conversation(&server, json!([])).await;
    let page = list_items(&server, &empty, "").await;
    assert_eq!(
        page,
        json!({"object": "list", "data": [], "first_id": null, "last_id": null, "has_more": false})
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_item_is_gone_from_everywhere() {
    let (server, mock) = with_model(Script::from_fn(weather_or_echo)).await;
    let items = json!([
        {"role": "user", "content": "the secret word is zanzibar"},
        {"role": "assistant", "content": "noted"},
        {"role": "user", "content": "xylophone"},
    ]);
    let id = create_conversation(&server, items).await;
    let page = list_items(&server, &id, "order=asc").await;
    for which in [0, 2] {
        let item = page["data"][which]["id"].as_str().unwrap();
        let path = format!("/v1/conversations/{id}/items/{item}");
        let (status, left) = send(server.request("DELETE", &path)).await;
        assert_eq!(status, 200, "{left}");
        assert_eq!(left["id"], id);
        assert_eq!(left["object"], "conversation");
        let (status, gone) = send(server.get(&path)).await;
        assert_eq!(status, 404, "{gone}");
        let (status, _) = send(server.request("DELETE", &path)).await;
        assert_eq!(status, 404);
    }
    let page = list_items(&server, &id, "").await;
    assert_eq!(page["data"].as_array().unwrap().len(), 1);
    let ask = json!({"conversation": id, "input": "What is the secret word, zanzibar or what?"});
    send(server.post("/v1/responses", &ask)).await;
    let sent = mock.requests().pop().unwrap().body.to_string();
    assert!(
        !sent.contains("the secret word is") && !sent.contains("xylophone"),
        "{sent}"
    );
    let report = server.tl.check(&|_, _| {}).await.unwrap();
    assert!(report.findings.is_empty(), "{:?}", report.findings);
}

#[tokio::test(flavor = "multi_thread")]
async fn items_of_the_last_answer_can_be_deleted_one_by_one() {
    let reply = Reply::text("Let me see.").and_call("c1", "get_weather", json!({"city": "Rome"}));
    let (server, _stand_in) = with_model(Script::replies([reply])).await;
    let tool = json!({"type": "function", "name": "get_weather", "parameters": {"type": "object"}});
    let id = create_conversation(&server, json!([])).await;
    let ask = json!({"conversation": id, "input": "weather?", "tools": [tool]});
    let (status, response) = send(server.post("/v1/responses", &ask)).await;
    assert_eq!(status, 200, "{response}");
    let kinds: Vec<_> = response["output"].as_array().unwrap().iter().collect();
    assert_eq!(kinds[0]["type"], "message");
    assert_eq!(kinds[1]["type"], "function_call");
    assert_eq!(kinds[1]["arguments"], r#"{"city":"Rome"}"#);
    // The ids in a response are those in the conversation.
    let page = list_items(&server, &id, "order=asc").await;
    assert_eq!(page["data"][1], *kinds[0]);
    assert_eq!(page["data"][2], *kinds[1]);

    let delete = async |item: &Value| {
        let path = format!(
            "/v1/conversations/{id}/items/{}",
            item["id"].as_str().unwrap()
        );
        send(server.request("DELETE", &path)).await.0
    };
    assert_eq!(delete(kinds[1]).await, 200);
    let page = list_items(&server, &id, "order=asc").await;
    assert_eq!(page["data"].as_array().unwrap().len(), 2);
    assert_eq!(page["data"][1], *kinds[0]);
    assert_eq!(delete(kinds[0]).await, 200);
    assert_eq!(
        list_items(&server, &id, "").await["data"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_item_sent_twice_with_its_id_is_stored_once() {
    let server = Server::start().await;
    let id = create_conversation(&server, json!([])).await;
    let item = json!({"type": "message", "role": "user", "id": "msg_mine", "content": "hello"});
    for _ in 0..2 {
        let batch = json!([item, {"role": "user", "content": "and more"}]);
        let (status, added) = add_items(&server, &id, batch).await;
        assert_eq!(status, 200, "{added}");
        assert_eq!(added["data"][0]["id"], "msg_mine");
    }
    let page = list_items(&server, &id, "order=asc").await;
    let mine = page["data"].as_array().unwrap().iter();
    assert_eq!(mine.filter(|item| item["id"] == "msg_mine").count(), 1);
    let other = json!([{"role": "user", "id": "msg_mine", "content": "other words"}]);
    let (status, refused) = add_items(&server, &id, other).await;
    assert_eq!(status, 400, "{refused}");
    assert_eq!(refused["error"]["param"], "items[0].id");
    let twice = json!([
        {"role": "user", "id": "msg_twice", "content": "a"},
        {"role": "user", "id": "msg_twice", "content": "b"},
    ]);
    assert_eq!(add_items(&server, &id, twice).await.0, 400);

    // After deletion it can be added again, as a different item.
    let path = format!("/v1/conversations/{id}/items/msg_mine");
    assert_eq!(send(server.request("DELETE", &path)).await.0, 200);
    let (status, again) = add_items(&server, &id, json!([item])).await;
    assert_eq!(status, 200);
    assert_ne!(again["data"][0]["id"], "msg_mine");
}

//! Conversations: create, update metadata, list, and ownership.

use reqwest::StatusCode;
use serde_json::json;
use throughline::TokenRole;
use throughline_mock_provider::Script;

use super::{create_conversation, list_items, with_model};
use crate::harness::{Server, send};
use crate::mock_provider::weather_or_echo;

#[tokio::test(flavor = "multi_thread")]
async fn a_conversation_is_a_session_and_a_session_a_conversation() {
    let server = Server::start().await;
    let body = json!({
        "metadata": {"topic": "demo"},
        "items": [{"role": "user", "content": "hello"}],
    });
    let (status, made) = send(server.post("/v1/conversations", &body)).await;
    assert_eq!(status, 200, "{made}");
    assert_eq!(made["object"], "conversation");
    assert_eq!(made["metadata"], json!({"topic": "demo"}));
    let id = made["id"].as_str().unwrap();
    let session = id.strip_prefix("conv_").unwrap();
    let (status, page) = send(server.get(&format!("/api/sessions/{session}/entries"))).await;
    assert_eq!(status, 200);
    assert_eq!(page["entries"][1]["content"], "hello");

    let other = server.create_session(&["from the native API"]).await;
    let listed = list_items(&server, &format!("conv_{other}"), "").await;
    assert_eq!(
        listed["data"][0]["content"][0]["text"],
        "from the native API"
    );

    let (_, all) = send(server.get("/v1/conversations?limit=1")).await;
    assert_eq!(all["has_more"], true);
    assert_eq!(all["data"][0]["id"], format!("conv_{other}"));
    let (_, rest) = send(server.get(&format!("/v1/conversations?after=conv_{other}"))).await;
    assert_eq!(rest["data"], json!([made]));
    assert_eq!(rest["has_more"], false);
}

#[tokio::test(flavor = "multi_thread")]
async fn metadata_is_replaced_and_never_sent_to_the_model() {
    let (server, mock) = with_model(Script::from_fn(weather_or_echo)).await;
    let id = create_conversation(&server, json!([])).await;
    let path = format!("/v1/conversations/{id}");
    let (status, _) = send(server.post(&path, &json!({"metadata": {"a": "zzz-noted"}}))).await;
    assert_eq!(status, 200);
    let (_, read) = send(server.get(&path)).await;
    assert_eq!(read["metadata"], json!({"a": "zzz-noted"}));
    let ask = json!({"conversation": id, "input": "hi", "model": "any"});
    let (status, _) = send(server.post("/v1/responses", &ask)).await;
    assert_eq!(status, 200);
    let sent = format!("{:?}", mock.requests());
    assert!(!sent.contains("zzz-noted"), "{sent}");
    send(server.post(&path, &json!({"metadata": {}}))).await;
    let (_, read) = send(server.get(&path)).await;
    assert_eq!(read["metadata"], json!({}));

    for bad in [
        json!({"metadata": {"a": 1}}),
        json!({"metadata": {"a": "x".repeat(513)}}),
        json!({"metadata": {"x".repeat(65): "a"}}),
        json!({"metadata": (0..17).map(|n| (n.to_string(), json!("x"))).collect::<serde_json::Map<_, _>>()}),
    ] {
        let (status, refused) = send(server.post(&path, &bad)).await;
        assert_eq!(status, 400, "{refused}");
        assert_eq!(refused["error"]["type"], "invalid_request_error");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn metadata_in_another_format_is_shown_whole() {
    let server = Server::start().await;
    let id = create_conversation(&server, json!([])).await;
    let session = id.strip_prefix("conv_").unwrap();
    let path = format!("/api/sessions/{session}/context/metadata:openai");
    let body = json!({"text": "not names and values"});
    let (status, set) = send(server.request("PUT", &path).json(&body)).await;
    assert_eq!(status, 200, "{set}");
    let shown = json!({"metadata:openai": "not names and values"});
    let (status, read) = send(server.get(&format!("/v1/conversations/{id}"))).await;
    assert_eq!((status.as_u16(), &read["metadata"]), (200, &shown));
    let (_, listed) = send(server.get("/v1/conversations")).await;
    assert_eq!(listed["data"][0]["metadata"], shown);
    for wrong in [json!([1]), json!("x"), json!({"a": 1})] {
        let path = format!("/v1/conversations/{id}");
        let (status, refused) = send(server.post(&path, &json!({"metadata": wrong}))).await;
        assert_eq!(status, 400, "{refused}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn conversations_of_other_owners_are_not_visible() {
    let server = Server::start_with_tokens().await;
    let alice = server.create_token("alice", TokenRole::User).await;
    let bob = server.create_token("bob", TokenRole::User).await;
    let body = json!({"items": [{"role": "user", "content": "mine"}]});
    let (_, made) = send(server.post("/v1/conversations", &body).bearer_auth(&alice)).await;
    let id = made["id"].as_str().unwrap();
    let (_, page) = send(
        server
            .get(&format!("/v1/conversations/{id}/items"))
            .bearer_auth(&alice),
    )
    .await;
    let item = page["data"][0]["id"].as_str().unwrap();
    let ask = json!({"conversation": id, "input": "hi"});
    let (status, created) = send(server.post("/v1/responses", &ask).bearer_auth(&alice)).await;
    assert_eq!(status, 200);
    let response = created["id"].as_str().unwrap();
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
        let (status, refused) = send(request.bearer_auth(&bob)).await;
        assert_eq!(status, 404, "{refused}");
        let (status, refused) = send(without).await;
        assert_eq!(status, 401, "{refused}");
        assert_eq!(refused["error"]["code"], "invalid_api_key");
    }
    let (_, listed) = send(server.get("/v1/conversations").bearer_auth(&bob)).await;
    assert_eq!(listed["data"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_conversation_is_not_found() {
    let server = Server::start().await;
    let id = create_conversation(&server, json!([])).await;
    let path = format!("/v1/conversations/{id}");
    let (status, gone) = send(server.request("DELETE", &path)).await;
    assert_eq!(status, 200);
    assert_eq!(
        gone,
        json!({"id": id, "object": "conversation.deleted", "deleted": true})
    );
    let (status, refused) = send(server.get(&path)).await;
    assert_eq!(status, 404);
    assert_eq!(refused["error"]["code"], "conversation_not_found");
}

#[tokio::test(flavor = "multi_thread")]
async fn internal_sessions_are_not_conversations() {
    let server = Server::start().await;
    let fact = json!({"text": "the tests run on Tuesdays"});
    let (status, added) = send(server.post("/api/memory", &fact)).await;
    assert_eq!(status, 201, "{added}");
    let own = throughline::SessionFilter {
        include_internal: true,
        ..throughline::SessionFilter::default()
    };
    let own = server.tl.list_all(&own).await.unwrap();
    assert_eq!(own.len(), 1);
    let path = format!("/v1/conversations/conv_{}/items", own[0].id);
    assert_eq!(send(server.get(&path)).await.0, 404);
    let (_, listed) = send(server.get("/v1/conversations")).await;
    assert_eq!(listed["data"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fork_shows_shared_items_under_resolvable_ids() {
    let server = Server::start().await;
    let shared = json!([
        {"role": "user", "id": "msg_given", "content": "one"},
        {"role": "assistant", "content": "two"},
    ]);
    let id = create_conversation(&server, shared).await;
    let session: throughline::SessionId = id.strip_prefix("conv_").unwrap().parse().unwrap();
    let session = server.tl.session(&session).await.unwrap();
    let fork = session.fork(None, throughline::NewSession::default()).await;
    let fork = format!("conv_{}", fork.unwrap().session.id());
    let page = list_items(&server, &fork, "order=asc").await;
    assert_eq!(page["data"].as_array().unwrap().len(), 2);
    for item in page["data"].as_array().unwrap() {
        let own = item["id"].as_str().unwrap();
        let path = format!("/v1/conversations/{fork}/items/{own}");
        assert_eq!(
            send(server.get(&path)).await,
            (StatusCode::OK, item.clone())
        );
        let (status, refused) = send(server.request("DELETE", &path)).await;
        assert_eq!(status, 400, "{refused}");
    }
    let after = page["first_id"].as_str().unwrap();
    let rest = list_items(&server, &fork, &format!("order=asc&after={after}")).await;
    assert_eq!(rest["data"].as_array().unwrap().len(), 1);
}

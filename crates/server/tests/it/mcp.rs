//! The Model Context Protocol endpoint: one owner's agent learns nothing about another's data.

use serde_json::{Map, Value, json};
use throughline::TokenRole;

use crate::harness::{Server, send};

/// A word that only Alice's messages contain.
const SECRET: &str = "heron";
const PROJECT: &str = "github.com/shop/api";

async fn call(server: &Server, token: &str, method: &str, params: Value) -> Value {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    let request = server
        .post("/mcp", &body)
        .bearer_auth(token)
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", "2025-06-18");
    let (status, response) = send(request).await;
    assert_eq!(status, 200, "{method}: {response}");
    response
}

/// Alice's data.
struct AliceFixture {
    token: String,
    session: String,
}

async fn alice_fixture(server: &Server) -> AliceFixture {
    let token = server.create_token("alice", TokenRole::User).await;
    let post = async |path: &str, body: Value| {
        let (status, made) = send(server.post(path, &body).bearer_auth(&token)).await;
        assert!(status.is_success(), "{path}: {made}");
        made
    };
    let made = json!({"key": "telegram:1", "name": "birds", "project": PROJECT});
    let made = post("/api/sessions", made).await;
    let session = made["id"].as_str().unwrap().to_owned();
    let text = format!("The {SECRET} nests by the old mill, and nobody is to know.");
    let path = format!("/api/sessions/{session}");
    let entries = json!({"entries": [{"role": "user", "content": text}]});
    post(&format!("{path}/entries"), entries).await;
    post(&format!("{path}/pins"), json!({"text": text})).await;
    post("/api/memory", json!({"text": text})).await;
    post("/api/memory", json!({"text": text, "project": PROJECT})).await;
    AliceFixture { token, session }
}

/// Arguments for a tool that refer to Alice's data wherever possible.
fn arguments(schema: &Value, named: &str) -> Value {
    let mut given = Map::new();
    for name in schema["properties"].as_object().unwrap().keys() {
        let value = match name.as_str() {
            "session" | "key" => json!(named),
            "project" => json!(PROJECT),
            "query" | "task" => json!("where the bird by the mill nests"),
            "fact" if schema["properties"]["fact"]["type"] == "string" => {
                json!("Bob was here for a while.")
            }
            "fact" => json!(1),
            "scope" => json!("project"),
            "messages" => json!([{"role": "user", "text": "Bob was here."}]),
            "background" => json!("Bob was here."),
            // Optional filters and paging.
            _ => continue,
        };
        given.insert(name.clone(), value);
    }
    if given.contains_key("session") {
        given.remove("key");
    }
    for name in schema["required"].as_array().into_iter().flatten() {
        let name = name.as_str().unwrap();
        assert!(given.contains_key(name), "nobody says what {name} is");
    }
    Value::Object(given)
}

/// Calls every tool, resource and prompt; returns all responses.
async fn call_everything(
    server: &Server,
    token: &str,
    hers: &AliceFixture,
) -> Vec<(String, Value)> {
    let mut responses = Vec::new();
    let tools = call(server, token, "tools/list", json!({})).await;
    let mut tools = tools["result"]["tools"].as_array().unwrap().clone();
    // Forgotten facts cannot be recalled, so forget last.
    tools.sort_by_key(|tool| tool["name"] == "forget");
    assert!(tools.len() >= 9, "{tools:?}");
    for named in [hers.session.as_str(), "telegram:1", "birds", "last"] {
        for tool in &tools {
            let params = json!({
                "name": tool["name"],
                "arguments": arguments(&tool["inputSchema"], named),
            });
            let answer = call(server, token, "tools/call", params.clone()).await;
            responses.push((params.to_string(), answer));
        }
        for prompt in ["resume", "handoff"] {
            let params = json!({"name": prompt, "arguments": {"session": named}});
            let answer = call(server, token, "prompts/get", params.clone()).await;
            responses.push((params.to_string(), answer));
        }
    }
    let listed = call(server, token, "resources/list", json!({})).await;
    responses.push(("resources/list".to_owned(), listed));
    let project = PROJECT.replace('/', "%2F");
    for uri in [
        "throughline://memory".to_owned(),
        format!("throughline://memory/{project}"),
        format!("throughline://sessions/{}", hers.session),
        format!("throughline://sessions/{}/from/1", hers.session),
    ] {
        let answer = call(server, token, "resources/read", json!({"uri": uri})).await;
        responses.push((uri, answer));
    }
    responses
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_cannot_see_or_change_another_owners_data() {
    let server = Server::start_with_tokens().await;
    let hers = alice_fixture(&server).await;
    let bob = server.create_token("bob", TokenRole::User).await;

    for (request, response) in call_everything(&server, &bob, &hers).await {
        let response = response.to_string();
        assert!(
            !response.to_lowercase().contains(SECRET),
            "{request}: {response}"
        );
    }

    let path = format!("/api/sessions/{}", hers.session);
    let (_, session) = send(server.get(&path).bearer_auth(&hers.token)).await;
    assert_eq!(session["head"], 2, "{session}");
    for memory in [
        "/api/memory".to_owned(),
        format!("/api/memory?project={PROJECT}"),
    ] {
        let (_, memory) = send(server.get(&memory).bearer_auth(&hers.token)).await;
        let facts = memory["facts"].as_array().unwrap();
        assert_eq!(facts.len(), 1, "{facts:?}");
        assert!(facts[0]["text"].as_str().unwrap().contains(SECRET));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_sees_its_own_owners_data() {
    // Control: without this, the test above would prove nothing.
    let server = Server::start_with_tokens().await;
    let hers = alice_fixture(&server).await;
    let responses = call_everything(&server, &hers.token, &hers).await;
    for part in [
        "list_sessions",
        "search_sessions",
        "read_session",
        "build_context",
        "recall",
        "resume",
        "handoff",
        "resources/list",
        "throughline://memory",
        "throughline://sessions/",
    ] {
        let found = responses.iter().any(|(request, response)| {
            request.contains(part) && response.to_string().contains(SECRET)
        });
        assert!(found, "{part}: {responses:#?}");
    }
}

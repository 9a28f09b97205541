//! The Model Context Protocol at `/mcp`: what one owner's agent is told of another's.

use serde_json::{Map, Value, json};
use throughline::TokenRole;

use crate::harness::{Server, send};

/// A word that only Alice ever said.
const SECRET: &str = "heron";
const PROJECT: &str = "github.com/shop/api";

async fn call(server: &Server, token: &str, method: &str, params: Value) -> Value {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    let request = server
        .post("/mcp", &body)
        .bearer_auth(token)
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", "2025-06-18");
    let (status, told) = send(request).await;
    assert_eq!(status, 200, "{method}: {told}");
    told
}

/// What Alice has.
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
    let said = format!("The {SECRET} nests by the old mill, and nobody is to know.");
    let path = format!("/api/sessions/{session}");
    let entries = json!({"entries": [{"role": "user", "content": said}]});
    post(&format!("{path}/entries"), entries).await;
    post(&format!("{path}/pins"), json!({"text": said})).await;
    post("/api/memory", json!({"text": said})).await;
    post("/api/memory", json!({"text": said, "project": PROJECT})).await;
    AliceFixture { token, session }
}

/// Everything a tool can be given, meaning Alice's things by what names them.
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
            // What narrows or pages, or is not needed.
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

/// Calls everything there is to call; answers with all that was told.
async fn call_everything(
    server: &Server,
    token: &str,
    hers: &AliceFixture,
) -> Vec<(String, Value)> {
    let mut told = Vec::new();
    let tools = call(server, token, "tools/list", json!({})).await;
    let mut tools = tools["result"]["tools"].as_array().unwrap().clone();
    // What is forgotten cannot be recalled.
    tools.sort_by_key(|tool| tool["name"] == "forget");
    assert!(tools.len() >= 9, "{tools:?}");
    for named in [hers.session.as_str(), "telegram:1", "birds", "last"] {
        for tool in &tools {
            let params = json!({
                "name": tool["name"],
                "arguments": arguments(&tool["inputSchema"], named),
            });
            let answer = call(server, token, "tools/call", params.clone()).await;
            told.push((params.to_string(), answer));
        }
        for prompt in ["resume", "handoff"] {
            let params = json!({"name": prompt, "arguments": {"session": named}});
            let answer = call(server, token, "prompts/get", params.clone()).await;
            told.push((params.to_string(), answer));
        }
    }
    let listed = call(server, token, "resources/list", json!({})).await;
    told.push(("resources/list".to_owned(), listed));
    let project = PROJECT.replace('/', "%2F");
    for uri in [
        "throughline://memory".to_owned(),
        format!("throughline://memory/{project}"),
        format!("throughline://sessions/{}", hers.session),
        format!("throughline://sessions/{}/from/1", hers.session),
    ] {
        let answer = call(server, token, "resources/read", json!({"uri": uri})).await;
        told.push((uri, answer));
    }
    told
}

#[tokio::test(flavor = "multi_thread")]
async fn nobodys_agent_sees_or_changes_what_is_anothers() {
    let server = Server::start_with_tokens().await;
    let hers = alice_fixture(&server).await;
    let bob = server.create_token("bob", TokenRole::User).await;

    for (asked, told) in call_everything(&server, &bob, &hers).await {
        let told = told.to_string();
        assert!(!told.to_lowercase().contains(SECRET), "{asked}: {told}");
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
async fn ones_own_agent_sees_it_all() {
    // Otherwise the test above would prove nothing.
    let server = Server::start_with_tokens().await;
    let hers = alice_fixture(&server).await;
    let told = call_everything(&server, &hers.token, &hers).await;
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
        let heard = told
            .iter()
            .any(|(asked, told)| asked.contains(part) && told.to_string().contains(SECRET));
        assert!(heard, "{part}: {told:#?}");
    }
}

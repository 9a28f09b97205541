//! Conversations and responses on the wire. The published clients are tested in `clients`.

mod conversations;
mod errors;
mod items;
mod responses;
mod sampling_options;

use std::sync::Arc;

use reqwest::StatusCode;
use serde_json::{Value, json};
use throughline_mock_provider::{MockProvider, Script};

use crate::harness::{Server, ServerOptions, send};
use crate::mock_provider::MockResponderRegistry;

async fn create_conversation(server: &Server, items: Value) -> String {
    let (status, made) = send(server.post("/v1/conversations", &json!({"items": items}))).await;
    assert_eq!(status, 200, "{made}");
    made["id"].as_str().unwrap().to_owned()
}

async fn list_items(server: &Server, conversation: &str, query: &str) -> Value {
    let path = format!("/v1/conversations/{conversation}/items?{query}");
    let (status, page) = send(server.get(&path)).await;
    assert_eq!(status, 200, "{page}");
    page
}

async fn add_items(server: &Server, conversation: &str, items: Value) -> (StatusCode, Value) {
    let path = format!("/v1/conversations/{conversation}/items");
    send(server.post(&path, &json!({"items": items}))).await
}

async fn with_model(script: Script) -> (Server, MockProvider) {
    with_registry(script, MockResponderRegistry::new).await
}

/// Starts a server with several models to choose from by name.
async fn with_models(script: Script) -> (Server, MockProvider) {
    with_registry(script, MockResponderRegistry::with_named_models).await
}

async fn with_registry(
    script: Script,
    voices: fn(&MockProvider) -> Arc<MockResponderRegistry>,
) -> (Server, MockProvider) {
    let mock = MockProvider::start(script).unwrap();
    let server = Server::start_with(ServerOptions {
        responders: voices(&mock),
        ..ServerOptions::default()
    })
    .await;
    (server, mock)
}

//! The clients that people have, as they are published, against a real server.
//!
//! Their versions are pinned in `tests/clients`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use throughline::TokenRole;
use throughline_mock_provider::{MockProvider, Script};

use crate::client_packages::{node, python, run_command};
use crate::harness::{Server, ServerOptions};
use crate::mock_provider::{MockResponderRegistry, weather_or_echo};

fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients")
}

/// A server with the stand-in as its model.
async fn start_server() -> (Server, MockProvider) {
    let stand_in = MockProvider::start(Script::from_fn(weather_or_echo)).unwrap();
    let server = Server::start_with(ServerOptions {
        responders: MockResponderRegistry::new(&stand_in),
        ..ServerOptions::default()
    })
    .await;
    (server, stand_in)
}

/// Runs a client's program against a server of its own.
async fn run_client(mut program: Command) {
    let (server, _stand_in) = start_server().await;
    program.env("SERVER_URL", &server.url);
    for proxy in [
        "http_proxy",
        "https_proxy",
        "all_proxy",
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "ALL_PROXY",
    ] {
        program.env_remove(proxy);
    }
    let told = tokio::task::spawn_blocking(move || run_command(&mut program)).await;
    let told = told.unwrap().unwrap_or_else(|why| panic!("{why}"));
    assert!(told.contains("fine"), "{told}");
}

async fn run_python_client(program: &str) {
    let Some(folder) = python(&sources()) else {
        return;
    };
    let mut python = Command::new(folder.join("bin/python"));
    python.arg("-W").arg("error::UserWarning:pydantic");
    python.arg(sources().join(program));
    run_client(python).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_python_client_talks_as_with_openai() {
    run_python_client("openai_client.py").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_agents_package_keeps_its_sessions_here() {
    run_python_client("agents_package.py").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_javascript_client_talks_as_with_openai() {
    let Some(folder) = node(&sources()) else {
        return;
    };
    // Packages are looked for from where a program is.
    let program = folder.join("openai_client.mjs");
    fs::copy(sources().join("openai_client.mjs"), &program).unwrap();
    let mut node = Command::new("node");
    node.arg(program);
    run_client(node).await;
}

/// What schemathesis makes up of the document must be answered as the document says.
///
/// Streams that do not end by themselves are left out, and so is what asks for a
/// WebSocket.
#[tokio::test(flavor = "multi_thread")]
async fn the_document_keeps_what_it_promises() {
    let Some(folder) = python(&sources()) else {
        return;
    };
    let server = Server::start_with_tokens().await;
    let token = server.create_token("alice", TokenRole::Admin).await;
    let mut schemathesis = Command::new(folder.join("bin/schemathesis"));
    schemathesis
        .current_dir(&folder)
        .arg("run")
        .arg(format!("{}/api/openapi.json", server.url))
        .args(["--header", &format!("Authorization: Bearer {token}")])
        .args(["--seed", "7", "--max-examples", "8", "--max-time", "90"])
        .args([
            "--phases",
            "examples,coverage,fuzzing",
            "--no-shrink",
            "--no-color",
        ])
        .args(["--continue-on-failure", "--generation-database", "none"])
        .args(["--request-timeout", "20", "--suppress-health-check", "all"])
        .args(["--checks", CHECKS])
        .args(["--exclude-path-regex", "/events"]);
    let told = tokio::task::spawn_blocking(move || run_command(&mut schemathesis)).await;
    told.unwrap().unwrap_or_else(|why| panic!("{why}"));
}

/// What every answer is held to.
const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,\
                      response_headers_conformance,response_schema_conformance";

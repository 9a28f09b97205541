//! The OpenAPI document.

use std::path::Path;

use serde_json::Value;
use throughline_server::openapi;

use crate::harness::{Server, send};

/// Compares the checked-in document with the current one. `TL_UPDATE=1` writes it.
#[test]
#[allow(clippy::disallowed_methods, reason = "reads a switch for this test")]
fn the_document_that_is_checked_in_is_current() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/openapi.json");
    let mut current = serde_json::to_string_pretty(&openapi()).unwrap();
    current.push('\n');
    if std::env::var_os("TL_UPDATE").is_some() {
        std::fs::write(&path, &current).unwrap();
    }
    let stored = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        stored == current,
        "docs/openapi.json is not current: run this test with TL_UPDATE=1"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn it_is_served_and_of_version_3_1() {
    let server = Server::start().await;
    let (status, served) = send(server.get("/api/openapi.json")).await;
    assert_eq!(status, 200);
    assert!(served["openapi"].as_str().unwrap().starts_with("3.1"));
    assert_eq!(served, serde_json::to_value(openapi()).unwrap());
}

#[test]
fn every_reference_resolves() {
    let document = serde_json::to_value(openapi()).unwrap();
    let mut waiting = vec![&document];
    let mut followed = 0;
    while let Some(value) = waiting.pop() {
        match value {
            Value::Object(members) => {
                if let Some(Value::String(to)) = members.get("$ref") {
                    let pointer = to.strip_prefix('#').unwrap();
                    assert!(document.pointer(pointer).is_some(), "{to} leads nowhere");
                    followed += 1;
                }
                waiting.extend(members.values());
            }
            Value::Array(items) => waiting.extend(items),
            _ => {}
        }
    }
    assert!(followed > 100);
}

#[test]
fn every_route_documents_its_purpose_and_errors() {
    let document = serde_json::to_value(openapi()).unwrap();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let Some(responses) = operation["responses"].as_object() else {
                continue;
            };
            assert!(operation["summary"].is_string(), "{method} {path}");
            assert!(responses.contains_key("429"), "{method} {path}");
            assert!(operation["operationId"].is_string(), "{method} {path}");
        }
    }
}

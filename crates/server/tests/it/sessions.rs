//! Sessions and their entries.

use serde_json::json;

use crate::harness::{Server, answer};

#[tokio::test(flavor = "multi_thread")]
async fn what_is_appended_can_be_read() {
    let server = Server::start().await;
    let id = server.session(&["one", "two", "three"]).await;
    let (status, page) = answer(server.get(&format!("/api/sessions/{id}/entries"))).await;
    assert_eq!(status, 200);
    let said: Vec<_> = page["entries"].as_array().unwrap().iter().collect();
    assert_eq!(said.len(), 3);
    assert_eq!(said[0]["content"], "one");
    assert_eq!(page["head"], 3);
    assert_eq!(page["older"], json!(null));
}

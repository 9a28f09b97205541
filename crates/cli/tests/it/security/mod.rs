//! Attacks on a real `tl serve`, and the guarantees that must still hold.

mod floods;
mod logs;
mod requests;
mod streams;
mod token_required;

use serde_json::Value;

use crate::harness::Tl;
use crate::server_process::ServerProcess;

/// Creates a token for a user; returns its text and its id.
fn create_token(tl: &Tl, store: &[&str], user: &str, more: &[&str]) -> (String, String) {
    let args = [store, &["token", "create", "--user", user], more].concat();
    let made = tl.json(&args);
    let text = |name: &str| made[name].as_str().unwrap().to_owned();
    (text("token"), text("id"))
}

/// Waits until a condition holds; fails after a minute.
fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..600 {
        if holds() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    panic!("{what} did not come to pass");
}

/// Creates a session of the token's user.
fn create_session(served: &ServerProcess, token: &str) -> String {
    let (status, made): (u16, Value) = served.request("POST", "/api/sessions", Some(token), "{}");
    assert_eq!(status, 201, "{made}");
    made["id"].as_str().unwrap().to_owned()
}

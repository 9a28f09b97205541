//! Attacks on a real `tl serve`, and what must still hold under them.

mod closed;
mod floods;
mod logs;
mod requests;
mod streams;

use serde_json::Value;

use crate::harness::Tl;
use crate::served::Served;

/// A token for somebody; its text and its id.
fn token(tl: &Tl, store: &[&str], user: &str, more: &[&str]) -> (String, String) {
    let args = [store, &["token", "create", "--user", user], more].concat();
    let made = tl.json(&args);
    let text = |name: &str| made[name].as_str().unwrap().to_owned();
    (text("token"), text("id"))
}

/// Waits until something holds; fails after a minute.
fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..600 {
        if holds() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    panic!("{what} did not come to pass");
}

/// A session of whoever calls with a token.
fn session(served: &Served, token: &str) -> String {
    let (status, made): (u16, Value) = served.ask("POST", "/api/sessions", Some(token), "{}");
    assert_eq!(status, 201, "{made}");
    made["id"].as_str().unwrap().to_owned()
}

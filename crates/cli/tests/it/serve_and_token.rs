//! `tl serve` and `tl token`, tested from the outside.

use serde_json::{Value, json};
use throughline_mock_provider::{MockProvider, Script};

use crate::harness::Tl;
use crate::server_process::ServerProcess;

#[test]
fn what_tl_knows_is_served_and_what_is_served_tl_knows() {
    let tl = Tl::new();
    let id = tl.session("greeting", &["hello from the terminal"]);
    let served = ServerProcess::start(&tl);
    let (status, page) = served.request("GET", &format!("/api/sessions/{id}/entries"), None, "");
    assert_eq!(status, 200);
    assert_eq!(page["entries"][0]["content"], "hello from the terminal");
    let body = r#"{"message": "What did I say?", "stream": false}"#;
    let (status, turn) = served.request("POST", &format!("/api/sessions/{id}/turns"), None, body);
    assert_eq!(status, 200, "{turn}");
    assert!(turn["answer"]["content"].is_string(), "{turn}");
    assert_eq!(tl.texts(&id).len(), 3);
    let (said, well) = served.stop();
    assert!(well, "{said}");
    // JSON lines, without any message text.
    assert!(
        !said.contains("hello") && !said.contains("What did"),
        "{said}"
    );
    for line in said.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        assert!(
            line["route"].is_string() || line["message"].is_string(),
            "{line}"
        );
    }
}

#[test]
fn a_token_is_shown_once_works_and_can_be_taken_back() {
    let tl = Tl::new();
    let made = tl.json(&["token", "create", "--user", "alice", "--expires", "30d"]);
    let token = made["token"].as_str().unwrap();
    assert!(token.starts_with("tl_"));
    assert!(made["expires_at"].is_string());
    assert!(!tl.ok(&["token", "list"]).contains(token));
    let listed = tl.json(&["token", "list"]);
    assert_eq!(listed[0]["user"], "alice");
    assert_eq!(listed[0]["good"], true);
    let served = ServerProcess::start(&tl);
    assert_eq!(served.request("GET", "/api/whoami", None, "").0, 401);
    let (status, who) = served.request("GET", "/api/whoami", Some(token), "");
    assert_eq!((status, &who["owner"]), (200, &"alice".into()));
    tl.ok(&["token", "revoke", made["id"].as_str().unwrap()]);
    assert_eq!(tl.json(&["token", "list"])[0]["good"], false);
    let (said, _) = served.stop();
    assert!(!said.contains(token), "the token is in the logs");
    // The file does not contain it either.
    let file = std::fs::read(tl.store()).unwrap();
    let found = file
        .windows(token.len())
        .any(|part| part == token.as_bytes());
    assert!(!found, "the token is in the store");
}

#[test]
fn callers_choose_among_the_models_and_agents_that_are_listed() {
    let stand_in = MockProvider::start(Script::default()).unwrap();
    let tl = Tl::new();
    let at = |name: &str| format!("base_url={}/v1 model={name}", stand_in.url());
    let config = format!("model = {:?}\nmodels = {:?}\n", at("large"), at("small"));
    let agents = tl.home().join("agents");
    std::fs::create_dir_all(&agents).unwrap();
    std::fs::write(tl.home().join("config.toml"), config).unwrap();
    std::fs::write(agents.join("poet.md"), "You speak in verse.\n").unwrap();
    let served = ServerProcess::start(&tl);
    let (_, voices) = served.request("GET", "/api/voices", None, "");
    assert_eq!(
        voices["models"],
        json!(["compatible/large", "compatible/small", "offline"])
    );
    assert_eq!(voices["agents"], json!(["poet"]));
    let (_, session) = served.request("POST", "/api/sessions", None, "{}");
    let path = format!("/api/sessions/{}/turns", session["id"].as_str().unwrap());
    for (choice, model) in [
        (json!({}), "large"),
        (json!({"model": "small", "agent": "poet"}), "small"),
        (json!({"agent": "poet"}), "large"),
        (json!({"model": "offline"}), "offline"),
    ] {
        let mut ask = json!({"message": "Hi.", "stream": false});
        let members = choice.as_object().unwrap().clone();
        ask.as_object_mut().unwrap().extend(members);
        let (status, turn) = served.request("POST", &path, None, &ask.to_string());
        assert_eq!(
            (status, &turn["answer"]["model"]),
            (200, &json!(model)),
            "{turn}"
        );
        if model != "offline" {
            let told = stand_in.requests().pop().unwrap().system();
            assert_eq!(
                told.contains("in verse"),
                choice["agent"] == "poet",
                "{told}"
            );
        }
    }
    for (choice, code) in [
        (
            r#"{"message": "Hi.", "model": "openai/gpt-5"}"#,
            "model_not_offered",
        ),
        (
            r#"{"message": "Hi.", "agent": "../../secrets"}"#,
            "agent_not_offered",
        ),
    ] {
        let (status, problem) = served.request("POST", &path, None, choice);
        assert_eq!((status, &problem["code"]), (422, &json!(code)), "{problem}");
    }

    std::fs::write(tl.home().join("config.toml"), "models = \"openai\"\n").unwrap();
    let refused = tl.run(&["serve", "--listen", "127.0.0.1:0"]);
    assert_eq!(refused.code(), Some(5), "{refused}");
    assert!(refused.stderr().contains("OPENAI_API_KEY"), "{refused}");
}

#[test]
fn others_are_not_served_without_tokens() {
    let tl = Tl::new();
    let refused = tl.run(&["serve", "--listen", "0.0.0.0:0"]);
    assert_eq!(refused.code(), Some(5));
    assert!(refused.stderr().contains("tl token create"), "{refused}");
    let named = tl.run(&["token", "create", "--user", "bot/ann"]);
    assert_eq!(named.code(), Some(5), "{named}");
    let nothing = tl.run(&["token", "revoke", "tk-0123456789abcdef"]);
    assert_eq!(nothing.code(), Some(3), "{nothing}");
}

#[test]
fn exports_are_redacted_and_say_so() {
    let tl = Tl::new();
    let secret = format!("ghp_{}", "4f9aK2lmN8qRt7uVw3xYz1b2C3d4E5f6G7h8");
    let id = tl.session(
        "leaky",
        &[&format!("use {secret} here"), "and nothing else"],
    );
    for format in ["markdown", "json", "jsonl"] {
        let safe = tl.run(&["export", &id, "--format", format]);
        assert!(!safe.ok().contains(&secret), "{format}");
        assert!(
            safe.stdout().contains("[redacted: a GitHub token]"),
            "{format}"
        );
        assert!(safe.stderr().contains("--reveal"), "{safe}");
        let whole = tl.run(&["export", &id, "--format", format, "--reveal"]);
        assert!(whole.ok().contains(&secret), "{format}");
        assert_eq!(whole.stderr(), "");
    }
    // A redacted export is not accepted as the original.
    let safe = tl.ok(&["export", &id, "--format", "jsonl"]);
    let whole = tl.ok(&["export", &id, "--format", "jsonl", "--reveal"]);
    let other = Tl::new();
    let refused = other.run_with(&["import", "-"], safe.as_bytes());
    assert_ne!(refused.code(), Some(0), "{refused}");
    assert!(refused.to_string().contains("redacted"), "{refused}");
    let third = Tl::new();
    assert_eq!(
        third.run_with(&["import", "-"], whole.as_bytes()).code(),
        Some(0)
    );
}

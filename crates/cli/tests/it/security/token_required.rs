//! A server that had a token, or that has a host name, always requires a token.

use throughline_postgres::test_database::TestDatabase;

use super::create_token;
use crate::harness::Tl;
use crate::server_process::ServerProcess;

const ROUTES: [&str; 9] = [
    "/api/whoami",
    "/api/sessions",
    "/api/events",
    "/api/admin/tokens",
    "/metrics",
    "/mcp",
    "/v1/models",
    "/store/v1/blobs/00",
    "/api/sessions/x/export",
];

#[track_caller]
fn assert_closed(served: &ServerProcess) {
    for route in ROUTES {
        let (status, answer) = served.request("GET", route, None, "");
        assert!([401, 405].contains(&status), "{route}: {status} {answer}");
    }
    let (status, _) = served.request("GET", "/", None, "");
    assert_eq!(status, 303, "the page leads to the login");
    let (status, _) = served.request("POST", "/api/admin/tokens", None, r#"{"user": "eve"}"#);
    assert_eq!(status, 401);
}

#[test]
fn a_server_whose_last_token_was_revoked_stays_closed() {
    let tl = Tl::new();
    let served = ServerProcess::start(&tl);
    assert_eq!(served.request("GET", "/api/whoami", None, "").0, 200);
    let (text, id) = create_token(&tl, &[], "alice", &["--role", "admin"]);
    // Created by another process: the server is not open even for a moment.
    assert_closed(&served);
    assert_eq!(served.request("GET", "/api/whoami", Some(&text), "").0, 200);
    tl.ok(&["token", "revoke", &id]);
    assert_closed(&served);
    let (said, _) = served.stop();
    assert!(said.contains("no token is required"), "{said}");
    // Nor is it open after a restart.
    let served = ServerProcess::start(&tl);
    assert_closed(&served);
    let (said, _) = served.stop();
    assert!(said.contains("none is valid"), "{said}");
}

#[test]
fn a_server_whose_last_token_expired_stays_closed() {
    let tl = Tl::new();
    create_token(&tl, &[], "alice", &["--expires", "1s"]);
    std::thread::sleep(std::time::Duration::from_millis(1_100));
    let served = ServerProcess::start(&tl);
    assert_closed(&served);
}

#[test]
fn a_server_with_a_name_or_a_proxy_is_closed_from_the_start() {
    for args in [
        &["--host", "tl.example.org"][..],
        &["--host", "127.0.0.1"],
        &["--host", "localhost"],
        &["--trusted-proxy", "10.0.0.0/8"],
        &["--behind-tls"],
    ] {
        let tl = Tl::new();
        let served = ServerProcess::start_with(&tl, args);
        assert_closed(&served);
        let (text, _) = create_token(&tl, &[], "alice", &[]);
        assert_eq!(served.request("GET", "/api/whoami", Some(&text), "").0, 200);
        let (said, _) = served.stop();
        assert!(said.contains("tl token create"), "{said}");
    }
}

#[test]
fn a_store_that_was_salvaged_or_copied_stays_closed() {
    let tl = Tl::new();
    tl.session("auth", &["hello"]);
    let (text, _) = create_token(&tl, &[], "alice", &["--role", "admin"]);
    let store = |name: &str| format!("sqlite:{}", tl.home().join(name).display());
    let salvaged = tl.home().join("salvaged.db");
    let outcome = tl.run(&["doctor", "--salvage", salvaged.to_str().unwrap()]);
    assert!(outcome.stderr().contains("tokens found: 1"), "{outcome}");
    let from = format!("sqlite:{}", tl.store().display());
    tl.ok(&["migrate-store", &from, &store("copied.db")]);
    // A revocation may be lost with the rest of a damaged file.
    for (name, status) in [("salvaged.db", 401), ("copied.db", 200)] {
        let served = ServerProcess::start_command(tl.command(&["--store", &store(name)]));
        assert_closed(&served);
        assert_eq!(
            served.request("GET", "/api/whoami", Some(&text), "").0,
            status
        );
    }
}

#[test]
fn servers_over_one_database_are_closed_together() {
    let Some(trial) = TestDatabase::new() else {
        return;
    };
    let tl = Tl::new();
    let store = ["--store", &trial.url()];
    let start = || ServerProcess::start_command(tl.command(&store)).discard_stderr();
    let servers = [start(), start()];
    for served in &servers {
        assert_eq!(served.request("GET", "/api/whoami", None, "").0, 200);
    }
    let (_, id) = create_token(&tl, &store, "alice", &[]);
    servers.iter().for_each(assert_closed);
    tl.ok(&[&store[..], &["token", "revoke", &id]].concat());
    servers.iter().for_each(assert_closed);
    drop(servers);
    assert_closed(&start());
}

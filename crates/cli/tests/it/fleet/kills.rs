//! Servers that are killed during an operation.

use std::io::{BufRead, BufReader};
use std::time::Duration;

use serde_json::json;
use throughline_mock_provider::{MockProvider, Request, Script, echo};
use throughline_postgres::test_database::TestDatabase;

use super::{AcknowledgedMessage, Fleet, append_while};
use crate::server_process::HttpRequest;

fn is_for_a_summary(request: &Request) -> bool {
    request.system().contains("\"open_tasks\"")
}

/// Starts a mock model that is slow to answer the first request of a kind, and its servers.
fn start_with_slow_model(
    trial: &TestDatabase,
    is_slow: fn(&Request) -> bool,
) -> (MockProvider, Fleet) {
    let mut asked = 0;
    let script = Script::from_fn(move |request: &Request| {
        let pause = Duration::from_millis(if is_slow(request) {
            asked += 1;
            // For longer than the test lasts.
            if asked == 1 { 20_000 } else { 0 }
        } else {
            0
        });
        echo(request).with_delay(pause)
    });
    let stand_in = MockProvider::start(script).unwrap();
    let variables = [
        ("ANTHROPIC_API_KEY", "sk-test"),
        ("ANTHROPIC_BASE_URL", &stand_in.url()),
    ];
    let url = trial.url();
    let fleet = Fleet::start([&url; 3], &variables);
    (stand_in, fleet)
}

/// Waits until the model has received such a request.
fn wait_for_request(stand_in: &MockProvider, wanted: fn(&Request) -> bool) {
    while !stand_in.requests().iter().any(wanted) {
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_server_killed_during_appends_takes_nothing_with_it() {
    let Some(trial) = TestDatabase::new() else {
        return;
    };
    let url = trial.url();
    let fleet = Fleet::start([&url; 3], &[]);
    let work = append_while(&fleet, 6, 25, 60, || fleet.servers[0].kill());
    fleet.verify(&work.acknowledged);
}

#[test]
fn a_question_whose_server_was_killed_is_answered_by_another() {
    let Some(trial) = TestDatabase::new() else {
        return;
    };
    let (stand_in, fleet) = start_with_slow_model(&trial, |request| !is_for_a_summary(request));
    let session = fleet.session("talk");
    let path = format!("/api/sessions/{session}/turns");
    let body = json!({"message": "How many herons?"}).to_string();
    let ask = HttpRequest {
        method: "POST",
        path: &path,
        headers: "",
        body: &body,
    };
    let turn = ask.send(&fleet.servers[0].address).unwrap();
    // The turn has begun: the question is stored.
    let mut told = BufReader::new(turn).lines();
    let begun = told.any(|line| line.is_ok_and(|line| line == "event: turn:started"));
    assert!(begun);
    wait_for_request(&stand_in, |request| !is_for_a_summary(request));

    fleet.servers[0].kill();

    let again = json!({"stream": false}).to_string();
    let (status, answered) = fleet.servers[1].request("POST", &path, None, &again);
    assert_eq!(status, 200, "{answered}");
    assert_eq!(answered["question"]["seq"], 1, "{answered}");
    let answer = "You said “How many herons?”, and I am only a stand-in.";
    assert_eq!(answered["answer"]["content"], answer, "{answered}");
    let said = |text: &str, seq| AcknowledgedMessage {
        session: session.clone(),
        text: text.to_owned(),
        seq,
    };
    let seq = answered["answer"]["seq"].as_u64().unwrap();
    fleet.verify(&[said("How many herons?", 1), said(answer, seq)]);
    let log = fleet.log(&session);
    let messages = log.iter().filter(|(_, text)| !text.is_empty());
    assert_eq!(messages.count(), 2, "{log:?}");
}

#[test]
fn a_compaction_whose_server_was_killed_is_made_by_another() {
    let Some(trial) = TestDatabase::new() else {
        return;
    };
    let (stand_in, fleet) = start_with_slow_model(&trial, is_for_a_summary);
    let work = append_while(&fleet, 2, 40, 0, || ());
    let session = &work.acknowledged[0].session;
    let path = format!("/api/sessions/{session}/compact");
    let ask = HttpRequest {
        method: "POST",
        path: &path,
        headers: "",
        body: "",
    };
    let slow = ask.send(&fleet.servers[0].address).unwrap();
    wait_for_request(&stand_in, is_for_a_summary);
    fleet.servers[0].kill();
    drop(slow);

    // Both wait until the first is known to be gone; one of them then does it.
    let other = fleet.servers[1].address.clone();
    let asking = std::thread::spawn({
        let path = path.clone();
        move || {
            let ask = HttpRequest {
                method: "POST",
                path: &path,
                headers: "",
                body: "",
            };
            ask.fetch(&other).unwrap()
        }
    });
    let (status, one) = fleet.servers[2].request("POST", &path, None, "");
    let (other_status, two) = asking.join().unwrap();
    assert_eq!((status, other_status), (200, 200), "{one} {two}");
    let mut hows = [&one, &two].map(|view| view["how"].as_str().unwrap().to_owned());
    hows.sort();
    assert_eq!(hows, ["compacted", "overtaken"]);

    let summaries = stand_in.requests();
    let summaries = summaries.iter().filter(|request| is_for_a_summary(request));
    // The one that was lost, and one more.
    assert_eq!(summaries.count(), 2);
    let shown = fleet.json(&["show", session, "--all"]);
    let entries = shown["entries"].as_array().unwrap();
    let checkpoints = entries.iter().filter(|entry| entry["kind"] == "checkpoint");
    assert_eq!(checkpoints.count(), 1);
    fleet.verify(&work.acknowledged);
}

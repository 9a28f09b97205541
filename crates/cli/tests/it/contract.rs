//! Contract tests: the commands, flags, exit codes, routes, types and event names that
//! scripts and clients rely on.
//!
//! `tests/contract/` lists them as they were released. Lines may be added there; a line
//! that no longer holds is an incompatible change.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::compatibility::{open_copy, recordings};
use crate::harness::Tl;
use crate::server_process::{HttpRequest, ServerProcess};

fn manifest_path(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn read_recorded(name: &str) -> String {
    fs::read_to_string(manifest_path("tests/contract").join(name)).unwrap()
}

/// Fails if a recorded line is missing from the current ones.
fn assert_all_hold(name: &str, today: &BTreeSet<String>) {
    let recorded = read_recorded(name);
    let gone: Vec<_> = recorded
        .lines()
        .filter(|line| !today.contains(*line))
        .collect();
    assert!(gone.is_empty(), "{name}: no longer so: {gone:#?}");
}

fn openapi() -> Value {
    serde_json::from_str(&fs::read_to_string(manifest_path("../../docs/openapi.json")).unwrap())
        .unwrap()
}

fn join_sorted<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: BTreeSet<_> = names.collect();
    names.into_iter().collect::<Vec<_>>().join(",")
}

#[test]
fn every_route_keeps_its_operation_id_parameters_and_statuses() {
    let document = openapi();
    let mut routes = BTreeSet::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let parameters = operation["parameters"].as_array().into_iter().flatten();
            let text = |value: &Value| value.as_str().unwrap().to_owned();
            let parameters: Vec<_> = parameters
                .map(|value| format!("{}:{}", text(&value["in"]), text(&value["name"])))
                .collect();
            let parameters = match join_sorted(parameters.iter().map(String::as_str)) {
                none if none.is_empty() => "-".to_owned(),
                names => names,
            };
            let statuses = operation["responses"].as_object().unwrap().keys();
            routes.insert(format!(
                "{} {path} {} {parameters} {}",
                method.to_uppercase(),
                text(&operation["operationId"]),
                join_sorted(statuses.map(String::as_str)),
            ));
        }
    }
    assert_all_hold("routes.txt", &routes);
}

#[test]
fn every_type_of_the_api_keeps_its_name_and_fields() {
    let document = openapi();
    let schemas = document["components"]["schemas"]
        .as_object()
        .unwrap()
        .iter();
    let lines = schemas.map(|(name, schema)| {
        let fields = fields(schema);
        let line = format!("{name} {}", join_sorted(fields.iter().map(String::as_str)));
        line.trim_end().to_owned()
    });
    assert_all_hold("schemas.txt", &lines.collect());
}

/// The fields of a type, including those it is composed of; and its values, if it is an
/// enum.
fn fields(schema: &Value) -> Vec<String> {
    let properties = schema["properties"].as_object().into_iter().flatten();
    let mut found: Vec<_> = properties.map(|(name, _)| name.clone()).collect();
    let values = schema["enum"].as_array().into_iter().flatten();
    found.extend(values.map(|value| format!("={}", value.as_str().unwrap())));
    for part in ["allOf", "oneOf", "anyOf"] {
        let parts = schema[part].as_array().into_iter().flatten();
        found.extend(parts.flat_map(fields));
    }
    found
}

#[test]
fn every_command_and_flag_is_still_accepted() {
    let tl = Tl::new();
    for line in read_recorded("commands.txt").lines() {
        let (command, flags) = line.split_once(':').unwrap();
        let command: Vec<_> = command.split(' ').skip(1).collect();
        // `--help` fails for a command or flag that does not exist.
        let help: Vec<_> = command.iter().copied().chain(["--help"]).collect();
        tl.ok(&help);
        for flag in flags.split_whitespace() {
            let arguments: Vec<_> = command.iter().copied().chain([flag, "--help"]).collect();
            let error = tl.run(&arguments).stderr();
            assert!(
                !error.contains("unexpected argument") && !error.contains("unrecognized"),
                "tl {}: {error}",
                arguments.join(" ")
            );
        }
    }
}

#[test]
fn every_exit_code_means_what_it_meant() {
    let tl = Tl::new();
    tl.session("s", &["one", "two"]);
    let code = |arguments: &[&str]| tl.run(arguments).code();
    assert_eq!(code(&["show", "s"]), Some(0));
    let nowhere = ["export", "s", "--output", "no/such/folder/s.md"];
    assert_eq!(code(&nowhere), Some(1), "failed");
    assert_eq!(code(&["show", "--no-such-flag"]), Some(2), "wrong usage");
    assert_eq!(code(&["show", "nothing-like-this"]), Some(3), "not found");
    let late = ["append", "s", "late", "--expect", "1"];
    assert_eq!(code(&late), Some(4), "conflict");
    assert_eq!(code(&["rename", "s", ""]), Some(5), "invalid input");
    let away = ["--store", "http://127.0.0.1:1", "sessions"];
    assert_eq!(code(&away), Some(7), "unavailable");
    let store = rusqlite::Connection::open(tl.store()).unwrap();
    let damage = "UPDATE entry SET payload = '{}'";
    store.execute_batch(damage).unwrap();
    drop(store);
    assert_eq!(code(&["doctor"]), Some(6), "damaged data");
}

#[test]
fn every_event_name_is_still_sent_by_the_server() {
    let mut sources = String::new();
    read_sources(&manifest_path("../server/src"), &mut sources);
    read_sources(&manifest_path("../engine/src"), &mut sources);
    for name in read_recorded("events.txt").lines() {
        assert!(
            sources.contains(&format!("\"{name}\"")),
            "no event is called {name}"
        );
    }
}

fn read_sources(folder: &Path, text: &mut String) {
    for file in fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        if path.is_dir() {
            read_sources(&path, text);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            text.push_str(&fs::read_to_string(path).unwrap());
        }
    }
}

/// Reads the names of a stream's events, each with the action that its data names, up to
/// the last one.
fn read_events(stream: impl std::io::Read, is_last: impl Fn(&str, usize) -> bool) -> Vec<String> {
    let mut events: Vec<String> = Vec::new();
    for line in BufReader::new(stream).lines() {
        let line = line.unwrap();
        if let Some(name) = line.strip_prefix("event: ") {
            events.push(name.to_owned());
        } else if let Some(data) = line.strip_prefix("data: ") {
            let data: Value = serde_json::from_str(data).unwrap();
            let last = events.last_mut().unwrap();
            if let Some(action) = data["action"].as_str() {
                last.push(' ');
                last.push_str(action);
            }
            let last = last.clone();
            if is_last(&last, events.len()) {
                break;
            }
        }
    }
    events
}

#[test]
fn the_feed_of_a_recorded_store_and_a_turn_have_the_same_events() {
    for recording in recordings() {
        let tl = open_copy(&recording);
        let token = tl.json(&["token", "create", "--user", "casey"]);
        let headers = format!(
            "authorization: Bearer {}\r\n",
            token["token"].as_str().unwrap()
        );
        let served = ServerProcess::start(&tl).discard_stderr();
        let ask = HttpRequest {
            method: "GET",
            path: "/api/events?after=0",
            headers: &headers,
            body: "",
        };
        let recorded = read_recorded("feed.txt");
        let expected: Vec<_> = recorded.lines().collect();
        let stream = ask.send(&served.address).unwrap();
        assert_eq!(
            read_events(stream, |_, count| count == expected.len()),
            expected
        );

        let ask = HttpRequest {
            method: "POST",
            path: "/api/sessions/planning-0001/turns",
            headers: &headers,
            body: r#"{"message": "which port has redis?", "model": "offline"}"#,
        };
        let stream = ask.send(&served.address).unwrap();
        let mut events = read_events(stream, |event, _| event == "turn:complete");
        events.dedup();
        let turn = [
            "turn:started",
            "message:started",
            "turn:sent",
            "message:delta",
            "turn:complete",
        ];
        assert_eq!(events, turn);
    }
}

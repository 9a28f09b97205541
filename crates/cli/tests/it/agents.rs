//! Other agents' sessions: import, watch, export and handoff.

use std::io::{BufRead, BufReader, Lines, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Stdio};

use crate::assert_output;
use crate::harness::{Tl, regex_escape, run_to_end};

const CLAUDE: &str = "11111111-1111-4111-8111-111111111111";

fn user(uuid: &str, parent: &str, text: &str) -> String {
    format!(
        r#"{{"type":"user","uuid":"{uuid}","parentUuid":{parent},"sessionId":"{CLAUDE}","timestamp":"2026-01-02T10:00:00.000Z","cwd":"/work/app","isSidechain":false,"message":{{"role":"user","content":"{text}"}}}}"#
    ) + "\n"
}

fn answer(uuid: &str, parent: &str, text: &str) -> String {
    format!(
        r#"{{"type":"assistant","uuid":"{uuid}","parentUuid":"{parent}","sessionId":"{CLAUDE}","timestamp":"2026-01-02T10:00:05.000Z","cwd":"/work/app","isSidechain":false,"message":{{"id":"m-{uuid}","role":"assistant","model":"claude-x","content":[{{"type":"text","text":"{text}"}}],"usage":{{"input_tokens":10,"output_tokens":5}}}}}}"#
    ) + "\n"
}

/// Creates a home with sessions of Claude Code and pi; returns the path of the first.
fn home(tl: &Tl) -> PathBuf {
    let home = tl.work().parent().unwrap().to_owned();
    let claude = home.join(".claude/projects/-work-app");
    std::fs::create_dir_all(&claude).unwrap();
    let path = claude.join(format!("{CLAUDE}.jsonl"));
    let title = r#"{"type":"custom-title","customTitle":"Rate Limiter"}"#;
    let lines = format!(
        "{title}\n{}{}not json\n{{\"type\":\"progress\"}}\n",
        user("u1", "null", "Add a rate limiter"),
        answer("a1", "u1", "Done")
    );
    std::fs::write(&path, lines).unwrap();
    let pi = home.join(".pi/agent/sessions/--work-app--");
    std::fs::create_dir_all(&pi).unwrap();
    std::fs::write(
        pi.join("2026-01-02T10-00-00-000Z_66666666-6666-4666-8666-666666666666.jsonl"),
        concat!(
            r#"{"type":"session","version":3,"id":"66666666-6666-4666-8666-666666666666","timestamp":"2026-01-02T10:00:00.000Z","cwd":"/work/app"}"#,
            "\n",
            r#"{"type":"message","id":"e1","parentId":null,"timestamp":"2026-01-02T10:00:01.000Z","message":{"role":"user","content":"Hello","timestamp":1}}"#,
            "\n",
        ),
    )
    .unwrap();
    path
}

fn append(path: &PathBuf, text: &str) {
    let file = std::fs::OpenOptions::new().append(true).open(path);
    file.unwrap().write_all(text.as_bytes()).unwrap();
}

#[test]
fn an_import_finds_what_is_on_this_machine() {
    let tl = Tl::new();
    assert_output!(tl, "import_nothing", tl.run(&["import"]));
    let path = home(&tl);
    let dry = tl.run(&["import", "--dry-run"]);
    assert_eq!(
        tl.json(&["sessions"])["sessions"].as_array().unwrap().len(),
        0
    );
    let first = tl.run(&["import"]);
    let again = tl.run(&["import"]);
    append(&path, &user("u2", "\"a1\"", "And tests?"));
    let grown = tl.run(&["import", "--from", "claude-code", "--json"]);
    assert_output!(
        tl,
        "import_found",
        dry,
        first,
        again,
        grown,
        tl.run(&["import", "--since", "2090-01-01"]),
        tl.run(&["import", "--from", "clod"]),
        tl.run(&["import", "--from", "pi", "--path", "nowhere"]),
    );
    assert_eq!(
        tl.texts(CLAUDE),
        ["Add a rate limiter", "Done", "And tests?"]
    );
    let card = &tl.json(&["show", CLAUDE])["session"];
    assert_eq!(card["name"], "rate-limiter");
    assert_eq!(card["description"], "Rate Limiter");
    assert_eq!(card["workspace"], "/work/app");
    assert_eq!(card["agent"]["name"], "claude-code");
    assert_eq!(card["project"], "dir:/work/app");
    assert_eq!(tl.json(&["doctor"])["ok"], true);
}

#[test]
fn an_import_leaves_the_indexing_to_whoever_searches_next_if_asked_to() {
    let tl = Tl::new();
    home(&tl);
    let behind = || tl.json(&["search", "--no-wait", "limiter"])["behind"].as_u64();
    tl.ok(&["import", "--no-wait"]);
    assert!(behind() > Some(0));
    tl.ok(&["import"]);
    assert_eq!(behind(), Some(0));
}

#[test]
fn a_session_that_was_rewritten_elsewhere_becomes_a_fork() {
    let tl = Tl::new();
    let path = home(&tl);
    tl.ok(&["import"]);
    let rewritten = user("u1", "null", "Add a rate limiter") + &answer("a1", "u1", "Otherwise");
    std::fs::write(&path, rewritten).unwrap();
    assert_output!(
        tl,
        "import_rewritten",
        tl.run(&["import", "--from", "claude-code"])
    );
    assert_eq!(tl.texts(CLAUDE), ["Add a rate limiter", "Done"]);
    let sessions = tl.json(&["sessions"]);
    assert_eq!(sessions["sessions"].as_array().unwrap().len(), 3);
    let again = tl.json(&["import"]);
    assert_eq!(again["agents"][0]["created"], 0);
}

#[test]
fn what_was_thrown_away_does_not_come_back() {
    let tl = Tl::new();
    let path = home(&tl);
    tl.ok(&["import"]);
    tl.ok(&["delete", CLAUDE]);
    append(&path, &user("u2", "\"a1\"", "More"));
    let said = tl.json(&["import", "--from", "claude-code"]);
    assert_eq!(said["ok"], true);
    assert_eq!(said["agents"][0]["appended"], 0);
    assert!(tl.run(&["show", CLAUDE]).code() != Some(0));
}

#[test]
fn what_a_database_repeats_is_counted_once() {
    let tl = Tl::new();
    let folder = tl
        .work()
        .parent()
        .unwrap()
        .join(".local/share/goose/sessions");
    std::fs::create_dir_all(&folder).unwrap();
    let goose = rusqlite::Connection::open(folder.join("sessions.db")).unwrap();
    goose
        .execute_batch(
            r#"CREATE TABLE sessions (id TEXT PRIMARY KEY, description TEXT, working_dir TEXT, created_at TEXT);
               CREATE TABLE messages (id INTEGER PRIMARY KEY, session_id TEXT, role TEXT, content_json TEXT,
                 created_timestamp INTEGER);
               INSERT INTO sessions VALUES ('20260102_1', 'Build', '/work/app', '2026-01-02 10:00:00');
               INSERT INTO messages VALUES (1, '20260102_1', 'user', '[{"type":"text","text":"Fix it"}]', 1767348000),
                 (2, '20260102_1', 'assistant', '[{"type":"text","text":"Done"}]', 1767348001);"#,
        )
        .unwrap();
    let figures = |args: &[&str]| {
        let told = tl.json(args);
        let agent = &told["agents"][0];
        ["sessions", "messages", "known", "appended"].map(|name| agent[name].as_u64().unwrap())
    };
    assert_eq!(figures(&["import"]), [1, 2, 0, 2]);
    assert_eq!(figures(&["import"]), [1, 2, 2, 0]);
    let more = r#"INSERT INTO messages VALUES (3, '20260102_1', 'user',
        '[{"type":"text","text":"And tests"}]', 1767348002)"#;
    goose.execute_batch(more).unwrap();
    assert_eq!(figures(&["import"]), [1, 3, 2, 1]);
    assert_eq!(figures(&["import"]), [1, 3, 3, 0]);
}

#[test]
fn a_single_file_is_recognised() {
    let tl = Tl::new();
    let path = home(&tl);
    let file = path.to_str().unwrap();
    let said = tl.run(&["import", file]);
    assert_output!(tl, "import_file", said);
    assert_eq!(tl.texts(CLAUDE).len(), 2);
}

/// A `tl watch` process on Claude Code's sessions.
struct WatchProcess {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl WatchProcess {
    fn start(tl: &Tl) -> Self {
        let mut child = tl
            .command(&["watch", "--from", "claude-code", "--json"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines }
    }

    /// Waits for the next import; returns how many messages it imported.
    fn next_appended(&mut self) -> u64 {
        let line = self.lines.next().unwrap().unwrap();
        let told: serde_json::Value = serde_json::from_str(&line).unwrap();
        told["appended"].as_u64().unwrap()
    }

    fn stop(mut self) {
        let id = self.child.id().to_string();
        let mut kill = std::process::Command::new("kill");
        assert!(kill.args(["-TERM", &id]).status().unwrap().success());
        assert!(self.child.wait().unwrap().success());
    }
}

#[test]
fn a_file_that_is_replaced_while_it_is_followed_is_followed_on() {
    let tl = Tl::new();
    let path = home(&tl);
    let mut watching = WatchProcess::start(&tl);
    assert_eq!(watching.next_appended(), 2);
    // Editors and sync tools replace the file by a new one.
    let text = std::fs::read_to_string(&path).unwrap();
    let other = path.with_extension("part");
    std::fs::write(&other, text + &user("u2", "\"a1\"", "Replaced")).unwrap();
    std::fs::rename(&other, &path).unwrap();
    assert_eq!(watching.next_appended(), 1);
    append(&path, &answer("a2", "u2", "Goes on"));
    assert_eq!(watching.next_appended(), 1);
    // A rewritten source becomes a fork, as it does for `tl import`.
    std::fs::write(&path, user("u1", "null", "Something else")).unwrap();
    assert_eq!(watching.next_appended(), 1);
    watching.stop();
    assert_eq!(
        tl.texts(CLAUDE),
        ["Add a rate limiter", "Done", "Replaced", "Goes on"]
    );
    let sessions = tl.json(&["sessions"]);
    assert_eq!(sessions["sessions"].as_array().unwrap().len(), 2);
}

#[test]
fn watching_follows_until_it_is_stopped_and_catches_up_after() {
    let tl = Tl::new();
    let path = home(&tl);
    let mut watching = WatchProcess::start(&tl);
    assert_eq!(watching.next_appended(), 2);
    append(&path, &user("u2", "\"a1\"", "CommandOutput meanwhile"));
    assert_eq!(watching.next_appended(), 1);
    watching.stop();
    append(&path, &answer("a2", "u2", "CommandOutput after"));
    tl.ok(&["import"]);
    assert_eq!(
        tl.texts(CLAUDE),
        [
            "Add a rate limiter",
            "Done",
            "CommandOutput meanwhile",
            "CommandOutput after"
        ]
    );
}

#[test]
fn an_agent_that_is_run_leaves_its_session_here() {
    let tl = Tl::new();
    let path = home(&tl);
    let bin = tl.work().join("bin");
    std::fs::create_dir(&bin).unwrap();
    let line = user("u2", "\"a1\"", "From the agent");
    let script = format!(
        "#!/bin/sh\necho \"agent: $*\"\ncat >> '{}' <<'END'\n{line}END\nexit 7\n",
        path.display()
    );
    let program = bin.join("claude");
    std::fs::write(&program, script).unwrap();
    std::process::Command::new("chmod")
        .args(["+x", program.to_str().unwrap()])
        .status()
        .unwrap();
    let args = ["run", "claude-code", "--continue", "x"];
    let mut command = tl.command(&args);
    command.env("PATH", format!("{}:/usr/bin:/bin", bin.display()));
    let said = run_to_end(command, &args, b"");
    assert_output!(tl, "run_agent", said, tl.run(&["run", "goose"]));
    assert_eq!(tl.texts(CLAUDE).last().unwrap(), "From the agent");
}

/// Creates a session with a tool call, a pin, a decision and a secret.
fn create_rich_session(tl: &Tl) {
    tl.ok(&["new", "--name", "limiter"]);
    let key = format!("sk-{}", "4f9aK2lmN8qRt7uVw3xYz1b2C3d4E5f6G7h8");
    let lines = format!(
        "{}\n{}\n{}\n{}\n",
        r#"{"role":"user","content":"Add a rate limiter <b>now</b>","at":"2026-01-05T14:30:45Z","id":"q1"}"#,
        r#"{"role":"assistant","content":[{"type":"text","text":"I look."},{"type":"tool_call","id":"c1","name":"read","input":{"path":"src/limit.rs"}}],"model":"claude-x","provider":"anthropic","at":"2026-01-05T14:30:48Z","usage":{"input":11,"output":22}}"#,
        r#"{"role":"tool","tool_call_id":"c1","content":"fn limit() {}","at":"2026-01-05T14:30:49Z"}"#,
        format_args!(
            r#"{{"role":"assistant","content":"The key is {key}.","at":"2026-01-05T14:30:50Z"}}"#
        ),
    );
    tl.run_with(&["append", "limiter", "--json"], lines.as_bytes())
        .ok();
    tl.ok(&["pin", "limiter", "100 a minute"]);
    tl.ok(&["decide", "limiter", "Token bucket"]);
}

#[test]
fn every_format_can_be_written_and_read_again() {
    let tl = Tl::new();
    create_rich_session(&tl);
    // Codex stores messages and tool calls as separate records.
    for (format, messages) in [("claude-code", 4), ("codex", 5), ("pi", 4)] {
        let file = format!("out/{format}.jsonl");
        std::fs::create_dir_all(tl.work().join("out")).unwrap();
        tl.ok(&["export", "limiter", "--format", format, "-o", &file]);
        let text = std::fs::read_to_string(tl.work().join(&file)).unwrap();
        assert!(!text.contains("sk-4f9a"), "{text}");
        let elsewhere = Tl::new();
        let file = tl.work().join(&file);
        elsewhere.ok(&["import", file.to_str().unwrap(), "--from", format]);
        let card = &elsewhere.json(&["sessions"])["sessions"][0];
        assert_eq!(card["messages"], messages, "{format}: {card}");
    }
    for (format, place) in [
        ("aiarmy", "a"),
        ("agent-cli", "b"),
        ("dagent", "c"),
        ("bot", "d"),
    ] {
        tl.ok(&["export", "limiter", "--format", format, "-o", place]);
        let elsewhere = Tl::new();
        let folder = tl.work().join(place);
        elsewhere.ok(&[
            "import",
            "--from",
            format,
            "--path",
            folder.to_str().unwrap(),
        ]);
        let sessions = elsewhere.json(&["sessions"]);
        assert_eq!(
            sessions["sessions"].as_array().unwrap().len(),
            1,
            "{format}"
        );
    }
    let revealed = tl.ok(&["export", "limiter", "--format", "codex", "--reveal"]);
    assert!(revealed.contains("sk-4f9a"));
    assert_output!(
        tl,
        "export_foreign",
        tl.run(&["export", "limiter", "--format", "aiarmy"]),
        tl.run(&["export", "limiter", "--format", "bot", "-o", "d"]),
    );
    let page = tl.ok(&["export", "limiter", "--format", "html"]);
    assert!(page.contains("&lt;b&gt;now&lt;/b&gt;") && !page.contains("<b>now"));
    assert!(!page.contains("sk-4f9a"));
}

#[test]
fn a_session_is_handed_to_another_agent() {
    let tl = Tl::new();
    create_rich_session(&tl);
    let places = tl.work().parent().unwrap().join(".claude/projects");
    let mut settings = insta::Settings::clone_current();
    let dashed = tl.work().display().to_string().replace(['/', '.'], "-");
    settings.add_filter(dashed.trim_start_matches('-'), "[dashed]");
    settings.add_filter(r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d(-\d{3}Z)?", "[stamp]");
    settings.add_filter(r"\d{4}/\d\d/\d\d/", "[day]/");
    let _bound = settings.bind_to_scope();
    let unwritten = tl.run(&["handoff", "limiter", "--to", "claude-code"]);
    assert!(!places.exists());
    let written = tl.run(&["handoff", "limiter", "--to", "claude-code", "--write"]);
    let twice = tl.run(&["handoff", "limiter", "--to", "claude-code", "--write"]);
    assert_output!(
        tl,
        "handoff",
        unwritten,
        written,
        twice,
        tl.run(&["handoff", "limiter", "--to", "codex"]),
        tl.run(&["handoff", "limiter", "--to", "pi"]),
        tl.run(&["handoff", "limiter", "--to", "gemini"]),
        tl.run(&["handoff", "limiter", "--to", "goose"]),
        tl.run(&["handoff", "limiter", "--to", "opencode", "--json"]),
        tl.run(&["handoff", "limiter", "--to", "prompt"]),
        tl.run(&["handoff", "limiter", "--to", "prompt", "--budget", "100"]),
    );
    // What the other agent adds is imported into a fork, and nothing else is.
    let folder = std::fs::read_dir(&places)
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    let path = std::fs::read_dir(folder)
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    let uuid = path.file_stem().unwrap().to_str().unwrap().to_owned();
    let text = std::fs::read_to_string(&path).unwrap();
    let last = text
        .lines()
        .rev()
        .find(|line| line.contains("\"uuid\""))
        .unwrap();
    let last: serde_json::Value = serde_json::from_str(last).unwrap();
    let parent = format!("\"{}\"", last["uuid"].as_str().unwrap());
    append(
        &path,
        &user("u9", &parent, "CommandOutput in the other agent"),
    );
    let said = tl.json(&["import", "--from", "claude-code"]);
    assert_eq!(said["agents"][0]["appended"], 1, "{said}");
    assert_eq!(
        tl.texts(&uuid).last().unwrap(),
        "CommandOutput in the other agent"
    );
    assert_eq!(
        tl.json(&["show", &uuid])["session"]["lineage"]["from"],
        "forked"
    );
    assert!(
        !tl.texts("limiter")
            .contains(&"CommandOutput in the other agent".to_owned())
    );
}

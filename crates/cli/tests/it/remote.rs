//! `tl` on a server's store: a user's sessions are available on all their machines.

use std::path::Path;

use serde_json::Value;

use crate::assert_output;
use crate::harness::{CommandOutput, Tl, regex_escape, run_to_end};
use crate::server_process::ServerProcess;

/// A server with a token for each of these users.
struct RemoteServer {
    tl: Tl,
    served: Option<ServerProcess>,
    url: String,
}

impl RemoteServer {
    fn start() -> Self {
        let tl = Tl::new();
        // A token that is not used: from now on the server requires one.
        tl.ok(&["token", "create", "--user", "nobody"]);
        let served = ServerProcess::start(&tl);
        let url = format!("http://{}", served.address);
        Self {
            tl,
            served: Some(served),
            url,
        }
    }

    fn token(&self, owner: &str) -> String {
        let made = self.tl.json(&["token", "create", "--user", owner]);
        made["token"].as_str().unwrap().to_owned()
    }

    /// Stops the server; returns its logs.
    fn stop(&mut self) -> String {
        self.served.take().unwrap().stop().0
    }
}

/// A machine whose store is on a server.
struct ClientMachine {
    tl: Tl,
}

impl ClientMachine {
    /// Logs a user in, and sets the store in their config file.
    fn log_in(cloud: &RemoteServer, owner: &str) -> Self {
        let tl = Tl::new();
        let login = ["login", &cloud.url];
        let token = format!("{}\n", cloud.token(owner));
        tl.run_with(&login, token.as_bytes()).ok();
        let config = tl.home().join("config.toml");
        std::fs::write(config, format!("store = \"{}\"\n", cloud.url)).unwrap();
        Self { tl }
    }

    #[track_caller]
    fn ok(&self, args: &[&str]) -> String {
        self.tl.ok(args)
    }

    /// Runs one turn with the offline agent.
    fn turn(&self, args: &[&str]) -> CommandOutput {
        let mut command = self.tl.command(args);
        command.env("TL_ENCODING", "rough");
        run_to_end(command, args, b"")
    }
}

/// Masks the server's port in snapshots.
fn mask_port(cloud: &RemoteServer) -> insta::internals::SettingsBindDropGuard {
    let mut settings = insta::Settings::clone_current();
    let (_, port) = cloud.url.rsplit_once(':').unwrap();
    settings.add_filter(port, "[port]");
    settings.bind_to_scope()
}

/// Lists the files under a folder that contain a text.
fn files_containing(folder: &Path, text: &str) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let found = paths.flat_map(|path| {
        if path.is_dir() {
            return files_containing(&path, text);
        }
        let bytes = std::fs::read(&path).unwrap();
        let found = bytes
            .windows(text.len())
            .any(|part| part == text.as_bytes());
        if found { vec![path] } else { Vec::new() }
    });
    found.collect()
}

#[test]
fn one_machine_goes_on_where_another_left_off() {
    let cloud = RemoteServer::start();
    let (laptop, desktop) = (
        ClientMachine::log_in(&cloud, "ada"),
        ClientMachine::log_in(&cloud, "ada"),
    );

    let first = laptop.turn(&["-p", "The heron is called Bluebird."]);
    first.ok();
    let id = laptop.tl.json(&["sessions", "--all"])["sessions"][0]["id"].clone();
    let id = id.as_str().unwrap();
    // Both machines can search it, each with an index of its own.
    for machine in [&laptop, &desktop] {
        let found = machine.tl.json(&["search", "heron"]);
        assert!(found.to_string().contains("Bluebird"), "{found}");
        assert!(!machine.tl.store().exists(), "there is no store here");
    }
    desktop
        .turn(&["--resume", id, "-p", "What is the heron called?"])
        .ok();

    let texts = laptop.tl.texts(id);
    assert_eq!(texts.len(), 4, "{texts:?}");
    assert_eq!(texts[0], "The heron is called Bluebird.");
    assert_eq!(texts[2], "What is the heron called?");
    assert!(texts[3].contains("Bluebird"), "{texts:?}");
    // Other users do not see them.
    let stranger = ClientMachine::log_in(&cloud, "eve");
    assert_eq!(
        stranger.tl.json(&["sessions", "--all"])["sessions"],
        Value::Array(Vec::new())
    );
    let peek = stranger.tl.run(&["show", id]);
    assert_eq!(peek.code(), Some(3), "{peek}");
    // Neither does the server's operator, by default.
    assert_eq!(
        cloud.tl.json(&["sessions", "--all"])["sessions"],
        Value::Array(Vec::new())
    );
}

#[test]
fn a_session_lives_its_life_on_a_server() {
    let mut cloud = RemoteServer::start();
    let far = ClientMachine::log_in(&cloud, "ada");
    let id = far.ok(&["new", "--name", "auth"]).trim().to_owned();
    far.ok(&["append", "auth", "Where do sessions live?"]);
    far.ok(&["append", "auth", "--role", "assistant", "On a server now."]);
    far.ok(&["tag", "auth", "storage"]);
    far.ok(&["pin", "auth", "The server is called bluebird."]);
    far.ok(&["memory", "add", "Deploys are on Fridays"]);
    let listed = far.tl.json(&["sessions", "--tag", "storage"]);
    assert_eq!(listed["sessions"][0]["name"], "auth");
    let context = far.ok(&["context", "auth", "--json"]);
    assert!(
        context.contains("bluebird") && context.contains("Fridays"),
        "{context}"
    );
    let stats = far.tl.json(&["stats"]);
    assert_eq!(
        (&stats["sessions"], &stats["bytes"]),
        (&1.into(), &Value::Null)
    );

    let fork = far.ok(&["fork", "auth"]).trim().to_owned();
    far.ok(&["append", &fork, "What if it were a file?"]);
    far.ok(&["merge", &fork]);
    assert_eq!(far.tl.texts(&id).len(), 3);
    let moved = far.tl.run(&["append", &id, "late", "--expect", "1"]);
    assert_eq!(moved.code(), Some(4), "{moved}");
    far.ok(&["compact", "auth"]);
    far.ok(&["erase", &id, "1", "--yes"]);
    far.ok(&["delete", &fork]);
    far.ok(&["restore", &fork]);
    far.ok(&["delete", &fork]);

    // Everything can be exported and migrated unchanged.
    let here = far.ok(&["export", &id, "--format", "jsonl"]);
    std::fs::write(far.tl.work().join("auth.jsonl"), &here).unwrap();
    far.ok(&["--store", "sqlite:copy.db", "import", "auth.jsonl"]);
    let copy = far.ok(&[
        "--store",
        "sqlite:copy.db",
        "export",
        &id,
        "--format",
        "jsonl",
    ]);
    assert_eq!(copy, here);

    let logs = cloud.stop();
    assert!(!logs.contains("bluebird"), "{logs}");
    let report = cloud.tl.json(&["doctor"]);
    assert_eq!(report["ok"], true, "{report}");
}

#[test]
fn a_token_is_kept_for_the_person_and_shown_to_nobody() {
    let mut cloud = RemoteServer::start();
    let token = cloud.token("ada");
    let tl = Tl::new();
    let url = cloud.url.clone();
    let in_place = mask_port(&cloud);
    let line = format!("{token}\n");
    assert_output!(
        tl,
        "login",
        tl.run_with(&["login", &url], line.as_bytes()),
        tl.run(&["--store", &url, "new", "--name", "a"]),
        tl.run(&["--store", &url, "rename", "a", "b"]),
        tl.run(&["--store", &url, "config", "store"]),
        tl.run(&["--store", &url, "--owner", "eve", "sessions"]),
        tl.run(&["--store", &url, "logout"]),
        tl.run(&["--store", &url, "logout"]),
        tl.run(&["--store", &url, "sessions"]),
        tl.run_with(&["login", &url], b"tl_unknown\n"),
        tl.run_with(&["login", &url], b"\n"),
        tl.run(&["login"]),
    );
    drop(in_place);
    let kept = files_containing(tl.home().parent().unwrap(), &token);
    assert_eq!(kept.len(), 0, "{kept:?}");

    tl.run_with(&["login", &url], line.as_bytes()).ok();
    let kept = files_containing(tl.home().parent().unwrap(), &token);
    let file = tl.home().join("tokens.toml");
    assert_eq!(kept, std::slice::from_ref(&file));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = std::fs::metadata(&file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let shared = std::fs::Permissions::from_mode(0o644);
        std::fs::set_permissions(&file, shared).unwrap();
        let refused = tl.run(&["--store", &url, "sessions"]);
        assert_eq!(refused.code(), Some(5), "{refused}");
        assert!(refused.stderr().contains("chmod 600"), "{refused}");
        let private = std::fs::Permissions::from_mode(0o600);
        std::fs::set_permissions(&file, private).unwrap();
    }
    for args in [vec!["config"], vec!["--store", &url, "sessions", "--json"]] {
        let said = tl.run(&args);
        assert!(!said.to_string().contains(&token), "{args:?}");
    }
    let logs = cloud.stop();
    assert!(!logs.contains(&token), "the token is in the logs");
}

#[test]
fn the_environment_may_have_the_token_and_a_project_may_not_choose_the_server() {
    let cloud = RemoteServer::start();
    let tl = Tl::new();
    let args = ["sessions", "--all", "--json"];
    let with = |token: &str| {
        let mut command = tl.command(&args);
        command.env("TL_STORE", &cloud.url).env("TL_TOKEN", token);
        run_to_end(command, &args, b"")
    };
    with(&cloud.token("ada")).ok();
    let refused = with("tl_unknown");
    assert_eq!(refused.code(), Some(5), "{refused}");
    assert!(!refused.to_string().contains("tl_unknown"), "{refused}");

    let project = tl.work().join(".throughline");
    std::fs::create_dir_all(&project).unwrap();
    let config = format!("store = \"{}\"\n", cloud.url);
    std::fs::write(project.join("config.toml"), config).unwrap();
    let refused = tl.run(&["sessions"]);
    assert_eq!(refused.code(), Some(5), "{refused}");
    assert!(
        refused
            .stderr()
            .contains("a server that your sessions are sent to"),
        "{refused}"
    );
}

#[test]
fn what_only_the_server_can_do_and_an_unreachable_server_are_reported() {
    let mut cloud = RemoteServer::start();
    let far = ClientMachine::log_in(&cloud, "ada");
    let in_place = mask_port(&cloud);
    let said = |args: &[&str]| far.tl.run(args);
    let (url, clear) = (cloud.url.clone(), "http://tl.example.org");
    let there = [
        said(&["doctor"]),
        said(&["backup", "copy.db"]),
        said(&["token", "list"]),
        said(&["serve"]),
        said(&["migrate-store", &url, "sqlite:copy.db"]),
        said(&["--store", clear, "sessions"]),
        said(&["--store", "https://tl_secret@tl.example.org", "sessions"]),
    ];
    cloud.stop();
    let away = said(&["sessions"]);
    let there: Vec<_> = there.iter().map(ToString::to_string).collect();
    assert_output!(far.tl, "remote_refusals", there.join("\n"), away);
    drop(in_place);
}

#[test]
fn over_tls_a_server_is_known_by_its_certificate() {
    let cloud = Tl::new();
    let token = cloud.json(&["token", "create", "--user", "ada"])["token"].clone();
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let (cert, key) = (cloud.work().join("cert.pem"), cloud.work().join("key.pem"));
    std::fs::write(&cert, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    let served =
        ServerProcess::start_with(&cloud, &["--tls-cert", "cert.pem", "--tls-key", "key.pem"]);
    let (_, port) = served.address.rsplit_once(':').unwrap();
    let url = format!("https://localhost:{port}");

    let tl = Tl::new();
    let run = |args: &[&str], trusted: bool| {
        let mut command = tl.command(args);
        command
            .env("TL_STORE", &url)
            .env("TL_TOKEN", token.as_str().unwrap());
        if trusted {
            command.env("SSL_CERT_FILE", &cert);
        }
        run_to_end(command, args, b"")
    };
    let id = run(&["new", "--name", "sealed"], true).ok();
    run(
        &["append", id.trim(), "Nobody on the way reads this."],
        true,
    )
    .ok();
    let shown = run(&["show", "sealed"], true).ok();
    assert!(shown.contains("Nobody on the way reads this."), "{shown}");
    let refused = run(&["sessions"], false);
    assert_eq!(refused.code(), Some(7), "{refused}");
    assert!(refused.stderr().contains("certificate"), "{refused}");
}

//! Tests `tl` with the programs that use it: published MCP clients, the MCP conformance
//! runner, and the Python package with its frameworks, against a real `tl mcp` and `tl
//! serve`.
//!
//! Versions are pinned in `clients` and installed once.

#![allow(clippy::unwrap_used, reason = "tests say what they expect")]

#[path = "../../../server/tests/it/client_packages.rs"]
mod client_packages;
mod handoff;
mod invalid_input;

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use client_packages::{node, python, run_command};

fn clients_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/agents/clients")
}

/// A separate home, optionally with a server.
struct Home {
    folder: tempfile::TempDir,
    server: Option<(Child, String)>,
}

impl Home {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let server = None;
        Self { folder, server }
    }

    fn with_server() -> Self {
        let mut home = Self::new();
        let mut serve = Command::new(env!("CARGO_BIN_EXE_tl"));
        serve.args(["serve", "--listen", "127.0.0.1:0", "--log", "error"]);
        let mut server = home
            .configure(&mut serve)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut url = String::new();
        let mut told = BufReader::new(server.stdout.take().unwrap());
        told.read_line(&mut url).unwrap();
        home.server = Some((server, url.trim().to_owned()));
        home
    }

    /// Sets the environment of a command to this home.
    fn configure<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        for proxy in ["http_proxy", "https_proxy", "all_proxy"] {
            command.env_remove(proxy).env_remove(proxy.to_uppercase());
        }
        if let Some((_, url)) = &self.server {
            command.env("SERVER_URL", url);
        }
        command
            .env("TL", env!("CARGO_BIN_EXE_tl"))
            .env("HOME", self.folder.path())
            .env("THROUGHLINE_HOME", self.folder.path().join("home"))
            .current_dir(self.folder.path())
    }

    /// Runs a program that must succeed.
    fn run_fine(&self, command: &mut Command) {
        let told = run_command(self.configure(command)).unwrap_or_else(|why| panic!("{why}"));
        assert!(told.contains("fine"), "{told}");
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        if let Some((server, _)) = &mut self.server {
            let _ = server.kill();
            let _ = server.wait();
        }
    }
}

fn python_client(home: &Home, way: &str) {
    let Some(folder) = python(&clients_folder()) else {
        return;
    };
    let mut python = Command::new(folder.join("bin/python"));
    home.run_fine(python.arg(clients_folder().join("mcp_client.py")).arg(way));
}

fn javascript_client(home: &Home, way: &str) {
    let Some(folder) = node(&clients_folder()) else {
        return;
    };
    // Node resolves packages relative to the program's folder.
    let program = folder.join(format!("mcp_client_{way}.mjs"));
    fs::copy(clients_folder().join("mcp_client.mjs"), &program).unwrap();
    let mut node = Command::new(folder.join("node_modules/.bin/node"));
    home.run_fine(node.arg(program).arg(way));
}

#[test]
fn the_python_mcp_client_talks_over_stdio() {
    python_client(&Home::new(), "stdio");
}

#[test]
fn the_python_mcp_client_talks_over_http() {
    python_client(&Home::with_server(), "http");
}

#[test]
fn the_javascript_mcp_client_talks_over_stdio() {
    javascript_client(&Home::new(), "stdio");
}

#[test]
fn the_javascript_mcp_client_talks_over_http() {
    javascript_client(&Home::with_server(), "http");
}

/// The runner's other scenarios need tools, prompts and resources that only its own test
/// server has.
#[test]
fn the_conformance_runner_finds_nothing_wrong() {
    let Some(folder) = node(&clients_folder()) else {
        return;
    };
    let home = Home::with_server();
    let url = &home.server.as_ref().unwrap().1;
    for scenario in [
        "server-initialize",
        "ping",
        "tools-list",
        "resources-list",
        "prompts-list",
        "dns-rebinding-protection",
    ] {
        let mut runner = Command::new(folder.join("node_modules/.bin/node"));
        runner
            .arg(folder.join("node_modules/@modelcontextprotocol/conformance/dist/index.js"))
            .args([
                "server",
                "--url",
                &format!("{url}/mcp"),
                "--scenario",
                scenario,
            ]);
        let told = run_command(home.configure(&mut runner))
            .unwrap_or_else(|why| panic!("{scenario}: {why}"));
        assert!(told.contains("0 failed"), "{scenario}: {told}");
    }
}

#[test]
fn the_python_package_works_with_what_it_is_for() {
    let Some(folder) = python(&clients_folder()) else {
        return;
    };
    let package = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../clients/python");
    let home = Home::new();
    let mut pytest = Command::new(folder.join("bin/python"));
    pytest
        .args(["-m", "pytest", "-q", "-p", "no:cacheprovider"])
        .arg(&package)
        .env("PYTHONPATH", package.join("src"))
        .env("PYTHONDONTWRITEBYTECODE", "1");
    let told = run_command(home.configure(&mut pytest)).unwrap_or_else(|why| panic!("{why}"));
    assert!(
        told.contains(" passed") && !told.contains("skipped"),
        "{told}"
    );
}

/// Sends lines to `tl mcp`; returns whether it succeeded and the lines of its stdout.
fn send_to_mcp(home: &Home, lines: &[&str]) -> (bool, Vec<serde_json::Value>) {
    let mut mcp = Command::new(env!("CARGO_BIN_EXE_tl"));
    let mut mcp = home
        .configure(mcp.arg("mcp"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = mcp.stdin.take().unwrap();
    for line in lines {
        writeln!(stdin, "{line}").unwrap();
    }
    drop(stdin);
    let told = mcp.wait_with_output().unwrap();
    let text = String::from_utf8(told.stdout).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
    (told.status.success(), lines.collect())
}

#[test]
fn whoever_leaves_before_a_word_is_let_go_in_peace() {
    assert_eq!(send_to_mcp(&Home::new(), &[]), (true, Vec::new()));
}

#[test]
fn nothing_but_the_protocol_is_on_stdout() {
    let hello = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;
    let ready = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    let (fine, told) = send_to_mcp(&Home::new(), &[hello, ready]);
    assert!(fine);
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(told[0]["result"]["protocolVersion"], "2025-06-18");
    assert_eq!(told[0]["result"]["serverInfo"]["name"], "throughline");
}

//! The clients that people have, as they are published, against a real server.
//!
//! Their versions are pinned in `tests/clients`; they are installed once, below the
//! target folder. Where that cannot be done the tests say so loudly and pass, except in
//! CI, where it is a failure.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use throughline::TokenRole;
use throughline_stand_in::{Script, StandIn};

use crate::harness::{Server, Wish};
use crate::stand_in::{StandInVoices, weather_or_echo};

fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients")
}

/// Whether what is missing must not be.
#[allow(clippy::disallowed_methods, reason = "a test's own environment")]
fn is_ci() -> bool {
    std::env::var_os("CI").is_some_and(|ci| ci != "false" && ci != "0" && !ci.is_empty())
}

/// Runs a command to its end; what it said, if it failed.
fn run(command: &mut Command) -> Result<String, String> {
    let told = command.stdin(Stdio::null()).output();
    let told = told.map_err(|error| format!("{command:?}: {error}"))?;
    let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let all = said(&told.stdout) + &said(&told.stderr);
    if told.status.success() {
        Ok(all)
    } else {
        Err(format!("{command:?} failed, {}:\n{all}", told.status))
    }
}

/// A folder in which packages are installed, made by the first who needs it.
///
/// It is called by what is to be in it: other versions get another folder.
fn installed(
    name: &str,
    pins: &str,
    install: impl FnOnce(&Path) -> Result<String, String>,
) -> Option<PathBuf> {
    let text = fs::read_to_string(sources().join(pins)).unwrap();
    let digest = throughline::Digest::of(text.as_bytes()).to_string();
    let folders = Path::new(env!("CARGO_TARGET_TMPDIR")).join("clients");
    fs::create_dir_all(&folders).unwrap();
    let lock = File::create(folders.join(format!("{name}.lock"))).unwrap();
    lock.lock().unwrap();
    let folder = folders.join(format!("{name}-{}", &digest[..16]));
    let mark = folder.join("installed");
    if mark.exists() {
        return Some(folder);
    }
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    match install(&folder) {
        Ok(_) => {
            File::create(mark).unwrap();
            Some(folder)
        }
        Err(why) if is_ci() => panic!("the clients cannot be installed: {why}"),
        Err(why) => {
            eprintln!("\n!!! NOT TESTED: the clients cannot be installed: {why}\n");
            None
        }
    }
}

/// The folder of a Python environment with the packages.
fn python() -> Option<PathBuf> {
    installed("python", "requirements.txt", |folder| {
        run(Command::new("python3").args(["-m", "venv"]).arg(folder))?;
        let mut pip = Command::new(folder.join("bin/python"));
        pip.args([
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
        ]);
        run(pip.arg("-r").arg(sources().join("requirements.txt")))
    })
}

fn node() -> Option<PathBuf> {
    installed("node", "package.json", |folder| {
        let pins = sources().join("package.json");
        fs::copy(pins, folder.join("package.json")).map_err(|error| error.to_string())?;
        let mut npm = Command::new("npm");
        npm.args(["install", "--no-package-lock", "--no-audit", "--no-fund"]);
        run(npm.current_dir(folder))
    })
}

/// A server with the stand-in as its model.
async fn server() -> (Server, StandIn) {
    let stand_in = StandIn::start(Script::by(weather_or_echo)).unwrap();
    let server = Server::with(Wish {
        voices: StandInVoices::new(&stand_in),
        ..Wish::default()
    })
    .await;
    (server, stand_in)
}

/// Runs a client's program against a server of its own.
async fn talk(mut program: Command) {
    let (server, _stand_in) = server().await;
    program.env("SERVER_URL", &server.url);
    for proxy in [
        "http_proxy",
        "https_proxy",
        "all_proxy",
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "ALL_PROXY",
    ] {
        program.env_remove(proxy);
    }
    let told = tokio::task::spawn_blocking(move || run(&mut program)).await;
    let told = told.unwrap().unwrap_or_else(|why| panic!("{why}"));
    assert!(told.contains("fine"), "{told}");
}

async fn talk_python(program: &str) {
    let Some(folder) = python() else { return };
    let mut python = Command::new(folder.join("bin/python"));
    python.arg("-W").arg("error::UserWarning:pydantic");
    python.arg(sources().join(program));
    talk(python).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_python_client_talks_as_with_openai() {
    talk_python("openai_client.py").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_agents_package_keeps_its_sessions_here() {
    talk_python("agents_package.py").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_javascript_client_talks_as_with_openai() {
    let Some(folder) = node() else { return };
    // Packages are looked for from where a program is.
    let program = folder.join("openai_client.mjs");
    fs::copy(sources().join("openai_client.mjs"), &program).unwrap();
    let mut node = Command::new("node");
    node.arg(program);
    talk(node).await;
}

/// What schemathesis makes up of the document must be answered as the document says.
///
/// Streams that do not end by themselves are left out, and so is what asks for a
/// WebSocket.
#[tokio::test(flavor = "multi_thread")]
async fn the_document_keeps_what_it_promises() {
    let Some(folder) = python() else { return };
    let server = Server::guarded().await;
    let token = server.token("alice", TokenRole::Admin).await;
    let mut schemathesis = Command::new(folder.join("bin/schemathesis"));
    schemathesis
        .current_dir(&folder)
        .arg("run")
        .arg(format!("{}/api/openapi.json", server.url))
        .args(["--header", &format!("Authorization: Bearer {token}")])
        .args(["--seed", "7", "--max-examples", "8", "--max-time", "90"])
        .args([
            "--phases",
            "examples,coverage,fuzzing",
            "--no-shrink",
            "--no-color",
        ])
        .args(["--continue-on-failure", "--generation-database", "none"])
        .args(["--request-timeout", "20", "--suppress-health-check", "all"])
        .args(["--checks", CHECKS])
        .args(["--exclude-path-regex", "/events"]);
    let told = tokio::task::spawn_blocking(move || run(&mut schemathesis)).await;
    told.unwrap().unwrap_or_else(|why| panic!("{why}"));
}

/// What every answer is held to.
const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,\
                      response_headers_conformance,response_schema_conformance";

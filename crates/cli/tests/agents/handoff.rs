//! Tests handing sessions over to other agents' published programs.
//!
//! Each program is started in its own home against a mock provider, and the request it
//! sends is checked. Then the session that it wrote is imported back.
//!
//! The programs are large, so these tests are ignored by default: `cargo nextest run -p
//! throughline-cli --test agents --run-ignored only`.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};
use throughline_mock_provider::{MockProvider, Script};

use crate::client_packages::{node, run_command};
use crate::{Home, clients_folder};

const QUESTION: &str = "What did we decide?";
/// The beginning of the handoff prompt.
const PROMPT: &str = "You continue another agent's conversation.";
/// The messages of the session, in order.
const MESSAGES: [&str; 4] = [
    "Add a rate limiter",
    "I look.",
    "fn limit() {}",
    "It is a token bucket.",
];

fn assert_in_order(request: &str, pieces: &[&str]) {
    let mut from = 0;
    for piece in pieces {
        match request[from..].find(piece) {
            Some(at) => from += at,
            None => panic!("{piece:?} is not in its place in {request}"),
        }
    }
}

/// A session with a tool call and its result, a pin and a decision; and the folder of the
/// programs.
struct HandoffFixture {
    home: Home,
    programs: PathBuf,
    stand_in: MockProvider,
}

impl HandoffFixture {
    fn new() -> Option<Self> {
        let programs = node(&clients_folder().join("programs"))?;
        let handed = Self {
            home: Home::new(),
            programs,
            stand_in: MockProvider::start(Script::default()).unwrap(),
        };
        handed.tl(&["new", "--name", "limiter"], "");
        let said = [
            json!({"role": "user", "content": "Add a rate limiter"}),
            json!({"role": "assistant", "provider": "anthropic", "model": "claude-x", "content": [
                {"type": "text", "text": "I look."},
                {"type": "tool_call", "id": "c1", "name": "read", "input": {"path": "limit.rs"}},
            ]}),
            json!({"role": "tool", "tool_call_id": "c1", "content": "fn limit() {}"}),
            json!({"role": "assistant", "content": "It is a token bucket."}),
        ];
        let lines: String = said.iter().map(|line| format!("{line}\n")).collect();
        handed.tl(&["append", "limiter", "--json"], &lines);
        handed.tl(&["pin", "limiter", "100 a minute"], "");
        handed.tl(&["decide", "limiter", "Token bucket"], "");
        Some(handed)
    }

    /// Runs `tl` and returns its stdout.
    fn tl(&self, args: &[&str], input: &str) -> String {
        let given = self.home.folder.path().join("input");
        fs::write(&given, input).unwrap();
        let mut tl = Command::new(env!("CARGO_BIN_EXE_tl"));
        let tl = self.home.configure(tl.args(args));
        let told = tl.stdin(fs::File::open(given).unwrap()).output().unwrap();
        assert!(told.status.success(), "{args:?}: {told:?}");
        String::from_utf8(told.stdout).unwrap().trim().to_owned()
    }

    /// Hands the session over; returns the arguments of the command to run, after the
    /// folder.
    fn run_handoff(&self, to: &str) -> Vec<String> {
        let command = self.tl(&["handoff", "limiter", "--to", to, "--write"], "");
        let (_, command) = command.split_once(" && ").unwrap();
        shell_words::split(command).unwrap()
    }

    /// Reads the prompt that was written for an agent without a session file.
    fn prompt(&self, to: &str) -> String {
        let told = self.tl(&["handoff", "limiter", "--to", to, "--json"], "");
        let told: Value = serde_json::from_str(&told).unwrap();
        fs::read_to_string(told["path"].as_str().unwrap()).unwrap()
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.home.folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn program(&self, name: &str) -> Command {
        let mut program = Command::new(self.programs.join("node_modules/.bin").join(name));
        let path = self.programs.join("node_modules/.bin");
        let path = format!("{}:/usr/local/bin:/usr/bin:/bin", path.display());
        program.env("PATH", path).env("NO_COLOR", "1");
        program
    }

    /// Runs a program; returns as JSON the last request that contains our question.
    fn ask_program(&self, program: &mut Command, question: &str) -> String {
        run_command(self.home.configure(program)).unwrap_or_else(|why| panic!("{why}"));
        let requests = self.stand_in.requests();
        let bodies = requests.iter().map(|request| request.body.to_string());
        let question = serde_json::to_string(question).unwrap();
        let mut asked = bodies.filter(|body| body.contains(question.trim_matches('"')));
        asked
            .next_back()
            .unwrap_or_else(|| panic!("nobody asked {question}"))
    }

    /// Asserts that the request contains all messages, in order.
    fn assert_whole(request: &str) {
        assert_in_order(request, &[MESSAGES.as_slice(), &[QUESTION]].concat());
    }

    /// Asserts that the request contains everything important.
    fn assert_prompted(request: &str) {
        assert_in_order(request, &["100 a minute", "Token bucket", "limit.rs"]);
        assert_in_order(request, &MESSAGES);
    }

    /// Asserts that the messages the agent added are imported, and nothing else.
    fn assert_imported_back(&self, agent: &str) {
        let told = self.tl(&["import", "--from", agent, "--json"], "");
        let told: Value = serde_json::from_str(&told).unwrap();
        let agent = &told["agents"][0];
        assert_eq!(told["ok"], true, "{told}");
        assert!(agent["appended"].as_u64().unwrap() >= 2, "{told}");
        assert_eq!(agent["wrong"], json!([]), "{told}");
    }
}

#[test]
#[ignore = "installs other agents, 1.3 GB"]
fn claude_code_goes_on_with_a_session() {
    let Some(handed) = HandoffFixture::new() else {
        return;
    };
    let command = handed.run_handoff("claude-code");
    assert_eq!(command[..2], ["claude", "--resume"]);
    let mut claude = handed.program("claude");
    claude
        .args(&command[1..])
        .args(["-p", QUESTION])
        .env("ANTHROPIC_BASE_URL", handed.stand_in.url())
        .env("ANTHROPIC_API_KEY", "a-key-of-no-worth");
    HandoffFixture::assert_whole(&handed.ask_program(&mut claude, QUESTION));
    handed.assert_imported_back("claude-code");
}

#[test]
#[ignore = "installs other agents, 1.3 GB"]
fn codex_goes_on_with_a_session() {
    let Some(handed) = HandoffFixture::new() else {
        return;
    };
    let command = handed.run_handoff("codex");
    assert_eq!(command[..2], ["codex", "resume"]);
    let url = handed.stand_in.url();
    handed.write(
        ".codex/config.toml",
        &format!(
            "model = \"stand-in\"\nmodel_provider = \"here\"\n[model_providers.here]\n\
             name = \"here\"\nbase_url = \"{url}/v1\"\nwire_api = \"responses\"\n"
        ),
    );
    let mut codex = handed.program("codex");
    codex.args([
        "exec",
        "--skip-git-repo-check",
        "resume",
        &command[2],
        QUESTION,
    ]);
    HandoffFixture::assert_whole(&handed.ask_program(&mut codex, QUESTION));
    handed.assert_imported_back("codex");
}

#[test]
#[ignore = "installs other agents, 1.3 GB"]
fn pi_goes_on_with_a_session() {
    let Some(handed) = HandoffFixture::new() else {
        return;
    };
    let command = handed.run_handoff("pi");
    assert_eq!(command[..2], ["pi", "--session"]);
    let model = json!({"id": "stand-in", "name": "stand-in", "reasoning": false, "input": ["text"],
        "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0},
        "contextWindow": 100_000, "maxTokens": 4_000});
    let models = json!({"providers": {"here": {"baseUrl": format!("{}/v1", handed.stand_in.url()),
        "api": "openai-completions", "apiKey": "x", "models": [model]}}});
    handed.write(".pi/agent/models.json", &models.to_string());
    let mut pi = handed.program("pi");
    pi.args(["--provider", "here", "--model", "stand-in"])
        .args(&command[1..])
        .args(["-p", QUESTION]);
    HandoffFixture::assert_whole(&handed.ask_program(&mut pi, QUESTION));
    handed.assert_imported_back("pi");
}

#[test]
#[ignore = "installs other agents, 1.3 GB"]
fn gemini_cli_takes_the_prompt() {
    let Some(handed) = HandoffFixture::new() else {
        return;
    };
    let prompt = handed.prompt("gemini");
    handed.write(
        ".gemini/settings.json",
        r#"{"security":{"auth":{"selectedType":"gemini-api-key"}}}"#,
    );
    let mut gemini = handed.program("gemini");
    gemini
        .args(["--skip-trust", "-m", "gemini-2.5-flash", "-p", &prompt])
        .env("GEMINI_API_KEY", "x")
        .env("GOOGLE_GEMINI_BASE_URL", handed.stand_in.url());
    HandoffFixture::assert_prompted(&handed.ask_program(&mut gemini, PROMPT));
    handed.assert_imported_back("gemini");
}

#[test]
#[ignore = "installs other agents, 1.3 GB"]
fn opencode_takes_the_prompt() {
    let Some(handed) = HandoffFixture::new() else {
        return;
    };
    let prompt = handed.prompt("opencode");
    let options = json!({"baseURL": format!("{}/v1", handed.stand_in.url()), "apiKey": "x"});
    let config = json!({"model": "here/stand-in", "provider": {"here": {
        "npm": "@ai-sdk/openai-compatible", "name": "here", "options": options,
        "models": {"stand-in": {"name": "stand-in"}}}}});
    handed.write(".config/opencode/opencode.json", &config.to_string());
    let mut opencode = handed.program("opencode");
    opencode.args(["run", &prompt]);
    HandoffFixture::assert_prompted(&handed.ask_program(&mut opencode, PROMPT));
    handed.assert_imported_back("opencode");
}

#[test]
#[ignore = "installs other agents, 1.3 GB"]
fn goose_takes_the_prompt() {
    let Some(handed) = HandoffFixture::new() else {
        return;
    };
    handed.write("prompt.md", &handed.prompt("goose"));
    let mut goose = handed.program("goose-binary-linux-x64");
    goose
        .args(["run", "--instructions"])
        .arg(handed.home.folder.path().join("prompt.md"))
        .env("GOOSE_PROVIDER", "openai")
        .env("GOOSE_MODEL", "stand-in")
        .env("GOOSE_DISABLE_KEYRING", "1")
        .env("OPENAI_HOST", handed.stand_in.url())
        .env("OPENAI_API_KEY", "x");
    HandoffFixture::assert_prompted(&handed.ask_program(&mut goose, PROMPT));
    handed.assert_imported_back("goose");
}

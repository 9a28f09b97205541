//! Readers of files, a target an agent.

use std::fs;
use std::path::{Path, PathBuf};

use throughline_formats::Agent;
use throughline_fuzz::mutate::{self, Mutation};
use throughline_fuzz::{Case, Choices, Input, Target, fuzz};

use crate::properties::{check, garbage_is_told};
use crate::{corpus, fixtures};

/// A file that is changed, and the source that it is part of.
struct Document {
    file: &'static str,
    source: &'static str,
}

const fn alone(file: &'static str) -> Document {
    Document { file, source: file }
}

const fn beside(file: &'static str, source: &'static str) -> Document {
    Document { file, source }
}

/// Fixtures of one agent, in a folder of their own where they can be changed.
struct Sources {
    agent: Agent,
    documents: Vec<Document>,
    folder: tempfile::TempDir,
}

impl Sources {
    fn new(agent: Agent, documents: Vec<Document>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for document in &documents {
            for file in [document.file, document.source] {
                let from = fixtures().join(file);
                let to = folder.path().join(file);
                fs::create_dir_all(to.parent().unwrap()).unwrap();
                fs::copy(from, to).unwrap();
            }
        }
        Self {
            agent,
            documents,
            folder,
        }
    }

    fn target(&self) -> Target {
        let case = |document: &Document| Case {
            name: document.file.replace('/', "-"),
            seeds: vec![fs::read(fixtures().join(document.file)).unwrap()],
            mutation: mutation(Path::new(document.file)),
        };
        let cases = self.documents.iter().map(case).collect();
        Target::new(self.agent.name(), &corpus(), cases)
    }

    fn check(&self, input: &Input) {
        let Document { file, source } = &self.documents[input.case];
        let changed = self.folder.path().join(file);
        fs::write(&changed, &input.bytes).unwrap();
        let told = check(self.agent, &self.folder.path().join(source));
        if let Some(told) = told
            && Path::new(file).extension().is_some_and(|it| it == "jsonl")
        {
            garbage_is_told(&input.bytes, &told);
        }
        fs::copy(fixtures().join(file), changed).unwrap();
    }
}

fn mutation(file: &Path) -> Mutation {
    match file.extension().and_then(|extension| extension.to_str()) {
        Some("jsonl") => mutate::json_lines,
        Some("json") => mutate::json_document,
        _ => mutate::text,
    }
}

macro_rules! targets {
    ($($test:ident: $agent:ident [$($document:expr),+ $(,)?];)+) => {$(
        #[test]
        fn $test() {
            let sources = Sources::new(Agent::$agent, vec![$($document),+]);
            fuzz!(sources.target(), |input: &Input| sources.check(input));
        }
    )+};
}

const AIARMY: &str = "aiarmy/session-abc12345/full.json";
const DAGENT: &str = "dagent/session_pm-feature-auth.json";
const OPENCODE: &str = "opencode/storage/session/p1/ses_1.json";

targets! {
    claude_code: ClaudeCode [
        alone("claude-code/11111111-1111-4111-8111-111111111111.jsonl"),
        alone("claude-code/22222222-2222-4222-8222-222222222222.jsonl"),
        alone("claude-code/agent-0a1b2c3d.jsonl"),
    ];
    codex: Codex [
        alone("codex/rollout-2026-01-02T10-00-00-33333333-3333-4333-8333-333333333333.jsonl"),
        alone("codex/rollout-2026-01-03T10-00-00-44444444-4444-4444-8444-444444444444.jsonl"),
        alone("codex/rollout-2026-01-03T11-00-00-55555555-5555-4555-8555-555555555555.jsonl"),
        alone("codex/session_index.jsonl"),
    ];
    gemini: Gemini [
        alone("gemini/chats/session-2026-01-02T10-00-main1.jsonl"),
        alone("gemini/chats/main-1/sub-1.jsonl"),
        alone("gemini/chats/session-legacy.json"),
    ];
    opencode: OpenCode [
        alone("opencode/export.json"),
        alone(OPENCODE),
        beside("opencode/storage/message/ses_1/msg_2.json", OPENCODE),
        beside("opencode/storage/part/msg_2/prt_2.json", OPENCODE),
    ];
    goose: Goose [alone("goose/20250101_120000.jsonl")];
    pi: Pi [alone("pi/2026-01-02T10-00-00-000Z_66666666-6666-4666-8666-666666666666.jsonl")];
    aider: Aider [alone("aider.chat.history.md")];
    chatgpt: ChatGpt [alone("chatgpt.json")];
    conversations: Conversations [alone("items.json")];
    plain: Plain [alone("messages.json")];
    aiarmy: AiArmy [
        alone(AIARMY),
        beside("aiarmy/session-abc12345/metadata.json", AIARMY),
        beside("aiarmy/session-abc12345/state.json", AIARMY),
        beside("aiarmy/session-abc12345/working.json", AIARMY),
    ];
    chat_loop: ChatLoop [alone("chat_loop.md")];
    bot: Bot [alone("sessions.json")];
    agent_cli: AgentCli [
        alone("agent-cli/2026-01-04-14-32-15-001-abcd.json"),
        beside("agent-cli/index.json", "agent-cli/2026-01-04-14-32-15-001-abcd.json"),
    ];
    dagent: Dagent [
        alone(DAGENT),
        beside("dagent/chat_pm-feature-auth.json", DAGENT),
        beside("dagent/checkpoint_pm-feature-auth.json", DAGENT),
        beside("dagent/context_pm-feature-auth.json", DAGENT),
        beside("dagent/agent-description_pm-feature-auth.json", DAGENT),
    ];
}

fn packed(bytes: &[u8]) -> Vec<u8> {
    let level = ruzstd::encoding::CompressionLevel::Fastest;
    ruzstd::encoding::compress_to_vec(bytes, level)
}

/// Changes what is packed, or the packed bytes.
fn packed_lines(document: Vec<u8>, others: &[Vec<u8>], by: &mut Choices<'_>) -> Option<Vec<u8>> {
    if by.one_in(2)? {
        return mutate::bytes(document, others, by);
    }
    let mut lines = Vec::new();
    let decoder = ruzstd::decoding::StreamingDecoder::new(&document[..]);
    let read = decoder.map(|mut decoder| std::io::Read::read_to_end(&mut decoder, &mut lines));
    if !matches!(read, Ok(Ok(_))) {
        return Some(document);
    }
    Some(packed(&mutate::json_lines(lines, &[], by)?))
}

#[test]
fn codex_packed() {
    let name = "rollout-2026-01-02T10-00-00-33333333-3333-4333-8333-333333333333.jsonl";
    let plain = fs::read(fixtures().join("codex").join(name)).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path: PathBuf = folder.path().join(format!("{name}.zst"));
    let case = Case {
        name: "rollout".to_owned(),
        seeds: vec![packed(&plain)],
        mutation: packed_lines,
    };
    let target = Target::new("codex-packed", &corpus(), vec![case]);
    fuzz!(target, |input: &Input| {
        fs::write(&path, &input.bytes).unwrap();
        check(Agent::Codex, &path);
    });
}

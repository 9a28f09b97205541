//! Fuzz targets for file readers, one per format.

use std::fs;
use std::path::{Path, PathBuf};

use throughline_formats::SourceFormat;
use throughline_fuzz::mutate::{self, Mutation};
use throughline_fuzz::{Case, Choices, Input, Target, fuzz};

use crate::properties::{assert_garbage_reported, check};
use crate::{corpus, fixtures};

/// A file to mutate, and the source it belongs to.
struct Document {
    file: &'static str,
    source: &'static str,
}

const fn standalone(file: &'static str) -> Document {
    Document { file, source: file }
}

const fn part_of(file: &'static str, source: &'static str) -> Document {
    Document { file, source }
}

/// Fixtures of one format, in a folder where they can be changed.
struct Sources {
    agent: SourceFormat,
    documents: Vec<Document>,
    folder: tempfile::TempDir,
}

impl Sources {
    fn new(agent: SourceFormat, documents: Vec<Document>) -> Self {
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
        let output = check(self.agent, &self.folder.path().join(source));
        if let Some(output) = output
            && Path::new(file).extension().is_some_and(|it| it == "jsonl")
        {
            assert_garbage_reported(&input.bytes, &output);
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
            let sources = Sources::new(SourceFormat::$agent, vec![$($document),+]);
            fuzz!(sources.target(), |input: &Input| sources.check(input));
        }
    )+};
}

const AIARMY: &str = "aiarmy/session-abc12345/full.json";
const DAGENT: &str = "dagent/session_pm-feature-auth.json";
const OPENCODE: &str = "opencode/storage/session/p1/ses_1.json";

targets! {
    claude_code: ClaudeCode [
        standalone("claude-code/11111111-1111-4111-8111-111111111111.jsonl"),
        standalone("claude-code/22222222-2222-4222-8222-222222222222.jsonl"),
        standalone("claude-code/agent-0a1b2c3d.jsonl"),
    ];
    codex: Codex [
        standalone("codex/rollout-2026-01-02T10-00-00-33333333-3333-4333-8333-333333333333.jsonl"),
        standalone("codex/rollout-2026-01-03T10-00-00-44444444-4444-4444-8444-444444444444.jsonl"),
        standalone("codex/rollout-2026-01-03T11-00-00-55555555-5555-4555-8555-555555555555.jsonl"),
        standalone("codex/session_index.jsonl"),
    ];
    gemini: Gemini [
        standalone("gemini/chats/session-2026-01-02T10-00-main1.jsonl"),
        standalone("gemini/chats/main-1/sub-1.jsonl"),
        standalone("gemini/chats/session-legacy.json"),
    ];
    opencode: OpenCode [
        standalone("opencode/export.json"),
        standalone(OPENCODE),
        part_of("opencode/storage/message/ses_1/msg_2.json", OPENCODE),
        part_of("opencode/storage/part/msg_2/prt_2.json", OPENCODE),
    ];
    goose: Goose [standalone("goose/20250101_120000.jsonl")];
    pi: Pi [standalone("pi/2026-01-02T10-00-00-000Z_66666666-6666-4666-8666-666666666666.jsonl")];
    aider: Aider [standalone("aider.chat.history.md")];
    chatgpt: ChatGpt [standalone("chatgpt.json")];
    conversations: Conversations [standalone("items.json")];
    plain: Plain [standalone("messages.json")];
    aiarmy: AiArmy [
        standalone(AIARMY),
        part_of("aiarmy/session-abc12345/metadata.json", AIARMY),
        part_of("aiarmy/session-abc12345/state.json", AIARMY),
        part_of("aiarmy/session-abc12345/working.json", AIARMY),
    ];
    chat_loop: ChatLoop [standalone("chat_loop.md")];
    bot: Bot [standalone("sessions.json")];
    agent_cli: AgentCli [
        standalone("agent-cli/2026-01-04-14-32-15-001-abcd.json"),
        part_of("agent-cli/index.json", "agent-cli/2026-01-04-14-32-15-001-abcd.json"),
    ];
    dagent: Dagent [
        standalone(DAGENT),
        part_of("dagent/chat_pm-feature-auth.json", DAGENT),
        part_of("dagent/checkpoint_pm-feature-auth.json", DAGENT),
        part_of("dagent/context_pm-feature-auth.json", DAGENT),
        part_of("dagent/agent-description_pm-feature-auth.json", DAGENT),
    ];
}

fn compress(bytes: &[u8]) -> Vec<u8> {
    let level = ruzstd::encoding::CompressionLevel::Fastest;
    ruzstd::encoding::compress_to_vec(bytes, level)
}

/// Mutates the compressed bytes, or the decompressed content.
fn mutate_compressed(
    document: Vec<u8>,
    others: &[Vec<u8>],
    by: &mut Choices<'_>,
) -> Option<Vec<u8>> {
    if by.one_in(2)? {
        return mutate::bytes(document, others, by);
    }
    let mut lines = Vec::new();
    let decoder = ruzstd::decoding::StreamingDecoder::new(&document[..]);
    let read = decoder.map(|mut decoder| std::io::Read::read_to_end(&mut decoder, &mut lines));
    if !matches!(read, Ok(Ok(_))) {
        return Some(document);
    }
    Some(compress(&mutate::json_lines(lines, &[], by)?))
}

#[test]
fn codex_packed() {
    let name = "rollout-2026-01-02T10-00-00-33333333-3333-4333-8333-333333333333.jsonl";
    let plain = fs::read(fixtures().join("codex").join(name)).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path: PathBuf = folder.path().join(format!("{name}.zst"));
    let case = Case {
        name: "rollout".to_owned(),
        seeds: vec![compress(&plain)],
        mutation: mutate_compressed,
    };
    let target = Target::new("codex-packed", &corpus(), vec![case]);
    fuzz!(target, |input: &Input| {
        fs::write(&path, &input.bytes).unwrap();
        check(SourceFormat::Codex, &path);
    });
}

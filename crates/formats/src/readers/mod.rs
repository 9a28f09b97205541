//! Readers of other agents' sessions, a file a format.
//!
//! A reader tells what it finds as [`Incoming`], in order, and holds no more than it must:
//! formats of lines a line, databases a session. It is lenient, since formats drift: what
//! it does not know is kept as it was written, what is damaged or of no use is told as
//! passed over, and neither ends the reading.
//!
//! What is read here are files, folders and databases of other programs, so that these
//! readers take paths. They open them for reading only. A foreign SQLite file is a file
//! format like any other; that is the one reason why this crate has a driver for it.

mod agent_cli;
mod aiarmy;
mod aider;
mod bot;
mod chat_loop;
mod chatgpt;
mod claude_code;
mod codex;
mod conversations;
mod dagent;
mod discovery;
mod emitter;
mod foreign_database;
mod gemini;
mod goose;
mod line_format;
mod llm;
mod message_array;
mod message_content;
mod openai_agents;
mod openai_item;
mod opencode;
mod pi;
mod source_document;
mod zstd_reader;

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use throughline_model::{IncomingItem, Json};

pub use discovery::{DiscoveryContext, Source};

/// A system whose sessions can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SourceFormat {
    /// Claude Code: JSON Lines in a folder a project.
    ClaudeCode,
    /// Codex CLI: rollouts, JSON Lines in a folder a day.
    Codex,
    /// Gemini CLI: JSON Lines, or one JSON document, a session.
    Gemini,
    /// OpenCode: a database, its export, or a file a part.
    OpenCode,
    /// Goose: a database, or JSON Lines.
    Goose,
    /// pi: JSON Lines in a folder a project.
    Pi,
    /// aider: Markdown in the project's folder.
    Aider,
    /// llm: a database.
    Llm,
    /// ChatGPT's data export.
    ChatGpt,
    /// The SQLite sessions of the OpenAI Agents SDK.
    OpenAiAgents,
    /// Items of the OpenAI Conversations API.
    Conversations,
    /// A JSON document of messages with `role` and `content`.
    Plain,
    /// AIarmy: a folder of four JSON documents a session.
    AiArmy,
    /// The chat loop: a Markdown transcript a session.
    ChatLoop,
    /// The chat bot: one JSON document for all users.
    Bot,
    /// The agent CLI: a JSON document a session, and an index.
    AgentCli,
    /// dagent: five JSON documents a session.
    Dagent,
}

impl SourceFormat {
    /// All of them.
    pub const ALL: [Self; 17] = [
        Self::ClaudeCode,
        Self::Codex,
        Self::Gemini,
        Self::OpenCode,
        Self::Goose,
        Self::Pi,
        Self::Aider,
        Self::Llm,
        Self::ChatGpt,
        Self::OpenAiAgents,
        Self::Conversations,
        Self::Plain,
        Self::AiArmy,
        Self::ChatLoop,
        Self::Bot,
        Self::AgentCli,
        Self::Dagent,
    ];

    /// What it is called here.
    pub fn name(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude-code",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
            Self::OpenCode => "opencode",
            Self::Goose => "goose",
            Self::Pi => "pi",
            Self::Aider => "aider",
            Self::Llm => "llm",
            Self::ChatGpt => "chatgpt",
            Self::OpenAiAgents => "openai-agents",
            Self::Conversations => "conversations",
            Self::Plain => "messages",
            Self::AiArmy => "aiarmy",
            Self::ChatLoop => "chat-loop",
            Self::Bot => "bot",
            Self::AgentCli => "agent-cli",
            Self::Dagent => "dagent",
        }
    }
}

impl std::fmt::Display for SourceFormat {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

/// A word that is no agent's name.
#[derive(Debug, thiserror::Error)]
#[error("{name:?} is none of the systems that can be read: {}", list_names())]
pub struct UnknownFormat {
    name: String,
}

fn list_names() -> String {
    SourceFormat::ALL.map(SourceFormat::name).join(", ")
}

impl std::str::FromStr for SourceFormat {
    type Err = UnknownFormat;

    fn from_str(text: &str) -> Result<Self, UnknownFormat> {
        let named = Self::ALL.into_iter().find(|agent| agent.name() == text);
        named.ok_or_else(|| UnknownFormat {
            name: text.to_owned(),
        })
    }
}

/// Where a reader was when a source ended, so that it can go on when the source has grown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceCursor {
    /// How many bytes it has read.
    pub offset: u64,
    /// How many lines.
    pub line: u64,
    /// What it must know to go on.
    pub reader: Json,
}

/// Why a source cannot be read at all.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// It cannot be opened or read.
    #[error("{} cannot be read", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It is something else than it was taken for.
    #[error("{} is not what {format} writes: {reason}", .path.display())]
    WrongFormat {
        /// The file.
        path: PathBuf,
        /// Whose it was taken for.
        format: SourceFormat,
        /// Why it is not.
        reason: String,
    },
    /// Whoever was told has heard enough.
    #[error("the reading was stopped")]
    Stopped,
}

impl ReadError {
    fn wrong_format(format: SourceFormat, path: &Path, why: impl std::fmt::Display) -> Self {
        Self::WrongFormat {
            path: path.to_owned(),
            format,
            reason: why.to_string(),
        }
    }

    fn io(path: &Path, source: io::Error) -> Self {
        Self::Io {
            path: path.to_owned(),
            source,
        }
    }
}

/// Whoever listens to a reader. Answering `false` stops it.
pub type RecordSink<'a> = &'a mut dyn FnMut(IncomingItem) -> bool;

/// Reads a source from its beginning, or from a bookmark where the reader can go on.
///
/// Answers with the next bookmark, where there is one.
pub fn read(
    agent: SourceFormat,
    path: &Path,
    from: Option<&SourceCursor>,
    listener: RecordSink<'_>,
) -> Result<Option<SourceCursor>, ReadError> {
    let mut telling = emitter::Emitter::new(agent, path, listener);
    let telling = &mut telling;
    match agent {
        SourceFormat::ClaudeCode => line_format::read::<claude_code::ClaudeCode>(telling, from),
        SourceFormat::Codex => line_format::read::<codex::Codex>(telling, from),
        SourceFormat::Pi => line_format::read::<pi::Pi>(telling, from),
        SourceFormat::Aider => line_format::read::<aider::Aider>(telling, from),
        SourceFormat::Goose if is_json_lines(path) => {
            line_format::read::<goose::LegacyGoose>(telling, from)
        }
        SourceFormat::Goose => goose::read(telling, from),
        SourceFormat::OpenCode => opencode::read(telling, from),
        SourceFormat::Llm => llm::read(telling, from),
        SourceFormat::OpenAiAgents => openai_agents::read(telling, from),
        SourceFormat::Gemini => gemini::read(telling).map(|()| None),
        SourceFormat::ChatGpt => chatgpt::read(telling).map(|()| None),
        SourceFormat::Conversations => conversations::read(telling).map(|()| None),
        SourceFormat::Plain => message_array::read(telling).map(|()| None),
        SourceFormat::AiArmy => aiarmy::read(telling).map(|()| None),
        SourceFormat::ChatLoop => chat_loop::read(telling).map(|()| None),
        SourceFormat::Bot => bot::read(telling).map(|()| None),
        SourceFormat::AgentCli => agent_cli::read(telling).map(|()| None),
        SourceFormat::Dagent => dagent::read(telling).map(|()| None),
    }
}

fn is_json_lines(path: &Path) -> bool {
    path.extension()
        .is_some_and(|extension| extension == "jsonl")
}

//! Readers for other agents' sessions, one module per format.
//!
//! A reader emits what it finds as [`IncomingItem`]s, in order, and holds as little as
//! possible in memory: one line for line formats, one session for databases. It is lenient,
//! since formats change: unknown records are stored as they were written, and damaged or
//! irrelevant ones are reported as skipped; neither ends the reading.
//!
//! The sources are files, folders and databases of other programs, so these readers take
//! paths, which they open read-only. A foreign SQLite file is a file format like any other;
//! it is the only reason why this crate depends on a SQLite driver.

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
    /// Claude Code: JSON Lines, in one folder per project.
    ClaudeCode,
    /// Codex CLI: rollouts, which are JSON Lines, in one folder per day.
    Codex,
    /// Gemini CLI: JSON Lines or one JSON document per session.
    Gemini,
    /// OpenCode: a database, its export, or one file per part.
    OpenCode,
    /// Goose: a database, or JSON Lines.
    Goose,
    /// pi: JSON Lines, in one folder per project.
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
    /// AIarmy: a folder with four JSON documents per session.
    AiArmy,
    /// The chat loop: one Markdown transcript per session.
    ChatLoop,
    /// The chat bot: one JSON document for all users.
    Bot,
    /// The agent CLI: one JSON document per session, and an index.
    AgentCli,
    /// dagent: five JSON documents per session.
    Dagent,
}

impl SourceFormat {
    /// All formats.
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

    /// Returns the name used in commands and in stored sessions.
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

/// An unknown format name.
#[derive(Debug, thiserror::Error)]
#[error("{name:?} is not a supported format: use one of {}", list_names())]
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

/// The position a reader reached in a source, from which to continue when it has grown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceCursor {
    /// Number of bytes read.
    pub offset: u64,
    /// Number of lines read.
    pub line: u64,
    /// The reader's state.
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
        /// The I/O error.
        source: io::Error,
    },
    /// It does not have the expected format.
    #[error("{} is not a valid {format} source: {reason}", .path.display())]
    WrongFormat {
        /// The file.
        path: PathBuf,
        /// The expected format.
        format: SourceFormat,
        /// What is wrong with it.
        reason: String,
    },
    /// The sink stopped the reading.
    #[error("reading was stopped")]
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

/// Receives the items of a reader. Returning `false` stops it.
pub type RecordSink<'a> = &'a mut dyn FnMut(IncomingItem) -> bool;

/// Reads a source from its start, or from a cursor if the reader supports it.
///
/// Returns the next cursor, if there is one.
pub fn read(
    agent: SourceFormat,
    path: &Path,
    from: Option<&SourceCursor>,
    listener: RecordSink<'_>,
) -> Result<Option<SourceCursor>, ReadError> {
    let mut emitter = emitter::Emitter::new(agent, path, listener);
    let emitter = &mut emitter;
    match agent {
        SourceFormat::ClaudeCode => line_format::read::<claude_code::ClaudeCode>(emitter, from),
        SourceFormat::Codex => line_format::read::<codex::Codex>(emitter, from),
        SourceFormat::Pi => line_format::read::<pi::Pi>(emitter, from),
        SourceFormat::Aider => line_format::read::<aider::Aider>(emitter, from),
        SourceFormat::Goose if is_json_lines(path) => {
            line_format::read::<goose::LegacyGoose>(emitter, from)
        }
        SourceFormat::Goose => goose::read(emitter, from),
        SourceFormat::OpenCode => opencode::read(emitter, from),
        SourceFormat::Llm => llm::read(emitter, from),
        SourceFormat::OpenAiAgents => openai_agents::read(emitter, from),
        SourceFormat::Gemini => gemini::read(emitter).map(|()| None),
        SourceFormat::ChatGpt => chatgpt::read(emitter).map(|()| None),
        SourceFormat::Conversations => conversations::read(emitter).map(|()| None),
        SourceFormat::Plain => message_array::read(emitter).map(|()| None),
        SourceFormat::AiArmy => aiarmy::read(emitter).map(|()| None),
        SourceFormat::ChatLoop => chat_loop::read(emitter).map(|()| None),
        SourceFormat::Bot => bot::read(emitter).map(|()| None),
        SourceFormat::AgentCli => agent_cli::read(emitter).map(|()| None),
        SourceFormat::Dagent => dagent::read(emitter).map(|()| None),
    }
}

fn is_json_lines(path: &Path) -> bool {
    path.extension()
        .is_some_and(|extension| extension == "jsonl")
}

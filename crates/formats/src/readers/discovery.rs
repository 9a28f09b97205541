//! Finds the sessions of other agents, and detects the format of a file.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags};
use throughline_model::Timestamp;

use super::SourceFormat;

/// Maximum depth of folders to search.
const MAX_DEPTH: usize = 12;
/// Number of bytes of a file that are used to detect its format.
const DETECTION_BYTES: u64 = 64 * 1024;

/// A file or database with sessions of another system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// Its format.
    pub format: SourceFormat,
    /// Its path.
    pub path: PathBuf,
    /// Its size, including files that belong to it.
    pub bytes: u64,
    /// When it was last modified.
    pub modified: Option<Timestamp>,
}

/// Where to search: the user's folders and the environment.
pub struct DiscoveryContext<'a> {
    /// The home folder, if there is one.
    pub home: Option<&'a Path>,
    /// The working folder.
    pub folder: &'a Path,
    /// Looks up an environment variable.
    pub variable: &'a dyn Fn(&str) -> Option<String>,
}

impl DiscoveryContext<'_> {
    fn variable_path(&self, variable: &str) -> Option<PathBuf> {
        let value = (self.variable)(variable).filter(|value| !value.is_empty())?;
        Some(self.folder.join(value))
    }

    fn home_path(&self, name: &str) -> Option<PathBuf> {
        self.home.map(|home| home.join(name))
    }

    /// Returns a path in the folder that a variable names, or else in the home folder.
    fn base_path(&self, variable: &str, default: &str, within: &str) -> Option<PathBuf> {
        let base = self
            .variable_path(variable)
            .or_else(|| self.home_path(default))?;
        Some(base.join(within))
    }

    fn data_path(&self, within: &str) -> Option<PathBuf> {
        self.base_path("XDG_DATA_HOME", ".local/share", within)
    }
}

impl SourceFormat {
    /// Returns the default locations of its sessions, whether or not they exist.
    pub fn default_paths(self, around: &DiscoveryContext<'_>) -> Vec<PathBuf> {
        let here = |name: &str| Some(around.folder.join(name));
        let places = match self {
            Self::ClaudeCode => vec![around.base_path("CLAUDE_CONFIG_DIR", ".claude", "projects")],
            Self::Codex => ["sessions", "archived_sessions", "session_index.jsonl"]
                .map(|within| around.base_path("CODEX_HOME", ".codex", within))
                .to_vec(),
            Self::Gemini => vec![around.base_path("GEMINI_CLI_HOME", "", ".gemini/tmp")],
            Self::OpenCode => vec![around.data_path("opencode")],
            Self::Goose => vec![around.data_path("goose/sessions")],
            Self::Pi => vec![around.base_path("PI_CODING_AGENT_DIR", ".pi/agent", "sessions")],
            Self::Aider => {
                let named = around.variable_path("AIDER_CHAT_HISTORY_FILE");
                vec![named.or_else(|| here(".aider.chat.history.md"))]
            }
            Self::Llm => {
                vec![around.base_path("LLM_USER_PATH", ".config/io.datasette.llm", "logs.db")]
            }
            Self::AiArmy => vec![
                around.home_path(".aiarmy/sessions"),
                here(".aiarmy/sessions"),
            ],
            Self::ChatLoop => vec![around.home_path("agent-conversations")],
            Self::Bot => vec![here("data/sessions.json")],
            Self::AgentCli => vec![around.home_path(".agent/sessions")],
            Self::Dagent => vec![here(".dagent-worktrees")],
            Self::ChatGpt | Self::OpenAiAgents | Self::Conversations | Self::Plain => Vec::new(),
        };
        places.into_iter().flatten().collect()
    }

    /// Returns the sources in a folder, or the file itself. They are sorted by path, with
    /// sources that refer to others after these.
    pub fn find_sources(self, place: &Path) -> Vec<Source> {
        let mut found = Vec::new();
        if place.is_file() {
            found.extend(self.stat_source(place.to_owned()));
        } else {
            self.walk(place, 0, &mut found);
        }
        // Skip older files whose sessions were migrated to the database.
        if self == Self::OpenCode || self == Self::Goose {
            let is_database = |source: &Source| source.path.extension().is_some_and(|e| e == "db");
            if found.iter().any(is_database) {
                found.retain(is_database);
            }
        }
        let key = |source: &Source| {
            let depth = source.path.components().count();
            let names = source.path.ends_with("session_index.jsonl");
            // Sub-agents come after the sessions that started them.
            let name = source.path.file_name().unwrap_or_default();
            let started = name.to_string_lossy().starts_with("agent-");
            (names, started, depth, source.path.clone())
        };
        found.sort_by_cached_key(key);
        found
    }

    fn walk(self, folder: &Path, depth: usize, found: &mut Vec<Source>) {
        if depth > MAX_DEPTH {
            return;
        }
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            // Links to folders are not followed, since they may form a cycle.
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => self.walk(&path, depth + 1, found),
                Ok(_) if self.is_session_file(&path) => found.extend(self.stat_source(path)),
                _ => {}
            }
        }
    }

    fn stat_source(self, path: PathBuf) -> Option<Source> {
        let metadata = std::fs::metadata(&path)
            .ok()
            .filter(std::fs::Metadata::is_file)?;
        let mut source = Source {
            format: self,
            bytes: metadata.len(),
            modified: modified_at(&metadata),
            path,
        };
        // Include the write-ahead log of a database, and the other documents of a
        // session.
        for beside in self.sibling_paths(&source.path) {
            if let Ok(metadata) = std::fs::metadata(beside) {
                source.bytes += metadata.len();
                source.modified = source.modified.max(modified_at(&metadata));
            }
        }
        Some(source)
    }

    fn sibling_paths(self, path: &Path) -> Vec<PathBuf> {
        let folder = path.parent().unwrap_or(path);
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        match self {
            Self::OpenCode | Self::Goose | Self::Llm | Self::OpenAiAgents => {
                vec![folder.join(format!("{name}-wal"))]
            }
            Self::AiArmy => {
                let names = ["working.json", "state.json", "metadata.json"];
                names.iter().map(|name| folder.join(name)).collect()
            }
            Self::Dagent => {
                let rest = name.strip_prefix("session_").unwrap_or(&name);
                let kinds = ["chat", "checkpoint", "context", "agent-description"];
                let names = kinds.iter().map(|kind| format!("{kind}_{rest}"));
                names.map(|name| folder.join(name)).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Whether a file in its folder is one of its sessions.
    fn is_session_file(self, path: &Path) -> bool {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let ends = |ending: &str| name.ends_with(ending);
        let inside = |folder: &str| path.components().any(|part| part.as_os_str() == folder);
        match self {
            Self::ClaudeCode => ends(".jsonl") && name != "history.jsonl",
            Self::Codex => {
                let rollout = name.starts_with("rollout-");
                rollout && (ends(".jsonl") || ends(".jsonl.zst")) || name == "session_index.jsonl"
            }
            Self::Gemini => {
                (ends(".json") || ends(".jsonl")) && inside("chats") && name != "logs.json"
            }
            Self::OpenCode => {
                let legacy = path
                    .ancestors()
                    .nth(2)
                    .is_some_and(|p| p.ends_with("session"));
                name == "opencode.db" || ends(".json") && legacy
            }
            Self::Goose => name == "sessions.db" || ends(".jsonl"),
            Self::Pi => ends(".jsonl"),
            Self::Aider => name == ".aider.chat.history.md",
            Self::Llm => name == "logs.db",
            Self::ChatGpt => name.starts_with("conversations") && ends(".json"),
            Self::OpenAiAgents => ends(".db") || ends(".sqlite") || ends(".sqlite3"),
            Self::Conversations | Self::Plain => ends(".json"),
            Self::AiArmy => name == "full.json",
            Self::ChatLoop => ends(".md"),
            Self::Bot => name == "sessions.json",
            Self::AgentCli => ends(".json") && name != "index.json",
            Self::Dagent => name.starts_with("session_") && ends(".json"),
        }
    }

    /// Detects the format of a file by its name and its first bytes.
    pub fn detect(path: &Path) -> Option<Self> {
        let name = path.file_name()?.to_string_lossy().into_owned();
        let mut start = Vec::new();
        let file = std::fs::File::open(path).ok()?;
        file.take(DETECTION_BYTES).read_to_end(&mut start).ok()?;
        if start.starts_with(b"SQLite format 3\0") {
            return detect_database(path);
        }
        if name.ends_with(".jsonl.zst") {
            return Some(Self::Codex);
        }
        let text = String::from_utf8_lossy(&start);
        let text = text.trim_start_matches('\u{feff}').trim_start();
        if text.starts_with("# aider chat started at") {
            return Some(Self::Aider);
        }
        let ends = |extension: &str| path.extension().is_some_and(|it| it == extension);
        if ends("md") {
            let transcript = text.contains("**Session ID:**");
            return transcript.then_some(Self::ChatLoop);
        }
        let line = text.lines().next()?;
        let has = |member: &str| line.contains(&format!("\"{member}\""));
        if ends("jsonl") {
            return if has("throughline") {
                None
            } else if has("payload") && has("type") || name == "session_index.jsonl" {
                Some(Self::Codex)
            } else if has("projectHash") {
                Some(Self::Gemini)
            } else if line.contains("\"type\":\"session\"") && has("version") {
                Some(Self::Pi)
            } else if has("parentUuid")
                || has("leafUuid")
                || has("customTitle")
                || has("aiTitle")
                || has("sessionId") && has("type")
            {
                Some(Self::ClaudeCode)
            } else {
                has("working_dir").then_some(Self::Goose)
            };
        }
        detect_document(&name, text)
    }
}

fn detect_document(name: &str, text: &str) -> Option<SourceFormat> {
    let has = |member: &str| text.contains(&format!("\"{member}\""));
    let array = text.starts_with('[');
    if !array && !text.starts_with('{') || has("throughline") {
        return None;
    }
    if has("mapping") && has("current_node") || has("chat_messages") || array && has("mapping") {
        Some(SourceFormat::ChatGpt)
    } else if has("projectHash") {
        Some(SourceFormat::Gemini)
    } else if name == "full.json" && has("messages") {
        Some(SourceFormat::AiArmy)
    } else if name.starts_with("session_") && has("agentType") {
        Some(SourceFormat::Dagent)
    } else if has("metadata") && has("lastActivityAt") && has("messages") {
        Some(SourceFormat::AgentCli)
    } else if has("info") && has("parts") {
        Some(SourceFormat::OpenCode)
    } else if has("user_id") && has("history") {
        Some(SourceFormat::Bot)
    } else if text.contains("\"object\"") && text.contains("\"list\"")
        || array && (has("input_text") || has("output_text") || has("function_call"))
    {
        Some(SourceFormat::Conversations)
    } else if (array || has("messages")) && has("role") && has("content") {
        Some(SourceFormat::Plain)
    } else {
        None
    }
}

fn detect_database(path: &Path) -> Option<SourceFormat> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).ok()?;
    let has = |table: &str| {
        let question = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?1";
        connection.query_row(question, [table], |_| Ok(())).is_ok()
    };
    if has("agent_messages") && has("agent_sessions") {
        Some(SourceFormat::OpenAiAgents)
    } else if has("session") && has("part") {
        Some(SourceFormat::OpenCode)
    } else if has("sessions") && has("messages") {
        Some(SourceFormat::Goose)
    } else if has("responses") || has("turns") {
        Some(SourceFormat::Llm)
    } else {
        None
    }
}

fn modified_at(metadata: &std::fs::Metadata) -> Option<Timestamp> {
    Timestamp::try_from(metadata.modified().ok()?).ok()
}

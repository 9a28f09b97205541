//! Agent files: Markdown that defines an agent's role, with YAML front matter.
//!
//! ```
//! use throughline_llm::AgentFile;
//!
//! let text = "---\nmodel: anthropic/claude-sonnet-5-5\npolicy: chain\n---\nYou review code.\n";
//! let agent = AgentFile::parse(text, "agents/reviewer.md").unwrap();
//! assert_eq!((agent.name.as_str(), agent.describe().as_str()), ("reviewer", "You review code."));
//! ```
//!
//! Invariant: what cannot be parsed is reported with its line, never guessed.

mod agent_paths;
mod front_matter;

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use crate::{ModelSpec, SpecError};
use front_matter::FrontMatter;

pub use agent_paths::{agent_candidates, agent_folders};

/// A parsed agent file.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentFile {
    /// Name of the agent; defaults to the name of the file.
    pub name: String,
    /// What the agent is for, shown to users.
    pub description: Option<String>,
    /// The model spec.
    pub model: Option<String>,
    /// The model's provider.
    pub provider: Option<String>,
    /// Base URL of the provider.
    pub base_url: Option<String>,
    /// The context policy.
    pub policy: Option<String>,
    /// Instructions for using tools, one per item.
    pub tools: Vec<String>,
    /// The agent's role: everything below the front matter.
    pub role: String,
    /// Unknown fields, with their lines.
    pub unknown: BTreeMap<String, (usize, Value)>,
    /// Path of the file.
    pub path: String,
}

/// What is wrong with an agent file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AgentFileError {
    /// The front matter is not closed.
    #[error("{path}, line 1: the front matter is not closed: end it with a line of ---")]
    Unclosed {
        /// The file.
        path: String,
    },
    /// The front matter is not valid YAML.
    #[error("{path}, line {line}: {why}")]
    Yaml {
        /// The file.
        path: String,
        /// The line, counted from 1.
        line: usize,
        /// What is wrong.
        why: String,
    },
    /// A field has the wrong type.
    #[error("{path}, line {line}: {key} must be {expected}")]
    Value {
        /// The file.
        path: String,
        /// The line, counted from 1.
        line: usize,
        /// The field.
        key: &'static str,
        /// The expected type.
        expected: &'static str,
    },
}

impl AgentFile {
    /// Parses the text of the file at `path`.
    pub fn parse(text: &str, path: &str) -> Result<Self, AgentFileError> {
        let (mut front, role) = FrontMatter::parse(text, path)?;
        let stem = Path::new(path)
            .file_stem()
            .map(|stem| stem.to_string_lossy());
        let name = front.take_text("name")?;
        Ok(Self {
            name: name.unwrap_or_else(|| stem.unwrap_or_default().into_owned()),
            description: front.take_text("description")?,
            // Other agents write `inherit` for the model already in use.
            model: front.take_text("model")?.filter(|model| model != "inherit"),
            provider: front.take_text("provider")?,
            base_url: front.take_text("base_url")?,
            policy: front.take_text("policy")?,
            tools: front.take_texts("tools")?,
            role: role.trim().to_owned(),
            unknown: front.into_unknown(),
            path: path.to_owned(),
        })
    }

    /// Returns the agent's part of the system prompt: its role, then the tool instructions.
    pub fn describe(&self) -> String {
        let tools = match self.tools.as_slice() {
            [] => String::new(),
            [only] => format!("# Tools\n\n{only}"),
            items => {
                let items: String = items.iter().map(|item| format!("\n- {item}")).collect();
                format!("# Tools\n{items}")
            }
        };
        let parts = [self.role.as_str(), tools.as_str()];
        let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        parts.join("\n\n")
    }

    /// Returns the model spec.
    pub fn model_spec(&self) -> Result<ModelSpec, SpecError> {
        let spec = match (&self.provider, &self.model) {
            (None, Some(model)) => ModelSpec::parse(model)?,
            (provider, model) => ModelSpec {
                provider: provider.clone(),
                model: model.clone(),
                ..ModelSpec::default()
            },
        };
        Ok(ModelSpec {
            base_url: self.base_url.clone().or(spec.base_url.clone()),
            ..spec
        })
    }

    /// Returns a warning for each unknown field.
    pub fn warnings(&self) -> Vec<String> {
        self.unknown
            .iter()
            .map(|(key, (line, _))| format!("{}, line {line}: unknown field `{key}`", self.path))
            .collect()
    }
}

#[cfg(test)]
mod tests;

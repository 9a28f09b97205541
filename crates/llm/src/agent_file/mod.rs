//! Agents' files: Markdown that says what an agent is, with YAML above it.
//!
//! ```
//! use throughline_llm::AgentFile;
//!
//! let text = "---\nmodel: anthropic/claude-sonnet-5-5\npolicy: chain\n---\nYou review code.\n";
//! let agent = AgentFile::parse(text, "agents/reviewer.md").unwrap();
//! assert_eq!((agent.name.as_str(), agent.describe().as_str()), ("reviewer", "You review code."));
//! ```
//!
//! Invariant: what is not understood is told, with its line, and never guessed at.

mod agent_paths;
mod front_matter;

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use crate::{ModelSpec, SpecError};
use front_matter::FrontMatter;

pub use agent_paths::{agent_candidates, agent_folders};

/// What an agent's file says.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentFile {
    /// What the agent is called; the file's name where it does not say.
    pub name: String,
    /// What it is for, for people.
    pub description: Option<String>,
    /// The model, as a spec.
    pub model: Option<String>,
    /// Who is to serve it.
    pub provider: Option<String>,
    /// Where to reach the provider.
    pub base_url: Option<String>,
    /// The policy that requests are made by.
    pub policy: Option<String>,
    /// How to use tools, item by item.
    pub tools: Vec<String>,
    /// What it is and does: everything below the front matter.
    pub role: String,
    /// What else it says, and on which line.
    pub unknown: BTreeMap<String, (usize, Value)>,
    /// The file.
    pub path: String,
}

/// What is wrong with an agent's file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AgentFileError {
    /// The front matter does not end.
    #[error("{path}, line 1: the front matter has no end: close it with a line of ---")]
    Unclosed {
        /// The file.
        path: String,
    },
    /// The front matter is no YAML.
    #[error("{path}, line {line}: {why}")]
    Yaml {
        /// The file.
        path: String,
        /// Where in it.
        line: usize,
        /// What is wrong.
        why: String,
    },
    /// A value is not what it should be.
    #[error("{path}, line {line}: {key} has to be {expected}")]
    Value {
        /// The file.
        path: String,
        /// Where in it.
        line: usize,
        /// Of what.
        key: &'static str,
        /// What it should be.
        expected: &'static str,
    },
}

impl AgentFile {
    /// Reads the text of the file at `path`.
    pub fn parse(text: &str, path: &str) -> Result<Self, AgentFileError> {
        let (mut front, role) = FrontMatter::parse(text, path)?;
        let stem = Path::new(path)
            .file_stem()
            .map(|stem| stem.to_string_lossy());
        let name = front.take_text("name")?;
        Ok(Self {
            name: name.unwrap_or_else(|| stem.unwrap_or_default().into_owned()),
            description: front.take_text("description")?,
            // As others write it for the model that is in use anyway.
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

    /// What a model is told of the agent: its role, then how to use tools.
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
        let said: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        said.join("\n\n")
    }

    /// The model that is wanted.
    pub fn model_spec(&self) -> Result<ModelSpec, SpecError> {
        let wanted = match (&self.provider, &self.model) {
            (None, Some(model)) => ModelSpec::parse(model)?,
            (provider, model) => ModelSpec {
                provider: provider.clone(),
                model: model.clone(),
                ..ModelSpec::default()
            },
        };
        Ok(ModelSpec {
            base_url: self.base_url.clone().or(wanted.base_url.clone()),
            ..wanted
        })
    }

    /// A word on each thing that means nothing.
    pub fn warnings(&self) -> Vec<String> {
        self.unknown
            .iter()
            .map(|(key, (line, _))| {
                format!("{}, line {line}: `{key}` means nothing here", self.path)
            })
            .collect()
    }
}

#[cfg(test)]
mod tests;

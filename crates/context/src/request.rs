//! The request for a model, with an account of what it contains and what was left out.

use serde::Serialize;
use throughline_model::{Content, Role, Seq};

use crate::EntryRef;

/// A request for a model.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Request {
    /// The name of the policy it was built with.
    pub policy: String,
    /// The maximum number of tokens.
    pub budget: u64,
    /// The number of tokens: the sum over the sections.
    pub tokens: u64,
    /// The sections, the stable ones first. All seven are present, even if empty.
    pub sections: Vec<Section>,
    /// The messages to send: at most one system message, first, with one block per
    /// section; then user, assistant and tool messages in an order that every provider
    /// accepts.
    pub messages: Vec<RequestMessage>,
    /// The problems of the log that were repaired in this request.
    pub repairs: Vec<Repair>,
}

impl Request {
    /// The section with this name.
    pub fn section(&self, name: SectionName) -> Option<&Section> {
        self.sections.iter().find(|section| section.name == name)
    }
}

/// The sections in sending order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SectionName {
    /// The agent's instructions.
    Agent,
    /// Project context.
    Context,
    /// Facts remembered across sessions.
    Memory,
    /// The summary of earlier messages, with pins and decisions.
    Checkpoint,
    /// The latest messages, verbatim.
    Recent,
    /// Relevant excerpts of earlier conversations.
    Recalled,
    /// The new message.
    Message,
}

impl SectionName {
    /// All sections, in order.
    pub const ALL: [Self; 7] = [
        Self::Agent,
        Self::Context,
        Self::Memory,
        Self::Checkpoint,
        Self::Recent,
        Self::Recalled,
        Self::Message,
    ];

    /// The name as serialized.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Context => "context",
            Self::Memory => "memory",
            Self::Checkpoint => "checkpoint",
            Self::Recent => "recent",
            Self::Recalled => "recalled",
            Self::Message => "message",
        }
    }
}

impl std::fmt::Display for SectionName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

/// One section of a request.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Section {
    /// The section's name.
    pub name: SectionName,
    /// The number of tokens, including delimiters.
    pub tokens: u64,
    /// The percentage of the request's tokens, to one decimal.
    pub share: f64,
    /// The text; messages are rendered as readable text.
    pub text: String,
    /// The entries it is built from.
    pub entries: Vec<EntryRef>,
    /// The relevance score of each entry, if they were selected by relevance.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub scores: Vec<f32>,
    /// What was left out of it.
    pub left_out: Vec<Omission>,
    /// Whether the request is the same as the previous one up to the end of this
    /// section, so that a provider's cache breakpoint should be set here.
    pub cache_breakpoint: bool,
}

impl Section {
    pub(crate) fn new(name: SectionName) -> Self {
        Self {
            name,
            tokens: 0,
            share: 0.0,
            text: String::new(),
            entries: Vec::new(),
            scores: Vec::new(),
            left_out: Vec::new(),
            cache_breakpoint: false,
        }
    }
}

/// Something left out of the request, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Omission {
    /// What was left out.
    #[serde(rename = "what")]
    pub description: String,
    /// Why: `over the budget`, `policy keeps last 2 messages`…
    #[serde(rename = "why")]
    pub reason: String,
    /// Its tokens; `None` if it was not loaded.
    pub tokens: Option<u64>,
    /// The number of entries.
    pub entries: u64,
}

impl Omission {
    pub(crate) fn new(what: impl Into<String>, why: impl Into<String>) -> Self {
        Self {
            description: what.into(),
            reason: why.into(),
            tokens: None,
            entries: 0,
        }
    }

    pub(crate) fn with_tokens(mut self, tokens: u64) -> Self {
        self.tokens = Some(tokens);
        self
    }

    pub(crate) fn with_entries(mut self, entries: usize) -> Self {
        self.entries = entries as u64;
        self
    }
}

/// A message to send.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RequestMessage {
    /// The role.
    pub role: Role,
    /// The content. Never empty.
    pub content: Content,
    /// The indexes of the blocks after which a provider's cache breakpoint should be
    /// set.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub breakpoints: Vec<usize>,
}

/// A problem of the log that was repaired in the request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Repair {
    /// The kind of problem.
    pub kind: RepairKind,
    /// The entry; `None` for the new message or the request as a whole.
    pub seq: Option<Seq>,
    /// How it was repaired.
    #[serde(rename = "what")]
    pub description: String,
}

impl Repair {
    pub(crate) fn new(kind: RepairKind, seq: Option<Seq>, what: impl Into<String>) -> Self {
        Self {
            kind,
            seq,
            description: what.into(),
        }
    }
}

/// The kinds of problems in a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RepairKind {
    /// A tool call without a result.
    UnpairedCall,
    /// A tool result without a call.
    UnpairedResult,
    /// A tool result that did not directly follow its call.
    MovedResult,
    /// A tool call outside an assistant message.
    MisplacedCall,
    /// A tool call with an id that was used before.
    RepeatedId,
    /// A message without content.
    EmptyMessage,
    /// Two consecutive messages with the same role.
    SameRole,
    /// A conversation that does not start with the user.
    FirstRole,
    /// A system message within the conversation.
    SystemNote,
    /// A lone surrogate in a tool's input.
    LoneSurrogate,
}

/// Why no request can be built.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// The new message alone exceeds the budget.
    #[error("the message has {tokens} tokens, but the budget is {budget}")]
    MessageTooLarge {
        /// The tokens of the message.
        tokens: u64,
        /// The budget.
        budget: u64,
    },
}

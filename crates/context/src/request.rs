//! A request: what the model would be sent now, and why it is that.

use serde::Serialize;
use throughline_model::{Content, Role, Seq};

use crate::EntryRef;

/// What the model would be sent now.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Request {
    /// The policy it was made by.
    pub policy: String,
    /// The most tokens it could have had.
    pub budget: u64,
    /// The tokens it has: the sum over the sections.
    pub tokens: u64,
    /// What it is made of, stable first. All seven are there, empty or not.
    pub sections: Vec<Section>,
    /// What to send: at most one system message, first, with a block a section; then
    /// user, assistant and tool messages in an order every provider takes.
    pub messages: Vec<RequestMessage>,
    /// What was wrong in the log and is right in here.
    pub repairs: Vec<Repair>,
}

impl Request {
    /// The section of this name.
    pub fn section(&self, name: SectionName) -> Option<&Section> {
        self.sections.iter().find(|section| section.name == name)
    }
}

/// The sections in the order they are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SectionName {
    /// What the agent is and does.
    Agent,
    /// Project context.
    Context,
    /// What is remembered across sessions.
    Memory,
    /// What earlier messages came to, with pins and decisions.
    Checkpoint,
    /// The latest messages as they were said.
    Recent,
    /// What was said before that may matter now.
    Recalled,
    /// The new message.
    Message,
}

impl SectionName {
    /// All of them, in order.
    pub const ALL: [Self; 7] = [
        Self::Agent,
        Self::Context,
        Self::Memory,
        Self::Checkpoint,
        Self::Recent,
        Self::Recalled,
        Self::Message,
    ];

    /// The name as it is written.
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

/// One part of a request.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Section {
    /// Which.
    pub name: SectionName,
    /// What it costs, delimiters included.
    pub tokens: u64,
    /// Percent of the request's tokens, to one decimal.
    pub share: f64,
    /// What it says. Of messages, as a person would read them.
    pub text: String,
    /// The entries it is made from.
    pub entries: Vec<EntryRef>,
    /// How well each of them matches, where they were chosen for that.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub scores: Vec<f32>,
    /// What it could have said besides.
    pub left_out: Vec<Omission>,
    /// Whether the request is the same as the last one up to the end of this section,
    /// so that a provider's cache should be marked here.
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

/// Something that is not in the request, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Omission {
    /// What.
    #[serde(rename = "what")]
    pub description: String,
    /// Why: `no room`, `over its share`, `policy keeps last 2 messages`…
    #[serde(rename = "why")]
    pub reason: String,
    /// What it would have cost; none where it was not loaded.
    pub tokens: Option<u64>,
    /// How many entries it is.
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
    /// Who speaks.
    pub role: Role,
    /// What is said. Never empty.
    pub content: Content,
    /// The blocks, by index, after which a provider's cache should be marked.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub breakpoints: Vec<usize>,
}

/// Something wrong in the log that is right in the request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Repair {
    /// What kind of thing.
    pub kind: RepairKind,
    /// The entry; none for the new message or the request as a whole.
    pub seq: Option<Seq>,
    /// What was done about it.
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

/// What can be wrong in a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RepairKind {
    /// A tool call without a result.
    UnpairedCall,
    /// A tool result without a call.
    UnpairedResult,
    /// A tool result that did not follow its call.
    MovedResult,
    /// A tool call that the model did not make.
    MisplacedCall,
    /// A tool call whose id another has.
    RepeatedId,
    /// A message that says nothing.
    EmptyMessage,
    /// Two messages in a row by the same speaker.
    SameRole,
    /// A conversation that the user did not begin.
    FirstRole,
    /// A system message amid the conversation.
    SystemNote,
    /// Half a character in a tool's input.
    LoneSurrogate,
}

/// Why there is no request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// The new message alone is more than the budget.
    #[error("the message has {tokens} tokens and the budget is {budget}")]
    MessageTooLarge {
        /// What it costs.
        tokens: u64,
        /// What there is.
        budget: u64,
    },
}

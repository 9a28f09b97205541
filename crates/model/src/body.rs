//! The kinds of entries that a session log can contain.
//!
//! Bodies are serialized as objects with a `kind`. A kind or version that this build
//! does not know is decoded as [`Body::Unknown`] and keeps its text: it is stored,
//! copied and exported unchanged, and ignored by the fold.

use serde::{Deserialize, Serialize};

use crate::{
    Content, Digest, Json, Name, ProjectId, RememberedFact, Seq, SessionId, Summary, Tag,
    Timestamp, Usage,
};

/// The role of a message's author.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The user, or a program acting for them.
    User,
    /// The model.
    Assistant,
    /// System instructions.
    System,
    /// A tool.
    Tool,
}

impl Role {
    /// The role as serialized.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::System => "system",
            Self::Tool => "tool",
        }
    }
}

impl std::fmt::Display for Role {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

impl std::str::FromStr for Role {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "user" => Ok(Self::User),
            "assistant" => Ok(Self::Assistant),
            "system" => Ok(Self::System),
            "tool" => Ok(Self::Tool),
            other => Err(format!(
                "{other:?} is not a role: use user, assistant, system or tool"
            )),
        }
    }
}

/// A message of the conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// The author's role.
    pub role: Role,
    /// The content blocks.
    pub content: Content,
    /// The model that generated it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The provider that served the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// The token usage that the provider reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// How long the response took, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_ms: Option<u64>,
    /// Whether the response was cut off.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub incomplete: bool,
}

impl Message {
    /// Creates a message with a single text block.
    pub fn text(role: Role, text: impl Into<String>) -> Self {
        Self::new(role, Content::text(text))
    }

    /// Creates a message from content blocks.
    pub fn new(role: Role, content: Content) -> Self {
        Self {
            role,
            content,
            model: None,
            provider: None,
            usage: None,
            latency_ms: None,
            incomplete: false,
        }
    }
}

/// A summary that replaces everything up to and including `covers`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkpoint {
    /// The last entry summarized. Later entries are sent verbatim.
    pub covers: Seq,
    /// The summary of those entries.
    pub summary: Summary,
    /// Who wrote it: a model's name, or `extractive`.
    pub by: String,
    /// How many messages it newly covers.
    pub messages: u64,
    /// When the first of them was sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oldest: Option<Timestamp>,
    /// When the last of them was sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub newest: Option<Timestamp>,
    /// The token usage that the provider reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
}

/// A session was resumed from another session's summary, and the agent acknowledged it.
///
/// Its tokens are counted, but it is not counted as a query.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionRestore {
    /// The session restored from.
    pub from: SessionId,
    /// The prompt sent to the agent.
    pub prompt: String,
    /// The agent's response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acknowledgement: Option<String>,
    /// The path of that session's transcript, if one was written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transcript: Option<String>,
    /// The token usage that the provider reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// How long the response took, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_ms: Option<u64>,
}

/// An agent's name and definition file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentRef {
    /// The agent's name.
    pub name: String,
    /// The file that defines the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
}

/// Who chose a session's name. Automatic naming applies only to unnamed sessions, so it
/// never replaces a name chosen by a person.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NameSource {
    /// A person.
    #[default]
    Person,
    /// The program, from the conversation.
    Program,
}

/// How a fork was merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MergeMode {
    /// Its entries follow this one.
    Appended,
    /// This entry contains its summary.
    Summarized,
}

/// The merge of another session into this one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Merge {
    /// The merged session.
    pub from: SessionId,
    /// Its head at the time of the merge.
    pub through: Seq,
    /// How it was merged.
    #[serde(rename = "how")]
    pub mode: MergeMode,
    /// How many of its entries were copied.
    pub entries: u64,
    /// Its summary, if it was merged as a summary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
}

/// The remains of an entry whose content was erased.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tombstone {
    /// The kind of the erased entry.
    #[serde(rename = "of")]
    pub erased_kind: String,
    /// The hash of the erased payload, which keeps the digest chain verifiable.
    pub payload: Digest,
    /// The role, if it was a message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    /// Why it was erased.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// The content of an entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Body {
    /// A message.
    Message(Message),
    /// Everything up to a point was summarized; the summary replaces it in requests.
    Checkpoint(Box<Checkpoint>),
    /// Everything up to a point was summarized for a later resume, and is still sent
    /// verbatim: written at the end of a chat.
    Summarized(Box<Checkpoint>),
    /// A checkpoint was undone.
    CheckpointRetracted {
        /// The checkpoint's entry.
        checkpoint: Seq,
    },
    /// The session was resumed from another's summary.
    Restored(SessionRestore),
    /// A fact was pinned and is included in every request from here on.
    Pinned {
        /// The fact.
        text: String,
    },
    /// A fact was unpinned.
    Unpinned {
        /// The entry that pinned it.
        pin: Seq,
    },
    /// A decision was recorded.
    Decided {
        /// The decision.
        text: String,
    },
    /// The session was named, or its name removed.
    Renamed {
        /// The new name.
        name: Option<Name>,
        /// Who chose the name.
        by: NameSource,
    },
    /// The session was described, or its description removed.
    Described {
        /// The new description.
        description: Option<String>,
    },
    /// Tags were added.
    Tagged {
        /// The added tags.
        tags: Vec<Tag>,
    },
    /// Tags were removed.
    Untagged {
        /// The removed tags.
        tags: Vec<Tag>,
    },
    /// The session continued in another folder.
    Moved {
        /// The folder.
        workspace: String,
        /// The folder's project, if known.
        #[serde(skip_serializing_if = "Option::is_none")]
        project: Option<ProjectId>,
    },
    /// A context document was set, or removed if there is no content.
    ContextSet {
        /// The document's name.
        document: String,
        /// The document's content.
        #[serde(skip_serializing_if = "Option::is_none")]
        content: Option<Json>,
    },
    /// The session continued with another agent.
    AgentSet(AgentRef),
    /// The conversation was cleared: the model no longer sees earlier entries.
    Cleared,
    /// The conversation was rewound: the model no longer sees the entries after `to`.
    Rewound {
        /// The last entry that remains visible.
        to: Seq,
    },
    /// The session was forked from another, recorded as an entry and not in its header.
    Forked {
        /// The session forked from.
        session: SessionId,
        /// The last shared entry.
        at: Seq,
    },
    /// Another session was merged into this one.
    Merged(Merge),
    /// The session was archived.
    Archived,
    /// The session was unarchived.
    Unarchived,
    /// A fact was remembered across sessions, or proposed.
    Remembered(Box<RememberedFact>),
    /// A proposed fact was accepted and is in effect from here on.
    Accepted {
        /// The entry that proposed it.
        fact: Seq,
    },
    /// A fact was forgotten, or a proposal rejected.
    Forgotten {
        /// The entry that holds it.
        fact: Seq,
        /// Why.
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// Facts were used in a session.
    Used {
        /// The entries that hold them.
        facts: Vec<Seq>,
        /// The session.
        session: SessionId,
    },
    /// A record of another system with no equivalent here, stored verbatim.
    Foreign {
        /// The system.
        from: String,
        /// The record.
        data: Json,
    },
    /// The content was permanently erased.
    Erased(Tombstone),
    /// The entry could not be read from a damaged store; this placeholder keeps its
    /// number.
    Lost,
    /// An entry written by a later version, preserved unchanged.
    #[serde(skip)]
    Unknown {
        /// Its kind.
        kind: String,
        /// The whole payload.
        payload: Json,
    },
}

impl From<Message> for Body {
    fn from(message: Message) -> Self {
        Self::Message(message)
    }
}

impl From<Checkpoint> for Body {
    fn from(checkpoint: Checkpoint) -> Self {
        Self::Checkpoint(Box::new(checkpoint))
    }
}

impl Body {
    /// The kind as serialized.
    pub fn kind(&self) -> &str {
        match self {
            Self::Message(_) => "message",
            Self::Checkpoint(_) => "checkpoint",
            Self::Summarized(_) => "summarized",
            Self::CheckpointRetracted { .. } => "checkpoint_retracted",
            Self::Restored(_) => "restored",
            Self::Pinned { .. } => "pinned",
            Self::Unpinned { .. } => "unpinned",
            Self::Decided { .. } => "decided",
            Self::Renamed { .. } => "renamed",
            Self::Described { .. } => "described",
            Self::Tagged { .. } => "tagged",
            Self::Untagged { .. } => "untagged",
            Self::Moved { .. } => "moved",
            Self::ContextSet { .. } => "context_set",
            Self::AgentSet(_) => "agent_set",
            Self::Cleared => "cleared",
            Self::Rewound { .. } => "rewound",
            Self::Forked { .. } => "forked",
            Self::Merged(_) => "merged",
            Self::Archived => "archived",
            Self::Unarchived => "unarchived",
            Self::Remembered(_) => "remembered",
            Self::Accepted { .. } => "accepted",
            Self::Forgotten { .. } => "forgotten",
            Self::Used { .. } => "used",
            Self::Foreign { .. } => "foreign",
            Self::Erased(_) => "erased",
            Self::Lost => "lost",
            Self::Unknown { kind, .. } => kind,
        }
    }

    /// The message, if this is one.
    pub fn message(&self) -> Option<&Message> {
        match self {
            Self::Message(message) => Some(message),
            _ => None,
        }
    }

    /// Estimates the size of the content in bytes; a constant for kinds with little
    /// text.
    pub fn estimate_bytes(&self) -> usize {
        match self {
            Self::Message(message) => message.content.estimate_bytes(),
            Self::Foreign { data, .. } => data.as_str().len(),
            _ => 256,
        }
    }

    /// Decodes a payload of the given kind.
    pub(crate) fn decode(kind: &str, payload: &str) -> Result<Self, serde_json::Error> {
        use serde_json::from_str;

        // Decodes a kind whose fields are declared directly in the variant.
        macro_rules! members {
            ($variant:ident { $($field:ident: $type:ty),* }) => {{
                #[derive(Deserialize)]
                struct Members {
                    $($field: $type),*
                }
                let Members { $($field),* } = from_str(payload)?;
                Self::$variant { $($field),* }
            }};
        }

        Ok(match kind {
            "message" => Self::Message(from_str(payload)?),
            "checkpoint" => Self::Checkpoint(from_str(payload)?),
            "summarized" => Self::Summarized(from_str(payload)?),
            "checkpoint_retracted" => members!(CheckpointRetracted { checkpoint: Seq }),
            "restored" => Self::Restored(from_str(payload)?),
            "pinned" => members!(Pinned { text: String }),
            "unpinned" => members!(Unpinned { pin: Seq }),
            "decided" => members!(Decided { text: String }),
            "renamed" => members!(Renamed { name: Option<Name>, by: NameSource }),
            "described" => members!(Described { description: Option<String> }),
            "tagged" => members!(Tagged { tags: Vec<Tag> }),
            "untagged" => members!(Untagged { tags: Vec<Tag> }),
            "moved" => members!(Moved { workspace: String, project: Option<ProjectId> }),
            "context_set" => members!(ContextSet { document: String, content: Option<Json> }),
            "agent_set" => Self::AgentSet(from_str(payload)?),
            "cleared" => Self::Cleared,
            "rewound" => members!(Rewound { to: Seq }),
            "forked" => members!(Forked {
                session: SessionId,
                at: Seq
            }),
            "merged" => Self::Merged(from_str(payload)?),
            "archived" => Self::Archived,
            "unarchived" => Self::Unarchived,
            "remembered" => Self::Remembered(from_str(payload)?),
            "accepted" => members!(Accepted { fact: Seq }),
            "forgotten" => members!(Forgotten { fact: Seq, reason: Option<String> }),
            "used" => members!(Used { facts: Vec<Seq>, session: SessionId }),
            "foreign" => members!(Foreign {
                from: String,
                data: Json
            }),
            "erased" => Self::Erased(from_str(payload)?),
            "lost" => Self::Lost,
            other => Self::Unknown {
                kind: other.to_owned(),
                payload: Json::from_stored(payload)?,
            },
        })
    }
}

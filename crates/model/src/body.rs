//! Everything that can happen to a session.
//!
//! Bodies are written as objects with a `kind`. A kind that this version does not
//! know, or knows only in an older shape, becomes [`Body::Unknown`] and keeps its
//! text: it is stored, copied and exported unchanged, and the fold passes over it.

use serde::{Deserialize, Serialize};

use crate::{
    Content, Digest, Json, Name, ProjectId, RememberedFact, Seq, SessionId, Summary, Tag,
    Timestamp, Usage,
};

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The person, or the program that speaks for them.
    User,
    /// The model.
    Assistant,
    /// Instructions.
    System,
    /// A tool that was called.
    Tool,
}

impl Role {
    /// The role as it is written.
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

/// Something that was said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// By whom.
    pub role: Role,
    /// What.
    pub content: Content,
    /// The model that answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The provider that served it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// What the provider said it cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// How long the answer took, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_ms: Option<u64>,
    /// Whether the answer was cut off.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub incomplete: bool,
}

impl Message {
    /// A message of one text.
    pub fn text(role: Role, text: impl Into<String>) -> Self {
        Self::new(role, Content::text(text))
    }

    /// A message of these blocks.
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

/// A summary that stands for everything up to and including `covers`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkpoint {
    /// The last entry it summarizes. Later ones stay as they are.
    pub covers: Seq,
    /// What they came to.
    pub summary: Summary,
    /// What wrote it: a model's name, or `extractive`.
    pub by: String,
    /// How many messages it newly covers.
    pub messages: u64,
    /// When the first of them was said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oldest: Option<Timestamp>,
    /// When the last of them was said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub newest: Option<Timestamp>,
    /// What the provider said it cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
}

/// A session was resumed from another's summary, and the agent acknowledged it.
///
/// Counted in tokens, but not as a query.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionRestore {
    /// The session it was restored from.
    pub from: SessionId,
    /// What the agent was told.
    pub prompt: String,
    /// What the agent answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acknowledgement: Option<String>,
    /// Where that session's transcript was written, if anywhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transcript: Option<String>,
    /// What the provider said it cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// How long it took, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_ms: Option<u64>,
}

/// An agent: what it is called and where its description is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentRef {
    /// Its name.
    pub name: String,
    /// The file that describes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
}

/// Who chose a name. The program names only what has none, and so never takes a person's
/// name away.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NameSource {
    /// A person.
    #[default]
    Person,
    /// The program, from what was said.
    Program,
}

/// How a fork was merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MergeMode {
    /// Its entries follow this one.
    Appended,
    /// Its summary is in this entry.
    Summarized,
}

/// Another session was merged into this one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Merge {
    /// The session merged.
    pub from: SessionId,
    /// Its head at the time.
    pub through: Seq,
    /// How.
    #[serde(rename = "how")]
    pub mode: MergeMode,
    /// How many of its entries were taken.
    pub entries: u64,
    /// What it came to, where only that was taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
}

/// What is left of an entry whose content had to go.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tombstone {
    /// The kind it was.
    #[serde(rename = "of")]
    pub erased_kind: String,
    /// The hash of the payload it had, which keeps the chain whole.
    pub payload: Digest,
    /// Who spoke, where it was a message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    /// Why it was erased.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// What an entry says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Body {
    /// Something was said.
    Message(Message),
    /// Everything up to a point was summarized.
    Checkpoint(Box<Checkpoint>),
    /// Everything up to a point was summarized for whoever comes back to it, and is still
    /// sent as it is: what is left behind at the end of a chat.
    Summarized(Box<Checkpoint>),
    /// A checkpoint was taken back.
    CheckpointRetracted {
        /// The entry of the checkpoint.
        checkpoint: Seq,
    },
    /// The session was resumed from another's summary.
    Restored(SessionRestore),
    /// A fact was pinned: always in view from here on.
    Pinned {
        /// The fact.
        text: String,
    },
    /// A pin was taken back.
    Unpinned {
        /// The entry that pinned it.
        pin: Seq,
    },
    /// Something was decided.
    Decided {
        /// What.
        text: String,
    },
    /// The session got a name, or lost it.
    Renamed {
        /// The new name.
        name: Option<Name>,
        /// Whose choice it was.
        by: NameSource,
    },
    /// The session got a description, or lost it.
    Described {
        /// The new description.
        description: Option<String>,
    },
    /// Tags were added.
    Tagged {
        /// Which.
        tags: Vec<Tag>,
    },
    /// Tags were removed.
    Untagged {
        /// Which.
        tags: Vec<Tag>,
    },
    /// The session went on in another folder.
    Moved {
        /// The folder.
        workspace: String,
        /// Its project, where known.
        #[serde(skip_serializing_if = "Option::is_none")]
        project: Option<ProjectId>,
    },
    /// A context document was set, or removed where there is no content.
    ContextSet {
        /// The document's name.
        document: String,
        /// What it says.
        #[serde(skip_serializing_if = "Option::is_none")]
        content: Option<Json>,
    },
    /// The session went on with another agent.
    AgentSet(AgentRef),
    /// A new starting point: the model no longer sees what came before.
    Cleared,
    /// What was said after `to` was taken back; the model no longer sees it.
    Rewound {
        /// The last entry that still counts.
        to: Seq,
    },
    /// The session was forked from one that is told of here, not in its birth.
    Forked {
        /// The session forked from.
        session: SessionId,
        /// The last entry shared.
        at: Seq,
    },
    /// Another session was merged into this one.
    Merged(Merge),
    /// The session was put away.
    Archived,
    /// The session was taken up again.
    Unarchived,
    /// Something is to be remembered across sessions, or is proposed to be.
    Remembered(Box<RememberedFact>),
    /// A proposal was accepted: from here on it counts.
    Accepted {
        /// The entry that proposed it.
        fact: Seq,
    },
    /// A fact no longer counts, or a proposal was turned down.
    Forgotten {
        /// The entry that holds it.
        fact: Seq,
        /// Why.
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// Facts were of use in a session.
    Used {
        /// The entries that hold them.
        facts: Vec<Seq>,
        /// The session.
        session: SessionId,
    },
    /// A record of another system that means nothing here, kept as it was written.
    Foreign {
        /// The system.
        from: String,
        /// The record.
        data: Json,
    },
    /// The content had to go for good.
    Erased(Tombstone),
    /// The entry could not be read from a damaged store; this keeps its number.
    Lost,
    /// Something a later version wrote, whole and unchanged.
    #[serde(skip)]
    Unknown {
        /// The kind it says it is.
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
    /// The kind as it is written.
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

    /// The message, where this is one.
    pub fn message(&self) -> Option<&Message> {
        match self {
            Self::Message(message) => Some(message),
            _ => None,
        }
    }

    /// About how many bytes what it says has: of what is not said in words, a guess.
    pub fn estimate_bytes(&self) -> usize {
        match self {
            Self::Message(message) => message.content.estimate_bytes(),
            Self::Foreign { data, .. } => data.as_str().len(),
            _ => 256,
        }
    }

    /// Decodes a payload that says it is of this kind.
    pub(crate) fn decode(kind: &str, payload: &str) -> Result<Self, serde_json::Error> {
        use serde_json::from_str;

        // One shape for each kind whose members stand directly in the variant.
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

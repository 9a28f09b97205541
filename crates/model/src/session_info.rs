//! The listing view of a session: names, counters and times.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::{
    AgentRef, Body, Digest, GENESIS, Key, Lineage, Name, NameSource, ProjectId, Role, Seq,
    SessionHeader, SessionId, Tag, Timestamp, Usage,
};

/// The maximum length of the preview of the first message.
pub const PREVIEW_CHARS: usize = 200;

/// Whether a session is active or archived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// In use.
    #[default]
    Active,
    /// Archived; still readable and searchable.
    Archived,
}

impl Status {
    /// The status as serialized.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Archived => "archived",
        }
    }
}

impl std::str::FromStr for Status {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "active" => Ok(Self::Active),
            "archived" => Ok(Self::Archived),
            other => Err(format!("{other:?} is not a status: use active or archived")),
        }
    }
}

/// What a listing shows of a session: small, of bounded size, updated by every append.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionInfo {
    /// The session id.
    pub id: SessionId,
    /// Its name, if it has one.
    pub name: Option<Name>,
    /// Who chose the name.
    pub named_by: NameSource,
    /// An agent's stable name for it.
    pub key: Option<Key>,
    /// A free-text description.
    pub description: Option<String>,
    /// Whether it is active or archived.
    pub status: Status,
    /// The session it derives from.
    pub lineage: Lineage,
    /// The project it belongs to.
    pub project: Option<ProjectId>,
    /// The folder it was last used in.
    pub workspace: Option<String>,
    /// The agent it was last used with.
    pub agent: Option<AgentRef>,
    /// The model that generated the last response.
    pub model: Option<String>,
    /// The provider of that model.
    pub provider: Option<String>,
    /// Its tags.
    pub tags: BTreeSet<Tag>,
    /// When it was created.
    pub created_at: Timestamp,
    /// When the last entry was appended.
    pub last_activity: Timestamp,
    /// The number of messages, of any role.
    pub messages: u64,
    /// The number of user messages.
    pub queries: u64,
    /// Tokens reported for its responses.
    pub tokens: Usage,
    /// Tokens reported for restoring it, which are not part of `tokens`.
    pub restoration: Usage,
    /// How often it was compacted.
    pub compactions: u64,
    /// When it was last compacted.
    pub last_compaction: Option<Timestamp>,
    /// The beginning of the first user message.
    pub preview: String,
    /// The sequence number of the last entry.
    pub head: Seq,
    /// The digest of the last entry.
    pub digest: Digest,
}

impl SessionInfo {
    /// Creates the info of an empty session.
    pub fn new(header: &SessionHeader) -> Self {
        Self {
            id: header.id.clone(),
            name: header.name.clone(),
            named_by: NameSource::Person,
            key: header.key.clone(),
            description: None,
            status: Status::Active,
            lineage: header.lineage.clone(),
            project: header.project.clone(),
            workspace: header.workspace.clone(),
            agent: header.agent.clone(),
            model: None,
            provider: None,
            tags: BTreeSet::new(),
            created_at: header.at,
            last_activity: header.at,
            messages: 0,
            queries: 0,
            tokens: Usage::default(),
            restoration: Usage::default(),
            compactions: 0,
            last_compaction: None,
            preview: String::new(),
            head: Seq::ZERO,
            digest: GENESIS,
        }
    }

    /// The display title: its name, or else its id.
    pub fn title(&self) -> &str {
        self.name.as_ref().map_or(self.id.as_str(), Name::as_str)
    }

    /// Whether it is an internal session, such as a memory.
    pub fn is_internal(&self) -> bool {
        self.key.as_ref().is_some_and(Key::is_internal)
    }

    /// Whether an entry is shared with the session this one was forked from.
    fn is_inherited(&self, seq: Seq) -> bool {
        matches!(self.lineage, Lineage::Forked { at, .. } if seq <= at)
    }

    /// Applies the next entry.
    pub(crate) fn apply(&mut self, seq: Seq, at: Timestamp, digest: Digest, body: &Body) {
        self.head = seq;
        self.digest = digest;
        self.last_activity = self.last_activity.max(at);
        match body {
            Body::Message(message) => {
                self.messages += 1;
                self.tokens += message.usage.unwrap_or_default();
                if message.role == Role::User && message.content.tool_results().next().is_none() {
                    self.queries += 1;
                    if self.preview.is_empty() {
                        self.preview = truncate_preview(&message.content.to_text());
                    }
                }
                if message.model.is_some() {
                    self.model.clone_from(&message.model);
                    self.provider.clone_from(&message.provider);
                }
            }
            Body::Erased(tombstone) if tombstone.erased_kind == "message" => {
                self.messages += 1;
                self.queries += u64::from(tombstone.role == Some(Role::User));
            }
            Body::Checkpoint(checkpoint) => {
                self.compactions += 1;
                self.last_compaction = Some(at);
                self.tokens += checkpoint.usage.unwrap_or_default();
            }
            Body::Summarized(summary) => self.tokens += summary.usage.unwrap_or_default(),
            Body::Restored(restored) => self.restoration += restored.usage.unwrap_or_default(),
            // Inherited entries neither name nor archive a fork.
            Body::Renamed { .. } | Body::Archived | Body::Unarchived if self.is_inherited(seq) => {}
            // Automatic naming applies only to unnamed sessions: merging a fork that
            // was named automatically does not rename the session it is merged into.
            Body::Renamed {
                name: Some(_),
                by: NameSource::Program,
            } if self.name.is_some() => {}
            Body::Renamed { name, by } => {
                self.name.clone_from(name);
                self.named_by = *by;
            }
            Body::Described { description } => self.description.clone_from(description),
            Body::Tagged { tags } => self.tags.extend(tags.iter().cloned()),
            Body::Untagged { tags } => self.tags.retain(|tag| !tags.contains(tag)),
            Body::Moved { workspace, project } => {
                self.workspace = Some(workspace.clone());
                if project.is_some() {
                    self.project.clone_from(project);
                }
            }
            Body::AgentSet(agent) => self.agent = Some(agent.clone()),
            Body::Forked {
                session,
                at: shared,
            } if self.lineage == Lineage::Root => {
                self.lineage = Lineage::Forked {
                    session: session.clone(),
                    at: *shared,
                };
            }
            Body::Archived => self.status = Status::Archived,
            Body::Unarchived => self.status = Status::Active,
            _ => {}
        }
    }
}

/// Truncates a text for the preview, on one line.
fn truncate_preview(text: &str) -> String {
    let mut preview = String::new();
    let mut chars = 0;
    for word in text.split_whitespace() {
        let space = usize::from(!preview.is_empty());
        if space == 1 && chars < PREVIEW_CHARS {
            preview.push(' ');
            chars += 1;
        }
        for c in word.chars() {
            if chars == PREVIEW_CHARS {
                return preview;
            }
            preview.push(c);
            chars += 1;
        }
    }
    preview
}

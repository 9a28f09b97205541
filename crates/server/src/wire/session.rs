//! JSON representation of a session.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use throughline::{
    AgentRef, Lineage, Note, Record, Seq, SessionId, SessionInfo, Status, Tag, Timestamp, Usage,
};
use utoipa::ToSchema;

/// A session as listed.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct SessionView {
    /// Session id.
    #[schema(value_type = String, example = "2026-11-15-21-03-07-412-k3x9qd")]
    id: SessionId,
    /// Name, if it has one.
    name: Option<String>,
    /// Stable key chosen by an agent.
    key: Option<String>,
    /// Description written by a person.
    description: Option<String>,
    /// `active` or `archived`.
    #[schema(value_type = String)]
    status: Status,
    /// Origin: `root`, or a fork or continuation of another session.
    #[schema(value_type = Object)]
    lineage: Lineage,
    /// The project it belongs to.
    project: Option<String>,
    /// Last working folder.
    workspace: Option<String>,
    /// Last agent.
    #[schema(value_type = Option<Object>)]
    agent: Option<AgentRef>,
    /// Last model that answered.
    model: Option<String>,
    /// Provider of that model.
    provider: Option<String>,
    /// Tags.
    #[schema(value_type = Vec<String>)]
    tags: BTreeSet<Tag>,
    /// When it was created.
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
    /// When it was last active.
    #[schema(value_type = String, format = DateTime)]
    last_activity: Timestamp,
    /// Number of messages, of every role.
    messages: u64,
    /// Number of user messages.
    queries: u64,
    /// Tokens reported for its answers.
    tokens: UsageView,
    /// Tokens reported for restoring it.
    restoration: UsageView,
    /// Number of compactions.
    compactions: u64,
    /// When it was last compacted.
    #[schema(value_type = Option<String>, format = DateTime)]
    last_compaction: Option<Timestamp>,
    /// Beginning of the first user message.
    preview: String,
    /// Number of the last entry; the `ETag`, and the value for `If-Match`.
    #[schema(value_type = u64)]
    head: Seq,
    /// Digest of the last entry.
    digest: String,
}

impl From<SessionInfo> for SessionView {
    fn from(info: SessionInfo) -> Self {
        Self {
            id: info.id,
            name: info.name.map(|name| name.to_string()),
            key: info.key.map(|key| key.to_string()),
            description: info.description,
            status: info.status,
            lineage: info.lineage,
            project: info.project.map(|project| project.to_string()),
            workspace: info.workspace,
            agent: info.agent,
            model: info.model,
            provider: info.provider,
            tags: info.tags,
            created_at: info.created_at,
            last_activity: info.last_activity,
            messages: info.messages,
            queries: info.queries,
            tokens: info.tokens.into(),
            restoration: info.restoration.into(),
            compactions: info.compactions,
            last_compaction: info.last_compaction,
            preview: info.preview,
            head: info.head,
            digest: info.digest.to_string(),
        }
    }
}

/// A session with its current state.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct SessionDetail {
    /// The session as listed.
    #[serde(flatten)]
    session: SessionView,
    /// Pinned facts.
    pins: Vec<NotedView>,
    /// Decisions in effect.
    decisions: Vec<NotedView>,
    /// Context documents by name, with the entry that set each.
    #[schema(value_type = std::collections::HashMap<String, u64>)]
    context: BTreeMap<String, Seq>,
    /// Entry of the current checkpoint.
    #[schema(value_type = Option<u64>)]
    checkpoint: Option<Seq>,
    /// The last entry it covers.
    #[schema(value_type = Option<u64>)]
    covers: Option<Seq>,
}

impl From<Record> for SessionDetail {
    fn from(record: Record) -> Self {
        let mark = record.state.checkpoint();
        let (checkpoint, covers) =
            mark.map_or((None, None), |mark| (Some(mark.seq), Some(mark.covers)));
        let noted = |noted: Vec<Note>| noted.into_iter().map(NotedView::from).collect();
        Self {
            session: record.info.into(),
            checkpoint,
            covers,
            context: record.state.context.into_iter().collect(),
            pins: noted(record.state.pins),
            decisions: noted(record.state.decisions),
        }
    }
}

/// A pin or decision in effect, and its entry.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct NotedView {
    #[schema(value_type = u64)]
    seq: Seq,
    text: String,
}

impl From<Note> for NotedView {
    fn from(noted: Note) -> Self {
        Self {
            seq: noted.seq,
            text: noted.text,
        }
    }
}

/// Token usage, as reported by a provider.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
pub(crate) struct UsageView {
    /// Input tokens, cached or not.
    input: u64,
    /// Output tokens.
    output: u64,
    /// Input tokens read from a cache.
    cache_read: u64,
    /// Input tokens written to a cache.
    cache_write: u64,
}

impl From<Usage> for UsageView {
    fn from(usage: Usage) -> Self {
        Self {
            input: usage.input,
            output: usage.output,
            cache_read: usage.cache_read,
            cache_write: usage.cache_write,
        }
    }
}

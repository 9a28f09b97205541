//! A session as it is told.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use throughline::{
    AgentRef, Lineage, Note, Record, Seq, SessionId, SessionInfo, Status, Tag, Timestamp, Usage,
};
use utoipa::ToSchema;

/// What a listing shows of a session.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct SessionView {
    /// Its id.
    #[schema(value_type = String, example = "2026-11-15-21-03-07-412-k3x9qd")]
    id: SessionId,
    /// Its name, where it has one.
    name: Option<String>,
    /// An agent's stable name for it.
    key: Option<String>,
    /// What it is about, in a person's words.
    description: Option<String>,
    /// `active` or `archived`.
    #[schema(value_type = String)]
    status: Status,
    /// Where it came from: `root`, or a fork or continuation of another.
    #[schema(value_type = Object)]
    lineage: Lineage,
    /// The project it belongs to.
    project: Option<String>,
    /// The folder it was last in.
    workspace: Option<String>,
    /// The agent it was last with.
    #[schema(value_type = Option<Object>)]
    agent: Option<AgentRef>,
    /// The model that last answered.
    model: Option<String>,
    /// The provider of that model.
    provider: Option<String>,
    /// Its tags.
    #[schema(value_type = Vec<String>)]
    tags: BTreeSet<Tag>,
    /// When it was made.
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
    /// When something last happened in it.
    #[schema(value_type = String, format = DateTime)]
    last_activity: Timestamp,
    /// Messages in it, whoever spoke.
    messages: u64,
    /// Of those, the user's own.
    queries: u64,
    /// Tokens reported for its answers.
    tokens: UsageView,
    /// Tokens reported for resuming it.
    restoration: UsageView,
    /// How often it was compacted.
    compactions: u64,
    /// When it was last compacted.
    #[schema(value_type = Option<String>, format = DateTime)]
    last_compaction: Option<Timestamp>,
    /// The beginning of what the user first said.
    preview: String,
    /// The number of its last entry; the `ETag`, and what `If-Match` takes.
    #[schema(value_type = u64)]
    head: Seq,
    /// The digest of its last entry.
    digest: String,
}

impl From<SessionInfo> for SessionView {
    fn from(card: SessionInfo) -> Self {
        Self {
            id: card.id,
            name: card.name.map(|name| name.to_string()),
            key: card.key.map(|key| key.to_string()),
            description: card.description,
            status: card.status,
            lineage: card.lineage,
            project: card.project.map(|project| project.to_string()),
            workspace: card.workspace,
            agent: card.agent,
            model: card.model,
            provider: card.provider,
            tags: card.tags,
            created_at: card.created_at,
            last_activity: card.last_activity,
            messages: card.messages,
            queries: card.queries,
            tokens: card.tokens.into(),
            restoration: card.restoration.into(),
            compactions: card.compactions,
            last_compaction: card.last_compaction,
            preview: card.preview,
            head: card.head,
            digest: card.digest.to_string(),
        }
    }
}

/// A session, and what stands in it.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct SessionDetail {
    /// What a listing shows.
    #[serde(flatten)]
    session: SessionView,
    /// Facts always in view.
    pins: Vec<NotedView>,
    /// Decisions that stand.
    decisions: Vec<NotedView>,
    /// Context documents, by name: the entry that set each.
    #[schema(value_type = std::collections::HashMap<String, u64>)]
    context: BTreeMap<String, Seq>,
    /// The entry of the checkpoint in force.
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

/// A fact that stands, and its entry.
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

/// Tokens, as a provider reported them.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
pub(crate) struct UsageView {
    /// What was sent, cached or not.
    input: u64,
    /// What was answered.
    output: u64,
    /// Of the input, what a cache had.
    cache_read: u64,
    /// Of the input, what went into a cache.
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

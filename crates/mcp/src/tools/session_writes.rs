//! MCP tools that write: append messages, and save checkpoints.

use rmcp::handler::server::wrapper::{Json, Parameters};
use rmcp::{schemars, tool, tool_router};
use serde::{Deserialize, Serialize};
use throughline::{
    Body, Checkpoint, ConflictPolicy, Entry, Expect, Message, NewSession, ReadRange, Role, Seq,
    Session, Summary,
};

use crate::McpServer;
use crate::tool_error::ToolError;

/// The number of entries read at a time.
const PAGE: usize = 1_000;

#[derive(Clone, Copy, Debug, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Speaker")]
enum MessageRole {
    /// The user.
    User,
    /// The agent.
    Assistant,
    /// The system prompt's author.
    System,
}

impl From<MessageRole> for Role {
    fn from(speaker: MessageRole) -> Self {
        match speaker {
            MessageRole::User => Self::User,
            MessageRole::Assistant => Self::Assistant,
            MessageRole::System => Self::System,
        }
    }
}

#[derive(Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
struct NewMessage {
    /// The role of the author.
    role: MessageRole,
    /// The text of the message.
    text: String,
}

#[derive(Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "AppendMessages")]
pub(crate) struct AppendMessagesArgs {
    /// An existing session: its id, name or key, or `last`.
    session: Option<String>,
    /// Instead of session: your own stable key for a session, which is created if it does not
    /// exist.
    key: Option<String>,
    /// The name for a session that is created.
    name: Option<String>,
    /// The messages, in order; either all or none are saved.
    messages: Vec<NewMessage>,
    /// The number of the last entry you know; the call fails if there are newer ones.
    head: Option<u64>,
}

#[derive(Debug, Serialize, schemars::JsonSchema)]
#[schemars(rename = "AppendedShown")]
pub(crate) struct AppendOutcome {
    /// The session's id.
    session: String,
    /// Whether the session was created by this call.
    made: bool,
    /// The number of its last entry now.
    head: u64,
}

#[derive(Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "SaveCheckpoint")]
pub(crate) struct SaveCheckpointArgs {
    /// The session: its id, name or key, or `last`.
    session: String,
    /// The background, in a sentence or two.
    #[serde(default)]
    background: String,
    /// The topics discussed.
    #[serde(default)]
    topics: Vec<String>,
    /// What was completed.
    #[serde(default)]
    completed: Vec<String>,
    /// What is in progress.
    #[serde(default)]
    in_progress: Vec<String>,
    /// What remains to be done.
    #[serde(default)]
    pending: Vec<String>,
    /// What blocks progress.
    #[serde(default)]
    blockers: Vec<String>,
    /// The decisions made.
    #[serde(default)]
    decisions: Vec<String>,
    /// The relevant facts.
    #[serde(default)]
    facts: Vec<String>,
    /// The files read or changed.
    #[serde(default)]
    files_touched: Vec<String>,
    /// The tasks that someone still has to do.
    #[serde(default)]
    open_tasks: Vec<String>,
    /// The number of the last entry you know; the call fails if there are newer ones.
    head: Option<u64>,
}

#[derive(Debug, Serialize, schemars::JsonSchema)]
#[schemars(rename = "CheckpointShown")]
pub(crate) struct CheckpointOutcome {
    /// The session's id.
    session: String,
    /// The number of the checkpoint's entry, which is now the session's last.
    seq: u64,
    /// The last entry it covers.
    covers: u64,
}

#[tool_router(router = writing_tools, vis = "pub(crate)")]
impl McpServer {
    /// Append messages to a session. They are durable when the call returns. Use a key of your
    /// own to create a session the first time and find it again later.
    #[tool(annotations(
        title = "Append messages",
        read_only_hint = false,
        destructive_hint = false,
        idempotent_hint = false,
        open_world_hint = false
    ))]
    pub(crate) async fn append_messages(
        &self,
        Parameters(args): Parameters<AppendMessagesArgs>,
    ) -> Result<Json<AppendOutcome>, ToolError> {
        if args.messages.is_empty() {
            return Err(ToolError::invalid(
                "messages is empty; send at least one message",
            ));
        }
        let (session, made) = match (&args.session, &args.key) {
            (Some(named), None) => (self.resolve_session(named).await?, false),
            (None, Some(key)) => {
                let (session, existed) = self.session_by_key(key, args.name.as_deref()).await?;
                (session, !existed)
            }
            _ => return Err(ToolError::invalid("give session or key, not both")),
        };
        let entries = args.messages.into_iter().map(|message| {
            let message = Message::text(message.role.into(), message.text);
            session.new_entry(message)
        });
        let appended = session
            .append_all(
                entries.collect(),
                expected_head(args.head),
                ConflictPolicy::Reject,
            )
            .await?;
        let head = appended.entries.last().map_or(0, |entry| entry.seq.0);
        Ok(Json(AppendOutcome {
            session: session.id().to_string(),
            made,
            head,
        }))
    }

    /// Returns the session with this key, creating it if there is none.
    async fn session_by_key(
        &self,
        key: &str,
        name: Option<&str>,
    ) -> Result<(Session, bool), ToolError> {
        let name = name.map(str::parse).transpose();
        Ok(self
            .tl
            .get_or_create(NewSession {
                key: Some(key.parse().map_err(throughline::Error::from)?),
                name: name.map_err(throughline::Error::from)?,
                project: self.project.clone(),
                ..NewSession::default()
            })
            .await?)
    }

    /// Save a summary of the session so far as a checkpoint. A model that continues the
    /// session receives it in place of the earlier messages, all of which stay readable.
    #[tool(annotations(
        title = "Save a checkpoint",
        read_only_hint = false,
        destructive_hint = false,
        idempotent_hint = false,
        open_world_hint = false
    ))]
    pub(crate) async fn save_checkpoint(
        &self,
        Parameters(args): Parameters<SaveCheckpointArgs>,
    ) -> Result<Json<CheckpointOutcome>, ToolError> {
        let summary = Summary {
            background: args.background,
            topics: args.topics,
            completed: args.completed,
            in_progress: args.in_progress,
            pending: args.pending,
            blockers: args.blockers,
            decisions: args.decisions,
            facts: args.facts,
            files_touched: args.files_touched,
            open_tasks: args.open_tasks,
        };
        if summary.is_empty() {
            return Err(ToolError::invalid(
                "the checkpoint is empty; fill in background or one of the lists",
            ));
        }
        let session = self.resolve_session(&args.session).await?;
        let head = session.record().await?.info.head;
        let head = args.head.map_or(head, Seq);
        let checkpoint = build_checkpoint(&session, summary, head).await?;
        let covers = checkpoint.covers.0;
        let entry = session.new_entry(checkpoint);
        let appended = session
            .append_all(vec![entry], Expect::At(head), ConflictPolicy::Reject)
            .await?;
        let seq = appended.entries.last().map_or(0, |entry| entry.seq.0);
        Ok(Json(CheckpointOutcome {
            session: session.id().to_string(),
            seq,
            covers,
        }))
    }
}

fn expected_head(head: Option<u64>) -> Expect {
    head.map_or(Expect::Any, |head| Expect::At(Seq(head)))
}

/// Builds a checkpoint over everything visible up to `head`, except a tool call without a
/// result: the result must not be separated from its call.
async fn build_checkpoint(
    session: &Session,
    summary: Summary,
    head: Seq,
) -> Result<Checkpoint, ToolError> {
    let record = session.record().await?;
    let previous = record
        .state
        .checkpoint()
        .map_or(Seq::ZERO, |mark| mark.covers);
    let mut visible: Vec<Entry> = Vec::new();
    for span in record.state.visible_spans_after(previous) {
        let to = span.to.unwrap_or(head).min(head);
        let mut next = span.from;
        while next <= to {
            let page = session.read(ReadRange::between(next, to, PAGE)).await?;
            let Some(last) = page.last() else { break };
            next = last.seq.next();
            let messages = page.into_iter().filter(|entry| entry.message().is_some());
            visible.extend(messages);
        }
    }
    let covers = first_open_call(&visible).map_or(head, |call| Seq(call.0 - 1));
    visible.retain(|entry| entry.seq <= covers);
    if visible.is_empty() && record.state.checkpoint().is_none() {
        return Err(ToolError::invalid(format!(
            "session {} has no messages yet for a checkpoint to cover; \
             use append_messages first",
            session.id()
        )));
    }
    Ok(Checkpoint {
        covers,
        summary,
        by: "agent".to_owned(),
        messages: visible.len() as u64,
        oldest: visible.first().map(|entry| entry.at),
        newest: visible.last().map(|entry| entry.at),
        usage: None,
    })
}

/// Returns the first tool call that has no result yet.
fn first_open_call(visible: &[Entry]) -> Option<Seq> {
    let mut open: Vec<(&str, Seq)> = Vec::new();
    for entry in visible {
        let Body::Message(message) = &entry.body else {
            continue;
        };
        for result in message.content.tool_results() {
            open.retain(|(id, _)| *id != result.call_id);
        }
        let calls = message.content.tool_calls();
        open.extend(calls.map(|call| (call.id.as_str(), entry.seq)));
    }
    open.first().map(|(_, seq)| *seq)
}

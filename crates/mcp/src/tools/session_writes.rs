//! Tools that write: append messages, and save what they came to.

use rmcp::handler::server::wrapper::{Json, Parameters};
use rmcp::{schemars, tool, tool_router};
use serde::{Deserialize, Serialize};
use throughline::{
    Body, Checkpoint, ConflictPolicy, Entry, Expect, Message, NewSession, ReadRange, Role, Seq,
    Session, Summary,
};

use crate::McpServer;
use crate::tool_error::ToolError;

/// Entries read at a time.
const PAGE: usize = 1_000;

#[derive(Clone, Copy, Debug, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Speaker")]
enum MessageRole {
    /// The person.
    User,
    /// The agent.
    Assistant,
    /// Whoever set the agent up.
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
    /// Who speaks.
    role: MessageRole,
    /// What is said.
    text: String,
}

#[derive(Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "AppendMessages")]
pub(crate) struct AppendMessagesArgs {
    /// The session, which must exist: its id, name or key, or `last`.
    session: Option<String>,
    /// Instead of session: your own stable name for one, which is made if it is not there.
    key: Option<String>,
    /// What to call a session that is made.
    name: Option<String>,
    /// The messages, in order; all are saved or none.
    messages: Vec<NewMessage>,
    /// The number of the last entry you know of; refused if somebody else wrote since.
    head: Option<u64>,
}

#[derive(Debug, Serialize, schemars::JsonSchema)]
#[schemars(rename = "AppendedShown")]
pub(crate) struct AppendOutcome {
    /// The session's id.
    session: String,
    /// Whether it was made for this.
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
    /// What came before, in a sentence or two.
    #[serde(default)]
    background: String,
    /// What was talked about.
    #[serde(default)]
    topics: Vec<String>,
    /// What was finished.
    #[serde(default)]
    completed: Vec<String>,
    /// What is being worked on.
    #[serde(default)]
    in_progress: Vec<String>,
    /// What remains.
    #[serde(default)]
    pending: Vec<String>,
    /// What stands in the way.
    #[serde(default)]
    blockers: Vec<String>,
    /// What was decided.
    #[serde(default)]
    decisions: Vec<String>,
    /// What is true and matters.
    #[serde(default)]
    facts: Vec<String>,
    /// Which files were read or changed.
    #[serde(default)]
    files_touched: Vec<String>,
    /// What someone still has to do.
    #[serde(default)]
    open_tasks: Vec<String>,
    /// The number of the last entry you know of; refused if somebody else wrote since.
    head: Option<u64>,
}

#[derive(Debug, Serialize, schemars::JsonSchema)]
#[schemars(rename = "CheckpointShown")]
pub(crate) struct CheckpointOutcome {
    /// The session's id.
    session: String,
    /// The checkpoint's entry, which is the session's last now.
    seq: u64,
    /// The last entry it covers.
    covers: u64,
}

#[tool_router(router = writing_tools, vis = "pub(crate)")]
impl McpServer {
    /// Save messages at the end of a session. They are durable when this answers. Use a key
    /// of your own to have a session made the first time and found again later.
    #[tool(annotations(
        title = "Append messages",
        read_only_hint = false,
        destructive_hint = false,
        idempotent_hint = false,
        open_world_hint = false
    ))]
    pub(crate) async fn append_messages(
        &self,
        Parameters(asked): Parameters<AppendMessagesArgs>,
    ) -> Result<Json<AppendOutcome>, ToolError> {
        if asked.messages.is_empty() {
            return Err(ToolError::invalid(
                "messages is empty; there is nothing to save",
            ));
        }
        let (session, made) = match (&asked.session, &asked.key) {
            (Some(named), None) => (self.resolve_session(named).await?, false),
            (None, Some(key)) => {
                let (session, existed) = self.session_by_key(key, asked.name.as_deref()).await?;
                (session, !existed)
            }
            _ => return Err(ToolError::invalid("give session or key, and not both")),
        };
        let entries = asked.messages.into_iter().map(|message| {
            let said = Message::text(message.role.into(), message.text);
            session.new_entry(said)
        });
        let appended = session
            .append_all(
                entries.collect(),
                expected_head(asked.head),
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

    /// The session with this key, which is made if there is none.
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

    /// Save what a session came to so far, so that whoever goes on with it starts from that:
    /// it stands for everything said before it. All of it stays readable.
    #[tool(annotations(
        title = "Save a checkpoint",
        read_only_hint = false,
        destructive_hint = false,
        idempotent_hint = false,
        open_world_hint = false
    ))]
    pub(crate) async fn save_checkpoint(
        &self,
        Parameters(asked): Parameters<SaveCheckpointArgs>,
    ) -> Result<Json<CheckpointOutcome>, ToolError> {
        let summary = Summary {
            background: asked.background,
            topics: asked.topics,
            completed: asked.completed,
            in_progress: asked.in_progress,
            pending: asked.pending,
            blockers: asked.blockers,
            decisions: asked.decisions,
            facts: asked.facts,
            files_touched: asked.files_touched,
            open_tasks: asked.open_tasks,
        };
        if summary.is_empty() {
            return Err(ToolError::invalid(
                "the checkpoint says nothing; fill in background or one of the lists",
            ));
        }
        let session = self.resolve_session(&asked.session).await?;
        let head = session.record().await?.info.head;
        let head = asked.head.map_or(head, Seq);
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

/// A checkpoint over everything that can be seen up to `head`, but for a tool's call that
/// has not been answered yet: its answer must not be parted from it.
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
    let mut said: Vec<Entry> = Vec::new();
    for span in record.state.visible_spans_after(previous) {
        let to = span.to.unwrap_or(head).min(head);
        let mut next = span.from;
        while next <= to {
            let page = session.read(ReadRange::between(next, to, PAGE)).await?;
            let Some(last) = page.last() else { break };
            next = last.seq.next();
            let messages = page.into_iter().filter(|entry| entry.message().is_some());
            said.extend(messages);
        }
    }
    let covers = first_open_call(&said).map_or(head, |call| Seq(call.0 - 1));
    said.retain(|entry| entry.seq <= covers);
    if said.is_empty() && record.state.checkpoint().is_none() {
        return Err(ToolError::invalid(format!(
            "nothing was said in session {} yet that a checkpoint could stand for; \
             append_messages first",
            session.id()
        )));
    }
    Ok(Checkpoint {
        covers,
        summary,
        by: "agent".to_owned(),
        messages: said.len() as u64,
        oldest: said.first().map(|entry| entry.at),
        newest: said.last().map(|entry| entry.at),
        usage: None,
    })
}

/// The first call of a tool that has no answer yet.
fn first_open_call(said: &[Entry]) -> Option<Seq> {
    let mut open: Vec<(&str, Seq)> = Vec::new();
    for entry in said {
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

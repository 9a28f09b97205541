//! Writes the layouts of the reference systems: a few whole documents per session.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use throughline_model::{
    CheckpointView, Content, Entry, Json, Key, Message, Role, Status, WorkingSet,
};

use super::ExportMetadata;

/// The layout of a reference system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// AIarmy: a folder with four documents.
    AiArmy,
    /// The chat bot: one document for all users.
    Bot,
    /// The agent CLI: a document and an index.
    AgentCli,
    /// dagent: five documents.
    Dagent,
}

/// A whole session, for formats that are written as whole documents.
#[derive(Debug)]
pub struct SessionExport {
    /// Header, info and state.
    pub metadata: ExportMetadata,
    /// Its entries.
    pub entries: Vec<Entry>,
    /// The agent's working set.
    pub working: WorkingSet,
    /// Its checkpoint.
    pub checkpoint: CheckpointView,
    /// Its context documents.
    pub documents: BTreeMap<String, Json>,
}

impl SessionExport {
    /// Returns the files of a layout: paths below the folder of all sessions, and contents.
    pub fn files(&self, layout: Layout) -> Vec<(String, String)> {
        let files = match layout {
            Layout::AiArmy => self.aiarmy_files(),
            Layout::Bot => vec![("sessions.json".to_owned(), self.bot_document())],
            Layout::AgentCli => self.agent_cli_files(),
            Layout::Dagent => self.dagent_files(),
        };
        let text = |value: &Value| match serde_json::to_string_pretty(value) {
            Ok(text) => text + "\n",
            Err(_) => String::new(),
        };
        let written = files
            .iter()
            .map(|(name, value)| (name.clone(), text(value)));
        written.collect()
    }

    /// Returns the visible messages with their entries.
    fn visible_messages(&self) -> impl Iterator<Item = (&Entry, &Message)> {
        self.entries.iter().filter_map(|entry| {
            let shown = self.metadata.state.is_visible(entry.seq);
            Some((entry, entry.message().filter(|_| shown)?))
        })
    }

    fn id(&self) -> &str {
        self.metadata.info.id.as_str()
    }

    fn aiarmy_files(&self) -> Vec<(String, Value)> {
        let info = &self.metadata.info;
        let messages: Vec<Value> = self
            .visible_messages()
            .map(|(_, message)| json!({"role": role_name(message), "content": content_to_text(&message.content)}))
            .collect();
        let context = self.documents.get("context");
        let context = context.and_then(|json| json.decode::<Value>().ok());
        let created = info.created_at.to_string();
        let full = json!({"messages": messages, "context": context.unwrap_or_else(|| json!({}))});
        let state = json!({"created_at": created, "tokens_used": info.tokens.total()});
        let metadata = json!({
            "session_id": self.id(),
            "created_at": created,
            "last_updated": info.last_activity.to_string(),
            "message_count": messages.len(),
            "token_count": info.tokens.total(),
        });
        let mut working = serde_json::to_value(&self.working).unwrap_or_default();
        if let Some(recent) = working["recent_messages"].as_array_mut() {
            for message in recent {
                let content: Option<Content> =
                    serde_json::from_value(message["content"].take()).ok();
                message["content"] = json!(content.map(|content| content_to_text(&content)));
            }
        }
        let place = |name: &str| format!("{}/{name}.json", self.id());
        vec![
            (place("full"), full),
            (place("working"), working),
            (place("state"), state),
            (place("metadata"), metadata),
        ]
    }

    fn bot_document(&self) -> Value {
        let info = &self.metadata.info;
        let key = info.key.as_ref().map(Key::as_str);
        let user = key.and_then(|key| key.rsplit(':').next());
        let user = user.unwrap_or(self.id());
        let history: Vec<Value> = self
            .visible_messages()
            .filter(|(_, message)| matches!(message.role, Role::User | Role::Assistant))
            .map(|(entry, message)| {
                json!({
                    "role": role_name(message),
                    "content": content_to_text(&message.content),
                    "timestamp": entry.at.to_string(),
                })
            })
            .collect();
        let number: Option<u64> = user.parse().ok();
        json!({user: {
            "user_id": number.map_or_else(|| json!(user), |number| json!(number)),
            "created_at": info.created_at.to_string(),
            "last_activity": info.last_activity.to_string(),
            "history": history,
            "current_workspace": info.workspace,
        }})
    }

    fn agent_cli_files(&self) -> Vec<(String, Value)> {
        let info = &self.metadata.info;
        let messages: Vec<Value> = self
            .visible_messages()
            .map(|(_, message)| json!({"role": role_name(message), "content": content_to_text(&message.content)}))
            .collect();
        let metadata = json!({
            "id": self.id(),
            "name": info.title(),
            "description": info.description,
            "createdAt": format_millis(info.created_at),
            "lastActivityAt": format_millis(info.last_activity),
            "messageCount": messages.len(),
            "firstMessage": info.preview,
            "provider": info.provider.as_deref().unwrap_or_default(),
            "model": info.model.as_deref().unwrap_or_default(),
        });
        let mut document = json!({"metadata": metadata, "messages": messages});
        let summary = self.documents.get("contextSummary");
        if let Some(summary) = summary.and_then(|json| json.decode::<Value>().ok()) {
            document["contextSummary"] = summary;
        }
        let index = json!({
            "version": "1.0",
            "sessions": {self.id(): metadata},
            "updatedAt": format_millis(info.last_activity),
        });
        vec![
            (format!("{}.json", self.id()), document),
            ("index.json".to_owned(), index),
        ]
    }

    fn dagent_files(&self) -> Vec<(String, Value)> {
        let info = &self.metadata.info;
        let key = info.key.as_ref().map(Key::as_str);
        let id = key
            .and_then(|key| key.strip_prefix("dagent:"))
            .unwrap_or(self.id());
        let name = |kind: &str| format!("{kind}_{id}.json");
        let covers = self.metadata.summary.as_ref().map(|(covers, ..)| *covers);
        // The chat has the messages after the checkpoint, which covers the others.
        let messages: Vec<(&Entry, &Message)> = self
            .visible_messages()
            .filter(|(entry, _)| covers.is_none_or(|covers| entry.seq > covers))
            .collect();
        let chat: Vec<Value> = messages
            .iter()
            .map(|(entry, message)| {
                let own = entry.external_id.clone();
                let mut written = json!({
                    "id": own.unwrap_or_else(|| entry.id.to_string()),
                    "role": role_name(message),
                    "content": content_to_text(&message.content),
                    "timestamp": format_millis(entry.at),
                });
                if let Some(usage) = message.usage {
                    let tokens = json!({"input": usage.input, "output": usage.output});
                    written["metadata"] = json!({"tokens": tokens});
                }
                written
            })
            .collect();
        let agent = info.agent.as_ref().map(|agent| agent.name.as_str());
        let feature = id.split("-feature-").nth(1);
        let task = id.contains("-task-");
        let at =
            |entry: Option<&(&Entry, &Message)>| entry.map(|(entry, _)| format_millis(entry.at));
        let session = json!({
            "id": id,
            "type": if task { "task" } else { "feature" },
            "agentType": agent.unwrap_or("dev"),
            "featureId": feature.unwrap_or(id),
            "createdAt": format_millis(info.created_at),
            "updatedAt": format_millis(info.last_activity),
            "status": if info.status == Status::Archived { "archived" } else { "active" },
            "files": {
                "chat": name("chat"),
                "checkpoint": name("checkpoint"),
                "context": name("context"),
                "agentDescription": name("agent-description"),
            },
            "stats": {
                "totalMessages": info.messages,
                "totalTokens": info.tokens.total(),
                "totalCompactions": info.compactions,
                "lastCompactionAt": info.last_compaction.map(format_millis),
            },
        });
        let chat = json!({
            "messages": chat,
            "totalMessages": info.messages,
            "oldestMessageTimestamp": at(messages.first()),
            "newestMessageTimestamp": at(messages.last()),
        });
        let document = |name: &str, default: Value| {
            let known = self.documents.get(name);
            known
                .and_then(|json| json.decode::<Value>().ok())
                .unwrap_or(default)
        };
        let context = document("context", json!({"projectRoot": self.metadata.folder}));
        let description = document(
            "agent-description",
            json!({"agentType": agent.unwrap_or("dev"), "roleInstructions": "", "toolInstructions": "",
                   "createdAt": format_millis(info.created_at)}),
        );
        let checkpoint = serde_json::to_value(&self.checkpoint).unwrap_or_default();
        vec![
            (name("session"), session),
            (name("chat"), chat),
            (name("checkpoint"), checkpoint),
            (name("context"), context),
            (name("agent-description"), description),
        ]
    }
}

fn format_millis(at: throughline_model::Timestamp) -> String {
    super::claude_code::format_millis(at)
}

fn role_name(message: &Message) -> &'static str {
    message.role.as_str()
}

/// Renders a message as text, including tool calls and results.
fn content_to_text(content: &Content) -> String {
    use throughline_model::Block;
    let mut parts = Vec::new();
    for block in &content.0 {
        match block {
            Block::ToolCall(call) => parts.push(format!("[{}: {}]", call.name, call.input)),
            Block::ToolResult(result) => {
                parts.push(format!("[result: {}]", content_to_text(&result.content)));
            }
            Block::Thinking { .. } => {}
            block => parts.extend(super::block_to_text(block)),
        }
    }
    parts.join("\n\n")
}

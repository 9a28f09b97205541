//! Writes sessions in Claude Code's format.

use std::io::{self, Write};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use throughline_model::{Block, Content, Entry, EntryId, Message, Role, Timestamp, ToolResult};

use super::pending_tool_calls::PendingToolCalls;
use super::{Blobs, ExportMetadata, SessionWriter, block_to_text, image_data};

/// The Claude Code version written into the records.
const VERSION: &str = "2.1.0";

/// Writes a session as a transcript that Claude Code can load.
#[derive(Debug)]
pub struct ClaudeCodeWriter<W: Write> {
    out: W,
    metadata: ExportMetadata,
    session: String,
    last: Option<String>,
    pending_calls: PendingToolCalls,
    summary_written: bool,
    at: Timestamp,
}

impl<W: Write> ClaudeCodeWriter<W> {
    /// Starts a transcript.
    pub fn new(out: W, metadata: ExportMetadata) -> Self {
        Self {
            session: metadata.uuid("claude-code"),
            at: metadata.header.at,
            out,
            metadata,
            last: None,
            pending_calls: PendingToolCalls::default(),
            summary_written: false,
        }
    }

    /// Returns the path below Claude Code's `projects` folder.
    pub fn default_path(head: &ExportMetadata) -> String {
        let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
        let folder: String = head.folder.chars().map(plain).collect();
        format!("{folder}/{}.jsonl", head.uuid("claude-code"))
    }

    fn write_record(&mut self, type_of: &str, uuid: &str, mut members: Value) -> io::Result<()> {
        members["parentUuid"] = json!(self.last);
        members["isSidechain"] = json!(false);
        members["userType"] = json!("external");
        members["cwd"] = json!(self.metadata.folder);
        members["sessionId"] = json!(self.session);
        members["version"] = json!(VERSION);
        members["gitBranch"] = json!("");
        members["type"] = json!(type_of);
        members["uuid"] = json!(uuid);
        members["timestamp"] = json!(format_millis(self.at));
        self.last = Some(uuid.to_owned());
        self.write_line(&members)
    }

    fn write_line(&mut self, value: &Value) -> io::Result<()> {
        serde_json::to_writer(&mut self.out, value)?;
        self.out.write_all(b"\n")
    }

    fn write_user(&mut self, uuid: &str, content: Value, meta: bool) -> io::Result<()> {
        let mut members = json!({"message": {"role": "user"}});
        members["message"]["content"] = content;
        if meta {
            members["isMeta"] = json!(true);
        }
        self.write_record("user", uuid, members)
    }

    fn write_message(&mut self, entry: &Entry, message: &Message, blobs: &Blobs) -> io::Result<()> {
        let uuid = entry.id.to_string();
        if message.role != Role::Tool {
            let missing = self.pending_calls.take_missing_before(message);
            self.write_missing_results(&missing, entry.id)?;
        }
        let blocks = self.write_blocks(&message.content, message, blobs);
        if blocks.is_empty() {
            return Ok(());
        }
        match message.role {
            Role::Assistant => {
                self.pending_calls.add_calls(&message.content);
                let called = message.content.tool_calls().next().is_some();
                let usage = message.usage.unwrap_or_default();
                let cached = usage.cache_read + usage.cache_write;
                let members = json!({"message": {
                    "id": format!("msg_{}", uuid.replace('-', "")),
                    "type": "message",
                    "role": "assistant",
                    "model": message.model.as_deref().unwrap_or("<synthetic>"),
                    "content": blocks,
                    "stop_reason": if called { "tool_use" } else { "end_turn" },
                    "stop_sequence": null,
                    "usage": {
                        "input_tokens": usage.input.saturating_sub(cached),
                        "cache_creation_input_tokens": usage.cache_write,
                        "cache_read_input_tokens": usage.cache_read,
                        "output_tokens": usage.output,
                    },
                }});
                self.write_record("assistant", &uuid, members)
            }
            Role::User | Role::Tool => {
                let content = match blocks.as_slice() {
                    [only] if only["type"] == "text" => only["text"].clone(),
                    _ => Value::Array(blocks),
                };
                self.write_user(&uuid, content, false)
            }
            Role::System => self.write_user(&uuid, Value::Array(blocks), true),
        }
    }

    fn write_blocks(&mut self, content: &Content, message: &Message, blobs: &Blobs) -> Vec<Value> {
        let mut written = Vec::new();
        for block in &content.0 {
            match block {
                // Claude Code rejects thinking without a signature.
                Block::Thinking {
                    text,
                    signature: Some(signature),
                } if message.role == Role::Assistant => written
                    .push(json!({"type": "thinking", "thinking": text, "signature": signature})),
                Block::Thinking { .. } => {}
                Block::ToolCall(call) => written.push(json!({
                    "type": "tool_use",
                    "id": sanitize_tool_id(&call.id),
                    "name": call.name,
                    "input": wrap_object(call.input.decode().unwrap_or_default()),
                })),
                Block::ToolResult(result) if self.pending_calls.resolve(result) => {
                    let inner = self.write_blocks(&result.content, message, blobs);
                    written.push(json!({
                        "type": "tool_result",
                        "tool_use_id": sanitize_tool_id(&result.call_id),
                        "content": inner,
                        "is_error": result.is_error,
                    }));
                }
                Block::ToolResult(result) => {
                    let text = result.content.to_text();
                    if !text.is_empty() {
                        written.push(json!({"type": "text", "text": text}));
                    }
                }
                block => {
                    if let Some((media_type, bytes)) = image_data(block, blobs) {
                        written.push(json!({"type": "image", "source": {
                            "type": "base64",
                            "media_type": media_type,
                            "data": STANDARD.encode(bytes),
                        }}));
                    } else if let Some(text) = block_to_text(block) {
                        written.push(json!({"type": "text", "text": text}));
                    }
                }
            }
        }
        written
    }

    /// Writes results for unanswered calls, so that the next request is accepted.
    fn write_missing_results(&mut self, missing: &[ToolResult], before: EntryId) -> io::Result<()> {
        if missing.is_empty() {
            return Ok(());
        }
        let blocks = missing.iter().map(|result| {
            json!({
                "type": "tool_result",
                "tool_use_id": sanitize_tool_id(&result.call_id),
                "content": result.content.to_text(),
                "is_error": true,
            })
        });
        let blocks: Vec<Value> = blocks.collect();
        let uuid = EntryId::derive(&[b"missing", before.as_bytes()]).to_string();
        self.write_user(&uuid, Value::Array(blocks), false)
    }

    /// Writes the current summary in place of the entries it covers.
    fn write_summary(&mut self) -> io::Result<()> {
        let Some((covers, text, at)) = self.metadata.summary_text() else {
            return Ok(());
        };
        self.summary_written = true;
        let named = |what: &[u8]| {
            let session = self.session.as_bytes();
            EntryId::derive(&[what, session, &covers.0.to_le_bytes()]).to_string()
        };
        let (boundary, summary) = (named(b"boundary"), named(b"summary"));
        let missing = self.pending_calls.take_missing();
        self.write_missing_results(&missing, EntryId::derive(&[summary.as_bytes()]))?;
        let before = self.last.take();
        self.at = self.at.max(at);
        let members = json!({
            "subtype": "compact_boundary",
            "content": "Conversation compacted",
            "isMeta": false,
            "level": "info",
            "logicalParentUuid": before,
            "compactMetadata": {"trigger": "manual", "preTokens": 0},
        });
        self.write_record("system", &boundary, members)?;
        let members = json!({
            "isCompactSummary": true,
            "isVisibleInTranscriptOnly": true,
            "message": {"role": "user", "content": text},
        });
        self.write_record("user", &summary, members)
    }
}

impl<W: Write> SessionWriter for ClaudeCodeWriter<W> {
    fn write_entry(&mut self, entry: &Entry, blobs: &Blobs) -> io::Result<()> {
        if !self.summary_written && self.metadata.is_after_summary(entry.seq) {
            self.write_summary()?;
        }
        if let Some(message) = self.metadata.visible_message(entry) {
            self.at = self.at.max(entry.at);
            self.write_message(entry, message, blobs)?;
        }
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        if !self.summary_written {
            self.write_summary()?;
        }
        let missing = self.pending_calls.take_missing();
        let end = EntryId::derive(&[b"end", self.session.as_bytes()]);
        self.write_missing_results(&missing, end)?;
        let title = self.metadata.info.description.clone();
        let title = title.or_else(|| self.metadata.info.name.as_ref().map(ToString::to_string));
        if let Some(title) = title {
            let title: String = title
                .lines()
                .next()
                .unwrap_or_default()
                .chars()
                .take(200)
                .collect();
            let line = json!({
                "type": "custom-title",
                "customTitle": title,
                "sessionId": self.session,
            });
            self.write_line(&line)?;
        }
        self.out.flush()
    }
}

/// Formats a time with milliseconds.
pub(super) fn format_millis(at: Timestamp) -> String {
    format!("{at:.3}")
}

/// Replaces characters that not every provider accepts in a call id.
fn sanitize_tool_id(id: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !id.is_empty() && id.chars().all(plain) {
        return id.to_owned();
    }
    format!(
        "call_{}",
        throughline_model::Digest::of(id.as_bytes()).short()
    )
}

/// Wraps a call's input in an object, as providers require.
pub(super) fn wrap_object(input: Value) -> Value {
    match input {
        Value::Object(_) => input,
        other => json!({"input": other}),
    }
}

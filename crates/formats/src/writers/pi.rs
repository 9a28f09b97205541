//! Writes sessions in pi's format.

use std::io::{self, Write};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use throughline_model::{Block, Entry, Message, Role, Timestamp, ToolResult};

use super::claude_code::{format_millis, wrap_object};
use super::pending_tool_calls::PendingToolCalls;
use super::{Blobs, ExportMetadata, SessionWriter, block_to_text, image_data};

/// Writes a session that pi can load.
#[derive(Debug)]
pub struct PiWriter<W: Write> {
    out: W,
    metadata: ExportMetadata,
    last: Option<String>,
    pending_calls: PendingToolCalls,
    begun: bool,
    /// The first entry after those the summary covers.
    first_kept: Option<String>,
    at: Timestamp,
    written: u64,
}

impl<W: Write> PiWriter<W> {
    /// Starts a session.
    pub fn new(out: W, metadata: ExportMetadata) -> Self {
        Self {
            at: metadata.header.at,
            out,
            metadata,
            last: None,
            pending_calls: PendingToolCalls::default(),
            begun: false,
            first_kept: None,
            written: 0,
        }
    }

    /// Returns the path below pi's `sessions` folder.
    pub fn default_path(head: &ExportMetadata) -> String {
        let folder = head.folder.trim_start_matches(['/', '\\']);
        let folder = folder.replace(['/', '\\', ':'], "-");
        let time = format_millis(head.header.at).replace([':', '.'], "-");
        format!("--{folder}--/{time}_{}.jsonl", head.uuid("pi"))
    }

    fn write_line(&mut self, value: &Value) -> io::Result<()> {
        serde_json::to_writer(&mut self.out, value)?;
        self.out.write_all(b"\n")
    }

    /// Writes an entry after the previous one.
    fn write_record(&mut self, type_of: &str, mut members: Value) -> io::Result<()> {
        self.written += 1;
        let id = format!("{:08x}", self.written);
        members["type"] = json!(type_of);
        members["id"] = json!(id);
        members["parentId"] = json!(self.last);
        members["timestamp"] = json!(format_millis(self.at));
        self.last = Some(id);
        self.write_line(&members)
    }

    fn write_message_record(&mut self, message: Value) -> io::Result<()> {
        let mut message = message;
        message["timestamp"] = json!(self.at.as_millisecond());
        self.write_record("message", json!({"message": message}))
    }

    fn write_message(&mut self, message: &Message, blobs: &Blobs) -> io::Result<()> {
        let missing = self.pending_calls.take_missing_before(message);
        self.write_missing_results(&missing)?;
        let mut content = Vec::new();
        for block in &message.content.0 {
            match block {
                Block::Thinking { text, signature } if message.role == Role::Assistant => {
                    let mut thought = json!({"type": "thinking", "thinking": text});
                    if let Some(signature) = signature {
                        thought["thinkingSignature"] = json!(signature);
                    }
                    content.push(thought);
                }
                Block::Thinking { .. } => {}
                Block::ToolCall(call) => content.push(json!({
                    "type": "toolCall",
                    "id": call.id,
                    "name": call.name,
                    "arguments": wrap_object(call.input.decode().unwrap_or_default()),
                })),
                Block::ToolResult(result) if self.pending_calls.resolve(result) => {
                    self.write_result(result, blobs)?;
                }
                Block::ToolResult(result) => {
                    content.push(json!({"type": "text", "text": result.content.to_text()}));
                }
                block => content.extend(block_to_json(block, blobs)),
            }
        }
        if content.is_empty() {
            return Ok(());
        }
        match message.role {
            Role::User | Role::Tool => {
                self.write_message_record(json!({"role": "user", "content": content}))
            }
            Role::System => {
                let members = json!({
                    "customType": "throughline",
                    "content": content,
                    "display": true,
                });
                self.write_record("custom_message", members)
            }
            Role::Assistant => {
                self.pending_calls.add_calls(&message.content);
                let usage = message.usage.unwrap_or_default();
                let cached = usage.cache_read + usage.cache_write;
                let provider = message.provider.as_deref().unwrap_or("anthropic");
                let reason = if message.incomplete {
                    "aborted"
                } else if message.content.tool_calls().next().is_some() {
                    "toolUse"
                } else {
                    "stop"
                };
                self.write_message_record(json!({
                    "role": "assistant",
                    "content": content,
                    "api": match provider {
                        "openai" => "openai-responses",
                        "google" | "gemini" => "google-generative-ai",
                        _ => "anthropic-messages",
                    },
                    "provider": provider,
                    "model": message.model.as_deref().unwrap_or("unknown"),
                    "usage": {
                        "input": usage.input.saturating_sub(cached),
                        "output": usage.output,
                        "cacheRead": usage.cache_read,
                        "cacheWrite": usage.cache_write,
                        "totalTokens": usage.total(),
                        "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0},
                    },
                    "stopReason": reason,
                }))
            }
        }
    }

    fn write_result(&mut self, result: &ToolResult, blobs: &Blobs) -> io::Result<()> {
        let blocks = result.content.0.iter();
        let content: Vec<Value> = blocks
            .filter_map(|block| block_to_json(block, blobs))
            .collect();
        self.write_message_record(json!({
            "role": "toolResult",
            "toolCallId": result.call_id,
            "toolName": "tool",
            "content": content,
            "isError": result.is_error,
        }))
    }

    fn write_missing_results(&mut self, missing: &[ToolResult]) -> io::Result<()> {
        let none = Blobs::new();
        missing
            .iter()
            .try_for_each(|result| self.write_result(result, &none))
    }

    fn write_session_header(&mut self) -> io::Result<()> {
        if self.begun {
            return Ok(());
        }
        self.begun = true;
        let header = json!({
            "type": "session",
            "version": 3,
            "id": self.metadata.uuid("pi"),
            "timestamp": format_millis(self.metadata.header.at),
            "cwd": self.metadata.folder,
        });
        self.write_line(&header)
    }
}

/// Encodes a content block.
fn block_to_json(block: &Block, blobs: &Blobs) -> Option<Value> {
    if let Some((media_type, bytes)) = image_data(block, blobs) {
        let data = STANDARD.encode(bytes);
        return Some(json!({"type": "image", "data": data, "mimeType": media_type}));
    }
    Some(json!({"type": "text", "text": block_to_text(block)?}))
}

impl<W: Write> SessionWriter for PiWriter<W> {
    fn write_entry(&mut self, entry: &Entry, blobs: &Blobs) -> io::Result<()> {
        self.write_session_header()?;
        let Some(message) = self.metadata.visible_message(entry) else {
            return Ok(());
        };
        self.at = self.at.max(entry.at);
        let before = self.written;
        self.write_message(message, blobs)?;
        if self.first_kept.is_none()
            && self.metadata.is_after_summary(entry.seq)
            && self.written > before
        {
            self.first_kept.clone_from(&self.last);
        }
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        self.write_session_header()?;
        let missing = self.pending_calls.take_missing();
        self.write_missing_results(&missing)?;
        if let Some((_, text, at)) = self.metadata.summary_text() {
            self.at = self.at.max(at);
            // The first entry that stays; if there is none, an id that does not exist.
            let kept = self.first_kept.clone().unwrap_or_else(|| "none".to_owned());
            let members = json!({
                "summary": text,
                "firstKeptEntryId": kept,
                "tokensBefore": 0,
            });
            self.write_record("compaction", members)?;
        }
        if let Some(name) = self.metadata.info.name.clone() {
            self.write_record("session_info", json!({"name": name.as_str()}))?;
        }
        self.out.flush()
    }
}

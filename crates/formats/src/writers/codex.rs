//! Writes sessions in Codex's rollout format.

use std::io::{self, Write};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use throughline_model::{Block, Entry, Message, Role, Timestamp, ToolResult};

use super::claude_code::format_millis;
use super::pending_tool_calls::PendingToolCalls;
use super::{Blobs, ExportMetadata, SessionWriter, block_to_text, image_data};

/// Writes a session as a rollout that Codex can load.
#[derive(Debug)]
pub struct CodexWriter<W: Write> {
    out: W,
    metadata: ExportMetadata,
    pending_calls: PendingToolCalls,
    begun: bool,
    summary_written: bool,
    at: Timestamp,
}

impl<W: Write> CodexWriter<W> {
    /// Starts a rollout.
    pub fn new(out: W, metadata: ExportMetadata) -> Self {
        Self {
            at: metadata.header.at,
            out,
            metadata,
            pending_calls: PendingToolCalls::default(),
            begun: false,
            summary_written: false,
        }
    }

    /// Returns the path below Codex's `sessions` folder.
    pub fn default_path(head: &ExportMetadata) -> String {
        let at = head.header.at;
        let day = at.strftime("%Y/%m/%d");
        let time = at.strftime("%Y-%m-%dT%H-%M-%S");
        format!("{day}/rollout-{time}-{}.jsonl", head.uuid("codex"))
    }

    fn write_line(&mut self, type_of: &str, payload: &Value) -> io::Result<()> {
        let line = json!({
            "timestamp": format_millis(self.at),
            "type": type_of,
            "payload": payload,
        });
        serde_json::to_writer(&mut self.out, &line)?;
        self.out.write_all(b"\n")
    }

    fn begin(&mut self) -> io::Result<()> {
        if self.begun {
            return Ok(());
        }
        self.begun = true;
        // Without a provider: Codex resumes a thread only with the provider it names.
        let meta = json!({
            "id": self.metadata.uuid("codex"),
            "timestamp": format_millis(self.metadata.header.at),
            "cwd": self.metadata.folder,
            "originator": "throughline",
            "cli_version": "0.0.0",
            "source": "cli",
            "base_instructions": null,
        });
        self.write_line("session_meta", &meta)
    }

    fn write_message(&mut self, message: &Message, blobs: &Blobs) -> io::Result<()> {
        let missing = self.pending_calls.take_missing_before(message);
        self.write_missing_results(&missing)?;
        let mut content = Vec::new();
        for block in &message.content.0 {
            match block {
                Block::Thinking {
                    text,
                    signature: Some(signature),
                } if message.provider.as_deref() == Some("openai") => {
                    self.flush_content(message, &mut content)?;
                    let item = json!({
                        "type": "reasoning",
                        "summary": [{"type": "summary_text", "text": text}],
                        "encrypted_content": signature,
                    });
                    self.write_line("response_item", &item)?;
                }
                // Codex rejects reasoning of other systems.
                Block::Thinking { .. } => {}
                Block::ToolCall(call) => {
                    self.flush_content(message, &mut content)?;
                    let item = match call.input.decode::<String>() {
                        Ok(text) => json!({
                            "type": "custom_tool_call",
                            "status": "completed",
                            "call_id": call.id,
                            "name": call.name,
                            "input": text,
                        }),
                        Err(_) => json!({
                            "type": "function_call",
                            "name": call.name,
                            "arguments": call.input.as_str(),
                            "call_id": call.id,
                        }),
                    };
                    self.write_line("response_item", &item)?;
                }
                Block::ToolResult(result) => {
                    let text = result.content.to_text().into_owned();
                    if self.pending_calls.resolve(result) {
                        self.flush_content(message, &mut content)?;
                        self.write_result(result)?;
                    } else if !text.is_empty() {
                        content.push(to_text_part(message.role, &text));
                    }
                }
                block => {
                    if let (Some((media_type, bytes)), Role::User) =
                        (image_data(block, blobs), message.role)
                    {
                        let data = STANDARD.encode(bytes);
                        content.push(json!({
                            "type": "input_image",
                            "image_url": format!("data:{media_type};base64,{data}"),
                        }));
                    } else if let Some(text) = block_to_text(block) {
                        content.push(to_text_part(message.role, &text));
                    }
                }
            }
        }
        self.pending_calls.add_calls(&message.content);
        self.flush_content(message, &mut content)
    }

    /// Writes the pending content, as the item that is loaded and the event that is displayed.
    fn flush_content(&mut self, message: &Message, content: &mut Vec<Value>) -> io::Result<()> {
        let content = std::mem::take(content);
        if content.is_empty() {
            return Ok(());
        }
        let texts = content.iter().filter_map(|part| part["text"].as_str());
        let text = texts.collect::<Vec<_>>().join("\n\n");
        let role = match message.role {
            Role::User | Role::Tool => "user",
            Role::Assistant => "assistant",
            Role::System => "developer",
        };
        let item = json!({"type": "message", "role": role, "content": content});
        self.write_line("response_item", &item)?;
        let event = match message.role {
            Role::User => "user_message",
            Role::Assistant => "agent_message",
            Role::Tool | Role::System => return Ok(()),
        };
        self.write_line("event_msg", &json!({"type": event, "message": text}))
    }

    fn write_result(&mut self, result: &ToolResult) -> io::Result<()> {
        let item = json!({
            "type": "function_call_output",
            "call_id": result.call_id,
            "output": result.content.to_text(),
        });
        self.write_line("response_item", &item)
    }

    fn write_missing_results(&mut self, missing: &[ToolResult]) -> io::Result<()> {
        missing
            .iter()
            .try_for_each(|result| self.write_result(result))
    }

    fn write_summary(&mut self) -> io::Result<()> {
        let Some((_, text, at)) = self.metadata.summary_text() else {
            return Ok(());
        };
        self.summary_written = true;
        let missing = self.pending_calls.take_missing();
        self.write_missing_results(&missing)?;
        self.at = self.at.max(at);
        let summary = json!({
            "type": "message",
            "role": "user",
            "content": [{"type": "input_text", "text": text}],
        });
        let compacted = json!({"message": text, "replacement_history": [summary]});
        self.write_line("compacted", &compacted)
    }
}

/// Returns a text part with the type that Codex uses for the role.
fn to_text_part(role: Role, text: &str) -> Value {
    let type_of = match role {
        Role::Assistant => "output_text",
        Role::User | Role::System | Role::Tool => "input_text",
    };
    json!({"type": type_of, "text": text})
}

impl<W: Write> SessionWriter for CodexWriter<W> {
    fn write_entry(&mut self, entry: &Entry, blobs: &Blobs) -> io::Result<()> {
        self.begin()?;
        if !self.summary_written && self.metadata.is_after_summary(entry.seq) {
            self.write_summary()?;
        }
        if let Some(message) = self.metadata.visible_message(entry) {
            self.at = self.at.max(entry.at);
            self.write_message(message, blobs)?;
        }
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        self.begin()?;
        if !self.summary_written {
            self.write_summary()?;
        }
        let missing = self.pending_calls.take_missing();
        self.write_missing_results(&missing)?;
        self.out.flush()
    }
}

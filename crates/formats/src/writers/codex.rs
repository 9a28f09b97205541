//! Codex's own format: a rollout.

use std::io::{self, Write};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use throughline_model::{Block, Entry, Message, Role, Timestamp, ToolResult};

use super::claude_code::millis;
use super::pairs::Pairs;
use super::{Blobs, Head, SessionWriter, in_words, picture};

/// Writes a session as a rollout that Codex loads.
#[derive(Debug)]
pub struct CodexWriter<W: Write> {
    out: W,
    head: Head,
    pairs: Pairs,
    begun: bool,
    summarized: bool,
    at: Timestamp,
}

impl<W: Write> CodexWriter<W> {
    /// Starts a rollout.
    pub fn new(out: W, head: Head) -> Self {
        Self {
            at: head.birth.at,
            out,
            head,
            pairs: Pairs::default(),
            begun: false,
            summarized: false,
        }
    }

    /// Where Codex looks for it, below its `sessions` folder.
    pub fn place(head: &Head) -> String {
        let at = head.birth.at;
        let day = at.strftime("%Y/%m/%d");
        let time = at.strftime("%Y-%m-%dT%H-%M-%S");
        format!("{day}/rollout-{time}-{}.jsonl", head.uuid("codex"))
    }

    fn line(&mut self, type_of: &str, payload: &Value) -> io::Result<()> {
        let line = json!({
            "timestamp": millis(self.at),
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
        // No provider: Codex goes on only with the one a thread names.
        let meta = json!({
            "id": self.head.uuid("codex"),
            "timestamp": millis(self.head.birth.at),
            "cwd": self.head.folder,
            "originator": "throughline",
            "cli_version": "0.0.0",
            "source": "cli",
            "base_instructions": null,
        });
        self.line("session_meta", &meta)
    }

    fn message(&mut self, message: &Message, blobs: &Blobs) -> io::Result<()> {
        let missing = self.pairs.missing_before(message);
        self.answer(&missing)?;
        let mut content = Vec::new();
        for block in &message.content.0 {
            match block {
                Block::Thinking {
                    text,
                    signature: Some(signature),
                } if message.provider.as_deref() == Some("openai") => {
                    self.said(message, &mut content)?;
                    let item = json!({
                        "type": "reasoning",
                        "summary": [{"type": "summary_text", "text": text}],
                        "encrypted_content": signature,
                    });
                    self.line("response_item", &item)?;
                }
                // Somebody else's thoughts are refused.
                Block::Thinking { .. } => {}
                Block::ToolCall(call) => {
                    self.said(message, &mut content)?;
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
                    self.line("response_item", &item)?;
                }
                Block::ToolResult(result) => {
                    let text = result.content.to_text().into_owned();
                    if self.pairs.answers(result) {
                        self.said(message, &mut content)?;
                        self.result(result)?;
                    } else if !text.is_empty() {
                        content.push(part(message.role, &text));
                    }
                }
                block => {
                    if let (Some((media_type, bytes)), Role::User) =
                        (picture(block, blobs), message.role)
                    {
                        let data = STANDARD.encode(bytes);
                        content.push(json!({
                            "type": "input_image",
                            "image_url": format!("data:{media_type};base64,{data}"),
                        }));
                    } else if let Some(text) = in_words(block) {
                        content.push(part(message.role, &text));
                    }
                }
            }
        }
        self.pairs.calls(&message.content);
        self.said(message, &mut content)
    }

    /// Writes what was said so far, as the item that counts and the event that is shown.
    fn said(&mut self, message: &Message, content: &mut Vec<Value>) -> io::Result<()> {
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
        self.line("response_item", &item)?;
        let event = match message.role {
            Role::User => "user_message",
            Role::Assistant => "agent_message",
            Role::Tool | Role::System => return Ok(()),
        };
        self.line("event_msg", &json!({"type": event, "message": text}))
    }

    fn result(&mut self, result: &ToolResult) -> io::Result<()> {
        let item = json!({
            "type": "function_call_output",
            "call_id": result.call_id,
            "output": result.content.to_text(),
        });
        self.line("response_item", &item)
    }

    fn answer(&mut self, missing: &[ToolResult]) -> io::Result<()> {
        missing.iter().try_for_each(|result| self.result(result))
    }

    fn summary(&mut self) -> io::Result<()> {
        let Some((_, text, at)) = self.head.summary_text() else {
            return Ok(());
        };
        self.summarized = true;
        let missing = self.pairs.missing();
        self.answer(&missing)?;
        self.at = self.at.max(at);
        let said = json!({
            "type": "message",
            "role": "user",
            "content": [{"type": "input_text", "text": text}],
        });
        let compacted = json!({"message": text, "replacement_history": [said]});
        self.line("compacted", &compacted)
    }
}

/// A text of a message, as whoever says it writes it.
fn part(role: Role, text: &str) -> Value {
    let type_of = match role {
        Role::Assistant => "output_text",
        Role::User | Role::System | Role::Tool => "input_text",
    };
    json!({"type": type_of, "text": text})
}

impl<W: Write> SessionWriter for CodexWriter<W> {
    fn entry(&mut self, entry: &Entry, blobs: &Blobs) -> io::Result<()> {
        self.begin()?;
        if !self.summarized && self.head.is_kept(entry.seq) {
            self.summary()?;
        }
        if let Some(message) = self.head.shown(entry) {
            self.at = self.at.max(entry.at);
            self.message(message, blobs)?;
        }
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        self.begin()?;
        if !self.summarized {
            self.summary()?;
        }
        let missing = self.pairs.missing();
        self.answer(&missing)?;
        self.out.flush()
    }
}

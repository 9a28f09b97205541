//! pi's own format.

use std::io::{self, Write};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use throughline_model::{Block, Entry, Message, Role, Timestamp, ToolResult};

use super::claude_code::{millis, object};
use super::pairs::Pairs;
use super::{Blobs, Head, SessionWriter, in_words, picture};

/// Writes a session as pi loads it.
#[derive(Debug)]
pub struct PiWriter<W: Write> {
    out: W,
    head: Head,
    last: Option<String>,
    pairs: Pairs,
    begun: bool,
    /// The first entry after what the summary covers.
    kept: Option<String>,
    at: Timestamp,
    written: u64,
}

impl<W: Write> PiWriter<W> {
    /// Starts a session.
    pub fn new(out: W, head: Head) -> Self {
        Self {
            at: head.birth.at,
            out,
            head,
            last: None,
            pairs: Pairs::default(),
            begun: false,
            kept: None,
            written: 0,
        }
    }

    /// Where pi looks for it, below its `sessions` folder.
    pub fn place(head: &Head) -> String {
        let folder = head.folder.trim_start_matches(['/', '\\']);
        let folder = folder.replace(['/', '\\', ':'], "-");
        let time = millis(head.birth.at).replace([':', '.'], "-");
        format!("--{folder}--/{time}_{}.jsonl", head.uuid("pi"))
    }

    fn line(&mut self, value: &Value) -> io::Result<()> {
        serde_json::to_writer(&mut self.out, value)?;
        self.out.write_all(b"\n")
    }

    /// Writes an entry after the last one.
    fn put(&mut self, type_of: &str, mut members: Value) -> io::Result<()> {
        self.written += 1;
        let id = format!("{:08x}", self.written);
        members["type"] = json!(type_of);
        members["id"] = json!(id);
        members["parentId"] = json!(self.last);
        members["timestamp"] = json!(millis(self.at));
        self.last = Some(id);
        self.line(&members)
    }

    fn say(&mut self, message: Value) -> io::Result<()> {
        let mut message = message;
        message["timestamp"] = json!(self.at.as_millisecond());
        self.put("message", json!({"message": message}))
    }

    fn message(&mut self, message: &Message, blobs: &Blobs) -> io::Result<()> {
        let missing = self.pairs.missing_before(message);
        self.answer(&missing)?;
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
                    "arguments": object(call.input.decode().unwrap_or_default()),
                })),
                Block::ToolResult(result) if self.pairs.answers(result) => {
                    self.result(result, blobs)?;
                }
                Block::ToolResult(result) => {
                    content.push(json!({"type": "text", "text": result.content.to_text()}));
                }
                block => content.extend(said(block, blobs)),
            }
        }
        if content.is_empty() {
            return Ok(());
        }
        match message.role {
            Role::User | Role::Tool => self.say(json!({"role": "user", "content": content})),
            Role::System => {
                let members = json!({
                    "customType": "throughline",
                    "content": content,
                    "display": true,
                });
                self.put("custom_message", members)
            }
            Role::Assistant => {
                self.pairs.calls(&message.content);
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
                self.say(json!({
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

    fn result(&mut self, result: &ToolResult, blobs: &Blobs) -> io::Result<()> {
        let blocks = result.content.0.iter();
        let content: Vec<Value> = blocks.filter_map(|block| said(block, blobs)).collect();
        self.say(json!({
            "role": "toolResult",
            "toolCallId": result.call_id,
            "toolName": "tool",
            "content": content,
            "isError": result.is_error,
        }))
    }

    fn answer(&mut self, missing: &[ToolResult]) -> io::Result<()> {
        let none = Blobs::new();
        missing
            .iter()
            .try_for_each(|result| self.result(result, &none))
    }

    fn begin(&mut self) -> io::Result<()> {
        if self.begun {
            return Ok(());
        }
        self.begun = true;
        let header = json!({
            "type": "session",
            "version": 3,
            "id": self.head.uuid("pi"),
            "timestamp": millis(self.head.birth.at),
            "cwd": self.head.folder,
        });
        self.line(&header)
    }
}

/// A block that is said or shown.
fn said(block: &Block, blobs: &Blobs) -> Option<Value> {
    if let Some((media_type, bytes)) = picture(block, blobs) {
        let data = STANDARD.encode(bytes);
        return Some(json!({"type": "image", "data": data, "mimeType": media_type}));
    }
    Some(json!({"type": "text", "text": in_words(block)?}))
}

impl<W: Write> SessionWriter for PiWriter<W> {
    fn entry(&mut self, entry: &Entry, blobs: &Blobs) -> io::Result<()> {
        self.begin()?;
        let Some(message) = self.head.shown(entry) else {
            return Ok(());
        };
        self.at = self.at.max(entry.at);
        let before = self.written;
        self.message(message, blobs)?;
        if self.kept.is_none() && self.head.is_kept(entry.seq) && self.written > before {
            self.kept.clone_from(&self.last);
        }
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        self.begin()?;
        let missing = self.pairs.missing();
        self.answer(&missing)?;
        if let Some((_, text, at)) = self.head.summary_text() {
            self.at = self.at.max(at);
            // It names the first entry that is kept; with none, one that is not there.
            let kept = self.kept.clone().unwrap_or_else(|| "none".to_owned());
            let members = json!({
                "summary": text,
                "firstKeptEntryId": kept,
                "tokensBefore": 0,
            });
            self.put("compaction", members)?;
        }
        if let Some(name) = self.head.card.name.clone() {
            self.put("session_info", json!({"name": name.as_str()}))?;
        }
        self.out.flush()
    }
}

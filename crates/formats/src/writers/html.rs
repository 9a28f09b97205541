//! Writes a session as one self-contained HTML page: styled, searchable and printable.
//!
//! Invariant: message text never becomes markup. Every text is escaped, and the page's
//! content security policy allows no resources but inline images.

use std::io::{self, Write};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::tz::TimeZone;
use throughline_model::{Block, Body, Content, Entry, Role};

use super::{Blobs, ExportMetadata, SessionWriter, image_data, summary_to_text};

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// Writes a session as an HTML page.
#[derive(Debug)]
pub struct HtmlWriter<W: Write> {
    out: W,
    metadata: ExportMetadata,
    zone: TimeZone,
    begun: bool,
    /// Nonce of the page's script.
    nonce: String,
}

impl<W: Write> HtmlWriter<W> {
    /// Starts a page. Times are shown in `zone`.
    pub fn new(out: W, metadata: ExportMetadata, zone: TimeZone) -> Self {
        Self {
            out,
            metadata,
            zone,
            begun: false,
            nonce: String::new(),
        }
    }

    fn write_page_header(&mut self) -> io::Result<()> {
        if self.begun {
            return Ok(());
        }
        self.begun = true;
        let info = &self.metadata.info;
        let title = escape_html(info.description.as_deref().unwrap_or(info.title()));
        let nonce = throughline_model::Digest::of(info.digest.as_bytes()).short();
        self.nonce.clone_from(&nonce);
        let mut facts = vec![escape_html(info.id.as_str())];
        facts.push(escape_html(&self.format_time(info.created_at)));
        facts.push(format!("{} messages", info.messages));
        facts.extend(info.agent.iter().map(|agent| escape_html(&agent.name)));
        facts.extend(info.model.iter().map(|model| escape_html(model)));
        facts.extend(info.workspace.iter().map(|folder| escape_html(folder)));
        facts.extend(
            info.tags
                .iter()
                .map(|tag| format!("#{}", escape_html(tag.as_str()))),
        );
        write!(
            self.out,
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; \
             img-src data:; style-src 'unsafe-inline'; script-src 'nonce-{nonce}'\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"referrer\" content=\"no-referrer\">\n\
             <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n\
             <header>\n<h1>{title}</h1>\n<p class=\"facts\">{}</p>\n\
             <p class=\"find\"><input id=\"find\" type=\"search\" placeholder=\"Find\" \
             aria-label=\"Find in this session\"> <span id=\"found\"></span></p>\n</header>\n<main>\n",
            facts.join(" · ")
        )
    }

    fn format_time(&self, at: jiff::Timestamp) -> String {
        let zoned = at.to_zoned(self.zone.clone());
        zoned.strftime("%Y-%m-%d %H:%M:%S").to_string()
    }

    fn write_section(
        &mut self,
        entry: &Entry,
        class: &str,
        who: &str,
        body: &str,
    ) -> io::Result<()> {
        let time = escape_html(&self.format_time(entry.at));
        writeln!(
            self.out,
            "<section class=\"entry {class}\" id=\"e{seq}\">\n<h2>{who} \
             <small><a href=\"#e{seq}\">{seq}</a> {time}</small></h2>\n{body}</section>",
            seq = entry.seq,
        )
    }
}

impl<W: Write> SessionWriter for HtmlWriter<W> {
    fn write_entry(&mut self, entry: &Entry, blobs: &Blobs) -> io::Result<()> {
        self.write_page_header()?;
        match &entry.body {
            Body::Message(message) => {
                let (class, who) = match message.role {
                    Role::User => ("user", "You"),
                    Role::Assistant => ("assistant", "Assistant"),
                    Role::System => ("system", "System"),
                    Role::Tool => ("tool", "Tool"),
                };
                let who = match (&entry.author, &message.model) {
                    (Some(author), _) => format!("{} ({who})", escape_html(author)),
                    (None, Some(model)) => format!("{who} ({})", escape_html(model)),
                    (None, None) => who.to_owned(),
                };
                let hidden = if self.metadata.state.is_visible(entry.seq) {
                    class.to_owned()
                } else {
                    format!("{class} back")
                };
                let body = render_content(&message.content, blobs);
                self.write_section(entry, &hidden, &who, &body)
            }
            Body::Checkpoint(checkpoint) | Body::Summarized(checkpoint) => {
                let text = render_paragraphs(&summary_to_text(&checkpoint.summary));
                let who = format!("Summary up to {}", checkpoint.covers);
                self.write_section(entry, "summary", &who, &text)
            }
            Body::Pinned { text } => {
                self.write_section(entry, "note", "Pinned", &render_paragraphs(text))
            }
            Body::Decided { text } => {
                self.write_section(entry, "note", "Decided", &render_paragraphs(text))
            }
            Body::Restored(restored) => {
                let text = restored.acknowledgement.clone().unwrap_or_default();
                let who = format!("Resumed from {}", escape_html(restored.from.as_str()));
                self.write_section(entry, "note", &who, &render_paragraphs(&text))
            }
            Body::Rewound { to } => {
                let who = format!("Rewound to {to}");
                self.write_section(entry, "note", &who, "")
            }
            Body::Cleared => self.write_section(entry, "note", "Cleared", ""),
            _ => Ok(()),
        }
    }

    fn finish(&mut self) -> io::Result<()> {
        self.write_page_header()?;
        write!(
            self.out,
            "</main>\n<script nonce=\"{}\">{SCRIPT}</script>\n</body>\n</html>\n",
            self.nonce
        )?;
        self.out.flush()
    }
}

fn render_content(content: &Content, blobs: &Blobs) -> String {
    let mut html = String::new();
    for block in &content.0 {
        match block {
            Block::Text(text) => html.push_str(&render_paragraphs(text)),
            Block::Thinking { text, .. } if text.is_empty() => {}
            Block::Thinking { text, .. } => {
                let text = render_paragraphs(text);
                html.push_str(&render_details("Thinking", &text));
            }
            Block::ToolCall(call) => {
                let input = format!(
                    "<pre>{}</pre>\n",
                    escape_html(&pretty_json(call.input.as_str()))
                );
                let name = format!("Calls <b>{}</b>", escape_html(&call.name));
                html.push_str(&render_details(&name, &input));
            }
            Block::ToolResult(result) => {
                let name = if result.is_error { "Failed" } else { "Result" };
                let inner = self::render_content(&result.content, blobs);
                html.push_str(&render_details(
                    name,
                    &format!("<div class=\"result\">{inner}</div>\n"),
                ));
            }
            Block::Foreign(json) => {
                let json = format!("<pre>{}</pre>\n", escape_html(&pretty_json(json.as_str())));
                html.push_str(&render_details("Unknown content", &json));
            }
            block => {
                let name = match block {
                    Block::Attachment(file) => file
                        .name
                        .clone()
                        .unwrap_or_else(|| format!("{}, {} bytes", file.media_type, file.bytes)),
                    _ => String::new(),
                };
                match image_data(block, blobs) {
                    Some((media_type, bytes)) => html.push_str(&format!(
                        "<img alt=\"{}\" src=\"data:{media_type};base64,{}\">\n",
                        escape_html(&name),
                        STANDARD.encode(bytes)
                    )),
                    None => {
                        html.push_str(&format!("<p class=\"file\">{}</p>\n", escape_html(&name)));
                    }
                }
            }
        }
    }
    html
}

fn render_details(name: &str, inner: &str) -> String {
    format!("<details><summary>{name}</summary>\n{inner}</details>\n")
}

fn pretty_json(json: &str) -> String {
    let value: Result<serde_json::Value, _> = serde_json::from_str(json);
    let pretty = value
        .ok()
        .and_then(|value| serde_json::to_string_pretty(&value).ok());
    pretty.unwrap_or_else(|| json.to_owned())
}

/// Renders text with its line breaks, and fenced code separately.
fn render_paragraphs(text: &str) -> String {
    let mut html = String::new();
    let mut fence: Option<&str> = None;
    let mut lines: Vec<&str> = Vec::new();
    let close = |lines: &mut Vec<&str>, code: bool| {
        let text = escape_html(&lines.join("\n"));
        lines.clear();
        match (code, text.trim().is_empty()) {
            (true, _) => format!("<pre><code>{text}</code></pre>\n"),
            (false, true) => String::new(),
            (false, false) => format!("<div class=\"text\">{}</div>\n", text.trim_matches('\n')),
        }
    };
    for line in text.lines() {
        let bare = line.trim_start();
        match fence {
            None if bare.starts_with("```") || bare.starts_with("~~~") => {
                html.push_str(&close(&mut lines, false));
                fence = Some(&bare[..3]);
            }
            Some(mark) if bare.starts_with(mark) && bare.trim_end().len() <= 6 => {
                html.push_str(&close(&mut lines, true));
                fence = None;
            }
            _ => lines.push(line),
        }
    }
    html.push_str(&close(&mut lines, fence.is_some()));
    html
}

/// Escapes text for use in an element or a quoted attribute.
fn escape_html(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            '\n' | '\t' => safe.push(c),
            // Control and bidirectional formatting characters.
            c if c.is_control()
                || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}') =>
            {
                safe.push('\u{fffd}');
            }
            c => safe.push(c),
        }
    }
    safe
}

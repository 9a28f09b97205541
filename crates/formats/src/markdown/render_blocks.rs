//! Renders content blocks as Markdown.
//!
//! Invariant: a fence is longer than any run of backticks inside it.

use throughline_model::format::format_thousands;
use throughline_model::{Attachment, Block, ToolResult};

use super::escape::{self, EscapeContext, to_one_line};

/// Renders a block; `None` if there is nothing to show.
pub(super) fn render_block(block: &Block, context: EscapeContext<'_>) -> Option<String> {
    Some(match block {
        Block::Text(text) if text.trim().is_empty() => return None,
        Block::Text(text) => escape::escape_text(text, context),
        Block::Thinking { text, .. } if text.trim().is_empty() => return None,
        Block::Thinking { text, .. } => render_quote(text),
        Block::ToolCall(call) => format!(
            "**Tool call:** {}\n\n{}",
            to_one_line(&call.name),
            render_fence("json", call.input.as_str(), context)
        ),
        Block::ToolResult(result) => {
            let label = if result.is_error { "error" } else { "result" };
            format!(
                "**Tool {label}:**\n\n{}",
                render_fence("", &tool_result_text(result), context)
            )
        }
        Block::Attachment(attachment) => {
            escape::escape_text(&describe_attachment(attachment), context)
        }
        Block::Foreign(raw) => format!(
            "**Other:**\n\n{}",
            render_fence("json", raw.as_str(), context)
        ),
        _ => return None,
    })
}

/// Quotes every line of a text with `>`, so that it cannot be mistaken for structure.
pub(super) fn render_quote(text: &str) -> String {
    let text = escape::normalize_line_ends(text);
    let text = escape::escape_markers(&text);
    let lines: Vec<_> = text
        .trim_end()
        .split('\n')
        .map(|line| format!("> {line}").trim_end().to_owned())
        .collect();
    lines.join("\n")
}

fn tool_result_text(result: &ToolResult) -> String {
    let parts: Vec<_> = result
        .content
        .0
        .iter()
        .map(|block| match block {
            Block::Text(text) | Block::Thinking { text, .. } => text.clone(),
            Block::Attachment(attachment) => describe_attachment(attachment),
            Block::Foreign(raw) => raw.to_string(),
            other => serde_json::to_string(other).unwrap_or_default(),
        })
        .collect();
    parts.join("\n\n")
}

fn describe_attachment(attachment: &Attachment) -> String {
    let name = attachment
        .name
        .as_deref()
        .map_or("unnamed".into(), to_one_line);
    let media_type = to_one_line(&attachment.media_type);
    let bytes = format_thousands(attachment.bytes);
    format!("[attachment: {name}, {media_type}, {bytes} bytes]")
}

fn render_fence(language: &str, text: &str, context: EscapeContext<'_>) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(3.max(longest + 1));
    let text = escape::escape_text(text, context);
    let text = text.trim_end_matches('\n');
    let end = if text.is_empty() { "" } else { "\n" };
    format!("{fence}{language}\n{text}{end}{fence}")
}

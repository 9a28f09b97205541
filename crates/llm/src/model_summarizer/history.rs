//! Renders entries as text for a model, within a size limit.
//!
//! What is too long is cut in the middle, old and bulky parts first: tool results, then
//! messages, then whole entries from the oldest on. The newest turns are cut last, and the
//! last entry is always included.

use throughline_model::{Block, Body, Content, Entry, Role};

/// Number of newest entries that are cut only if nothing else is left to cut.
const SPARED_ENTRIES: usize = 8;
/// Sizes in bytes to which parts are cut, in successive passes.
const CUT_SIZES: [usize; 4] = [4_000, 1_000, 240, 80];

/// Part of an entry: a tool's output, or text of a message.
struct TextPart {
    is_tool_output: bool,
    text: String,
}

struct RenderedEntry {
    head: String,
    parts: Vec<TextPart>,
}

impl RenderedEntry {
    fn len(&self) -> usize {
        let pieces: usize = self.parts.iter().map(|piece| piece.text.len() + 1).sum();
        self.head.len() + pieces + 2
    }
}

/// Renders the entries, cut to about `room` bytes.
pub(super) fn render_history(entries: &[Entry], room: usize) -> String {
    let mut shown: Vec<RenderedEntry> = entries.iter().filter_map(render_entry).collect();
    let mut total: usize = shown.iter().map(RenderedEntry::len).sum();
    let spared = shown.len().saturating_sub(SPARED_ENTRIES);
    for (range, output) in [(0..spared, true), (0..spared, false)] {
        for cut in CUT_SIZES {
            shorten_parts(&mut shown[range.clone()], output, cut, room, &mut total);
        }
    }
    let mut dropped = 0;
    while total > room && dropped < spared {
        total -= shown[dropped].len();
        dropped += 1;
    }
    for output in [true, false] {
        for cut in CUT_SIZES {
            shorten_parts(&mut shown[spared..], output, cut, room, &mut total);
        }
    }
    while total > room && dropped + 1 < shown.len() {
        total -= shown[dropped].len();
        dropped += 1;
    }
    let mut text = String::new();
    if dropped > 0 {
        text.push_str(&format!(
            "[{dropped} older entries left out for length]\n\n"
        ));
    }
    for shown in &shown[dropped..] {
        text.push_str(&shown.head);
        for piece in &shown.parts {
            text.push('\n');
            text.push_str(&piece.text);
        }
        text.push_str("\n\n");
    }
    text
}

/// Cuts parts of one kind to `cut` bytes, oldest first, until everything fits.
fn shorten_parts(
    shown: &mut [RenderedEntry],
    output: bool,
    cut: usize,
    room: usize,
    total: &mut usize,
) {
    for piece in shown.iter_mut().flat_map(|shown| &mut shown.parts) {
        if *total <= room {
            return;
        }
        if piece.is_tool_output == output && piece.text.len() > cut + 60 {
            let before = piece.text.len();
            piece.text = elide_middle(&piece.text, cut);
            *total = *total + piece.text.len() - before;
        }
    }
}

fn elide_middle(text: &str, keep: usize) -> String {
    let boundary = |at: usize| (at..=text.len()).find(|&at| text.is_char_boundary(at));
    let head = boundary(keep / 2).unwrap_or(0);
    let tail = boundary(text.len() - keep / 2)
        .unwrap_or(text.len())
        .max(head);
    let left_out = tail - head;
    format!(
        "{} [… {left_out} bytes left out …] {}",
        &text[..head],
        &text[tail..]
    )
}

fn render_entry(entry: &Entry) -> Option<RenderedEntry> {
    let (who, pieces) = match &entry.body {
        Body::Message(message) => {
            let output = message.role == Role::Tool;
            let mut pieces = Vec::new();
            push_content_parts(&message.content, output, &mut pieces);
            (message.role.as_str(), pieces)
        }
        Body::Merged(merge) => ("merged", vec![message_part(merge.summary.clone()?)]),
        Body::Restored(restored) => ("restored", vec![message_part(restored.prompt.clone())]),
        Body::Pinned { text } => ("pinned", vec![message_part(text.clone())]),
        Body::Decided { text } => ("decided", vec![message_part(text.clone())]),
        _ => return None,
    };
    if pieces.is_empty() {
        return None;
    }
    let author = entry
        .author
        .as_deref()
        .map_or_else(String::new, |name| format!(" ({name})"));
    Some(RenderedEntry {
        head: format!("[{}] {who}{author}:", entry.seq),
        parts: pieces,
    })
}

fn message_part(text: String) -> TextPart {
    TextPart {
        is_tool_output: false,
        text,
    }
}

fn push_content_parts(content: &Content, output: bool, pieces: &mut Vec<TextPart>) {
    for block in &content.0 {
        match block {
            Block::Text(text) => pieces.push(TextPart {
                is_tool_output: output,
                text: text.clone(),
            }),
            Block::ToolCall(call) => pieces.push(TextPart {
                is_tool_output: true,
                text: format!("calls {} with {}", call.name, call.input),
            }),
            Block::ToolResult(result) => {
                let failed = if result.is_error { " (failed)" } else { "" };
                pieces.push(TextPart {
                    is_tool_output: true,
                    text: format!("result{failed}: {}", result.content.to_text()),
                });
            }
            Block::Attachment(attachment) => pieces.push(message_part(format!(
                "attached {} ({})",
                attachment.name.as_deref().unwrap_or("a file"),
                attachment.media_type
            ))),
            _ => {}
        }
    }
}

//! Entries as text for a model, within a size.
//!
//! What is too long is cut in its middle, old and bulky first: tool results, then what
//! was said, then whole entries from the oldest on. The newest turns go last, and the
//! very last entry always stays.

use throughline_model::{Block, Body, Content, Entry, Role};

/// How many of the newest entries are spared until nothing else is left to cut.
const NEWEST: usize = 8;
/// To how many bytes pieces are cut, harder each time.
const CUTS: [usize; 4] = [4_000, 1_000, 240, 80];

/// A piece of an entry: output is what a tool gave, the rest was said.
struct Piece {
    output: bool,
    text: String,
}

struct Shown {
    head: String,
    pieces: Vec<Piece>,
}

impl Shown {
    fn len(&self) -> usize {
        let pieces: usize = self.pieces.iter().map(|piece| piece.text.len() + 1).sum();
        self.head.len() + pieces + 2
    }
}

/// The entries, cut to about `room` bytes.
pub(super) fn render(entries: &[Entry], room: usize) -> String {
    let mut shown: Vec<Shown> = entries.iter().filter_map(show).collect();
    let mut total: usize = shown.iter().map(Shown::len).sum();
    let spared = shown.len().saturating_sub(NEWEST);
    for (range, output) in [(0..spared, true), (0..spared, false)] {
        for cut in CUTS {
            shorten(&mut shown[range.clone()], output, cut, room, &mut total);
        }
    }
    let mut dropped = 0;
    while total > room && dropped < spared {
        total -= shown[dropped].len();
        dropped += 1;
    }
    for output in [true, false] {
        for cut in CUTS {
            shorten(&mut shown[spared..], output, cut, room, &mut total);
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
        for piece in &shown.pieces {
            text.push('\n');
            text.push_str(&piece.text);
        }
        text.push_str("\n\n");
    }
    text
}

/// Cuts pieces of one sort to `cut` bytes, oldest first, until everything fits.
fn shorten(shown: &mut [Shown], output: bool, cut: usize, room: usize, total: &mut usize) {
    for piece in shown.iter_mut().flat_map(|shown| &mut shown.pieces) {
        if *total <= room {
            return;
        }
        if piece.output == output && piece.text.len() > cut + 60 {
            let before = piece.text.len();
            piece.text = without_middle(&piece.text, cut);
            *total = *total + piece.text.len() - before;
        }
    }
}

fn without_middle(text: &str, keep: usize) -> String {
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

fn show(entry: &Entry) -> Option<Shown> {
    let (who, pieces) = match &entry.body {
        Body::Message(message) => {
            let output = message.role == Role::Tool;
            let mut pieces = Vec::new();
            show_content(&message.content, output, &mut pieces);
            (message.role.as_str(), pieces)
        }
        Body::Merged(merge) => ("merged", vec![said(merge.summary.clone()?)]),
        Body::Restored(restored) => ("restored", vec![said(restored.prompt.clone())]),
        Body::Pinned { text } => ("pinned", vec![said(text.clone())]),
        Body::Decided { text } => ("decided", vec![said(text.clone())]),
        _ => return None,
    };
    if pieces.is_empty() {
        return None;
    }
    let author = entry
        .author
        .as_deref()
        .map_or_else(String::new, |name| format!(" ({name})"));
    Some(Shown {
        head: format!("[{}] {who}{author}:", entry.seq),
        pieces,
    })
}

fn said(text: String) -> Piece {
    Piece {
        output: false,
        text,
    }
}

fn show_content(content: &Content, output: bool, pieces: &mut Vec<Piece>) {
    for block in &content.0 {
        match block {
            Block::Text(text) => pieces.push(Piece {
                output,
                text: text.clone(),
            }),
            Block::ToolCall(call) => pieces.push(Piece {
                output: true,
                text: format!("calls {} with {}", call.name, call.input),
            }),
            Block::ToolResult(result) => {
                let failed = if result.is_error { " (failed)" } else { "" };
                pieces.push(Piece {
                    output: true,
                    text: format!("result{failed}: {}", result.content.to_text()),
                });
            }
            Block::Attachment(attachment) => pieces.push(said(format!(
                "attached {} ({})",
                attachment.name.as_deref().unwrap_or("a file"),
                attachment.media_type
            ))),
            _ => {}
        }
    }
}

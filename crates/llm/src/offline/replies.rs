//! The texts of the offline agent's replies.

use throughline_model::Summary;

use super::intent::ListKind;
use super::{OfflineContext, OfflineExcerpt};

/// Maximum number of excerpts in a reply.
const MAX_EXCERPTS: usize = 3;
/// Maximum length of an excerpt.
const MAX_EXCERPT_CHARS: usize = 400;
/// Maximum number of items of each list in an acknowledgement or recap.
const MAX_LIST_ITEMS: usize = 4;

const INTRODUCTION: &str = "\
I am Throughline's offline agent, not a language model: I keep everything you say, and \
answer with what was said before. Set `ANTHROPIC_API_KEY` or `OPENAI_API_KEY`, or name a \
local model with `tl --model ollama/llama3.2`, and a model answers here instead.";

fn with_introduction(text: &str, first: bool) -> String {
    if first {
        format!("{text}\n\n{INTRODUCTION}\n")
    } else {
        format!("{text}\n")
    }
}

/// Formats the earlier messages relevant to the question.
pub(super) fn format_excerpts(known: &OfflineContext, first: bool) -> String {
    if known.excerpts.is_empty() {
        return with_introduction("Nothing earlier in this project is relevant to it.", first);
    }
    let mut text = String::from("These earlier messages could be relevant:\n");
    for quote in known.excerpts.iter().take(MAX_EXCERPTS) {
        text.push_str(&format!("\n{}", format_excerpt(quote)));
    }
    with_introduction(text.trim_end(), first)
}

fn format_excerpt(quote: &OfflineExcerpt) -> String {
    let mut excerpt = truncate(&quote.text);
    if excerpt.is_empty() {
        excerpt.push('…');
    }
    let lines = excerpt.lines().map(|line| format!("> {line}\n"));
    format!(
        "**{}**, {} ({}):\n\n{}",
        quote.author,
        quote.when,
        quote.location,
        lines.collect::<String>()
    )
}

/// Shortens a text at a word boundary and marks the cut.
fn truncate(text: &str) -> String {
    let text = text.trim();
    if text.chars().count() <= MAX_EXCERPT_CHARS {
        return text.to_owned();
    }
    let cut: String = text.chars().take(MAX_EXCERPT_CHARS).collect();
    let whole = cut.rsplit_once(char::is_whitespace);
    format!("{} …", whole.map_or(cut.as_str(), |(whole, _)| whole))
}

/// Formats one list.
pub(super) fn format_list(what: ListKind, known: &OfflineContext) -> String {
    let summary = &known.summary;
    let (title, none, lists): (_, _, Vec<&[String]>) = match what {
        ListKind::Tasks => (
            "Open tasks",
            "No open tasks were mentioned here.",
            vec![
                &summary.in_progress,
                &summary.open_tasks,
                &summary.pending,
                &summary.blockers,
            ],
        ),
        ListKind::Decisions => (
            "Decisions",
            "Nothing was decided here yet. `/decide TEXT` notes a decision.",
            vec![&known.decisions, &summary.decisions],
        ),
        ListKind::Pins => (
            "Pinned",
            "Nothing is pinned here. `/pin TEXT` keeps a fact always in view.",
            vec![&known.pins],
        ),
        ListKind::Facts => (
            "Facts",
            "No facts were found here yet.",
            vec![&known.memory, &known.pins, &summary.facts],
        ),
        ListKind::Files => (
            "Files touched",
            "No files were touched here.",
            vec![&summary.files_touched],
        ),
        ListKind::Blockers => (
            "Blockers",
            "No blockers were mentioned here.",
            vec![&summary.blockers],
        ),
    };
    let mut items: Vec<&String> = Vec::new();
    for item in lists.into_iter().flatten() {
        if !items.contains(&item) {
            items.push(item);
        }
    }
    if items.is_empty() {
        return format!("{none}\n");
    }
    format!("**{title}:**\n\n{}", format_bullets(items.into_iter()))
}

fn format_bullets<'a>(items: impl Iterator<Item = &'a String>) -> String {
    items.map(|item| format!("- {item}\n")).collect()
}

/// Formats the session's summary.
pub(super) fn format_recap(known: &OfflineContext, first: bool) -> String {
    match format_summary(&known.summary) {
        None => with_introduction("Nothing was said here yet.", first),
        Some(text) => with_introduction(text.trim_end(), first),
    }
}

/// Formats the main parts of a summary; `None` if they are all empty.
fn format_summary(summary: &Summary) -> Option<String> {
    let mut text = String::new();
    if !summary.background.is_empty() {
        text.push_str(&format!("{}\n\n", summary.background));
    }
    for (title, items) in [
        ("Topics", &summary.topics),
        ("Decisions", &summary.decisions),
        ("Done", &summary.completed),
        ("In progress", &summary.in_progress),
        ("Open", &summary.open_tasks),
        ("Pending", &summary.pending),
        ("Blockers", &summary.blockers),
    ] {
        if !items.is_empty() {
            let items = format_bullets(items.iter().take(MAX_LIST_ITEMS));
            text.push_str(&format!("**{title}:**\n\n{items}\n"));
        }
    }
    (!text.is_empty()).then_some(text)
}

/// Formats a greeting.
pub(super) fn format_greeting(known: &OfflineContext, first: bool) -> String {
    let mut text = String::from("Hello.");
    let open: Vec<_> = known
        .summary
        .open_tasks
        .iter()
        .take(MAX_LIST_ITEMS)
        .collect();
    if !open.is_empty() {
        text.push_str(&format!(
            " Open tasks:\n\n{}",
            format_bullets(open.into_iter())
        ));
    }
    with_introduction(text.trim_end(), first)
}

/// Formats the acknowledgement of a restored session.
pub(super) fn format_acknowledgement(summary: &Summary) -> String {
    let mut text = String::from("I have reviewed our previous conversation.\n");
    for (title, items) in [
        ("Topics", &summary.topics),
        ("Decided", &summary.decisions),
        ("Open", &summary.open_tasks),
        ("Pending", &summary.pending),
    ] {
        for item in items.iter().take(MAX_LIST_ITEMS) {
            text.push_str(&format!("- {title}: {item}\n"));
        }
    }
    text.push_str("\nI'm ready to continue.\n");
    text
}

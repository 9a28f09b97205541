//! What the offline agent says.

use throughline_model::Summary;

use super::intent::Listed;
use super::{Known, Quote};

/// How many quotes are given.
const QUOTES: usize = 3;
/// How much of each.
const QUOTED: usize = 400;
/// How many items of a list an acknowledgement or recap names.
const NAMED: usize = 4;

const INTRODUCTION: &str = "\
I am Throughline's offline agent, not a language model: I keep everything you say, and \
answer with what was said before. Set `ANTHROPIC_API_KEY` or `OPENAI_API_KEY`, or name a \
local model with `tl --model ollama/llama3.2`, and a model answers here instead.";

fn introduced(text: &str, first: bool) -> String {
    if first {
        format!("{text}\n\n{INTRODUCTION}\n")
    } else {
        format!("{text}\n")
    }
}

/// What was said that bears on the message.
pub(super) fn quotes(known: &Known, first: bool) -> String {
    if known.quotes.is_empty() {
        return introduced("Nothing said before in this project bears on that.", first);
    }
    let mut text = String::from("This was said before that may bear on it:\n");
    for quote in known.quotes.iter().take(QUOTES) {
        text.push_str(&format!("\n{}", quoted(quote)));
    }
    introduced(text.trim_end(), first)
}

fn quoted(quote: &Quote) -> String {
    let mut said = shortened(&quote.text);
    if said.is_empty() {
        said.push('…');
    }
    let lines = said.lines().map(|line| format!("> {line}\n"));
    format!(
        "**{}**, {} ({}):\n\n{}",
        quote.who,
        quote.when,
        quote.place,
        lines.collect::<String>()
    )
}

/// The beginning of a text, whole words, with a mark where it was cut.
fn shortened(text: &str) -> String {
    let text = text.trim();
    if text.chars().count() <= QUOTED {
        return text.to_owned();
    }
    let cut: String = text.chars().take(QUOTED).collect();
    let whole = cut.rsplit_once(char::is_whitespace);
    format!("{} …", whole.map_or(cut.as_str(), |(whole, _)| whole))
}

/// What there is of one sort.
pub(super) fn list(what: Listed, known: &Known) -> String {
    let summary = &known.summary;
    let (title, none, lists): (_, _, Vec<&[String]>) = match what {
        Listed::Tasks => (
            "Open tasks",
            "No open tasks were mentioned here.",
            vec![
                &summary.in_progress,
                &summary.open_tasks,
                &summary.pending,
                &summary.blockers,
            ],
        ),
        Listed::Decisions => (
            "Decisions",
            "Nothing was decided here yet. `/decide TEXT` notes a decision.",
            vec![&known.decisions, &summary.decisions],
        ),
        Listed::Pins => (
            "Pinned",
            "Nothing is pinned here. `/pin TEXT` keeps a fact always in view.",
            vec![&known.pins],
        ),
        Listed::Facts => (
            "Facts",
            "No facts stand out here yet.",
            vec![&known.memory, &known.pins, &summary.facts],
        ),
        Listed::Files => (
            "Files touched",
            "No files were touched here.",
            vec![&summary.files_touched],
        ),
        Listed::Blockers => (
            "Blockers",
            "Nothing is blocked, as far as was said.",
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
    format!("**{title}:**\n\n{}", bullets(items.into_iter()))
}

fn bullets<'a>(items: impl Iterator<Item = &'a String>) -> String {
    items.map(|item| format!("- {item}\n")).collect()
}

/// Where things stand.
pub(super) fn recap(known: &Known, first: bool) -> String {
    match stands(&known.summary) {
        None => introduced("Nothing was said here yet.", first),
        Some(text) => introduced(text.trim_end(), first),
    }
}

/// The parts of a summary that a person asks for first; none where they are all empty.
fn stands(summary: &Summary) -> Option<String> {
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
            let items = bullets(items.iter().take(NAMED));
            text.push_str(&format!("**{title}:**\n\n{items}\n"));
        }
    }
    (!text.is_empty()).then_some(text)
}

/// A first word.
pub(super) fn greeting(known: &Known, first: bool) -> String {
    let mut text = String::from("Hello.");
    let open: Vec<_> = known.summary.open_tasks.iter().take(NAMED).collect();
    if !open.is_empty() {
        text.push_str(&format!(
            " What is open here:\n\n{}",
            bullets(open.into_iter())
        ));
    }
    introduced(text.trim_end(), first)
}

/// The word of an agent that was told of an earlier session.
pub(super) fn acknowledgement(summary: &Summary) -> String {
    let mut text = String::from("I have reviewed our previous conversation.\n");
    for (title, items) in [
        ("Topics", &summary.topics),
        ("Decided", &summary.decisions),
        ("Open", &summary.open_tasks),
        ("Pending", &summary.pending),
    ] {
        for item in items.iter().take(NAMED) {
            text.push_str(&format!("- {title}: {item}\n"));
        }
    }
    text.push_str("\nI'm ready to continue.\n");
    text
}

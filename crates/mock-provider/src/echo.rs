//! What is answered without a script: an echo, or a summary where one is asked for.

use serde_json::json;

use crate::{Reply, Request};

/// The answer that follows from the request alone.
pub fn echo(request: &Request) -> Reply {
    if request.system().contains("\"open_tasks\"") {
        return Reply::text(summarize(&request.last_user_text()));
    }
    let said = request.last_user_text();
    let words: Vec<&str> = said.split_whitespace().collect();
    let shown = match words.len() {
        0 => "nothing".to_owned(),
        1..=40 => format!("“{}”", words.join(" ")),
        _ => format!("“{}…”", words[..40].join(" ")),
    };
    Reply::text(format!("You said {shown}, and I am only a stand-in."))
}

/// A summary that keeps what it was told to keep.
fn summarize(prompt: &str) -> String {
    let mut facts = list_items(prompt, "## PINNED FACTS");
    facts.push("This was summarized by the stand-in.".to_owned());
    json!({
        "background": "",
        "topics": ["What was said so far"],
        "completed": [],
        "in_progress": [],
        "pending": [],
        "blockers": [],
        "decisions": list_items(prompt, "## STANDING DECISIONS"),
        "facts": facts,
        "files_touched": [],
        "open_tasks": [],
    })
    .to_string()
}

/// The items under a heading; the lines after an item's first are part of it.
fn list_items(prompt: &str, heading: &str) -> Vec<String> {
    let mut items: Vec<String> = Vec::new();
    let after = prompt.lines().skip_while(|line| *line != heading).skip(1);
    for line in after.take_while(|line| !line.is_empty()) {
        match (line.strip_prefix("- "), items.last_mut()) {
            (Some(item), _) => items.push(item.to_owned()),
            (None, Some(item)) => item.push_str(&format!(" {line}")),
            (None, None) => {}
        }
    }
    items
}

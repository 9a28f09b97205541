//! The default reply: an echo of the user's message, or a summary if one is requested.

use serde_json::json;

use crate::{Reply, Request};

/// Returns the default reply, which depends only on the request.
pub fn echo(request: &Request) -> Reply {
    if request.system().contains("\"open_tasks\"") {
        return Reply::text(summarize(&request.last_user_text()));
    }
    let text = request.last_user_text();
    let words: Vec<&str> = text.split_whitespace().collect();
    let shown = match words.len() {
        0 => "nothing".to_owned(),
        1..=40 => format!("“{}”", words.join(" ")),
        _ => format!("“{}…”", words[..40].join(" ")),
    };
    Reply::text(format!("You said {shown}, and I am only a stand-in."))
}

/// Returns a summary with the items that the prompt says must be preserved.
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

/// Returns the list items under a heading, including their continuation lines.
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

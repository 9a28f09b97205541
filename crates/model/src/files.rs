//! Which files a conversation touched, taken from the log and not from a model.

use std::collections::HashSet;

use serde_json::Value;

use crate::{Block, Content, Entry};

/// Members of a tool's input that name a file.
const PATH_MEMBERS: &[&str] = &[
    "path",
    "file_path",
    "filePath",
    "filename",
    "file",
    "notebook_path",
    "target_file",
    "paths",
    "files",
];

/// The files that tool calls and messages name, in the order they first appear.
pub fn files_touched<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> Vec<String> {
    let messages = entries.into_iter().filter_map(Entry::message);
    distinct(messages.flat_map(|message| named_in(&message.content)))
}

/// The files that one message names, in the order they first appear.
pub fn files_in(content: &Content) -> Vec<String> {
    distinct(named_in(content))
}

fn distinct(paths: impl IntoIterator<Item = String>) -> Vec<String> {
    let mut seen = HashSet::new();
    let new = |path: &String| seen.insert(path.clone());
    paths.into_iter().filter(new).collect()
}

fn named_in(content: &Content) -> Vec<String> {
    let mut files = Vec::new();
    for block in &content.0 {
        match block {
            Block::ToolCall(call) => {
                let input: Option<Value> = call.input.decode().ok();
                files.extend(input.iter().flat_map(paths_in_input));
            }
            Block::Text(text) => files.extend(paths_in_text(text).map(ToOwned::to_owned)),
            _ => {}
        }
    }
    files
}

fn paths_in_input(input: &Value) -> Vec<String> {
    let Value::Object(members) = input else {
        return Vec::new();
    };
    let mut paths = Vec::new();
    for name in PATH_MEMBERS {
        match members.get(*name) {
            Some(Value::String(path)) if !path.is_empty() => paths.push(path.clone()),
            Some(Value::Array(many)) => {
                paths.extend(many.iter().filter_map(Value::as_str).map(ToOwned::to_owned));
            }
            _ => {}
        }
    }
    paths
}

/// Words that are unmistakably paths: rooted, or with a slash and an extension.
fn paths_in_text(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| c.is_whitespace() || "()[]{}<>\"'`,;|*".contains(c))
        .map(|word| word.trim_end_matches(['.', ':', '!', '?']))
        .filter(|word| {
            let rooted = ["/", "./", "../", "~/"]
                .iter()
                .any(|root| word.starts_with(root));
            let name = word.rsplit('/').next().unwrap_or(word);
            let extension = name.rsplit_once('.').is_some_and(|(stem, extension)| {
                !stem.is_empty()
                    && (1..=8).contains(&extension.len())
                    && extension.chars().all(|c| c.is_ascii_alphanumeric())
                    && extension.chars().any(|c| c.is_ascii_alphabetic())
            });
            let inner = word.matches('/').count();
            !word.contains("://")
                && !word.starts_with("//")
                && word.len() > 2
                && ((rooted && (inner > 1 || extension)) || (inner > 0 && extension))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_told_from_prose() {
        let text = "See src/main.rs, (docs/a.md): and/or /etc/hosts. Not https://x.org/a.html, \
                    3/4.5 or //c.rs; `./run.sh` and \"~/notes.txt\"";
        let found: Vec<_> = paths_in_text(text).collect();
        assert_eq!(
            found,
            [
                "src/main.rs",
                "docs/a.md",
                "/etc/hosts",
                "./run.sh",
                "~/notes.txt"
            ]
        );
    }

    #[test]
    fn tool_inputs_name_files() {
        let input = serde_json::json!({"file_path": "/a/b.rs", "limit": 3, "paths": ["x", "y"]});
        assert_eq!(paths_in_input(&input), ["/a/b.rs", "x", "y"]);
        assert!(paths_in_input(&serde_json::json!("text")).is_empty());
    }
}

//! Extracts the files that a conversation mentions, from the log and without a model.

use std::collections::HashSet;

use serde_json::Value;

use crate::{Block, Content, Entry};

/// Members of tool arguments that hold a file path.
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

/// The files named by tool calls and messages, in order of first appearance.
pub fn extract_touched_files<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> Vec<String> {
    let messages = entries.into_iter().filter_map(Entry::message);
    dedup_paths(messages.flat_map(|message| collect_file_names(&message.content)))
}

/// The files named by one message, in order of first appearance.
pub fn extract_files(content: &Content) -> Vec<String> {
    dedup_paths(collect_file_names(content))
}

fn dedup_paths(paths: impl IntoIterator<Item = String>) -> Vec<String> {
    let mut seen = HashSet::new();
    let new = |path: &String| seen.insert(path.clone());
    paths.into_iter().filter(new).collect()
}

fn collect_file_names(content: &Content) -> Vec<String> {
    let mut files = Vec::new();
    for block in &content.0 {
        match block {
            Block::ToolCall(call) => {
                let input: Option<Value> = call.input.decode().ok();
                files.extend(input.iter().flat_map(extract_input_paths));
            }
            Block::Text(text) => files.extend(extract_text_paths(text).map(ToOwned::to_owned)),
            _ => {}
        }
    }
    files
}

fn extract_input_paths(input: &Value) -> Vec<String> {
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

/// Words that are clearly paths: absolute, or with a slash and an extension.
fn extract_text_paths(text: &str) -> impl Iterator<Item = &str> {
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
    fn paths_are_distinguished_from_prose() {
        let text = "See src/main.rs, (docs/a.md): and/or /etc/hosts. Not https://x.org/a.html, \
                    3/4.5 or //c.rs; `./run.sh` and \"~/notes.txt\"";
        let found: Vec<_> = extract_text_paths(text).collect();
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
        assert_eq!(extract_input_paths(&input), ["/a/b.rs", "x", "y"]);
        assert!(extract_input_paths(&serde_json::json!("text")).is_empty());
    }
}

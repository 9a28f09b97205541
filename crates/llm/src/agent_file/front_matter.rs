//! Parses the YAML front matter of a Markdown file.

use std::collections::BTreeMap;

use serde_json::Value;
use serde_saphyr::Spanned;

use super::AgentFileError;

type Members = BTreeMap<String, Spanned<Value>>;

/// The line that starts and ends the front matter.
const FENCE: &str = "---";

/// Splits a file into front matter and body; `None` if the front matter is not closed.
fn split_front_matter(text: &str) -> Option<(&str, &str)> {
    let mut lines = text.split_inclusive('\n');
    let first = lines.next().unwrap_or_default();
    if first.trim_end() != FENCE {
        return Some(("", text));
    }
    let mut end = first.len();
    for line in lines {
        if matches!(line.trim_end(), FENCE | "...") {
            return Some((&text[first.len()..end], &text[end + line.len()..]));
        }
        end += line.len();
    }
    None
}

fn parse_members(matter: &str, path: &str) -> Result<Members, AgentFileError> {
    let is_empty = |line: &str| line.trim().is_empty() || line.trim_start().starts_with('#');
    if matter.lines().all(is_empty) {
        return Ok(Members::new());
    }
    serde_saphyr::from_str(matter).map_err(|error| {
        let line = error.location().map_or(0, |at| to_file_line(at.line()));
        AgentFileError::Yaml {
            path: path.to_owned(),
            line,
            why: simplify_error(&error.without_snippet().to_string()),
        }
    })
}

/// Turns a message of the YAML parser into one for users.
fn simplify_error(message: &str) -> String {
    let why = message.lines().next().unwrap_or_default();
    // The parser's line number is relative to the front matter, not to the file.
    let why = why.split(" at line ").next().unwrap_or_default();
    if let Some(key) = why.strip_prefix("duplicate mapping key: ") {
        let key = key.split(',').next().unwrap_or_default();
        return format!("{key} is set twice");
    }
    if why == "expected mapping start" {
        return "write `name: value` on each line".to_owned();
    }
    why.to_owned()
}

/// Converts a line number of the front matter to one of the file.
fn to_file_line(in_matter: u64) -> usize {
    usize::try_from(in_matter)
        .unwrap_or(usize::MAX)
        .saturating_add(1)
}

/// The fields of the front matter that have not been taken yet.
pub(super) struct FrontMatter<'a> {
    path: &'a str,
    members: Members,
}

impl<'a> FrontMatter<'a> {
    /// Parses the file at `path`; returns its front matter and its body.
    pub(super) fn parse<'t>(
        text: &'t str,
        path: &'a str,
    ) -> Result<(Self, &'t str), AgentFileError> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let (matter, below) = split_front_matter(text).ok_or_else(|| AgentFileError::Unclosed {
            path: path.to_owned(),
        })?;
        let members = parse_members(matter, path)?;
        Ok((Self { path, members }, below))
    }

    fn invalid_value(
        &self,
        at: &Spanned<Value>,
        key: &'static str,
        expected: &'static str,
    ) -> AgentFileError {
        AgentFileError::Value {
            path: self.path.to_owned(),
            line: to_file_line(at.referenced.line()),
            key,
            expected,
        }
    }

    /// Takes a string field; `None` if it is absent or empty.
    pub(super) fn take_text(
        &mut self,
        key: &'static str,
    ) -> Result<Option<String>, AgentFileError> {
        let Some(found) = self.members.remove(key) else {
            return Ok(None);
        };
        match &found.value {
            Value::Null => Ok(None),
            Value::String(text) if text.trim().is_empty() => Ok(None),
            Value::String(text) => Ok(Some(text.trim().to_owned())),
            _ => Err(self.invalid_value(&found, key, "a string")),
        }
    }

    /// Takes a field that is a string or a list of strings.
    pub(super) fn take_texts(&mut self, key: &'static str) -> Result<Vec<String>, AgentFileError> {
        let is_list = self
            .members
            .get(key)
            .is_some_and(|found| found.value.is_array());
        if !is_list {
            let refused = |error| match error {
                AgentFileError::Value {
                    path, line, key, ..
                } => AgentFileError::Value {
                    path,
                    line,
                    key,
                    expected: "a string or a list of strings",
                },
                other => other,
            };
            return Ok(self.take_text(key).map_err(refused)?.into_iter().collect());
        }
        let Some(found) = self.members.remove(key) else {
            return Ok(Vec::new());
        };
        let items = found.value.as_array().map_or(&[][..], Vec::as_slice);
        let texts: Option<Vec<String>> = items
            .iter()
            .map(|item| item.as_str().map(|text| text.trim().to_owned()))
            .collect();
        texts.ok_or_else(|| self.invalid_value(&found, key, "a string or a list of strings"))
    }

    pub(super) fn into_unknown(self) -> BTreeMap<String, (usize, Value)> {
        let with_line =
            |found: Spanned<Value>| (to_file_line(found.referenced.line()), found.value);
        let members = self.members.into_iter();
        members
            .map(|(key, found)| (key, with_line(found)))
            .collect()
    }
}

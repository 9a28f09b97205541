//! The front matter of a Markdown file.

use std::collections::BTreeMap;

use serde_json::Value;
use serde_saphyr::Spanned;

use super::AgentFileError;

type Members = BTreeMap<String, Spanned<Value>>;

/// The line that begins and ends the front matter.
const FENCE: &str = "---";

/// The front matter and what stands below; none where it has no end.
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

/// What the parser said, without what it says to programmers.
fn simplify_error(told: &str) -> String {
    let why = told.lines().next().unwrap_or_default();
    // Its place in the front matter is not its place in the file.
    let why = why.split(" at line ").next().unwrap_or_default();
    if let Some(key) = why.strip_prefix("duplicate mapping key: ") {
        let key = key.split(',').next().unwrap_or_default();
        return format!("{key} is there twice");
    }
    if why == "expected mapping start" {
        return "write a name, a colon and a value on each line".to_owned();
    }
    why.to_owned()
}

/// A line of the file, from one of the front matter.
fn to_file_line(in_matter: u64) -> usize {
    usize::try_from(in_matter)
        .unwrap_or(usize::MAX)
        .saturating_add(1)
}

/// The members of the front matter that nobody has asked for yet.
pub(super) struct FrontMatter<'a> {
    path: &'a str,
    members: Members,
}

impl<'a> FrontMatter<'a> {
    /// The front matter of the file at `path`, and what stands below it.
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
        wanted: &'static str,
    ) -> AgentFileError {
        AgentFileError::Value {
            path: self.path.to_owned(),
            line: to_file_line(at.referenced.line()),
            key,
            expected: wanted,
        }
    }

    /// A text; none where there is nothing.
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
            _ => Err(self.invalid_value(&found, key, "a text")),
        }
    }

    /// A text, or a list of them.
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
                    expected: "a text or a list of texts",
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
        texts.ok_or_else(|| self.invalid_value(&found, key, "a text or a list of texts"))
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

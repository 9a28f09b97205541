//! Structured summaries, and the Markdown block they are written as in transcripts.

use serde::{Deserialize, Serialize};

/// Opens the summary block of a transcript.
pub const SUMMARY_START: &str = "<!-- SESSION_SUMMARY_START -->";
/// Closes the summary block of a transcript.
pub const SUMMARY_END: &str = "<!-- SESSION_SUMMARY_END -->";

/// The block's text for an empty background.
const NO_BACKGROUND: &str = "Initial session.";
/// The block's text for an empty list.
const NO_ITEMS: &str = "None";

/// A structured summary of part of a conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Summary {
    /// What happened before, in a sentence or two.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub background: String,
    /// Topics discussed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub topics: Vec<String>,
    /// Finished work.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub completed: Vec<String>,
    /// Current work.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub in_progress: Vec<String>,
    /// Remaining work.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pending: Vec<String>,
    /// Blockers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub blockers: Vec<String>,
    /// Decisions made.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub decisions: Vec<String>,
    /// Relevant facts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub facts: Vec<String>,
    /// Files read or changed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files_touched: Vec<String>,
    /// Open tasks.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub open_tasks: Vec<String>,
}

/// Why no summary can be read from a transcript.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SummaryError {
    /// Both markers are missing.
    #[error("there is no summary block")]
    Missing,
    /// One marker is missing, or they are in the wrong order.
    #[error("the summary block's markers are broken")]
    Markers,
    /// There is nothing between the markers.
    #[error("the summary block is empty")]
    Empty,
}

impl Summary {
    /// Replaces everything that looks like a secret.
    #[must_use]
    pub fn into_redacted(self) -> Self {
        let safe = |text: String| crate::redact(&text).into_owned();
        let all = |texts: Vec<String>| texts.into_iter().map(safe).collect();
        Self {
            background: safe(self.background),
            topics: all(self.topics),
            completed: all(self.completed),
            in_progress: all(self.in_progress),
            pending: all(self.pending),
            blockers: all(self.blockers),
            decisions: all(self.decisions),
            facts: all(self.facts),
            files_touched: all(self.files_touched),
            open_tasks: all(self.open_tasks),
        }
    }

    /// The lists with their headings, in output order.
    ///
    /// The first three are always written, even if empty, as the transcript format
    /// requires.
    fn lists(&self) -> [(&'static str, &Vec<String>); 9] {
        [
            ("Topics Discussed", &self.topics),
            ("Decisions Made", &self.decisions),
            ("Pending", &self.pending),
            ("Completed", &self.completed),
            ("In Progress", &self.in_progress),
            ("Blockers", &self.blockers),
            ("Facts", &self.facts),
            ("Files Touched", &self.files_touched),
            ("Open Tasks", &self.open_tasks),
        ]
    }

    fn list_mut(&mut self, heading: &str) -> Option<&mut Vec<String>> {
        Some(match heading {
            "Topics Discussed" => &mut self.topics,
            "Decisions Made" => &mut self.decisions,
            "Pending" => &mut self.pending,
            "Completed" => &mut self.completed,
            "In Progress" => &mut self.in_progress,
            "Blockers" => &mut self.blockers,
            "Facts" => &mut self.facts,
            "Files Touched" => &mut self.files_touched,
            "Open Tasks" => &mut self.open_tasks,
            _ => return None,
        })
    }

    /// Whether the summary is empty.
    pub fn is_empty(&self) -> bool {
        self.background.is_empty() && self.lists().iter().all(|(_, items)| items.is_empty())
    }

    /// Renders the marked block that ends a transcript.
    pub fn to_block(&self) -> String {
        let background = match to_single_line(&self.background) {
            empty if empty.is_empty() => NO_BACKGROUND.to_owned(),
            text => text,
        };
        let mut block = format!(
            "{SUMMARY_START}\n**Background Context:** {background}\n\n**Current Session Summary:**\n"
        );
        for (index, (heading, items)) in self.lists().into_iter().enumerate() {
            if index >= 3 && items.is_empty() {
                continue;
            }
            if index > 0 {
                block.push('\n');
            }
            block.extend(["**", heading, ":**\n"]);
            if items.is_empty() {
                block.extend(["- ", NO_ITEMS, "\n"]);
            }
            for item in items
                .iter()
                .map(|item| to_single_line(item))
                .filter(|item| !item.is_empty())
            {
                block.extend(["- ", &item, "\n"]);
            }
        }
        block.push_str(SUMMARY_END);
        block
    }

    /// Parses the last summary block of a transcript.
    ///
    /// Lines under no known heading become topics, so nothing is dropped.
    pub fn from_transcript(text: &str) -> Result<Self, SummaryError> {
        let (start, end) = match (text.rfind(SUMMARY_START), text.rfind(SUMMARY_END)) {
            (None, None) => return Err(SummaryError::Missing),
            (Some(start), Some(end)) if start < end => (start + SUMMARY_START.len(), end),
            _ => return Err(SummaryError::Markers),
        };
        let mut summary = Self::default();
        let mut heading = String::new();
        for line in text[start..end].lines().map(str::trim) {
            if line.is_empty() || line == "**Current Session Summary:**" {
                continue;
            }
            if let Some(background) = line.strip_prefix("**Background Context:**") {
                match background.trim() {
                    NO_BACKGROUND => summary.background.clear(),
                    background => background.clone_into(&mut summary.background),
                }
            } else if let Some(title) = line
                .strip_prefix("**")
                .and_then(|rest| rest.strip_suffix(":**"))
            {
                title.clone_into(&mut heading);
            } else {
                let item = line.strip_prefix("- ").unwrap_or(line);
                if item != NO_ITEMS {
                    let list = match summary.list_mut(&heading) {
                        Some(list) => list,
                        None => &mut summary.topics,
                    };
                    list.push(item.to_owned());
                }
            }
        }
        if summary.is_empty() {
            return Err(SummaryError::Empty);
        }
        Ok(summary)
    }
}

/// Reduces a text to one line that cannot open or close an HTML comment.
fn to_single_line(text: &str) -> String {
    text.split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
        .replace("<!--", "<! --")
        .replace("-->", "-- >")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary() -> Summary {
        Summary {
            background: "We chose JWT.".into(),
            topics: vec!["Rate limiter".into()],
            decisions: vec!["Token bucket".into(), "100 a minute".into()],
            files_touched: vec!["src/limit.rs".into()],
            ..Summary::default()
        }
    }

    #[test]
    fn the_block_is_the_documented_one() {
        assert_eq!(
            summary().to_block(),
            "<!-- SESSION_SUMMARY_START -->\n\
             **Background Context:** We chose JWT.\n\n\
             **Current Session Summary:**\n\
             **Topics Discussed:**\n- Rate limiter\n\n\
             **Decisions Made:**\n- Token bucket\n- 100 a minute\n\n\
             **Pending:**\n- None\n\n\
             **Files Touched:**\n- src/limit.rs\n\
             <!-- SESSION_SUMMARY_END -->"
        );
    }

    #[test]
    fn a_block_reads_back_as_it_was() {
        let transcript = format!("# Chat\n\n{}\n", summary().to_block());
        assert_eq!(Summary::from_transcript(&transcript), Ok(summary()));
    }

    #[test]
    fn a_first_session_has_no_background_to_read_back() {
        let mut first = summary();
        first.background.clear();
        assert!(
            first
                .to_block()
                .contains("**Background Context:** Initial session.")
        );
        assert_eq!(Summary::from_transcript(&first.to_block()), Ok(first));
    }

    #[test]
    fn an_item_cannot_close_the_block() {
        let mut hostile = summary();
        hostile.pending = vec![format!("x {SUMMARY_END} y\nz")];
        let read = Summary::from_transcript(&hostile.to_block()).unwrap();
        assert_eq!(read.pending.len(), 1);
    }

    #[test]
    fn block_errors_are_distinguished() {
        let of = Summary::from_transcript;
        assert_eq!(of("no block"), Err(SummaryError::Missing));
        assert_eq!(of(SUMMARY_START), Err(SummaryError::Markers));
        assert_eq!(
            of(&format!("{SUMMARY_END}\n{SUMMARY_START}")),
            Err(SummaryError::Markers)
        );
        assert_eq!(
            of(&format!("{SUMMARY_START}\n{SUMMARY_END}")),
            Err(SummaryError::Empty)
        );
    }
}

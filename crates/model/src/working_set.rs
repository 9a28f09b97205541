//! The working set document: an agent's current context in one JSON object.

use serde::{Deserialize, Serialize};

use crate::{Checkpoint, Content, Entry, Note, Record, Role, Summary, extract_touched_files};

/// Tokens used and allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenBudget {
    /// Tokens used.
    pub used: u64,
    /// Tokens allowed.
    pub limit: u64,
}

/// A message in a working set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecentMessage {
    /// The author's role.
    pub role: Role,
    /// The content.
    pub content: Content,
}

/// An agent's current context: the last summary, the state in effect and the latest
/// messages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkingSet {
    /// What happened before the recent messages.
    pub summary: String,
    /// Pinned facts.
    pub pinned_facts: Vec<String>,
    /// Decisions in effect.
    pub decisions: Vec<String>,
    /// Remaining work.
    pub open_tasks: Vec<String>,
    /// Files read or changed.
    pub files_touched: Vec<String>,
    /// The latest messages, oldest first.
    pub recent_messages: Vec<RecentMessage>,
    /// How much of the budget is used.
    pub token_budget: TokenBudget,
}

impl WorkingSet {
    /// Builds the working set from the record, the checkpoint in effect and the entries
    /// after it.
    pub fn of(
        record: &Record,
        checkpoint: Option<&Checkpoint>,
        after: &[Entry],
        recent: usize,
        limit: u64,
    ) -> Self {
        let none = Summary::default();
        let summary = checkpoint.map_or(&none, |checkpoint| &checkpoint.summary);
        let state = &record.state;
        let messages: Vec<_> = after.iter().filter_map(Entry::message).collect();
        let tail = messages.len().saturating_sub(recent);
        Self {
            summary: render_prose(summary),
            pinned_facts: merge_texts(&state.pins, &summary.facts),
            decisions: merge_texts(&state.decisions, &summary.decisions),
            open_tasks: merge_texts(&[], summary.open_tasks.iter().chain(&summary.pending)),
            files_touched: merge_texts(
                &[],
                summary
                    .files_touched
                    .iter()
                    .chain(&extract_touched_files(after)),
            ),
            recent_messages: messages[tail..]
                .iter()
                .map(|message| RecentMessage {
                    role: message.role,
                    content: message.content.clone(),
                })
                .collect(),
            token_budget: TokenBudget {
                used: record.info.tokens.total(),
                limit,
            },
        }
    }
}

fn render_prose(summary: &Summary) -> String {
    let mut parts = Vec::new();
    if !summary.background.is_empty() {
        parts.push(summary.background.clone());
    }
    for (label, items) in [
        ("Discussed", &summary.topics),
        ("Done", &summary.completed),
        ("In progress", &summary.in_progress),
        ("Blocked by", &summary.blockers),
    ] {
        if !items.is_empty() {
            parts.push(format!("{label}: {}.", items.join("; ")));
        }
    }
    parts.join(" ")
}

/// Merges the notes with the additional texts, without duplicates.
fn merge_texts<'a>(noted: &[Note], more: impl IntoIterator<Item = &'a String>) -> Vec<String> {
    let mut all: Vec<String> = noted.iter().map(|noted| noted.text.clone()).collect();
    for text in more {
        if !all.contains(text) {
            all.push(text.clone());
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Seq, SessionHeader, SessionId, Timestamp};

    #[test]
    fn it_has_the_members_of_the_reference_document() {
        let header = SessionHeader::new("s".parse::<SessionId>().unwrap(), Timestamp::UNIX_EPOCH);
        let mut record = Record::new(&header);
        record.state.pins.push(Note {
            seq: Seq(1),
            text: "20 tools".into(),
        });
        let checkpoint = Checkpoint {
            covers: Seq(1),
            summary: Summary {
                background: "We started.".into(),
                completed: vec!["Renamed the package".into()],
                facts: vec!["20 tools".into(), "Auth: key".into()],
                open_tasks: vec!["Test".into()],
                pending: vec!["Test".into(), "Ship".into()],
                ..Summary::default()
            },
            by: "test".into(),
            messages: 1,
            oldest: None,
            newest: None,
            usage: None,
        };
        let set = WorkingSet::of(&record, Some(&checkpoint), &[], 20, 100_000);
        assert_eq!(
            serde_json::to_value(&set).unwrap(),
            serde_json::json!({
                "summary": "We started. Done: Renamed the package.",
                "pinned_facts": ["20 tools", "Auth: key"],
                "decisions": [],
                "open_tasks": ["Test", "Ship"],
                "files_touched": [],
                "recent_messages": [],
                "token_budget": {"used": 0, "limit": 100_000},
            })
        );
    }
}

//! The checkpoint document: completed, current and pending work, with statistics.

use serde::{Deserialize, Serialize};

use crate::{Checkpoint, Record, Timestamp};

/// A checkpoint as a standalone document, in the format that desktop apps store and
/// show.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CheckpointView {
    /// The number of checkpoints so far.
    pub version: u64,
    /// When the session was created.
    pub created_at: Timestamp,
    /// When it was last compacted, or else created.
    pub updated_at: Timestamp,
    /// The summary of the covered messages.
    pub summary: CheckpointSummary,
    /// The last compaction; `None` before the first.
    pub compaction_info: Option<CompactionInfo>,
    /// Session totals.
    pub stats: CheckpointStats,
}

/// The parts of a summary that the checkpoint document contains.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CheckpointSummary {
    /// Finished work.
    pub completed: Vec<String>,
    /// Current work.
    pub in_progress: Vec<String>,
    /// Remaining work.
    pub pending: Vec<String>,
    /// Blockers.
    pub blockers: Vec<String>,
    /// Decisions.
    pub decisions: Vec<String>,
}

/// The last compaction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CompactionInfo {
    /// The number of messages compacted.
    pub messages_compacted: u64,
    /// When the first of them was sent.
    pub oldest_message_timestamp: Option<Timestamp>,
    /// When the last of them was sent.
    pub newest_message_timestamp: Option<Timestamp>,
    /// When the compaction ran.
    pub compacted_at: Timestamp,
}

/// Session totals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CheckpointStats {
    /// Compactions so far.
    pub total_compactions: u64,
    /// Messages so far.
    pub total_messages: u64,
    /// Tokens reported so far.
    pub total_tokens: u64,
}

impl CheckpointView {
    /// Builds the view from the record and the checkpoint in effect with its time.
    pub fn of(record: &Record, checkpoint: Option<(&Checkpoint, Timestamp)>) -> Self {
        let info = &record.info;
        let mut summary = CheckpointSummary::default();
        if let Some((checkpoint, _)) = checkpoint {
            let from = &checkpoint.summary;
            summary.completed.clone_from(&from.completed);
            summary.in_progress.clone_from(&from.in_progress);
            summary.pending.clone_from(&from.pending);
            // The document has no other field for open tasks.
            let open = from.open_tasks.iter();
            let open = open.filter(|task| !from.pending.contains(task)).cloned();
            summary.pending.extend(open);
            summary.blockers.clone_from(&from.blockers);
            summary.decisions.clone_from(&from.decisions);
        }
        for decision in &record.state.decisions {
            if !summary.decisions.contains(&decision.text) {
                summary.decisions.push(decision.text.clone());
            }
        }
        Self {
            version: info.compactions,
            created_at: info.created_at,
            updated_at: checkpoint.map_or(info.created_at, |(_, at)| at),
            summary,
            compaction_info: checkpoint.map(|(checkpoint, at)| CompactionInfo {
                messages_compacted: checkpoint.messages,
                oldest_message_timestamp: checkpoint.oldest,
                newest_message_timestamp: checkpoint.newest,
                compacted_at: at,
            }),
            stats: CheckpointStats {
                total_compactions: info.compactions,
                total_messages: info.messages,
                total_tokens: info.tokens.total(),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{SessionHeader, SessionId};

    #[test]
    fn a_new_session_has_an_empty_checkpoint_document() {
        let header = SessionHeader::new("s".parse::<SessionId>().unwrap(), Timestamp::UNIX_EPOCH);
        let view = CheckpointView::of(&Record::new(&header), None);
        assert_eq!(
            serde_json::to_value(view).unwrap(),
            serde_json::json!({
                "version": 0,
                "createdAt": "1970-01-01T00:00:00Z",
                "updatedAt": "1970-01-01T00:00:00Z",
                "summary": {"completed": [], "inProgress": [], "pending": [], "blockers": [], "decisions": []},
                "compactionInfo": null,
                "stats": {"totalCompactions": 0, "totalMessages": 0, "totalTokens": 0},
            })
        );
    }
}

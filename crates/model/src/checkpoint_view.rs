//! The checkpoint as a document: what is done, under way and left, with figures.

use serde::{Deserialize, Serialize};

use crate::{Checkpoint, Record, Timestamp};

/// A checkpoint as a document of its own, as desktop apps keep and show it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CheckpointView {
    /// How many checkpoints there have been.
    pub version: u64,
    /// When the session was made.
    pub created_at: Timestamp,
    /// When it was last compacted, or made.
    pub updated_at: Timestamp,
    /// What the covered messages came to.
    pub summary: CheckpointSummary,
    /// What was covered; none before the first compaction.
    pub compaction_info: Option<CompactionInfo>,
    /// Totals.
    pub stats: CheckpointStats,
}

/// The parts of a summary that a checkpoint document has.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CheckpointSummary {
    /// What was finished.
    pub completed: Vec<String>,
    /// What is being worked on.
    pub in_progress: Vec<String>,
    /// What remains.
    pub pending: Vec<String>,
    /// What stands in the way.
    pub blockers: Vec<String>,
    /// What was decided.
    pub decisions: Vec<String>,
}

/// What the last compaction covered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CompactionInfo {
    /// How many messages.
    pub messages_compacted: u64,
    /// When the first of them was said.
    pub oldest_message_timestamp: Option<Timestamp>,
    /// When the last of them was said.
    pub newest_message_timestamp: Option<Timestamp>,
    /// When it happened.
    pub compacted_at: Timestamp,
}

/// Totals of a session, as a checkpoint document gives them.
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
    /// Folds the record and the checkpoint in force, with the time it was made.
    pub fn of(record: &Record, checkpoint: Option<(&Checkpoint, Timestamp)>) -> Self {
        let card = &record.info;
        let mut summary = CheckpointSummary::default();
        if let Some((checkpoint, _)) = checkpoint {
            let from = &checkpoint.summary;
            summary.completed.clone_from(&from.completed);
            summary.in_progress.clone_from(&from.in_progress);
            summary.pending.clone_from(&from.pending);
            // The document has no other place for what is still to be done.
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
            version: card.compactions,
            created_at: card.created_at,
            updated_at: checkpoint.map_or(card.created_at, |(_, at)| at),
            summary,
            compaction_info: checkpoint.map(|(checkpoint, at)| CompactionInfo {
                messages_compacted: checkpoint.messages,
                oldest_message_timestamp: checkpoint.oldest,
                newest_message_timestamp: checkpoint.newest,
                compacted_at: at,
            }),
            stats: CheckpointStats {
                total_compactions: card.compactions,
                total_messages: card.messages,
                total_tokens: card.tokens.total(),
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
        let birth = SessionHeader::new("s".parse::<SessionId>().unwrap(), Timestamp::UNIX_EPOCH);
        let view = CheckpointView::of(&Record::new(&birth), None);
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

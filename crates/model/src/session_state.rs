//! The session state that the next request needs, without reading the log.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Body, Seq};

/// A pinned fact or decision and the entry that holds it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// The entry's number.
    pub seq: Seq,
    /// The text.
    pub text: String,
}

/// A checkpoint in effect: its position and how far it reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckpointRef {
    /// The checkpoint's own entry.
    pub seq: Seq,
    /// The last entry it summarizes.
    pub covers: Seq,
}

/// A range of the log that is visible to the model, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    /// The first entry.
    pub from: Seq,
    /// The last entry; `None` for the range that is still growing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<Seq>,
}

/// The state at the head of a session: pins, decisions, context documents, checkpoints,
/// and the ranges of the log that are visible to the model.
///
/// Small whatever the length of the log, and changed by few kinds of entry, so stores
/// save it separately from the info that every append updates.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SessionState {
    /// Pinned facts.
    pub pins: Vec<Note>,
    /// Decisions in effect.
    pub decisions: Vec<Note>,
    /// Context documents, with the entry that set each.
    pub context: BTreeMap<String, Seq>,
    /// Checkpoints that were not undone, oldest first. The last one is in effect.
    pub checkpoints: Vec<CheckpointRef>,
    /// The latest exit summary, which hides nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<CheckpointRef>,
    /// The ranges visible to the model, in order.
    pub visible: Vec<Span>,
    /// The last entry that changed this state.
    pub changed: Seq,
}

impl Default for SessionState {
    fn default() -> Self {
        Self {
            pins: Vec::new(),
            decisions: Vec::new(),
            context: BTreeMap::new(),
            checkpoints: Vec::new(),
            summary: None,
            visible: vec![Span {
                from: Seq(1),
                to: None,
            }],
            changed: Seq::ZERO,
        }
    }
}

impl SessionState {
    /// The checkpoint in effect.
    pub fn checkpoint(&self) -> Option<CheckpointRef> {
        self.checkpoints.last().copied()
    }

    /// The most recent summary: that of the checkpoint in effect, or a later exit
    /// summary.
    pub fn last_summary(&self) -> Option<CheckpointRef> {
        let marks = self.checkpoint().into_iter().chain(self.summary);
        marks.max_by_key(|mark| (mark.covers, mark.seq))
    }

    /// Whether an entry is visible to the model, verbatim or in a summary.
    pub fn is_visible(&self, seq: Seq) -> bool {
        let inside = |span: &Span| span.from <= seq && span.to.is_none_or(|to| seq <= to);
        self.visible.iter().any(inside)
    }

    /// The ranges sent verbatim: visible and not summarized.
    pub fn verbatim_spans(&self) -> Vec<Span> {
        self.visible_spans_after(self.checkpoint().map_or(Seq::ZERO, |mark| mark.covers))
    }

    /// The visible ranges after an entry.
    pub fn visible_spans_after(&self, seq: Seq) -> Vec<Span> {
        self.visible
            .iter()
            .filter(|span| span.to.is_none_or(|to| to > seq))
            .map(|span| Span {
                from: span.from.max(seq.next()),
                to: span.to,
            })
            .collect()
    }

    /// Applies the next entry.
    pub(crate) fn apply(&mut self, seq: Seq, body: &Body) {
        match body {
            Body::Pinned { text } => {
                // Pinning the same fact twice has no effect.
                if self.pins.iter().all(|pin| pin.text != *text) {
                    self.pins.push(new_note(seq, text));
                }
            }
            Body::Unpinned { pin } => self.pins.retain(|noted| noted.seq != *pin),
            Body::Decided { text } => {
                if self.decisions.iter().all(|decision| decision.text != *text) {
                    self.decisions.push(new_note(seq, text));
                }
            }
            Body::ContextSet { document, content } => {
                if content.is_some() {
                    self.context.insert(document.clone(), seq);
                } else {
                    self.context.remove(document);
                }
            }
            Body::Checkpoint(checkpoint) => self.checkpoints.push(CheckpointRef {
                seq,
                covers: checkpoint.covers,
            }),
            Body::Summarized(summary) => {
                self.summary = Some(CheckpointRef {
                    seq,
                    covers: summary.covers,
                });
            }
            Body::CheckpointRetracted { checkpoint } => {
                self.checkpoints.retain(|mark| mark.seq != *checkpoint);
            }
            Body::Cleared => {
                self.checkpoints.clear();
                self.summary = None;
                self.visible = vec![open_span_after(seq)];
            }
            Body::Rewound { to } => self.rewind(*to, seq),
            Body::Erased(_) => {
                self.pins.retain(|noted| noted.seq != seq);
                self.decisions.retain(|noted| noted.seq != seq);
                self.summary = self.summary.filter(|mark| mark.seq != seq);
            }
            _ => return,
        }
        self.changed = seq;
    }

    /// Hides messages, checkpoints and decisions after `to`; pins, names, tags and
    /// documents are settings and stay.
    fn rewind(&mut self, to: Seq, by: Seq) {
        self.checkpoints.retain(|mark| mark.seq <= to);
        self.summary = self.summary.filter(|mark| mark.seq <= to);
        self.decisions.retain(|decision| decision.seq <= to);
        self.visible.retain(|span| span.from <= to);
        if let Some(last) = self.visible.last_mut() {
            last.to = Some(last.to.map_or(to, |end| end.min(to)));
        }
        self.visible.push(open_span_after(by));
    }
}

fn new_note(seq: Seq, text: &str) -> Note {
    Note {
        seq,
        text: text.to_owned(),
    }
}

fn open_span_after(seq: Seq) -> Span {
    Span {
        from: seq.next(),
        to: None,
    }
}

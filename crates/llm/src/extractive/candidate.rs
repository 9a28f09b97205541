//! A candidate statement for the summary, with the terms it is compared by.

use super::classify::{Classification, Speaker, StatementKind};
use super::cues::{Cue, CueMatch};
use super::lexicon::{Term, Word};

/// A statement that may be selected, or that supersedes another.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    pub(super) text: String,
    pub(super) classification: Option<Classification>,
    pub(super) speaker: Speaker,
    /// Index of its message; 0 is the previous summary.
    pub(super) message_index: usize,
    /// Recency: 0 for the oldest item of the previous summary, 1 for the last message.
    pub(super) recency: f64,
    pub(super) terms: Vec<Term>,
    /// Its first terms, in order: its subject.
    pub(super) lead_terms: Vec<Term>,
    pub(super) specific_terms: Vec<Term>,
    pub(super) value_terms: Vec<Term>,
    pub(super) specificity: f64,
    /// Whether it contains a path, URL, code or identifier.
    pub(super) has_identifier: bool,
    pub(super) mentions: u32,
    /// Number of statements in its message.
    pub(super) statements_in_message: u32,
    pub(super) is_tool_output: bool,
    /// Terms of what it declares no longer valid.
    pub(super) rejected_terms: Vec<Term>,
    pub(super) effect: Effect,
    pub(super) is_current: bool,
}

/// How a statement affects earlier ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Effect {
    /// An earlier statement is no longer valid.
    pub(super) reverses: bool,
    /// A task is cancelled.
    pub(super) cancels: bool,
    /// A blocker is resolved.
    pub(super) unblocks: bool,
}

impl Candidate {
    pub(super) fn kind(&self) -> Option<StatementKind> {
        self.classification.map(|class| class.kind)
    }
}

/// Returns the terms after "instead of" and similar phrases, up to the end of the phrase.
pub(super) fn find_rejected_terms(
    words: &[Word<'_>],
    hits: &[CueMatch],
    ids: &[Option<Term>],
) -> Vec<Term> {
    let mut terms = Vec::new();
    for hit in hits.iter().filter(|hit| hit.cue == Cue::Rejection) {
        for at in hit.end..words.len().min(hit.end + 5) {
            terms.extend(ids[at]);
            if words[at].ends_phrase
                || matches!(words[at].lower.as_ref(), "to" | "for" | "in" | "because")
            {
                break;
            }
        }
    }
    sort_dedup(terms)
}

/// Removes leading filler words that only respond to the previous message.
pub(super) fn strip_filler(text: &str) -> &str {
    const FILLERS: &[&str] = &[
        "okay",
        "ok",
        "yes",
        "yeah",
        "yep",
        "sure",
        "great",
        "perfect",
        "right",
        "alright",
        "thanks",
        "cool",
        "good",
        "sounds good",
        "agreed",
        "fine",
        "got it",
        "makes sense",
        "no",
        "and",
        "so",
        "hi",
        "hello",
        "hey",
        "well",
        "hmm",
        "oh",
        "nice",
        "good point",
        "fair enough",
        "good idea",
    ];
    let mut text = text;
    while let Some((head, rest)) = text.split_once([',', '—', '-']) {
        let filler = head.len() < 16 && FILLERS.contains(&head.trim().to_lowercase().as_str());
        if !filler || rest.trim().is_empty() {
            break;
        }
        text = rest.trim_start();
    }
    text
}

/// Whether the text is an either-or question, such as "Paper or email?"
pub(super) fn is_choice_question(text: &str) -> bool {
    text.ends_with('?') && text.contains(" or ")
}

pub(super) fn sort_dedup(mut terms: Vec<Term>) -> Vec<Term> {
    terms.sort_unstable();
    terms.dedup();
    terms
}

//! A statement, and what it is compared by.

use super::classify::{Classification, Speaker, StatementKind};
use super::cues::{Cue, CueMatch};
use super::lexicon::{Term, Word};

/// A statement that may go into a summary, or that settles another.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    pub(super) text: String,
    pub(super) classification: Option<Classification>,
    pub(super) speaker: Speaker,
    /// The message it was said in; 0 is the previous summary.
    pub(super) message_index: usize,
    /// How old: 0 for the oldest of the previous summary, 1 for what was said last.
    pub(super) recency: f64,
    pub(super) terms: Vec<Term>,
    /// Its first terms, in order: what it is about.
    pub(super) lead_terms: Vec<Term>,
    pub(super) specific_terms: Vec<Term>,
    pub(super) value_terms: Vec<Term>,
    pub(super) specificity: f64,
    /// Whether it has a path, an address, a code or an identifier in it.
    pub(super) has_identifier: bool,
    pub(super) mentions: u32,
    /// How many statements its message made.
    pub(super) statements_in_message: u32,
    pub(super) is_tool_output: bool,
    /// What it says no longer holds.
    pub(super) rejected_terms: Vec<Term>,
    pub(super) effect: Effect,
    pub(super) is_current: bool,
}

/// What a statement does to earlier ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Effect {
    /// Something said before no longer holds.
    pub(super) reverses: bool,
    /// A task is no longer wanted.
    pub(super) cancels: bool,
    /// A blocker is gone.
    pub(super) unblocks: bool,
}

impl Candidate {
    pub(super) fn kind(&self) -> Option<StatementKind> {
        self.classification.map(|class| class.kind)
    }
}

/// The terms after "instead of" and its like, up to the end of the phrase.
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

/// Without the words that only greet what was said before.
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

/// "Paper or email?"
pub(super) fn is_choice_question(text: &str) -> bool {
    text.ends_with('?') && text.contains(" or ")
}

pub(super) fn sort_dedup(mut terms: Vec<Term>) -> Vec<Term> {
    terms.sort_unstable();
    terms.dedup();
    terms
}

//! A passage as it is indexed: its words, those around it, its date and its author.
//!
//! Two texts hold terms: `own` has the passage's words in order, for phrases and for
//! typing; `context` has what it is ranked by, which is its own words twice, those of the
//! passages around it, its date and its author. One text was measured to rank as well as
//! several with weights.
//!
//! Invariant: a document depends on nothing but its passage and its window.

use std::collections::BTreeMap;

use jiff::tz::TimeZone;
use throughline_model::{Seq, SessionId, Timestamp};

use crate::Kept;
use crate::fold::folded;
use crate::prepared::{Prepared, SAME_PLACE, Terms};
use crate::vector::Vector;
use crate::window::Window;
use crate::words::words;

/// A passage as it is indexed.
#[derive(Clone, Debug)]
pub struct Document {
    /// What is kept of it.
    pub kept: Kept,
    /// The name of who said it, and its words.
    pub authors: Vec<String>,
    /// The files it is about, as they are looked for.
    pub files: Vec<String>,
    /// The passages whose words are in its context.
    pub around: Vec<(SessionId, Seq)>,
    /// What it means.
    pub vector: Vector,
    /// Its terms with their places, ready made.
    pub(crate) own: String,
    /// The terms it is ranked by.
    pub(crate) context: String,
}

/// How often a document has each of its terms.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// For each term, how often the passage itself says it, and how often it counts.
    pub terms: BTreeMap<String, (u32, u32)>,
}

impl Document {
    /// The document of the passage in the middle of a window.
    pub(crate) fn new(window: &Window<'_>) -> Self {
        let Prepared { passage, terms, .. } = window.middle;
        let mut authors = Vec::new();
        if let Some(author) = &passage.author {
            let whole = folded(author.trim());
            let parts = words(author).flat_map(|word| word.parts);
            authors.extend(parts.map(|part| part.plain).filter(|plain| *plain != whole));
            authors.push(whole);
        }
        let around = window.around().map(|other| &other.passage);
        Self {
            kept: Kept {
                passage: passage.clone(),
                before: window.before().map(Prepared::head).unwrap_or_default(),
            },
            authors,
            files: passage.files.iter().map(|file| folded(file)).collect(),
            around: around
                .map(|other| (other.session.clone(), other.seq))
                .collect(),
            vector: window.vector(),
            own: terms.in_order.clone(),
            context: context(window),
        }
    }

    /// How often it has each of its terms.
    pub fn tally(&self) -> Tally {
        let mut terms: BTreeMap<String, (u32, u32)> = BTreeMap::new();
        for term in self.own.split(' ').filter(|term| !term.is_empty()) {
            let term = term.strip_prefix(SAME_PLACE).unwrap_or(term);
            terms.entry(term.to_owned()).or_default().0 += 1;
        }
        for term in self.context.split(' ').filter(|term| !term.is_empty()) {
            terms.entry(term.to_owned()).or_default().1 += 1;
        }
        Tally { terms }
    }
}

/// What a passage is ranked by.
fn context(window: &Window<'_>) -> String {
    let passage = &window.middle.passage;
    let own = &window.middle.terms.content;
    let mut context = format!("{own} {own}");
    let mut add = |terms: &str| {
        context.push(' ');
        context.push_str(terms);
    };
    for other in window.around() {
        add(other.terms.content_head());
    }
    add(&Terms::of(&date(passage.at)).content);
    if let Some(author) = &passage.author {
        add(&Terms::of(author).content);
    }
    context
}

/// The date in words: `8 May 2023`.
pub(crate) fn date(at: Timestamp) -> String {
    at.to_zoned(TimeZone::UTC).strftime("%-d %B %Y").to_string()
}

//! Builds the indexed document of a passage from its own words and its context.
//!
//! Two text fields hold terms: `own` has the passage's words in order, for phrases and prefix
//! completion; `context` has the terms it is ranked by: its own words twice, the words of its
//! neighbors, its date and its author. Measurements showed that one ranking field works as
//! well as several weighted ones.
//!
//! Invariant: a document depends on nothing but its passage and its window.

use std::collections::BTreeMap;

use jiff::tz::TimeZone;
use throughline_model::{Seq, SessionId, Timestamp};

use crate::StoredPassage;
use crate::analysis::{AnalyzedPassage, SAME_POSITION, TextTerms};
use crate::casefold::casefold;
use crate::vector::Vector;
use crate::window::Window;
use crate::word_split::split_words;

/// The indexed form of a passage.
#[derive(Clone, Debug)]
pub struct Document {
    /// The stored fields.
    pub stored: StoredPassage,
    /// The author's name, and the words of that name.
    pub authors: Vec<String>,
    /// The files it is about, casefolded for filtering.
    pub files: Vec<String>,
    /// The passages whose words are in its context.
    pub neighbors: Vec<(SessionId, Seq)>,
    /// Its embedding.
    pub vector: Vector,
    /// Its own terms with their positions, pretokenized.
    pub(crate) own_terms: String,
    /// The terms it is ranked by, pretokenized.
    pub(crate) context_terms: String,
}

/// How often a document has each of its terms.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TermCounts {
    /// For each term, its count in the passage itself and its count in the ranked context.
    pub terms: BTreeMap<String, (u32, u32)>,
}

impl Document {
    /// Builds the document of the passage in the middle of a window.
    pub(crate) fn new(window: &Window<'_>) -> Self {
        let AnalyzedPassage { passage, terms, .. } = window.middle;
        let mut authors = Vec::new();
        if let Some(author) = &passage.author {
            let whole = casefold(author.trim());
            let parts = split_words(author).flat_map(|word| word.subwords);
            authors.extend(
                parts
                    .map(|part| part.folded)
                    .filter(|plain| *plain != whole),
            );
            authors.push(whole);
        }
        let around = window.neighbors().map(|other| &other.passage);
        Self {
            stored: StoredPassage {
                passage: passage.clone(),
                previous_text: window
                    .previous()
                    .map(AnalyzedPassage::text_prefix)
                    .unwrap_or_default(),
            },
            authors,
            files: passage.files.iter().map(|file| casefold(file)).collect(),
            neighbors: around
                .map(|other| (other.session.clone(), other.seq))
                .collect(),
            vector: window.vector(),
            own_terms: terms.positional.clone(),
            context_terms: build_context_terms(window),
        }
    }

    /// Counts its terms.
    pub fn count_terms(&self) -> TermCounts {
        let mut terms: BTreeMap<String, (u32, u32)> = BTreeMap::new();
        for term in self.own_terms.split(' ').filter(|term| !term.is_empty()) {
            let term = term.strip_prefix(SAME_POSITION).unwrap_or(term);
            terms.entry(term.to_owned()).or_default().0 += 1;
        }
        for term in self
            .context_terms
            .split(' ')
            .filter(|term| !term.is_empty())
        {
            terms.entry(term.to_owned()).or_default().1 += 1;
        }
        TermCounts { terms }
    }
}

/// Returns the terms that a passage is ranked by.
fn build_context_terms(window: &Window<'_>) -> String {
    let passage = &window.middle.passage;
    let own = &window.middle.terms.content;
    let mut context = format!("{own} {own}");
    let mut add = |terms: &str| {
        context.push(' ');
        context.push_str(terms);
    };
    for other in window.neighbors() {
        add(other.terms.content_prefix());
    }
    add(&TextTerms::from_text(&format_date(passage.at)).content);
    if let Some(author) = &passage.author {
        add(&TextTerms::from_text(author).content);
    }
    context
}

/// Formats a date in words: `8 May 2023`.
pub(crate) fn format_date(at: Timestamp) -> String {
    at.to_zoned(TimeZone::UTC).strftime("%-d %B %Y").to_string()
}

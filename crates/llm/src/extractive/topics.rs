//! Finds the topics of a conversation: phrases that recur.

use std::collections::HashMap;

use throughline_model::Summary;

use super::collector::CandidateCollector;
use super::cues::{is_completion_verb, is_request_verb};
use super::lexicon::{Term, Word, split_words};
use crate::summary_files::ratio;

/// Maximum number of topics in a summary.
const MAX_TOPICS: usize = 10;

struct Phrase {
    user: u32,
    other: u32,
    surface: String,
    first: usize,
}

/// Pairs of adjacent words.
#[derive(Default)]
pub(super) struct PhraseCounts(HashMap<(Term, Term), Phrase>);

impl PhraseCounts {
    pub(super) fn count(
        &mut self,
        text: &str,
        words: &[Word<'_>],
        ids: &[Option<Term>],
        by_user: bool,
    ) {
        for at in 1..words.len() {
            let (left, right) = (&words[at - 1], &words[at]);
            let (Some(a), Some(b)) = (ids[at - 1], ids[at]) else {
                continue;
            };
            if left.ends_phrase || !is_likely_noun(left) || !is_likely_noun(right) {
                continue;
            }
            // A name may have more words: "Hoeve Ter Linden".
            let is_name = |word: &Word<'_>| word.raw.starts_with(char::is_uppercase);
            let mut last = at;
            while is_name(&words[last])
                && !words[last].ends_phrase
                && words.get(last + 1).is_some_and(is_name)
            {
                last += 1;
            }
            let end = words[last].start + words[last].raw.len();
            let first = self.0.len();
            let phrase = self.0.entry((a, b)).or_insert_with(|| Phrase {
                user: 0,
                other: 0,
                surface: text[left.start..end].to_owned(),
                first,
            });
            if by_user {
                phrase.user += 1;
            } else {
                phrase.other += 1;
            }
        }
    }
}

/// Whether a word may be a noun: letters only, and not a known verb.
fn is_likely_noun(word: &Word<'_>) -> bool {
    let lower = word.lower.as_ref();
    word.raw.chars().all(|c| c.is_alphabetic() || c == '-')
        && word.raw.chars().count() > 2
        && !is_completion_verb(lower)
        && !is_request_verb(lower)
}

/// Returns the topics by weight, in at most `room` bytes.
pub(super) fn select_topics(
    found: &mut CandidateCollector,
    previous: Option<&Summary>,
    background: &str,
    room: usize,
) -> Vec<String> {
    let mut offers: Vec<(f64, usize, String)> = Vec::new();
    let old = previous.map_or(&[][..], |previous| &previous.topics);
    for (index, topic) in old.iter().enumerate() {
        let terms = lookup_terms(found, topic);
        let central = found.lexicon.centrality(&terms);
        let weight = 0.7 + 1.5 * central - 0.5 * ratio(index, old.len());
        let line = topic.split_whitespace().collect::<Vec<_>>().join(" ");
        // The background already covers how it began.
        if background.contains(line.trim_end_matches(['.', '!', '?'])) && line.len() > 40 {
            continue;
        }
        offers.push((weight, offers.len(), line));
    }
    if let (Some(goal), None) = (&found.goal, previous)
        && goal.len() * 2 <= room
    {
        offers.push((9.0, offers.len(), goal.clone()));
    }
    let mut pairs: Vec<&Phrase> = found.phrases.0.values().collect();
    pairs.retain(|pair| pair.user + pair.other > 2 || pair.user.min(pair.other) > 0);
    pairs.sort_by_key(|pair| {
        (
            std::cmp::Reverse(pair.user.min(8) * 2 + pair.other),
            pair.first,
        )
    });
    for pair in pairs.into_iter().take(3 * MAX_TOPICS) {
        let both = if pair.user > 0 && pair.other > 0 {
            0.6
        } else {
            0.0
        };
        let weight = 0.5 * f64::from(pair.user + pair.other).ln() + both;
        offers.push((weight, offers.len(), pair.surface.clone()));
    }
    let headings = std::mem::take(&mut found.headings);
    for title in headings.iter().rev().take(3) {
        if title.len() < 80 && lookup_terms(found, title).len() > 1 {
            offers.push((0.9, offers.len(), title.clone()));
        }
    }
    offers.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    select_distinct(found, offers, room)
}

/// Selects the highest-scoring topics that differ from each other.
fn select_distinct(
    found: &mut CandidateCollector,
    offers: Vec<(f64, usize, String)>,
    room: usize,
) -> Vec<String> {
    let mut chosen: Vec<String> = Vec::new();
    let mut selected: Vec<Vec<Term>> = Vec::new();
    let mut left = room;
    for (_, _, topic) in offers {
        let terms = lookup_terms(found, &topic);
        let again = selected.iter().any(|other| {
            let both = terms.iter().filter(|term| other.contains(term)).count();
            both * 2 > terms.len() || (both > 0 && terms.len() < 3 && other.len() < 3)
        });
        let cost = topic.len() + 3;
        if topic.is_empty() || again || cost > left || chosen.len() == MAX_TOPICS {
            continue;
        }
        left -= cost;
        selected.push(terms);
        chosen.push(topic);
    }
    chosen
}

fn lookup_terms(found: &mut CandidateCollector, text: &str) -> Vec<Term> {
    split_words(text)
        .iter()
        .filter_map(|word| found.lexicon.intern(&word.lower))
        .collect()
}

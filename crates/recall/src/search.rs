//! From a query to hits.
//!
//! Candidates are found by words and by likeness as a whole, within the scope; each is
//! then read, compared word by word, and scored by all of it.

use std::collections::HashSet;

use tantivy::DocAddress;
use throughline_model::SessionId;

use crate::filter::Filter;
use crate::fusion::{Weights, scale};
use crate::index::View;
use crate::late::{Late, weighted};
use crate::model::{TokenId, model};
use crate::scan::{by_likeness, likeness};
use crate::schema::Kept;
use crate::shelf::kept;
use crate::snippet::best_place;
use crate::stop::is_stop_word;
use crate::terms::Asked;
use crate::text::ByWords;
use crate::words::words;
use crate::{Found, Hit, Mode, Query, RecallError, Snippet, Why};

/// So many candidates by words, at least.
const BY_WORDS: usize = 100;
/// So many candidates by likeness.
const BY_LIKENESS: usize = 50;
/// So much of a long passage is compared word by word: its best place.
const COMPARED: usize = 1200;

/// A passage that may be a hit.
struct Candidate {
    at: DocAddress,
    text: f32,
    kept: Kept,
}

/// Looks for something in one commit.
pub(crate) fn search(view: &View, query: &Query) -> Result<Found, RecallError> {
    let mut found = Found {
        watermark: view.watermark,
        ..Found::default()
    };
    let mut asked = Asked::new(view, query)?;
    if asked.words.is_empty() || query.limit == 0 {
        return Ok(found);
    }
    let filter = Filter::new(view, &query.scope, &query.phrases)?;
    let mut by_words = find_words(view, query, &filter, &asked)?;
    if by_words.1.is_empty()
        && let Some(corrected) = asked.corrected(view, &filter)?
    {
        by_words = find_words(view, query, &filter, &corrected)?;
        asked = corrected;
        found.corrected = Some(asked.written());
    }
    let tokens = weighted(&asked);
    let candidates = candidates(view, query, &filter, by_words, &tokens)?;
    found.hits = rank(view, query, &asked, &tokens, candidates);
    if found.corrected.is_some() {
        found.corrected = Some(asked.as_said(&found.hits));
    }
    Ok(found)
}

type Worded<'a> = (Option<ByWords<'a>>, Vec<(f32, DocAddress)>);

fn find_words<'a>(
    view: &'a View,
    query: &Query,
    filter: &Filter,
    asked: &Asked,
) -> Result<Worded<'a>, RecallError> {
    let search = ByWords::new(view, asked.terms())?;
    let best = match &search {
        Some(search) => search.best(filter, query.limit.max(BY_WORDS))?,
        None => Vec::new(),
    };
    Ok((search, best))
}

/// All passages that may be hits.
fn candidates(
    view: &View,
    query: &Query,
    filter: &Filter,
    (search, by_words): Worded<'_>,
    tokens: &[(TokenId, f32)],
) -> Result<Vec<Candidate>, RecallError> {
    let mut all: Vec<(f32, DocAddress)> = match query.mode {
        Mode::Semantic => Vec::new(),
        Mode::Text | Mode::Hybrid => by_words,
    };
    if query.mode != Mode::Text {
        let seen: HashSet<DocAddress> = all.iter().map(|(_, at)| *at).collect();
        let vector = asked_vector(tokens);
        for (_, at) in by_likeness(view, filter, &vector, query.limit.max(BY_LIKENESS)) {
            if !seen.contains(&at) {
                let score = search.as_ref().map_or(Ok(0.0), |search| search.score(at))?;
                all.push((score, at));
            }
        }
    }
    all.into_iter()
        .map(|(text, at)| {
            let kept = kept(view, at)?;
            Ok(Candidate { at, text, kept })
        })
        .collect()
}

/// The vector of a query: rare words count more, but less so than word by word.
fn asked_vector(tokens: &[(TokenId, f32)]) -> Vec<f32> {
    let tokens = tokens.iter().map(|(token, weight)| (*token, weight.sqrt()));
    model().pooled(tokens)
}

fn rank(
    view: &View,
    query: &Query,
    asked: &Asked,
    tokens: &[(TokenId, f32)],
    candidates: Vec<Candidate>,
) -> Vec<Hit> {
    let vector = asked_vector(tokens);
    let mut late = Late::new(tokens);
    let mut whys: Vec<Why> = Vec::with_capacity(candidates.len());
    for candidate in &candidates {
        let mut why = Why {
            text: candidate.text,
            ..Why::default()
        };
        if query.mode != Mode::Text {
            let DocAddress {
                segment_ord,
                doc_id,
            } = candidate.at;
            let text = &candidate.kept.passage.text;
            let text = &text[best_place(text, asked, COMPARED)];
            why.pooled = likeness(&view.vectors[segment_ord as usize], doc_id, &vector);
            why.late = late.likeness(&candidate.kept, text);
            let author = candidate.kept.passage.author.as_deref();
            why.author = f32::from(author.is_some_and(|author| names(asked, author)));
        }
        whys.push(why);
    }
    let sessions: Vec<SessionId> = candidates
        .iter()
        .map(|one| one.kept.passage.session.clone())
        .collect();
    scale(&mut whys, &sessions);
    let weights = Weights::of(query.mode);
    let mut scored: Vec<(f32, Why, Candidate)> = whys
        .into_iter()
        .zip(candidates)
        .map(|(why, candidate)| (weights.score(&why), why, candidate))
        .collect();
    // Of equals, the later: it is more likely to hold still.
    scored.sort_by(|(a, _, one), (b, _, other)| {
        let later = other.kept.passage.position.cmp(&one.kept.passage.position);
        b.total_cmp(a).then(later)
    });
    let hits = scored
        .into_iter()
        .take(query.limit)
        .map(|(score, why, candidate)| {
            let passage = candidate.kept.passage;
            Hit {
                snippet: Snippet::new(&passage.text, asked, query.snippet),
                session: passage.session,
                seq: passage.seq,
                external_id: passage.external_id,
                role: passage.role,
                author: passage.author,
                at: passage.at,
                text: passage.text,
                score,
                why,
            }
        });
    hits.collect()
}

/// Whether a query names someone: by all of their name, or its first word.
fn names(asked: &Asked, author: &str) -> bool {
    let first = words(author).flat_map(|word| word.parts).next();
    first.is_some_and(|first| {
        first.plain.len() > 1 && !is_stop_word(&first.plain) && asked.plain.contains(&first.plain)
    })
}

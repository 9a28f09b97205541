//! From a query to hits.
//!
//! Candidates are found by words and by likeness as a whole, within the scope; each is
//! then read, compared word by word, and scored by all of it.

use std::collections::HashSet;

use tantivy::DocAddress;

use crate::compare::Again;
use crate::filter::Filter;
use crate::index::View;
use crate::late::weighted;
use crate::model::{TokenId, model};
use crate::rank::{Candidate, rank};
use crate::scan::by_likeness;
use crate::shelf::kept;
use crate::terms::Asked;
use crate::text::ByWords;
use crate::{Found, Mode, Query, RecallError};

/// So many candidates by words, at least.
const BY_WORDS: usize = 100;
/// So many candidates by likeness.
const BY_LIKENESS: usize = 50;
/// Where no passage has any of the words, those less alike are there by chance: so alike
/// are the most alike of passages about something else.
const LEAST_LIKENESS: f32 = 0.22;

/// Looks for something in one commit; `again` may change the order of what is found.
pub(crate) fn search(
    view: &View,
    query: &Query,
    again: Option<&Again<'_>>,
) -> Result<Found, RecallError> {
    let mut found = Found {
        watermark: view.watermark,
        ..Found::default()
    };
    let mut asked = Asked::new(view, query)?;
    if asked.words.is_empty() || query.limit == 0 {
        return Ok(found);
    }
    let filter = Filter::new(view, &query.scope, &query.phrases)?;
    let mut is_corrected = false;
    let mut by_words = find_words(view, query, &filter, &asked)?;
    if by_words.1.is_empty()
        && let Some(corrected) = asked.corrected(view, &filter)?
    {
        by_words = find_words(view, query, &filter, &corrected)?;
        asked = corrected;
        is_corrected = true;
    }
    let tokens = weighted(&asked);
    let candidates = candidates(view, query, &filter, by_words, &tokens)?;
    let mut ranked = rank(view, query.mode, &asked, &tokens, candidates);
    found.compared = again.map(|again| again.rerank(query.mode, &asked, &mut ranked));
    ranked.truncate(query.limit);
    let hits = ranked.into_iter().map(|one| one.hit(&asked, query.snippet));
    found.hits = hits.collect();
    if is_corrected {
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
    let by_words_found = !by_words.is_empty();
    let mut all: Vec<(f32, DocAddress)> = match query.mode {
        Mode::Semantic => Vec::new(),
        Mode::Text | Mode::Hybrid => by_words,
    };
    if query.mode != Mode::Text {
        let least = if by_words_found {
            f32::MIN
        } else {
            LEAST_LIKENESS
        };
        let seen: HashSet<DocAddress> = all.iter().map(|(_, at)| *at).collect();
        let vector = asked_vector(tokens);
        let alike = by_likeness(view, filter, &vector, query.limit.max(BY_LIKENESS));
        let alike = alike.into_iter().filter(|(likeness, _)| *likeness >= least);
        let mut alike: Vec<DocAddress> = alike.map(|(_, at)| at).collect();
        alike.retain(|at| !seen.contains(at));
        alike.sort_unstable();
        let scores = match &search {
            Some(search) => search.scores(&alike)?,
            None => vec![0.0; alike.len()],
        };
        all.extend(scores.into_iter().zip(alike));
    }
    all.into_iter()
        .map(|(text, at)| {
            let kept = kept(view, at)?;
            Ok(Candidate { at, text, kept })
        })
        .collect()
}

/// The vector of a query: rare words count more, but less so than word by word.
pub(crate) fn asked_vector(tokens: &[(TokenId, f32)]) -> Vec<f32> {
    let tokens = tokens.iter().map(|(token, weight)| (*token, weight.sqrt()));
    model().pooled(tokens)
}

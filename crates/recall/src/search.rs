//! From a query to hits.
//!
//! Candidates are found by words and by likeness as a whole, within the scope; each is
//! then read, compared word by word, and scored by all of it.

use std::collections::HashSet;

use crate::compare::Again;
use crate::late::weighted;
use crate::model::{TokenId, model};
use crate::rank::{Candidate, rank};
use crate::terms::Asked;
use crate::{At, Found, Mode, Query, RecallError, Sight};

/// So many candidates by words, at least.
const BY_WORDS: usize = 100;
/// So many candidates by likeness.
const BY_LIKENESS: usize = 50;
/// Where no passage has any of the words, those less alike are there by chance: so alike
/// are the most alike of passages about something else.
const LEAST_LIKENESS: f32 = 0.22;

/// Looks for something in what is in sight; `again` may change the order of what is found.
pub(crate) fn search(
    sight: &dyn Sight,
    query: &Query,
    again: Option<&Again<'_>>,
) -> Result<Found, RecallError> {
    let mut found = Found {
        watermark: sight.watermark(),
        ..Found::default()
    };
    let mut asked = Asked::new(sight, query)?;
    if asked.words.is_empty() || query.limit == 0 {
        return Ok(found);
    }
    let most = query.limit.max(BY_WORDS);
    let mut is_corrected = false;
    let mut by_words = sight.by_words(&asked.terms(), most)?;
    if by_words.is_empty()
        && let Some(corrected) = asked.corrected(sight)?
    {
        by_words = sight.by_words(&corrected.terms(), most)?;
        asked = corrected;
        is_corrected = true;
    }
    let tokens = weighted(&asked);
    let candidates = candidates(sight, query, &asked, by_words, &tokens)?;
    let mut ranked = rank(query.mode, &asked, &tokens, candidates);
    found.compared = again.map(|again| again.rerank(query.mode, &asked, &mut ranked));
    ranked.truncate(query.limit);
    let hits = ranked.into_iter().map(|one| one.hit(&asked, query.snippet));
    found.hits = hits.collect();
    if is_corrected {
        found.corrected = Some(asked.as_said(&found.hits));
    }
    Ok(found)
}

/// All passages that may be hits.
fn candidates(
    sight: &dyn Sight,
    query: &Query,
    asked: &Asked,
    by_words: Vec<(f32, At)>,
    tokens: &[(TokenId, f32)],
) -> Result<Vec<Candidate>, RecallError> {
    let by_words_found = !by_words.is_empty();
    let mut all: Vec<(f32, At)> = match query.mode {
        Mode::Semantic => Vec::new(),
        Mode::Text | Mode::Hybrid => by_words,
    };
    let vector = asked_vector(tokens);
    if query.mode != Mode::Text {
        let least = if by_words_found {
            f32::MIN
        } else {
            LEAST_LIKENESS
        };
        let seen: HashSet<At> = all.iter().map(|(_, at)| *at).collect();
        let alike = sight.by_likeness(&vector, query.limit.max(BY_LIKENESS))?;
        let alike = alike.into_iter().filter(|(likeness, _)| *likeness >= least);
        let mut alike: Vec<At> = alike.map(|(_, at)| at).collect();
        alike.retain(|at| !seen.contains(at));
        alike.sort_unstable();
        let scores = sight.scores(&asked.terms(), &alike)?;
        all.extend(scores.into_iter().zip(alike));
    }
    let at: Vec<At> = all.iter().map(|(_, at)| *at).collect();
    let read = sight.read(&at, &vector)?;
    let candidates = all.into_iter().zip(read);
    let candidate = |((text, _), (kept, pooled))| Candidate { text, pooled, kept };
    Ok(candidates.map(candidate).collect())
}

/// The vector of a query: rare words count more, but less so than word by word.
fn asked_vector(tokens: &[(TokenId, f32)]) -> Vec<f32> {
    let tokens = tokens.iter().map(|(token, weight)| (*token, weight.sqrt()));
    model().pooled(tokens)
}

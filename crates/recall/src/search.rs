//! From a query to hits.
//!
//! Candidates are found by words and by likeness as a whole, within the scope; each is
//! then read, compared word by word, and scored by all of it.

use std::collections::HashSet;

use crate::late_interaction::weigh_query_tokens;
use crate::query_terms::QueryTerms;
use crate::rank::{Candidate, rank};
use crate::rerank::RerankPass;
use crate::static_model::{TokenId, static_model};
use crate::{IndexReader, Mode, PassageId, Query, QueryResults, RecallError};

/// So many candidates by words, at least.
const MIN_TEXT_CANDIDATES: usize = 100;
/// So many candidates by likeness.
const MIN_VECTOR_CANDIDATES: usize = 50;
/// Where no passage has any of the words, those less alike are there by chance: so alike
/// are the most alike of passages about something else.
const MIN_SIMILARITY: f32 = 0.22;

/// Looks for something in what is in sight; `again` may change the order of what is found.
pub(crate) fn search(
    sight: &dyn IndexReader,
    query: &Query,
    again: Option<&RerankPass<'_>>,
) -> Result<QueryResults, RecallError> {
    let mut found = QueryResults {
        watermark: sight.watermark(),
        ..QueryResults::default()
    };
    let mut asked = QueryTerms::new(sight, query)?;
    if asked.words.is_empty() || query.limit == 0 {
        return Ok(found);
    }
    let most = query.limit.max(MIN_TEXT_CANDIDATES);
    let mut is_corrected = false;
    let mut by_words = sight.search_text(&asked.terms(), most)?;
    if by_words.is_empty()
        && let Some(corrected) = asked.correct_spelling(sight)?
    {
        by_words = sight.search_text(&corrected.terms(), most)?;
        asked = corrected;
        is_corrected = true;
    }
    let tokens = weigh_query_tokens(&asked);
    let candidates = find_candidates(sight, query, &asked, by_words, &tokens)?;
    let mut ranked = rank(query.mode, &asked, &tokens, candidates);
    found.rerank = again.map(|again| again.rerank(query.mode, &asked, &mut ranked));
    ranked.truncate(query.limit);
    let hits = ranked
        .into_iter()
        .map(|one| one.into_hit(&asked, query.snippet));
    found.hits = hits.collect();
    if is_corrected {
        found.corrected = Some(asked.to_surface_text(&found.hits));
    }
    Ok(found)
}

/// All passages that may be hits.
fn find_candidates(
    sight: &dyn IndexReader,
    query: &Query,
    asked: &QueryTerms,
    by_words: Vec<(f32, PassageId)>,
    tokens: &[(TokenId, f32)],
) -> Result<Vec<Candidate>, RecallError> {
    let by_words_found = !by_words.is_empty();
    let mut all: Vec<(f32, PassageId)> = match query.mode {
        Mode::Semantic => Vec::new(),
        Mode::Text | Mode::Hybrid => by_words,
    };
    let vector = query_vector(tokens);
    if query.mode != Mode::Text {
        let least = if by_words_found {
            f32::MIN
        } else {
            MIN_SIMILARITY
        };
        let seen: HashSet<PassageId> = all.iter().map(|(_, at)| *at).collect();
        let alike = sight.nearest_vectors(&vector, query.limit.max(MIN_VECTOR_CANDIDATES))?;
        let alike = alike.into_iter().filter(|(likeness, _)| *likeness >= least);
        let mut alike: Vec<PassageId> = alike.map(|(_, at)| at).collect();
        alike.retain(|at| !seen.contains(at));
        alike.sort_unstable();
        let scores = sight.text_scores(&asked.terms(), &alike)?;
        all.extend(scores.into_iter().zip(alike));
    }
    let at: Vec<PassageId> = all.iter().map(|(_, at)| *at).collect();
    let read = sight.read_passages(&at, &vector)?;
    let candidates = all.into_iter().zip(read);
    let candidate = |((text, _), (kept, pooled))| Candidate {
        text_score: text,
        pooled_score: pooled,
        stored: kept,
    };
    Ok(candidates.map(candidate).collect())
}

/// The vector of a query: rare words count more, but less so than word by word.
fn query_vector(tokens: &[(TokenId, f32)]) -> Vec<f32> {
    let tokens = tokens.iter().map(|(token, weight)| (*token, weight.sqrt()));
    static_model().mean_pool(tokens)
}

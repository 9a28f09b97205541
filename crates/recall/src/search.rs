//! Runs a query: finds candidates, ranks them, and turns them into hits.
//!
//! Candidates are found by BM25 and by vector similarity within the scope; each is then read,
//! compared with the query token by token, and scored by the fusion of all parts.

use std::collections::HashSet;

use crate::late_interaction::weigh_query_tokens;
use crate::query_terms::QueryTerms;
use crate::rank::{Candidate, rank};
use crate::rerank::RerankPass;
use crate::static_model::{TokenId, static_model};
use crate::{IndexReader, Mode, PassageId, Query, QueryResults, RecallError};

/// The minimum number of candidates by full text.
const MIN_TEXT_CANDIDATES: usize = 100;
/// The minimum number of candidates by vector similarity.
const MIN_VECTOR_CANDIDATES: usize = 50;
/// The minimum similarity where no passage contains any of the words: unrelated passages reach
/// up to this value by chance.
const MIN_SIMILARITY: f32 = 0.22;

/// Runs a query on a reader; `reranker` may reorder the first results.
pub(crate) fn search(
    reader: &dyn IndexReader,
    query: &Query,
    reranker: Option<&RerankPass<'_>>,
) -> Result<QueryResults, RecallError> {
    let mut found = QueryResults {
        watermark: reader.watermark(),
        ..QueryResults::default()
    };
    let mut query_terms = QueryTerms::new(reader, query)?;
    if query_terms.words.is_empty() || query.limit == 0 {
        return Ok(found);
    }
    let most = query.limit.max(MIN_TEXT_CANDIDATES);
    let mut is_corrected = false;
    let mut by_words = reader.search_text(&query_terms.terms(), most)?;
    if by_words.is_empty()
        && let Some(corrected) = query_terms.correct_spelling(reader)?
    {
        by_words = reader.search_text(&corrected.terms(), most)?;
        query_terms = corrected;
        is_corrected = true;
    }
    let tokens = weigh_query_tokens(&query_terms);
    let candidates = find_candidates(reader, query, &query_terms, by_words, &tokens)?;
    let mut ranked = rank(query.mode, &query_terms, &tokens, candidates);
    found.rerank = reranker.map(|pass| pass.rerank(query.mode, &query_terms, &mut ranked));
    ranked.truncate(query.limit);
    let hits = ranked
        .into_iter()
        .map(|one| one.into_hit(&query_terms, query.snippet));
    found.hits = hits.collect();
    if is_corrected {
        found.corrected = Some(query_terms.to_surface_text(&found.hits));
    }
    Ok(found)
}

/// Returns all passages that may be hits.
fn find_candidates(
    reader: &dyn IndexReader,
    query: &Query,
    query_terms: &QueryTerms,
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
        let nearest = reader.nearest_vectors(&vector, query.limit.max(MIN_VECTOR_CANDIDATES))?;
        let nearest = nearest
            .into_iter()
            .filter(|(similarity, _)| *similarity >= least);
        let mut nearest: Vec<PassageId> = nearest.map(|(_, at)| at).collect();
        nearest.retain(|at| !seen.contains(at));
        nearest.sort_unstable();
        let scores = reader.text_scores(&query_terms.terms(), &nearest)?;
        all.extend(scores.into_iter().zip(nearest));
    }
    let at: Vec<PassageId> = all.iter().map(|(_, at)| *at).collect();
    let read = reader.read_passages(&at, &vector)?;
    let candidates = all.into_iter().zip(read);
    let candidate = |((text, _), (stored, pooled))| Candidate {
        text_score: text,
        pooled_score: pooled,
        stored,
    };
    Ok(candidates.map(candidate).collect())
}

/// Returns the vector of a query. Rare words weigh more, but less so than in late interaction.
fn query_vector(tokens: &[(TokenId, f32)]) -> Vec<f32> {
    let tokens = tokens.iter().map(|(token, weight)| (*token, weight.sqrt()));
    static_model().mean_pool(tokens)
}

//! Scores passages against a query by MaxSim over contextual token embeddings.

use std::num::NonZero;
use std::time::{Duration, Instant};

use ndarray::Array2;
use throughline_model::Digest;

use super::{CLS_TOKEN, ContextualModel, SEP_TOKEN};
use crate::encoding_cache::{OwnerEncodingCache, QuantizedRows};
use crate::rerank::{RerankError, RerankPassage, RerankQuery, Reranker};
use crate::static_model::{TokenId, static_model};

/// The number of texts per batch and thread.
const BATCH_PER_THREAD: usize = 4;
/// The maximum number of tokens of a passage.
const MAX_PASSAGE_TOKENS: usize = 120;
/// The maximum number of tokens of the preceding passage.
const MAX_PREVIOUS_TOKENS: usize = 48;

impl Reranker for ContextualModel {
    fn name(&self) -> &str {
        &self.name
    }

    fn digest(&self) -> Digest {
        self.digest
    }

    fn score_passages(
        &self,
        question: &RerankQuery<'_>,
        passages: &[RerankPassage<'_>],
        cache: &OwnerEncodingCache<'_>,
        within: Duration,
    ) -> Result<Vec<f32>, RerankError> {
        let start = Instant::now();
        let known = |text: &[TokenId]| {
            let shape = (text.len(), self.encoder.width());
            let rows = cache.get(&cache_key(text));
            rows.filter(|rows| (rows.len(), rows.columns()) == shape)
        };
        let mut made: Vec<(Vec<u8>, QuantizedRows)> = Vec::new();
        let (tokens, weights) = tokenize_query(question, self.encoder.max_tokens());
        let query_rows = match known(&tokens) {
            Some(rows) => rows,
            None => {
                let read = cache_key(&tokens);
                let rows = self.encode(&[tokens], 1)?.pop().unwrap_or_default();
                made.push((read, rows.clone()));
                rows
            }
        };
        let query_rows = to_matrix(&query_rows)?;
        let threads = std::thread::available_parallelism().map_or(1, NonZero::get);
        let mut scores = Vec::new();
        for round in passages.chunks(threads * BATCH_PER_THREAD) {
            let texts: Vec<Vec<TokenId>> = round.iter().map(tokenize_passage).collect();
            let all: Vec<Option<QuantizedRows>> = texts.iter().map(|text| known(text)).collect();
            let new = texts.iter().zip(&all).filter(|(_, rows)| rows.is_none());
            let new: Vec<Vec<TokenId>> = new.map(|(text, _)| text.clone()).collect();
            // Cached passages take next to no time, so only new ones count against the limit.
            if !new.is_empty() && start.elapsed() >= within {
                break;
            }
            let mut encoded = self.encode(&new, threads)?.into_iter();
            for (text, rows) in texts.iter().zip(all) {
                let rows = match rows {
                    Some(rows) => rows,
                    None => {
                        let rows = encoded.next().unwrap_or_default();
                        made.push((cache_key(text), rows.clone()));
                        rows
                    }
                };
                scores.push(max_sim(&query_rows, &weights, &to_matrix(&rows)?));
            }
        }
        cache.put(made.iter().map(|(read, rows)| (read.as_slice(), rows)));
        Ok(scores)
    }
}

impl ContextualModel {
    /// Encodes each token of each text.
    ///
    /// The result is quantized at once, so that cached and new encodings are compared alike.
    fn encode(
        &self,
        texts: &[Vec<TokenId>],
        threads: usize,
    ) -> Result<Vec<QuantizedRows>, RerankError> {
        if texts.is_empty() {
            return Ok(Vec::new());
        }
        let encode = |share: &[Vec<TokenId>]| -> Vec<QuantizedRows> {
            let encoded = self.encoder.encode(share);
            encoded.iter().map(quantize).collect()
        };
        std::thread::scope(|scope| {
            let shares = texts.chunks(texts.len().div_ceil(threads));
            let all: Vec<_> = shares
                .map(|share| scope.spawn(move || encode(share)))
                .collect();
            let mut rows = Vec::new();
            for share in all {
                let share = share.join();
                rows.extend(share.map_err(|_| "a worker thread of the model failed")?);
            }
            Ok(rows)
        })
    }
}

fn quantize(encoded: &Array2<f32>) -> QuantizedRows {
    let rows = encoded.rows().into_iter();
    let rows: Vec<Vec<f32>> = rows.map(|row| row.to_vec()).collect();
    QuantizedRows::quantize(encoded.ncols(), rows.iter().map(Vec::as_slice))
}

fn cache_key(tokens: &[TokenId]) -> Vec<u8> {
    tokens
        .iter()
        .flat_map(|token| token.to_le_bytes())
        .collect()
}

/// Returns the tokens of a query and their weights.
fn tokenize_query(question: &RerankQuery<'_>, longest: usize) -> (Vec<TokenId>, Vec<f32>) {
    let mut tokens = vec![CLS_TOKEN];
    let mut weights = vec![0.0];
    let mut add = |text: &str, weight: f32| {
        let found = static_model().tokenize(text, 64);
        let share = f32::from(u16::try_from(found.len()).unwrap_or(u16::MAX)).max(1.0);
        weights.extend(found.iter().map(|_| weight / share));
        tokens.extend(found);
    };
    let mut from = 0;
    for (range, rarity) in &question.words {
        // Stop words have no weight, but are encoded as context for the other words.
        add(&question.text[from..range.start], 0.0);
        add(&question.text[range.clone()], *rarity);
        from = range.end;
    }
    add(&question.text[from..], 0.0);
    tokens.truncate(longest - 1);
    weights.truncate(longest - 1);
    tokens.push(SEP_TOKEN);
    weights.push(0.0);
    let sum: f32 = weights.iter().sum();
    if sum > 0.0 {
        for weight in &mut weights {
            *weight /= sum;
        }
    }
    (tokens, weights)
}

/// Returns the tokens of a passage: author, text, and the preceding passage.
fn tokenize_passage(passage: &RerankPassage<'_>) -> Vec<TokenId> {
    let mut tokens = vec![CLS_TOKEN];
    if let Some(author) = passage.author {
        tokens.extend(static_model().tokenize(&format!("{author}:"), 16));
    }
    tokens.extend(static_model().tokenize(passage.text, MAX_PASSAGE_TOKENS));
    tokens.push(SEP_TOKEN);
    let before = static_model().tokenize(passage.previous_text, MAX_PREVIOUS_TOKENS);
    if !before.is_empty() {
        tokens.extend(before);
        tokens.push(SEP_TOKEN);
    }
    tokens
}

fn to_matrix(rows: &QuantizedRows) -> Result<Array2<f32>, RerankError> {
    let shape = (rows.len(), rows.columns());
    Ok(Array2::from_shape_vec(shape, rows.values().collect())?)
}

/// Returns the weighted sum, over the query tokens, of the closest passage token's similarity.
fn max_sim(query_rows: &Array2<f32>, weights: &[f32], passage: &Array2<f32>) -> f32 {
    let products = query_rows.dot(&passage.t());
    let most = products
        .rows()
        .into_iter()
        .map(|row| row.fold(f32::NEG_INFINITY, |most, x| most.max(*x)));
    most.zip(weights).map(|(most, weight)| most * weight).sum()
}

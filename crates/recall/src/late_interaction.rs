//! Late interaction: for each query token, the similarity of the closest passage token.
//!
//! Tokens are weighted by how rare they are. Tokens of the preceding passage count too, but
//! less: an answer rarely repeats the words of its question.

use crate::StoredPassage;
use crate::document::format_date;
use crate::query_terms::QueryTerms;
use crate::static_model::{StaticModel, TokenId, TokenVector, static_model};

/// The weight of a token in the preceding passage, relative to one in the passage itself.
const PREVIOUS_PASSAGE_WEIGHT: f32 = 0.7;
/// The maximum number of tokens compared per passage; half as many for the preceding one.
const MAX_TOKENS: usize = 320;

/// Scores passages against one query.
///
/// Passages share most of their tokens, so each token is compared with the query only once.
pub(crate) struct LateInteraction<'a> {
    model: &'static StaticModel,
    query_tokens: &'a [(TokenId, f32)],
    query_vectors: Vec<TokenVector>,
    /// For each token of the model, the offset of its similarities; 0 if not computed yet.
    offsets: Vec<u32>,
    similarities: Vec<f32>,
}

/// Returns the tokens of a query with their weights, which sum to 1.
pub(crate) fn weigh_query_tokens(query_terms: &QueryTerms) -> Vec<(TokenId, f32)> {
    let mut tokens = Vec::new();
    for word in &query_terms.words {
        let share = 1.0 / f32::from(u16::try_from(word.tokens.len()).unwrap_or(u16::MAX));
        tokens.extend(
            word.tokens
                .iter()
                .map(|token| (*token, word.rarity * share)),
        );
    }
    let sum: f32 = tokens.iter().map(|(_, weight)| weight).sum();
    if sum > 0.0 {
        for (_, weight) in &mut tokens {
            *weight /= sum;
        }
    }
    tokens
}

impl<'a> LateInteraction<'a> {
    pub(crate) fn new(query_tokens: &'a [(TokenId, f32)]) -> Self {
        let model = static_model();
        Self {
            model,
            query_tokens,
            query_vectors: query_tokens
                .iter()
                .map(|(token, _)| model.table().token_vector(*token))
                .collect(),
            offsets: vec![0; model.table().len()],
            similarities: vec![0.0; query_tokens.len()],
        }
    }

    /// Scores the similarity of a passage, between 0 and 1.
    pub(crate) fn score(&mut self, stored: &StoredPassage, text: &str) -> f32 {
        let passage = &stored.passage;
        let mut own = self.model.tokenize(text, MAX_TOKENS);
        if let Some(author) = &passage.author {
            own.extend(self.model.tokenize(author, 16));
        }
        own.extend(self.model.tokenize(&format_date(passage.at), 8));
        let before = self.model.tokenize(&stored.previous_text, MAX_TOKENS / 2);
        let mut most = vec![0.0_f32; self.query_tokens.len()];
        self.raise_maxima(&own, 1.0, &mut most);
        self.raise_maxima(&before, PREVIOUS_PASSAGE_WEIGHT, &mut most);
        let weights = self.query_tokens.iter().map(|(_, weight)| weight);
        weights.zip(&most).map(|(weight, most)| weight * most).sum()
    }

    fn raise_maxima(&mut self, tokens: &[TokenId], worth: f32, most: &mut [f32]) {
        for token in tokens {
            let start = self.similarities_offset(*token);
            let similarities = &self.similarities[start..start + self.query_tokens.len()];
            for (most, similarity) in most.iter_mut().zip(similarities) {
                *most = most.max(worth * similarity);
            }
        }
    }

    /// Returns the offset of a token's similarities to the query tokens, computing them if
    /// needed.
    fn similarities_offset(&mut self, token: TokenId) -> usize {
        let known = self.offsets[usize::from(token)];
        if known > 0 {
            return known as usize;
        }
        let start = self.similarities.len();
        let table = self.model.table();
        let similarities = self
            .query_vectors
            .iter()
            .map(|vector| table.similarity(token, vector));
        self.similarities.extend(similarities);
        self.offsets[usize::from(token)] = u32::try_from(start).unwrap_or(0);
        start
    }
}

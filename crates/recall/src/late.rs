//! Likeness word by word: for each word of the query the most alike word of the passage.
//!
//! Words count by how rare they are. What was said just before counts too, but less: an
//! answer rarely repeats the words of its question.

use crate::Kept;
use crate::document::date;
use crate::model::{Model, Token, TokenId, model};
use crate::terms::Asked;

/// What a like word in the passage before is worth, to one in the passage.
const BEFORE: f32 = 0.7;
/// So many tokens of a passage are compared, and half as many of the one before.
const TOKENS: usize = 320;

/// Compares passages with one query.
///
/// Passages share most of their tokens, so each token is compared with the query once.
pub(crate) struct Late<'a> {
    model: &'static Model,
    asked: &'a [(TokenId, f32)],
    asked_tokens: Vec<Token>,
    /// For each token of the model, where its likenesses begin; 0 where not compared yet.
    known: Vec<u32>,
    likenesses: Vec<f32>,
}

/// The tokens of a query, and how much each counts; together 1.
pub(crate) fn weighted(asked: &Asked) -> Vec<(TokenId, f32)> {
    let mut tokens = Vec::new();
    for word in &asked.words {
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

impl<'a> Late<'a> {
    pub(crate) fn new(asked: &'a [(TokenId, f32)]) -> Self {
        let model = model();
        Self {
            model,
            asked,
            asked_tokens: asked
                .iter()
                .map(|(token, _)| model.table().token(*token))
                .collect(),
            known: vec![0; model.table().len()],
            likenesses: vec![0.0; asked.len()],
        }
    }

    /// How alike a passage is, between 0 and 1.
    pub(crate) fn likeness(&mut self, kept: &Kept, text: &str) -> f32 {
        let passage = &kept.passage;
        let mut own = self.model.tokens(text, TOKENS);
        if let Some(author) = &passage.author {
            own.extend(self.model.tokens(author, 16));
        }
        own.extend(self.model.tokens(&date(passage.at), 8));
        let before = self.model.tokens(&kept.before, TOKENS / 2);
        let mut most = vec![0.0_f32; self.asked.len()];
        self.raise(&own, 1.0, &mut most);
        self.raise(&before, BEFORE, &mut most);
        let weights = self.asked.iter().map(|(_, weight)| weight);
        weights.zip(&most).map(|(weight, most)| weight * most).sum()
    }

    fn raise(&mut self, tokens: &[TokenId], worth: f32, most: &mut [f32]) {
        for token in tokens {
            let start = self.compared(*token);
            let likenesses = &self.likenesses[start..start + self.asked.len()];
            for (most, likeness) in most.iter_mut().zip(likenesses) {
                *most = most.max(worth * likeness);
            }
        }
    }

    /// Where the likenesses of a token to those of the query are.
    fn compared(&mut self, token: TokenId) -> usize {
        let known = self.known[usize::from(token)];
        if known > 0 {
            return known as usize;
        }
        let start = self.likenesses.len();
        let table = self.model.table();
        let asked = self
            .asked_tokens
            .iter()
            .map(|asked| table.likeness(token, asked));
        self.likenesses.extend(asked);
        self.known[usize::from(token)] = u32::try_from(start).unwrap_or(0);
        start
    }
}

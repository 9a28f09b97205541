//! Passages and a question, compared by what their words mean where they stand.

use std::num::NonZero;
use std::time::{Duration, Instant};

use ndarray::Array2;
use throughline_model::Digest;

use super::{BEGIN, Contextual, END};
use crate::compare::{Compare, CompareError, Question, Reading};
use crate::encoded::{Keeping, Rows};
use crate::model::{TokenId, model};

/// So many at a time, a thread.
const TOGETHER: usize = 4;
/// So many tokens of a passage are read.
const TOKENS: usize = 120;
/// So many tokens of what was said before it.
const BEFORE_TOKENS: usize = 48;

impl Compare for Contextual {
    fn name(&self) -> &str {
        &self.name
    }

    fn digest(&self) -> Digest {
        self.digest
    }

    fn likenesses(
        &self,
        question: &Question<'_>,
        passages: &[Reading<'_>],
        kept: &Keeping<'_>,
        within: Duration,
    ) -> Result<Vec<f32>, CompareError> {
        let start = Instant::now();
        let known = |text: &[TokenId]| {
            let shape = (text.len(), self.encoder.width());
            let rows = kept.get(&bytes(text));
            rows.filter(|rows| (rows.len(), rows.columns()) == shape)
        };
        let mut made: Vec<(Vec<u8>, Rows)> = Vec::new();
        let (tokens, weights) = tokens_of(question, self.encoder.longest());
        let asked = match known(&tokens) {
            Some(rows) => rows,
            None => {
                let read = bytes(&tokens);
                let rows = self.encode(&[tokens], 1)?.pop().unwrap_or_default();
                made.push((read, rows.clone()));
                rows
            }
        };
        let asked = matrix(&asked)?;
        let threads = std::thread::available_parallelism().map_or(1, NonZero::get);
        let mut likenesses = Vec::new();
        for round in passages.chunks(threads * TOGETHER) {
            let texts: Vec<Vec<TokenId>> = round.iter().map(read).collect();
            let all: Vec<Option<Rows>> = texts.iter().map(|text| known(text)).collect();
            let new = texts.iter().zip(&all).filter(|(_, rows)| rows.is_none());
            let new: Vec<Vec<TokenId>> = new.map(|(text, _)| text.clone()).collect();
            // What is known takes next to no time.
            if !new.is_empty() && start.elapsed() >= within {
                break;
            }
            let mut encoded = self.encode(&new, threads)?.into_iter();
            for (text, rows) in texts.iter().zip(all) {
                let rows = match rows {
                    Some(rows) => rows,
                    None => {
                        let rows = encoded.next().unwrap_or_default();
                        made.push((bytes(text), rows.clone()));
                        rows
                    }
                };
                likenesses.push(likeness(&asked, &weights, &matrix(&rows)?));
            }
        }
        kept.put(made.iter().map(|(read, rows)| (read.as_slice(), rows)));
        Ok(likenesses)
    }
}

impl Contextual {
    /// What each token of each text means.
    ///
    /// Rounded at once: what was kept and what was just made are compared alike.
    fn encode(&self, texts: &[Vec<TokenId>], threads: usize) -> Result<Vec<Rows>, CompareError> {
        if texts.is_empty() {
            return Ok(Vec::new());
        }
        let encode = |share: &[Vec<TokenId>]| -> Vec<Rows> {
            let encoded = self.encoder.encode(share);
            encoded.iter().map(rounded).collect()
        };
        std::thread::scope(|scope| {
            let shares = texts.chunks(texts.len().div_ceil(threads));
            let all: Vec<_> = shares
                .map(|share| scope.spawn(move || encode(share)))
                .collect();
            let mut rows = Vec::new();
            for share in all {
                let share = share.join();
                rows.extend(share.map_err(|_| "a thread of the model failed")?);
            }
            Ok(rows)
        })
    }
}

fn rounded(encoded: &Array2<f32>) -> Rows {
    let rows = encoded.rows().into_iter();
    let rows: Vec<Vec<f32>> = rows.map(|row| row.to_vec()).collect();
    Rows::of(encoded.ncols(), rows.iter().map(Vec::as_slice))
}

fn bytes(tokens: &[TokenId]) -> Vec<u8> {
    tokens
        .iter()
        .flat_map(|token| token.to_le_bytes())
        .collect()
}

/// The tokens of a question, and how much each counts.
fn tokens_of(question: &Question<'_>, longest: usize) -> (Vec<TokenId>, Vec<f32>) {
    let mut tokens = vec![BEGIN];
    let mut weights = vec![0.0];
    let mut add = |text: &str, weight: f32| {
        let found = model().tokens(text, 64);
        let share = f32::from(u16::try_from(found.len()).unwrap_or(u16::MAX)).max(1.0);
        weights.extend(found.iter().map(|_| weight / share));
        tokens.extend(found);
    };
    let mut from = 0;
    for (range, rarity) in &question.words {
        // Stop words do not count, and are read for what they say about the others.
        add(&question.text[from..range.start], 0.0);
        add(&question.text[range.clone()], *rarity);
        from = range.end;
    }
    add(&question.text[from..], 0.0);
    tokens.truncate(longest - 1);
    weights.truncate(longest - 1);
    tokens.push(END);
    weights.push(0.0);
    let sum: f32 = weights.iter().sum();
    if sum > 0.0 {
        for weight in &mut weights {
            *weight /= sum;
        }
    }
    (tokens, weights)
}

/// A passage as it is read: who said what, and what was said before it.
fn read(passage: &Reading<'_>) -> Vec<TokenId> {
    let mut tokens = vec![BEGIN];
    if let Some(author) = passage.author {
        tokens.extend(model().tokens(&format!("{author}:"), 16));
    }
    tokens.extend(model().tokens(passage.text, TOKENS));
    tokens.push(END);
    let before = model().tokens(passage.before, BEFORE_TOKENS);
    if !before.is_empty() {
        tokens.extend(before);
        tokens.push(END);
    }
    tokens
}

fn matrix(rows: &Rows) -> Result<Array2<f32>, CompareError> {
    let shape = (rows.len(), rows.columns());
    Ok(Array2::from_shape_vec(shape, rows.numbers().collect())?)
}

/// For each token of the question the most alike of the passage.
fn likeness(asked: &Array2<f32>, weights: &[f32], passage: &Array2<f32>) -> f32 {
    let products = asked.dot(&passage.t());
    let most = products
        .rows()
        .into_iter()
        .map(|row| row.fold(f32::NEG_INFINITY, |most, x| most.max(*x)));
    most.zip(weights).map(|(most, weight)| most * weight).sum()
}

//! The first hits, compared again by what their words mean where they stand.
//!
//! Best first, until all have been or the time is up; what was not compared keeps its
//! order after what was.

use std::num::NonZero;
use std::time::{Duration, Instant};

use ndarray::Array2;

use super::{BEGIN, Contextual, END};
use crate::fusion::{Weights, stretch};
use crate::model::{TokenId, model};
use crate::rank::{Ranked, sort};
use crate::schema::Kept;
use crate::snippet::best_place;
use crate::terms::Asked;
use crate::{Mode, Why};

/// So many are compared, if there is time.
const COMPARED: usize = 32;
/// So many at a time, a thread.
const TOGETHER: usize = 4;
/// So much of a passage is read, in bytes: its best place.
const TEXT: usize = 600;
/// So many tokens of it.
const TOKENS: usize = 120;
/// So many tokens of what was said before it.
const BEFORE_TOKENS: usize = 48;

/// Puts the first passages in order again, as far as time allows.
pub(crate) fn rerank(
    contextual: &Contextual,
    mode: Mode,
    asked: &Asked,
    ranked: &mut [Ranked],
    limit: Duration,
) {
    let likenesses = compare(contextual, asked, ranked, limit);
    let (again, rest) = ranked.split_at_mut(likenesses.len());
    let mut whys: Vec<Why> = again.iter().map(|one| one.why).collect();
    let mut scaled = likenesses;
    stretch(&mut scaled, |likeness| likeness);
    let weights = Weights::with_contextual(mode);
    for ((one, why), likeness) in again.iter_mut().zip(&mut whys).zip(scaled) {
        why.contextual = Some(likeness);
        one.why = *why;
        one.score = weights.score(why);
    }
    sort(again);
    // The rest are after them, and their scores say so.
    let least = again.last().map_or(1.0, |last| last.score);
    for one in rest {
        one.score *= least;
    }
}

/// The likeness of each passage, in order, as far as time allows.
fn compare(contextual: &Contextual, asked: &Asked, ranked: &[Ranked], limit: Duration) -> Vec<f32> {
    let start = Instant::now();
    let encoder = &contextual.encoder;
    let (tokens, weights) = question(asked, encoder.longest());
    let Some(query) = encoder.encode(&[tokens]).pop() else {
        return Vec::new();
    };
    let passages = &ranked[..ranked.len().min(COMPARED)];
    let threads = std::thread::available_parallelism().map_or(1, NonZero::get);
    let mut likenesses = Vec::new();
    for round in passages.chunks(threads * TOGETHER) {
        if start.elapsed() >= limit {
            break;
        }
        let compare = |share: &[Ranked]| -> Vec<f32> {
            let texts: Vec<_> = share.iter().map(|one| passage(asked, &one.kept)).collect();
            let encoded = encoder.encode(&texts);
            let likenesses = encoded.iter().map(|one| likeness(&query, &weights, one));
            likenesses.collect()
        };
        let found = std::thread::scope(|scope| {
            let all: Vec<_> = round
                .chunks(round.len().div_ceil(threads))
                .map(|share| scope.spawn(move || compare(share)))
                .collect();
            // A thread here has nothing to panic about.
            let all = all.into_iter().map(|one| one.join().unwrap_or_default());
            all.collect::<Vec<_>>()
        });
        likenesses.extend(found.into_iter().flatten());
    }
    likenesses
}

/// The tokens of a question, and how much each counts.
fn question(asked: &Asked, longest: usize) -> (Vec<TokenId>, Vec<f32>) {
    let mut tokens = vec![BEGIN];
    let mut weights = vec![0.0];
    let mut add = |text: &str, weight: f32| {
        let found = model().tokens(text, 64);
        let share = f32::from(u16::try_from(found.len()).unwrap_or(u16::MAX)).max(1.0);
        weights.extend(found.iter().map(|_| weight / share));
        tokens.extend(found);
    };
    let mut from = 0;
    for word in &asked.words {
        // Stop words do not count, and are read for what they say about the others.
        add(&asked.text[from..word.range.start], 0.0);
        add(&asked.text[word.range.clone()], word.rarity);
        from = word.range.end;
    }
    add(&asked.text[from..], 0.0);
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
fn passage(asked: &Asked, kept: &Kept) -> Vec<TokenId> {
    let passage = &kept.passage;
    let mut tokens = vec![BEGIN];
    if let Some(author) = &passage.author {
        tokens.extend(model().tokens(&format!("{author}:"), 16));
    }
    let text = &passage.text[best_place(&passage.text, asked, TEXT)];
    tokens.extend(model().tokens(text, TOKENS));
    tokens.push(END);
    let before = model().tokens(&kept.before, BEFORE_TOKENS);
    if !before.is_empty() {
        tokens.extend(before);
        tokens.push(END);
    }
    tokens
}

/// For each token of the question the most alike of the passage.
fn likeness(query: &Array2<f32>, weights: &[f32], passage: &Array2<f32>) -> f32 {
    let products = query.dot(&passage.t());
    let most = products
        .rows()
        .into_iter()
        .map(|row| row.fold(f32::NEG_INFINITY, |most, x| most.max(*x)));
    most.zip(weights).map(|(most, weight)| most * weight).sum()
}

//! Candidates, compared with a query in every way and put in order.

use throughline_model::SessionId;

use crate::fusion::{Weights, scale};
use crate::late::Late;
use crate::model::TokenId;
use crate::snippet::best_place;
use crate::stop::is_stop_word;
use crate::terms::Asked;
use crate::words::words;
use crate::{Hit, Kept, Mode, Snippet, Why};

/// So much of a long passage is compared word by word: its best place.
const COMPARED: usize = 1200;

/// A passage that may be a hit.
pub(crate) struct Candidate {
    /// Its score by words.
    pub(crate) text: f32,
    /// Its likeness as a whole.
    pub(crate) pooled: f32,
    pub(crate) kept: Kept,
}

/// A passage with its score.
pub(crate) struct Ranked {
    pub(crate) score: f32,
    pub(crate) why: Why,
    pub(crate) kept: Kept,
}

impl Ranked {
    /// The passage as a hit.
    pub(crate) fn hit(self, asked: &Asked, snippet: usize) -> Hit {
        let passage = self.kept.passage;
        Hit {
            snippet: Snippet::new(&passage.text, asked, snippet),
            session: passage.session,
            seq: passage.seq,
            external_id: passage.external_id,
            role: passage.role,
            author: passage.author,
            at: passage.at,
            text: passage.text,
            score: self.score,
            why: self.why,
        }
    }
}

/// The candidates, the best first.
pub(crate) fn rank(
    mode: Mode,
    asked: &Asked,
    tokens: &[(TokenId, f32)],
    candidates: Vec<Candidate>,
) -> Vec<Ranked> {
    let mut late = Late::new(tokens);
    let mut whys: Vec<Why> = Vec::with_capacity(candidates.len());
    for candidate in &candidates {
        let mut why = Why {
            text: candidate.text,
            ..Why::default()
        };
        if mode != Mode::Text {
            let text = &candidate.kept.passage.text;
            let text = &text[best_place(text, asked, COMPARED)];
            why.pooled = candidate.pooled;
            why.late = late.likeness(&candidate.kept, text);
            let author = candidate.kept.passage.author.as_deref();
            why.author = author.map_or(0.0, |author| named(asked, author));
        }
        whys.push(why);
    }
    let sessions: Vec<SessionId> = candidates
        .iter()
        .map(|one| one.kept.passage.session.clone())
        .collect();
    scale(&mut whys, &sessions);
    let weights = Weights::of(mode);
    let ranked = whys.into_iter().zip(candidates);
    let mut ranked: Vec<Ranked> = ranked
        .map(|(why, candidate)| Ranked {
            score: weights.score(&why),
            why,
            kept: candidate.kept,
        })
        .collect();
    sort(&mut ranked);
    ranked
}

/// Puts passages in order; of equals the later first, which is more likely to hold still.
pub(crate) fn sort(ranked: &mut [Ranked]) {
    ranked.sort_by(|a, b| {
        let later = b.kept.passage.position.cmp(&a.kept.passage.position);
        b.score.total_cmp(&a.score).then(later)
    });
}

/// How much of someone's name is in a query.
fn named(asked: &Asked, author: &str) -> f32 {
    let (mut named, mut all) = (0_u8, 0_u8);
    for part in words(author).flat_map(|word| word.parts).take(8) {
        all += 1;
        let is_name = part.plain.len() > 1 && !is_stop_word(&part.plain);
        named += u8::from(is_name && asked.plain.contains(&part.plain));
    }
    f32::from(named) / f32::from(all.max(1))
}

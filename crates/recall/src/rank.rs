//! Candidates, compared with a query in every way and put in order.

use throughline_model::SessionId;

use crate::fusion::{ScoreWeights, normalize_scores};
use crate::late_interaction::LateInteraction;
use crate::query_terms::QueryTerms;
use crate::snippet::find_best_range;
use crate::static_model::TokenId;
use crate::stop_words::is_stop_word;
use crate::word_split::split_words;
use crate::{Hit, Mode, ScoreParts, Snippet, StoredPassage};

/// So much of a long passage is compared word by word: its best place.
const MAX_SCORED_BYTES: usize = 1200;

/// A passage that may be a hit.
pub(crate) struct Candidate {
    /// Its score by words.
    pub(crate) text_score: f32,
    /// Its likeness as a whole.
    pub(crate) pooled_score: f32,
    pub(crate) stored: StoredPassage,
}

/// A passage with its score.
pub(crate) struct RankedPassage {
    pub(crate) score: f32,
    pub(crate) score_parts: ScoreParts,
    pub(crate) stored: StoredPassage,
}

impl RankedPassage {
    /// The passage as a hit.
    pub(crate) fn into_hit(self, asked: &QueryTerms, snippet: usize) -> Hit {
        let passage = self.stored.passage;
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
            score_parts: self.score_parts,
        }
    }
}

/// The candidates, the best first.
pub(crate) fn rank(
    mode: Mode,
    asked: &QueryTerms,
    tokens: &[(TokenId, f32)],
    candidates: Vec<Candidate>,
) -> Vec<RankedPassage> {
    let mut late = LateInteraction::new(tokens);
    let mut whys: Vec<ScoreParts> = Vec::with_capacity(candidates.len());
    for candidate in &candidates {
        let mut why = ScoreParts {
            text: candidate.text_score,
            ..ScoreParts::default()
        };
        if mode != Mode::Text {
            let text = &candidate.stored.passage.text;
            let text = &text[find_best_range(text, asked, MAX_SCORED_BYTES)];
            why.pooled = candidate.pooled_score;
            why.late = late.score(&candidate.stored, text);
            let author = candidate.stored.passage.author.as_deref();
            why.author = author.map_or(0.0, |author| author_match(asked, author));
        }
        whys.push(why);
    }
    let sessions: Vec<SessionId> = candidates
        .iter()
        .map(|one| one.stored.passage.session.clone())
        .collect();
    normalize_scores(&mut whys, &sessions);
    let weights = ScoreWeights::for_mode(mode);
    let ranked = whys.into_iter().zip(candidates);
    let mut ranked: Vec<RankedPassage> = ranked
        .map(|(why, candidate)| RankedPassage {
            score: weights.score(&why),
            score_parts: why,
            stored: candidate.stored,
        })
        .collect();
    sort_by_score(&mut ranked);
    ranked
}

/// Puts passages in order; of equals the later first, which is more likely to hold still.
pub(crate) fn sort_by_score(ranked: &mut [RankedPassage]) {
    ranked.sort_by(|a, b| {
        let later = b.stored.passage.position.cmp(&a.stored.passage.position);
        b.score.total_cmp(&a.score).then(later)
    });
}

/// How much of someone's name is in a query.
fn author_match(asked: &QueryTerms, author: &str) -> f32 {
    let (mut named, mut all) = (0_u8, 0_u8);
    for part in split_words(author).flat_map(|word| word.subwords).take(8) {
        all += 1;
        let is_name = part.folded.len() > 1 && !is_stop_word(&part.folded);
        named += u8::from(is_name && asked.folded_words.contains(&part.folded));
    }
    f32::from(named) / f32::from(all.max(1))
}

//! Scores the candidates of a query and sorts them.

use throughline_model::SessionId;

use crate::fusion::{ScoreWeights, normalize_scores};
use crate::late_interaction::LateInteraction;
use crate::query_terms::QueryTerms;
use crate::snippet::find_best_range;
use crate::static_model::TokenId;
use crate::stop_words::is_stop_word;
use crate::word_split::split_words;
use crate::{Hit, Mode, ScoreParts, Snippet, StoredPassage};

/// The part of a long passage that is compared token by token, in bytes: its best excerpt.
const MAX_SCORED_BYTES: usize = 1200;

/// A passage that may be a hit.
pub(crate) struct Candidate {
    /// Its full-text score.
    pub(crate) text_score: f32,
    /// The similarity of its pooled vector.
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
    /// Converts the passage into a hit with a snippet.
    pub(crate) fn into_hit(self, query_terms: &QueryTerms, snippet: usize) -> Hit {
        let passage = self.stored.passage;
        Hit {
            snippet: Snippet::new(&passage.text, query_terms, snippet),
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

/// Ranks the candidates, the best first.
pub(crate) fn rank(
    mode: Mode,
    query_terms: &QueryTerms,
    tokens: &[(TokenId, f32)],
    candidates: Vec<Candidate>,
) -> Vec<RankedPassage> {
    let mut late = LateInteraction::new(tokens);
    let mut all_parts: Vec<ScoreParts> = Vec::with_capacity(candidates.len());
    for candidate in &candidates {
        let mut parts = ScoreParts {
            text: candidate.text_score,
            ..ScoreParts::default()
        };
        if mode != Mode::Text {
            let text = &candidate.stored.passage.text;
            let text = &text[find_best_range(text, query_terms, MAX_SCORED_BYTES)];
            parts.pooled = candidate.pooled_score;
            parts.late = late.score(&candidate.stored, text);
            let author = candidate.stored.passage.author.as_deref();
            parts.author = author.map_or(0.0, |author| author_match(query_terms, author));
        }
        all_parts.push(parts);
    }
    let sessions: Vec<SessionId> = candidates
        .iter()
        .map(|one| one.stored.passage.session.clone())
        .collect();
    normalize_scores(&mut all_parts, &sessions);
    let weights = ScoreWeights::for_mode(mode);
    let ranked = all_parts.into_iter().zip(candidates);
    let mut ranked: Vec<RankedPassage> = ranked
        .map(|(parts, candidate)| RankedPassage {
            score: weights.score(&parts),
            score_parts: parts,
            stored: candidate.stored,
        })
        .collect();
    sort_by_score(&mut ranked);
    ranked
}

/// Sorts passages by score; among equal scores the later passage comes first, as it is more
/// likely to be current.
pub(crate) fn sort_by_score(ranked: &mut [RankedPassage]) {
    ranked.sort_by(|a, b| {
        let later = b.stored.passage.position.cmp(&a.stored.passage.position);
        b.score.total_cmp(&a.score).then(later)
    });
}

/// Returns how much of an author's name is in a query.
fn author_match(query_terms: &QueryTerms, author: &str) -> f32 {
    let (mut named, mut all) = (0_u8, 0_u8);
    for part in split_words(author).flat_map(|word| word.subwords).take(8) {
        all += 1;
        let is_name = part.folded.len() > 1 && !is_stop_word(&part.folded);
        named += u8::from(is_name && query_terms.folded_words.contains(&part.folded));
    }
    f32::from(named) / f32::from(all.max(1))
}

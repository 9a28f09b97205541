//! Fuses the parts of a passage's score into one number.
//!
//! Each part is scaled to 0–1 among the candidates of the query, and summed with fixed
//! weights. The weights are assumptions and not fitted to any test questions: full text and
//! late interaction weigh the same, the pooled vector half of that, and the author a little
//! more; relevance of the session breaks ties.

use std::collections::HashMap;

use crate::{Mode, ScoreParts};

/// The weight of each part.
pub(crate) struct ScoreWeights {
    text: f32,
    pooled: f32,
    late: f32,
    session: f32,
    author: f32,
    contextual: f32,
}

impl ScoreWeights {
    pub(crate) fn for_mode(mode: Mode) -> Self {
        let (text, pooled, late, session, author) = match mode {
            Mode::Text => (1.0, 0.0, 0.0, 0.0, 0.0),
            Mode::Semantic => (0.0, 0.3, 0.4, 0.0, 0.2),
            Mode::Hybrid => (0.4, 0.2, 0.4, 0.1, 0.3),
        };
        Self {
            text,
            pooled,
            late,
            session,
            author,
            contextual: 0.0,
        }
    }

    /// Returns the weights for passages that a contextual model has scored, too: it measures
    /// the same as the static model, but better.
    pub(crate) fn with_contextual(mode: Mode) -> Self {
        let first = Self::for_mode(mode);
        Self {
            text: 0.75 * first.text,
            pooled: 0.5 * first.pooled,
            late: 0.5 * first.late,
            contextual: 0.4,
            ..first
        }
    }

    /// Returns the weighted score.
    pub(crate) fn score(&self, parts: &ScoreParts) -> f32 {
        let parts = [
            self.text * parts.text,
            self.pooled * parts.pooled,
            self.late * parts.late,
            self.session * parts.session,
            self.author * parts.author,
            self.contextual * parts.contextual.unwrap_or_default(),
        ];
        let all = [self.text, self.pooled, self.late, self.session, self.author];
        parts.iter().sum::<f32>() / (all.iter().sum::<f32>() + self.contextual)
    }
}

/// Scales the parts of all candidates; `sessions` says which belong to the same session.
pub(crate) fn normalize_scores<S: std::hash::Hash + Eq>(
    all_parts: &mut [ScoreParts],
    sessions: &[S],
) {
    // A full-text score of zero stays zero, whatever the other candidates have.
    let most = all_parts.iter().map(|parts| parts.text).fold(0.0, f32::max);
    if most > 0.0 {
        for parts in all_parts.iter_mut() {
            parts.text /= most;
        }
    }
    min_max_scale(all_parts, |parts| &mut parts.pooled);
    min_max_scale(all_parts, |parts| &mut parts.late);
    let mut best: HashMap<&S, [f32; 3]> = HashMap::new();
    for (parts, session) in all_parts.iter().zip(sessions) {
        let three = best.entry(session).or_default();
        if parts.text > three[2] {
            three[2] = parts.text;
            three.sort_by(|a, b| b.total_cmp(a));
        }
    }
    let most = best
        .values()
        .map(|three| three.iter().sum())
        .fold(0.0, f32::max);
    if most > 0.0 {
        for (parts, session) in all_parts.iter_mut().zip(sessions) {
            parts.session = best[session].iter().sum::<f32>() / most;
        }
    }
}

/// Scales one part linearly to 0–1.
pub(crate) fn min_max_scale<T>(all: &mut [T], part: impl Fn(&mut T) -> &mut f32) {
    let (mut least, mut most) = (f32::INFINITY, f32::NEG_INFINITY);
    for one in all.iter_mut() {
        least = least.min(*part(one));
        most = most.max(*part(one));
    }
    for one in all.iter_mut() {
        let value = part(one);
        *value = if most > least {
            (*value - least) / (most - least)
        } else {
            1.0
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_scaled_among_the_candidates() {
        let parts = |text, late| ScoreParts {
            text,
            late,
            ..ScoreParts::default()
        };
        let mut all_parts = [parts(4.0, 0.5), parts(2.0, 0.7), parts(0.0, 0.6)];
        normalize_scores(&mut all_parts, &["a", "b", "a"]);
        let shown =
            |part: fn(&ScoreParts) -> f32| format!("{:.2?}", all_parts.each_ref().map(part));
        assert_eq!(shown(|parts| parts.text), "[1.00, 0.50, 0.00]");
        assert_eq!(shown(|parts| parts.late), "[0.00, 1.00, 0.50]");
        assert_eq!(shown(|parts| parts.session), "[1.00, 0.50, 1.00]");
    }

    #[test]
    fn a_score_is_at_most_one() {
        let parts = ScoreParts {
            text: 1.0,
            pooled: 1.0,
            late: 1.0,
            session: 1.0,
            author: 1.0,
            contextual: None,
        };
        for mode in [Mode::Text, Mode::Semantic, Mode::Hybrid] {
            assert!((ScoreWeights::for_mode(mode).score(&parts) - 1.0).abs() < 1e-5);
        }
    }
}

//! How the scores of a passage become one.
//!
//! Each part is scaled to between 0 and 1 among the candidates of the query, and summed
//! by fixed weights. The weights say what is believed of the parts and are not fitted to
//! any questions: words and likeness word by word are worth the same, likeness as a whole
//! half of that, and who said it a little more; what the session is about breaks ties.

use std::collections::HashMap;

use crate::{Mode, ScoreParts};

/// What a part is worth.
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

    /// What the parts are worth where a contextual model has read the passages, too: it
    /// says the same as the static one, and says it better.
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

    /// The score.
    pub(crate) fn score(&self, why: &ScoreParts) -> f32 {
        let parts = [
            self.text * why.text,
            self.pooled * why.pooled,
            self.late * why.late,
            self.session * why.session,
            self.author * why.author,
            self.contextual * why.contextual.unwrap_or_default(),
        ];
        let all = [self.text, self.pooled, self.late, self.session, self.author];
        parts.iter().sum::<f32>() / (all.iter().sum::<f32>() + self.contextual)
    }
}

/// Scales the parts of all candidates; `sessions` says which belong together.
pub(crate) fn normalize_scores<S: std::hash::Hash + Eq>(whys: &mut [ScoreParts], sessions: &[S]) {
    // None of the words is nothing, whatever the others have.
    let most = whys.iter().map(|why| why.text).fold(0.0, f32::max);
    if most > 0.0 {
        for why in whys.iter_mut() {
            why.text /= most;
        }
    }
    min_max_scale(whys, |why| &mut why.pooled);
    min_max_scale(whys, |why| &mut why.late);
    let mut best: HashMap<&S, [f32; 3]> = HashMap::new();
    for (why, session) in whys.iter().zip(sessions) {
        let three = best.entry(session).or_default();
        if why.text > three[2] {
            three[2] = why.text;
            three.sort_by(|a, b| b.total_cmp(a));
        }
    }
    let most = best
        .values()
        .map(|three| three.iter().sum())
        .fold(0.0, f32::max);
    if most > 0.0 {
        for (why, session) in whys.iter_mut().zip(sessions) {
            why.session = best[session].iter().sum::<f32>() / most;
        }
    }
}

/// Stretches one part over 0 to 1.
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
        let why = |text, late| ScoreParts {
            text,
            late,
            ..ScoreParts::default()
        };
        let mut whys = [why(4.0, 0.5), why(2.0, 0.7), why(0.0, 0.6)];
        normalize_scores(&mut whys, &["a", "b", "a"]);
        let shown = |part: fn(&ScoreParts) -> f32| format!("{:.2?}", whys.each_ref().map(part));
        assert_eq!(shown(|why| why.text), "[1.00, 0.50, 0.00]");
        assert_eq!(shown(|why| why.late), "[0.00, 1.00, 0.50]");
        assert_eq!(shown(|why| why.session), "[1.00, 0.50, 1.00]");
    }

    #[test]
    fn a_score_is_at_most_one() {
        let why = ScoreParts {
            text: 1.0,
            pooled: 1.0,
            late: 1.0,
            session: 1.0,
            author: 1.0,
            contextual: None,
        };
        for mode in [Mode::Text, Mode::Semantic, Mode::Hybrid] {
            assert!((ScoreWeights::for_mode(mode).score(&why) - 1.0).abs() < 1e-5);
        }
    }
}

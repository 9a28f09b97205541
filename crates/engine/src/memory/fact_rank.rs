//! Which facts come first.
//!
//! Those that belong to a file that is touched come before all others; those that belong
//! to files nobody touches, after all others. Among equals the weight decides:
//!
//! ```text
//! weight = by × (1 + ln(1 + uses)) × ½ ^ (idle ÷ 30 days)
//! ```
//!
//! `by` is 4 where a person said it and 1 where the program found it; `uses` is the
//! number of sessions it was of use in; `idle` is the time since it was last used, or
//! else since it was remembered. So a fact nobody needs loses half its weight every
//! thirty days, until others leave no room for it in a request. It stays in the store.

use throughline_model::{Fact, Timestamp};

/// How much more a person's word weighs.
const PERSON_WEIGHT: f64 = 4.0;
/// After so long without use, a fact weighs half.
const HALF_LIFE_SECONDS: f64 = 30.0 * 24.0 * 3_600.0;

/// How much a fact weighs now.
#[allow(clippy::cast_precision_loss, reason = "a rank needs no more")]
pub(super) fn weight(fact: &Fact, now: Timestamp) -> f64 {
    let by = if fact.is_by_person() {
        PERSON_WEIGHT
    } else {
        1.0
    };
    let idle = now.duration_since(fact.last_relevant_at()).as_secs_f64();
    by * (1.0 + (1.0 + fact.uses as f64).ln()) * 0.5_f64.powf(idle.max(0.0) / HALF_LIFE_SECONDS)
}

/// Puts what holds the facts that matter most first.
pub(super) fn sort_by_rank<T>(
    items: &mut [T],
    fact: impl Fn(&T) -> &Fact,
    now: Timestamp,
    touched: &[String],
) {
    let class = |fact: &Fact| match fact.files.is_empty() {
        true => 1,
        false if fact.matches_paths(touched) => 0,
        false => 2,
    };
    items.sort_by(|a, b| {
        let (a, b) = (fact(a), fact(b));
        let by_weight = || weight(b, now).total_cmp(&weight(a, now));
        let by_class = class(a).cmp(&class(b));
        by_class.then_with(by_weight).then(a.seq.cmp(&b.seq))
    });
}

#[cfg(test)]
mod tests {
    use throughline_model::{PERSON, Seq};

    use super::*;

    const DAY: i64 = 24 * 3_600;

    fn fact(seq: u64, by: &str, day: i64, uses: u64, files: &[&str]) -> Fact {
        Fact {
            seq: Seq(seq),
            text: String::new(),
            source: None,
            by: by.into(),
            at: Timestamp::from_second(day * DAY).unwrap(),
            author: None,
            files: files.iter().map(ToString::to_string).collect(),
            supersedes: Vec::new(),
            proposed: false,
            superseded_by: None,
            forgotten: false,
            uses,
            last_used: None,
        }
    }

    fn ranked_seqs(mut facts: Vec<Fact>, touched: &[&str]) -> Vec<u64> {
        let now = Timestamp::from_second(100 * DAY).unwrap();
        let touched: Vec<_> = touched.iter().map(ToString::to_string).collect();
        sort_by_rank(&mut facts, |fact| fact, now, &touched);
        facts.iter().map(|fact| fact.seq.0).collect()
    }

    #[test]
    fn a_persons_word_comes_before_the_programs() {
        let facts = vec![
            fact(1, "extractive", 90, 0, &[]),
            fact(2, PERSON, 90, 0, &[]),
        ];
        assert_eq!(ranked_seqs(facts, &[]), [2, 1]);
    }

    #[test]
    fn what_is_used_or_recent_comes_before_what_is_neither() {
        let facts = vec![
            fact(1, PERSON, 10, 0, &[]),
            fact(2, PERSON, 90, 0, &[]),
            fact(3, PERSON, 90, 5, &[]),
        ];
        assert_eq!(ranked_seqs(facts, &[]), [3, 2, 1]);
    }

    #[test]
    fn in_time_the_programs_fresh_finding_overtakes_a_persons_unused_word() {
        let facts = vec![
            fact(1, PERSON, 20, 0, &[]),
            fact(2, "extractive", 99, 0, &[]),
        ];
        assert_eq!(ranked_seqs(facts, &[]), [2, 1]);
    }

    #[test]
    fn what_belongs_to_a_touched_file_comes_first_and_to_an_untouched_one_last() {
        let facts = vec![
            fact(1, PERSON, 99, 9, &[]),
            fact(2, "extractive", 10, 0, &["src/auth"]),
            fact(3, PERSON, 99, 9, &["docs"]),
        ];
        assert_eq!(ranked_seqs(facts, &["src/auth/token.rs"]), [2, 1, 3]);
    }
}

//! Ranks facts for a request.
//!
//! Facts that belong to a touched file come first, facts that belong to other files
//! last. Otherwise the weight decides:
//!
//! ```text
//! weight = by × (1 + ln(1 + uses)) × ½ ^ (idle ÷ 30 days)
//! ```
//!
//! `by` is 4 if a person stated the fact and 1 if the program found it; `uses` is the
//! number of sessions in which it was used; `idle` is the time since it was last used
//! or, if never, since it was added. An unused fact thus loses half its weight every
//! thirty days, until it no longer fits into requests. It stays in the store.

use throughline_model::{Fact, Timestamp};

/// The weight of facts stated by people.
const PERSON_WEIGHT: f64 = 4.0;
/// The time without use after which a fact has half its weight.
const HALF_LIFE_SECONDS: f64 = 30.0 * 24.0 * 3_600.0;

/// Returns the current weight of a fact.
#[allow(clippy::cast_precision_loss, reason = "a rank needs no more")]
pub(super) fn weight(fact: &Fact, now: Timestamp) -> f64 {
    let author_weight = if fact.is_by_person() {
        PERSON_WEIGHT
    } else {
        1.0
    };
    let idle = now.duration_since(fact.last_relevant_at()).as_secs_f64();
    author_weight
        * (1.0 + (1.0 + fact.uses as f64).ln())
        * 0.5_f64.powf(idle.max(0.0) / HALF_LIFE_SECONDS)
}

/// Sorts items by the rank of their facts, best first.
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
    fn facts_by_people_come_before_those_by_the_program() {
        let facts = vec![
            fact(1, "extractive", 90, 0, &[]),
            fact(2, PERSON, 90, 0, &[]),
        ];
        assert_eq!(ranked_seqs(facts, &[]), [2, 1]);
    }

    #[test]
    fn used_and_recent_facts_come_first() {
        let facts = vec![
            fact(1, PERSON, 10, 0, &[]),
            fact(2, PERSON, 90, 0, &[]),
            fact(3, PERSON, 90, 5, &[]),
        ];
        assert_eq!(ranked_seqs(facts, &[]), [3, 2, 1]);
    }

    #[test]
    fn a_recent_fact_by_the_program_overtakes_an_old_unused_one_by_a_person() {
        let facts = vec![
            fact(1, PERSON, 20, 0, &[]),
            fact(2, "extractive", 99, 0, &[]),
        ];
        assert_eq!(ranked_seqs(facts, &[]), [2, 1]);
    }

    #[test]
    fn facts_of_touched_files_come_first_and_of_other_files_last() {
        let facts = vec![
            fact(1, PERSON, 99, 9, &[]),
            fact(2, "extractive", 10, 0, &["src/auth"]),
            fact(3, PERSON, 99, 9, &["docs"]),
        ];
        assert_eq!(ranked_seqs(facts, &["src/auth/token.rs"]), [2, 1, 3]);
    }
}

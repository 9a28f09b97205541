//! When to compact, and how far.

mod common;

use common::{Session, assistant, call, checkpoint, message, result, user};
use throughline_context::{Plan, Policy, needs_compaction, plan};
use throughline_model::{Role, Seq};

fn turns(count: usize, length: usize) -> Session {
    Session::of((0..count).flat_map(|turn| {
        [
            user(&format!("question {turn}")),
            assistant(&"word ".repeat(length)),
        ]
    }))
}

fn planned(session: &Session, preset: &str, window: u64, force: bool) -> Option<Plan> {
    let policy = Policy::preset(preset).expect("a preset");
    plan(
        &session.record,
        &session.visible(),
        &policy,
        window,
        0,
        force,
    )
}

#[test]
fn nothing_is_compacted_below_the_threshold() {
    let session = turns(10, 80);
    assert_eq!(planned(&session, "default", 100_000, false), None);
    assert!(!needs_compaction(89_999, &Policy::default(), 100_000));
    assert!(needs_compaction(90_000, &Policy::default(), 100_000));
    for never in ["chain", "bot", "agent"] {
        assert_eq!(planned(&session, never, 100, false), None);
    }
}

#[test]
fn a_tail_of_whole_turns_is_kept_and_half_the_threshold_is_free() {
    let session = turns(100, 80);
    let found = planned(&session, "default", 10_000, false).expect("a plan");
    assert!(
        found.covers.0.is_multiple_of(2),
        "a turn was cut: {found:?}"
    );
    assert!(found.tokens_kept <= 3_000, "{found:?}");
    assert!(found.tokens_kept > 2_500, "too little is kept: {found:?}");
}

#[test]
fn aiarmy_keeps_twenty_messages() {
    let session = turns(100, 800);
    let found = planned(&session, "aiarmy", 200_000, false).expect("a plan");
    assert!(found.covers >= Seq(180), "{found:?}");
    let small = turns(100, 120);
    let found = planned(&small, "aiarmy", 200_000, false).expect("a plan");
    assert_eq!(found.covers, Seq(180));
    assert_eq!(found.messages, 180);
}

#[test]
fn chain_covers_everything_and_dagent_all_but_a_turn_under_way() {
    let mut session = turns(10, 80);
    let covers = |session: &Session, preset| {
        planned(session, preset, 200_000, true).map(|found| found.covers)
    };
    assert_eq!(covers(&session, "chain"), Some(Seq(20)));
    assert_eq!(covers(&session, "dagent"), Some(Seq(20)));
    session.append(user("and?"));
    assert_eq!(covers(&session, "dagent"), Some(Seq(20)));
    session.append(message(Role::Assistant, vec![call("a")]));
    assert_eq!(covers(&session, "chain"), Some(Seq(21)));
    session.append(message(Role::Tool, vec![result("a", "out")]));
    assert_eq!(covers(&session, "chain"), Some(Seq(23)));
}

#[test]
fn one_long_turn_is_cut_between_its_steps() {
    let mut session = Session::of([user("do it all")]);
    for step in 0..200 {
        let id = format!("c{step}");
        session.append(message(Role::Assistant, vec![call(&id)]));
        session.append(message(Role::Tool, vec![result(&id, &"out ".repeat(60))]));
    }
    let found = planned(&session, "default", 10_000, false).expect("a plan");
    assert_eq!(found.covers.0 % 2, 1, "a result lost its call: {found:?}");
    assert!(found.tokens_kept > 1_000, "{found:?}");
}

#[test]
fn someone_who_asks_gets_a_summary_once() {
    let mut session = turns(4, 10);
    for preset in Policy::PRESETS {
        assert!(planned(&session, preset, 100_000, true).is_some());
    }
    let found = planned(&session, "default", 100_000, true).expect("a plan");
    assert_eq!(found.covers, Seq(6));
    session.append(checkpoint(found.covers.0, "use SQLite"));
    assert_eq!(planned(&session, "default", 100_000, true), None);
    assert_eq!(planned(&Session::new(), "default", 100_000, true), None);
}

#[test]
fn eliding_comes_before_compacting() {
    let mut session = Session::new();
    for turn in 0..20 {
        let id = format!("c{turn}");
        session.append(user("read it"));
        session.append(message(Role::Assistant, vec![call(&id)]));
        session.append(message(Role::Tool, vec![result(&id, &"x".repeat(4_000))]));
    }
    assert_eq!(planned(&session, "default", 15_000, false), None);
    assert!(planned(&session, "default", 5_000, false).is_some());
}

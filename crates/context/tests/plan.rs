//! Tests of when to compact, and how far.

mod common;

use common::{Session, assistant, call, checkpoint, message, result, user};
use throughline_context::{CompactionPlan, Policy, needs_compaction, plan_compaction};
use throughline_model::{Role, Seq};

fn session_of_turns(count: usize, length: usize) -> Session {
    Session::of((0..count).flat_map(|turn| {
        [
            user(&format!("question {turn}")),
            assistant(&"word ".repeat(length)),
        ]
    }))
}

fn plan_with_preset(
    session: &Session,
    preset: &str,
    window: u64,
    force: bool,
) -> Option<CompactionPlan> {
    let policy = Policy::preset(preset).expect("a preset");
    plan_compaction(
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
    let session = session_of_turns(10, 80);
    assert_eq!(plan_with_preset(&session, "default", 100_000, false), None);
    assert!(!needs_compaction(89_999, &Policy::default(), 100_000));
    assert!(needs_compaction(90_000, &Policy::default(), 100_000));
    for never in ["chain", "bot", "agent"] {
        assert_eq!(plan_with_preset(&session, never, 100, false), None);
    }
}

#[test]
fn a_tail_of_whole_turns_is_kept_and_half_the_threshold_is_free() {
    let session = session_of_turns(100, 80);
    let found = plan_with_preset(&session, "default", 10_000, false).expect("a plan");
    assert!(
        found.covers.0.is_multiple_of(2),
        "a turn was cut: {found:?}"
    );
    assert!(found.tokens_kept <= 3_000, "{found:?}");
    assert!(found.tokens_kept > 2_500, "too little is kept: {found:?}");
}

#[test]
fn aiarmy_keeps_twenty_messages() {
    let session = session_of_turns(100, 800);
    let found = plan_with_preset(&session, "aiarmy", 200_000, false).expect("a plan");
    assert!(found.covers >= Seq(180), "{found:?}");
    let small = session_of_turns(100, 120);
    let found = plan_with_preset(&small, "aiarmy", 200_000, false).expect("a plan");
    assert_eq!(found.covers, Seq(180));
    assert_eq!(found.messages, 180);
}

#[test]
fn chain_covers_everything_and_dagent_all_but_a_turn_under_way() {
    let mut session = session_of_turns(10, 80);
    let covers = |session: &Session, preset| {
        plan_with_preset(session, preset, 200_000, true).map(|found| found.covers)
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
    let found = plan_with_preset(&session, "default", 10_000, false).expect("a plan");
    assert_eq!(found.covers.0 % 2, 1, "a result lost its call: {found:?}");
    assert!(found.tokens_kept > 1_000, "{found:?}");
}

#[test]
fn someone_who_asks_gets_a_summary_once() {
    let mut session = session_of_turns(4, 10);
    for preset in Policy::PRESETS {
        assert!(plan_with_preset(&session, preset, 100_000, true).is_some());
    }
    let found = plan_with_preset(&session, "default", 100_000, true).expect("a plan");
    assert_eq!(found.covers, Seq(6));
    session.append(checkpoint(found.covers.0, "use SQLite"));
    assert_eq!(plan_with_preset(&session, "default", 100_000, true), None);
    assert_eq!(
        plan_with_preset(&Session::new(), "default", 100_000, true),
        None
    );
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
    assert_eq!(plan_with_preset(&session, "default", 15_000, false), None);
    assert!(plan_with_preset(&session, "default", 5_000, false).is_some());
}

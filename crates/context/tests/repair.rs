//! Tests of how problems in a log are repaired in the request.

mod common;

use common::{Session, assistant, call, find_faults, image, message, result, text, user};
use throughline_context::{Policy, RepairKind, Request, SectionName};
use throughline_model::{Block, Content, Role};

const LARGE_BUDGET: u64 = 100_000;

fn repair_kinds(request: &Request) -> Vec<RepairKind> {
    request.repairs.iter().map(|repair| repair.kind).collect()
}

fn roles(request: &Request) -> Vec<Role> {
    request
        .messages
        .iter()
        .map(|message| message.role)
        .collect()
}

fn section(request: &Request, name: SectionName) -> &throughline_context::Section {
    request.section(name).expect("all sections are there")
}

#[test]
fn what_is_wrong_in_the_log_is_right_in_the_request_and_reported() {
    let session = Session::of([
        assistant("I begin"),
        user("  "),
        user("one"),
        user("two"),
        message(Role::System, vec![text("be brief")]),
        message(Role::Assistant, vec![text("so"), call("a"), call("b")]),
        message(Role::Tool, vec![result("a", "out")]),
        message(Role::User, vec![text("meanwhile"), result("zz", "whose?")]),
        message(Role::Tool, vec![result("b", "late")]),
        message(Role::Assistant, vec![call("a")]),
        user("done?"),
    ]);
    let request = session.request_with_preset("now", "default", LARGE_BUDGET);
    assert_eq!(find_faults(&request), Vec::<String>::new());
    for kind in [
        RepairKind::FirstRole,
        RepairKind::EmptyMessage,
        RepairKind::SameRole,
        RepairKind::SystemNote,
        RepairKind::UnpairedResult,
        RepairKind::MovedResult,
        RepairKind::RepeatedId,
        RepairKind::UnpairedCall,
    ] {
        assert!(
            repair_kinds(&request).contains(&kind),
            "{kind:?} is not reported"
        );
    }
    let all = &section(&request, SectionName::Recent).text;
    assert!(all.contains("[system note] be brief"));
    assert!(all.contains("[no result was recorded]"));
    assert!(all.contains("not in view]\nwhose?"));
}

#[test]
fn a_clean_log_needs_no_repair() {
    let session = Session::of([
        user("read it"),
        message(Role::Assistant, vec![text("sure"), call("a"), call("b")]),
        message(Role::Tool, vec![result("a", "1")]),
        message(Role::Tool, vec![result("b", "2")]),
        assistant("done"),
    ]);
    let request = session.request_with_preset("now", "default", LARGE_BUDGET);
    assert_eq!(request.repairs, []);
    assert_eq!(
        roles(&request),
        [
            Role::User,
            Role::Assistant,
            Role::Tool,
            Role::Assistant,
            Role::User
        ]
    );
}

#[test]
fn a_new_message_can_answer_the_call_that_waits() {
    let session = Session::of([
        user("read it"),
        message(Role::Assistant, vec![call("a"), call("b")]),
        message(Role::Tool, vec![result("a", "1")]),
    ]);
    let new = Content(vec![result("b", "2")]);
    let request = session
        .request(Some(&new), &Policy::default(), LARGE_BUDGET)
        .unwrap();
    assert_eq!(find_faults(&request), Vec::<String>::new());
    assert_eq!(request.repairs, []);
    assert_eq!(roles(&request), [Role::User, Role::Assistant, Role::Tool]);
}

#[test]
fn thinking_goes_back_signed_and_within_its_turn_only() {
    let thought = |signature: Option<&str>| Block::Thinking {
        text: "hm".into(),
        signature: signature.map(Into::into),
    };
    let step = |id: &str, signature| message(Role::Assistant, vec![thought(signature), call(id)]);
    let session = Session::of([
        user("one"),
        step("a", Some("s")),
        message(Role::Tool, vec![result("a", "1")]),
        user("two"),
        step("b", None),
        message(Role::Tool, vec![result("b", "2")]),
        step("c", Some("s")),
        message(Role::Tool, vec![result("c", "3")]),
    ]);
    let thoughts = |message: Option<&Content>| -> usize {
        let request = session
            .request(message, &Policy::default(), LARGE_BUDGET)
            .unwrap();
        let blocks = request
            .messages
            .iter()
            .flat_map(|message| &message.content.0);
        blocks
            .filter(|block| matches!(block, Block::Thinking { .. }))
            .count()
    };
    assert_eq!(thoughts(None), 1);
    assert_eq!(thoughts(Some(&Content::text("a new turn"))), 0);
}

#[test]
fn pictures_of_the_user_are_sent_and_other_files_are_named() {
    let session = Session::of([message(Role::User, vec![text("see"), image()])]);
    let request = session.request_with_preset("now", "default", LARGE_BUDGET);
    assert_eq!(request.messages[0].content.attachments().count(), 1);
    assert!(section(&request, SectionName::Recent).tokens > 1_600);
}

#[test]
fn absurd_counts_are_no_reason_to_fail() {
    let session = Session::of([user("a"), assistant("b"), user("c"), assistant("d")]);
    let mut entries = session.visible();
    for counted in &mut entries {
        counted.tokens = u64::MAX;
    }
    let material = throughline_context::RequestInputs {
        session: &session.id,
        agent: None,
        documents: &[],
        memory: &[],
        record: &session.record,
        checkpoint: None,
        entries: &entries,
        unloaded_entries: 3,
        recalled: &[],
        message: None,
    };
    let policy = Policy::default();
    let request =
        throughline_context::build_request(&material, &policy, LARGE_BUDGET, session.encoding)
            .unwrap();
    assert_eq!(request.messages, []);
    assert!(
        throughline_context::plan_compaction(&session.record, &entries, &policy, 1_000, 0, false)
            .is_some()
    );
}

//! Property tests: any log, policy and sufficient budget yield a valid request within
//! it.

mod common;

use common::{Session, call, checkpoint, find_faults, image, message, result, text};
use proptest::prelude::*;
use throughline_context::{
    ContextDocument, Encoding, MemoryFact, Policy, count_message_tokens, plan_compaction,
};
use throughline_model::{Block, Body, Content, Json, Role, Seq, SessionRestore};

fn any_text() -> impl Strategy<Value = String> {
    prop_oneof![
        2 => Just(String::new()),
        1 => Just(" \n".to_owned()),
        8 => "[a-z ]{1,40}",
        2 => "\\PC{0,80}",
        1 => (1_usize..4_000).prop_map(|length| "long words ".repeat(length / 10)),
    ]
}

fn any_block() -> impl Strategy<Value = Block> {
    prop_oneof![
        6 => any_text().prop_map(|words| text(&words)),
        3 => "[ab]?".prop_map(|id| call(&id)),
        3 => ("[ab]?", any_text()).prop_map(|(id, out)| result(&id, &out)),
        1 => any::<bool>().prop_map(|signed| Block::Thinking {
            text: "hm".to_owned(),
            signature: signed.then(|| "s".to_owned()),
        }),
        1 => Just(image()),
        1 => Just(Block::wrap_foreign(&Json::parse(r#"{"x":"\ud800"}"#).expect("valid"))),
    ]
}

fn any_role() -> impl Strategy<Value = Role> {
    prop_oneof![
        4 => Just(Role::User),
        4 => Just(Role::Assistant),
        1 => Just(Role::System),
        2 => Just(Role::Tool),
    ]
}

fn any_body() -> impl Strategy<Value = Body> {
    prop_oneof![
        16 => (any_role(), prop::collection::vec(any_block(), 0..4))
            .prop_map(|(role, blocks)| message(role, blocks)),
        4 => any_text().prop_map(|words| common::user(&words)),
        2 => (0_u64..20).prop_map(|covers| checkpoint(covers, "use SQLite")),
        1 => (0_u64..20).prop_map(|to| Body::Rewound { to: Seq(to) }),
        1 => Just(Body::Cleared),
        1 => any_text().prop_map(|text| Body::Pinned { text }),
        1 => any_text().prop_map(|text| Body::Decided { text }),
        1 => any_text().prop_map(|prompt| Body::Restored(SessionRestore {
            from: "s0".parse().expect("valid"),
            acknowledgement: Some(prompt.clone()),
            prompt,
            transcript: None,
            usage: None,
            latency_ms: None,
        })),
    ]
}

prop_compose! {
    fn any_session()(
        bodies in prop::collection::vec(any_body(), 0..24),
        agent in prop::option::of(any_text()),
        documents in prop::collection::vec(any_text(), 0..3),
        memory in prop::collection::vec(any_text(), 0..4),
        recalled in prop::collection::vec((1_u64..20, any_text()), 0..4),
    ) -> Session {
        let mut session = Session::of(bodies);
        session.agent = agent;
        session.documents = documents
            .into_iter()
            .map(|text| ContextDocument { name: "doc".to_owned(), text: text.replace(' ', "\n") })
            .collect();
        session.memory = memory
            .into_iter()
            .map(|text| MemoryFact { text, source: None })
            .collect();
        session.recalled = recalled
            .iter()
            .map(|(seq, words)| common::excerpt("s1", *seq, words))
            .collect();
        session
    }
}

fn any_policy() -> impl Strategy<Value = Policy> {
    (0..Policy::PRESETS.len(), 0_u64..200, 0_usize..3).prop_map(|(which, over, keep)| Policy {
        elide_over: over,
        keep_results: keep,
        ..Policy::preset(Policy::PRESETS[which]).expect("valid")
    })
}

/// Builds with `spare` more tokens than the new message needs, and checks the outcome.
fn check_request(
    session: &Session,
    new: Option<&Content>,
    policy: &Policy,
    spare: u64,
) -> Result<(), TestCaseError> {
    let least = match session.request(new, policy, 0) {
        Ok(_) => 0,
        Err(throughline_context::RequestError::MessageTooLarge { tokens, .. }) => tokens,
        Err(other) => return Err(TestCaseError::fail(other.to_string())),
    };
    let request = session.request(new, policy, least + spare).expect("valid");
    prop_assert_eq!(
        find_faults(&request),
        Vec::<String>::new(),
        "{:#?}",
        request.messages
    );
    let again: u64 = request
        .messages
        .iter()
        .map(|message| count_message_tokens(session.encoding, &message.content))
        .sum();
    prop_assert!(again <= request.tokens, "{} > {}", again, request.tokens);
    prop_assert_eq!(
        request,
        session.request(new, policy, least + spare).expect("valid")
    );
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, ..ProptestConfig::default() })]

    #[test]
    fn any_log_and_policy_and_budget_gives_a_valid_request_within_it(
        session in any_session(),
        new in prop::option::of(prop::collection::vec(any_block(), 0..3).prop_map(Content)),
        policy in any_policy(),
        spare in prop_oneof![0_u64..60, 0_u64..1_000, 0_u64..20_000],
    ) {
        check_request(&session, new.as_ref(), &policy, spare)?;
    }

    #[test]
    fn a_plan_keeps_calls_with_results_and_leaves_nothing_to_do_again(
        mut session in any_session(),
        policy in any_policy(),
        window in 0_u64..20_000,
        force in any::<bool>(),
    ) {
        let entries = session.visible();
        if let Some(found) = plan_compaction(&session.record, &entries, &policy, window, 0, force) {
            prop_assert!(entries.iter().any(|counted| counted.entry.seq == found.covers));
            prop_assert!(found.messages > 0);
            let mut open = std::collections::HashMap::new();
            for counted in &entries {
                let blocks = counted.entry.message().map(|message| &message.content.0);
                for block in blocks.into_iter().flatten() {
                    match block {
                        Block::ToolCall(call) => {
                            open.entry(&call.id).or_insert_with(Vec::new).push(counted.entry.seq);
                        }
                        Block::ToolResult(result) => {
                            if let Some(at) = open.get_mut(&result.call_id).and_then(Vec::pop) {
                                let covered = |seq: Seq| seq <= found.covers;
                                prop_assert_eq!(covered(at), covered(counted.entry.seq));
                            }
                        }
                        _ => {}
                    }
                }
            }
            session.append(checkpoint(found.covers.0, "use SQLite"));
            let rest = session.visible();
            prop_assert_eq!(plan_compaction(&session.record, &rest, &policy, window, 0, force), None);
        }
    }

    #[test]
    fn requests_begin_alike_while_only_messages_are_added(
        mut session in any_session(),
        policy in any_policy(),
        texts in prop::collection::vec(any_text(), 1..4),
    ) {
        let budget = 1_000_000;
        let new = Content::text("go on");
        let before = session.request(Some(&new), &policy, budget).expect("valid");
        session.append(common::user("go on"));
        for text in &texts {
            session.append(common::assistant(text));
        }
        let after = session.request(Some(&new), &policy, budget).expect("valid");
        prop_assert_eq!(&before.sections[..4], &with_shares_from(&before, &after)[..]);
        let system = |request: &throughline_context::Request| {
            request.messages.iter().find(|message| message.role == Role::System).cloned()
        };
        prop_assert_eq!(system(&before), system(&after));
    }
}

/// The stable sections of a request, with another request's shares, which may differ.
fn with_shares_from(
    shares: &throughline_context::Request,
    request: &throughline_context::Request,
) -> Vec<throughline_context::Section> {
    request.sections[..4]
        .iter()
        .zip(&shares.sections)
        .map(|(section, other)| throughline_context::Section {
            share: other.share,
            ..section.clone()
        })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn it_holds_with_a_real_tokenizer_too(
        mut session in any_session(),
        policy in any_policy(),
        spare in 0_u64..2_000,
    ) {
        session.encoding = Encoding::O200k;
        check_request(&session, Some(&Content::text("What next?")), &policy, spare)?;
    }
}

//! Tests of facts proposed from summaries.

use throughline::{
    AddFactStatus, Body, Message, NewFact, ProposalMode, Role, Seq, Session, Throughline,
};

use crate::stores::{
    TestStore, add, all_stores, facts_in_request, project_memory, session_of, texts,
};

async fn session_with_summary(tl: &Throughline, facts: &[&str]) -> (Session, throughline::Entry) {
    let session = session_of(tl, "dir:/app").await;
    session
        .append(Message::text(Role::User, "hello"))
        .await
        .unwrap();
    let summary = throughline::Summary {
        facts: facts.iter().map(ToString::to_string).collect(),
        decisions: vec!["We decided to keep it simple".into()],
        ..throughline::Summary::default()
    };
    let made = throughline::Checkpoint {
        covers: Seq(1),
        summary,
        by: "extractive".into(),
        messages: 1,
        oldest: None,
        newest: None,
        usage: None,
    };
    let entry = session
        .append(Body::Summarized(Box::new(made)))
        .await
        .unwrap();
    (session, entry)
}

#[tokio::test]
async fn facts_of_a_summary_are_proposed_once_and_take_effect_when_accepted() {
    for TestStore { tl, .. } in all_stores().await {
        let found = [
            "The queue lives in src/queue.rs",
            "the password is hunter2",
            "Yes",
            "Why so slow?",
        ];
        let (session, entry) = session_with_summary(&tl, &found).await;
        let memory = project_memory(&tl, "dir:/app");

        let proposed = session
            .propose_facts(&entry, ProposalMode::Propose)
            .await
            .unwrap();

        assert_eq!((proposed.pending.len(), proposed.accepted.len()), (2, 0));
        assert!(facts_in_request(&session, "hi").await.is_empty());
        let facts = memory.facts().await.unwrap();
        let queue = facts.get(proposed.pending[0]).unwrap();
        let source = queue.source.clone().unwrap();
        assert_eq!((&source.session, source.seq), (session.id(), entry.seq));
        assert_eq!(queue.files, ["src/queue.rs"]);
        assert_eq!(queue.by, "extractive");

        memory.accept(&proposed.pending[..1]).await.unwrap();
        memory.forget(proposed.pending[1], None).await.unwrap();
        assert_eq!(texts(&memory).await, ["The queue lives in src/queue.rs"]);
        // Neither known nor rejected facts are proposed again.
        let again = session
            .propose_facts(&entry, ProposalMode::Propose)
            .await
            .unwrap();
        assert_eq!(again, throughline::ProposalReport::default());
    }
}

#[tokio::test]
async fn a_persons_fact_is_never_replaced_automatically() {
    for TestStore { tl, .. } in all_stores().await {
        let memory = project_memory(&tl, "dir:/app");
        add(&memory, "The port is 8080").await;
        let (session, entry) =
            session_with_summary(&tl, &["The port is 9090", "Tests need a database"]).await;

        let proposed = session
            .propose_facts(&entry, ProposalMode::Accept)
            .await
            .unwrap();

        assert_eq!((proposed.pending.len(), proposed.accepted.len()), (1, 2));
        let now = texts(&memory).await;
        assert_eq!(
            now,
            [
                "The port is 8080",
                "Tests need a database",
                "We decided to keep it simple"
            ]
        );
        memory.accept(&proposed.pending).await.unwrap();
        assert!(
            !texts(&memory)
                .await
                .contains(&"The port is 8080".to_owned())
        );
        let off = session
            .propose_facts(&entry, ProposalMode::Off)
            .await
            .unwrap();
        assert_eq!(off, throughline::ProposalReport::default());
    }
}

#[tokio::test]
async fn adding_a_proposed_fact_accepts_it() {
    let tl = &all_stores().await[0].tl;
    let (session, entry) = session_with_summary(tl, &[]).await;
    session
        .propose_facts(&entry, ProposalMode::Propose)
        .await
        .unwrap();
    let new_fact = NewFact::from_person("we decided to keep it simple");
    let added = project_memory(tl, "dir:/app").add(new_fact).await.unwrap();
    assert_eq!(added.status, AddFactStatus::Accepted);
    assert!(added.fact.is_in_effect());
}

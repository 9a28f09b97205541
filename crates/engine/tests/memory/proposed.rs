//! What summaries find is proposed.

use throughline::{AddedHow, Body, Message, NewFact, Proposing, Role, Seq, Session, Throughline};

use crate::place::{Place, add, of, places, remembered_for, session_of, texts};

async fn summarized(tl: &Throughline, facts: &[&str]) -> (Session, throughline::Entry) {
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
async fn what_a_summary_found_is_proposed_once_and_counts_when_accepted() {
    for Place { tl, .. } in places().await {
        let found = [
            "The queue lives in src/queue.rs",
            "the password is hunter2",
            "Yes",
            "Why so slow?",
        ];
        let (session, entry) = summarized(&tl, &found).await;
        let memory = of(&tl, "dir:/app");

        let proposed = session
            .propose_facts(&entry, Proposing::Propose)
            .await
            .unwrap();

        assert_eq!((proposed.waiting.len(), proposed.accepted.len()), (2, 0));
        assert!(remembered_for(&session, "hi").await.is_empty());
        let facts = memory.facts().await.unwrap();
        let queue = facts.get(proposed.waiting[0]).unwrap();
        let source = queue.source.clone().unwrap();
        assert_eq!((&source.session, source.seq), (session.id(), entry.seq));
        assert_eq!(queue.files, ["src/queue.rs"]);
        assert_eq!(queue.by, "extractive");

        memory.accept(&proposed.waiting[..1]).await.unwrap();
        memory.forget(proposed.waiting[1], None).await.unwrap();
        assert_eq!(texts(&memory).await, ["The queue lives in src/queue.rs"]);
        // Neither what is known nor what was turned down comes again.
        let again = session
            .propose_facts(&entry, Proposing::Propose)
            .await
            .unwrap();
        assert_eq!(again, throughline::Proposed::default());
    }
}

#[tokio::test]
async fn the_program_never_replaces_a_persons_word_by_itself() {
    for Place { tl, .. } in places().await {
        let memory = of(&tl, "dir:/app");
        add(&memory, "The port is 8080").await;
        let (session, entry) =
            summarized(&tl, &["The port is 9090", "Tests need a database"]).await;

        let proposed = session
            .propose_facts(&entry, Proposing::Accept)
            .await
            .unwrap();

        assert_eq!((proposed.waiting.len(), proposed.accepted.len()), (1, 2));
        let now = texts(&memory).await;
        assert_eq!(
            now,
            [
                "The port is 8080",
                "Tests need a database",
                "We decided to keep it simple"
            ]
        );
        memory.accept(&proposed.waiting).await.unwrap();
        assert!(
            !texts(&memory)
                .await
                .contains(&"The port is 8080".to_owned())
        );
        let off = session.propose_facts(&entry, Proposing::Off).await.unwrap();
        assert_eq!(off, throughline::Proposed::default());
    }
}

#[tokio::test]
async fn saying_what_was_proposed_accepts_it() {
    let tl = &places().await[0].tl;
    let (session, entry) = summarized(tl, &[]).await;
    session
        .propose_facts(&entry, Proposing::Propose)
        .await
        .unwrap();
    let said = NewFact::said("we decided to keep it simple");
    let added = of(tl, "dir:/app").add(said).await.unwrap();
    assert_eq!(added.how, AddedHow::Accepted);
    assert!(added.fact.stands());
}

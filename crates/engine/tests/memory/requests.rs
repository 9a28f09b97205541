//! Tests of which facts are in a request, and in which order.

use throughline::context::SectionName;
use throughline::{Content, MemoryScope, NewFact, ProjectMarker};

use crate::stores::{
    TestStore, add, all_stores, ask, facts_in_request, project_memory, request_within, session_of,
    texts,
};

#[tokio::test]
async fn facts_of_a_file_are_included_when_it_is_touched() {
    for TestStore { tl, .. } in all_stores().await {
        let marks = [ProjectMarker::Folder("/app".into())];
        let project = tl
            .find_or_create_project("app", &marks, |_| false)
            .await
            .unwrap()
            .unwrap();
        let memory = tl.memory(MemoryScope::Project(project.id.clone()));
        for n in 0..60 {
            add(
                &memory,
                &format!("General remark number{n} about everything else here"),
            )
            .await;
        }
        let about = NewFact {
            files: vec!["src/auth".into()],
            ..NewFact::from_person("Tokens are rotated nightly")
        };
        memory.add(about).await.unwrap();
        let session = session_of(&tl, project.id.as_str()).await;
        let has = async |message: &str| {
            let message = Content::text(message);
            let request = request_within(&session, &message, Some(4_000)).await;
            let section = request.section(SectionName::Memory).unwrap().clone();
            assert!(!section.left_out.is_empty());
            section
                .text
                .contains("Tokens are rotated nightly (src/auth)")
        };

        assert!(!has("what now?").await);
        assert!(has("look at /app/src/auth/token.rs").await);
        assert!(has("look at src/auth/token.rs").await);
        assert!(!has("look at src/author.rs").await);

        let files = ["src/auth/token.rs".to_owned()];
        assert_eq!(memory.facts_for_files(&files).await.unwrap().len(), 1);
        assert!(
            memory
                .facts_for_files(&["docs".to_owned()])
                .await
                .unwrap()
                .is_empty()
        );
    }
}

#[tokio::test]
async fn facts_that_a_document_lists_are_not_repeated() {
    let tl = &all_stores().await[0].tl;
    let memory = project_memory(tl, "dir:/app");
    add(&memory, "The port is 8080").await;
    add(&memory, "Deploys happen on Tuesday").await;
    let session = session_of(tl, "dir:/app").await;
    let agents = "# Agents\n- The port is 8080\nDeploys happen on Tuesday, says Bob.";
    session
        .set_context("AGENTS.md", Some(agents))
        .await
        .unwrap();
    let remembered = facts_in_request(&session, "hi").await;
    assert_eq!(remembered, ["Deploys happen on Tuesday"]);
}

#[tokio::test]
async fn facts_keep_their_order_in_requests_whatever_their_rank() {
    for TestStore {
        tl, environment, ..
    } in all_stores().await
    {
        let memory = project_memory(&tl, "dir:/app");
        for text in ["The first thing", "A second matter", "Some third concern"] {
            add(&memory, text).await;
        }
        let before = facts_in_request(&session_of(&tl, "dir:/app").await, "hi").await;
        environment.advance_days(40);
        ask(
            &session_of(&tl, "dir:/app").await,
            "What was the third concern?",
        )
        .await;
        let best = memory.top_facts(&[], 1).await.unwrap();
        assert_eq!(best[0].text, "Some third concern");
        let after = facts_in_request(&session_of(&tl, "dir:/app").await, "hi").await;
        assert_eq!(before, after);
    }
}

#[tokio::test]
async fn use_is_counted_once_per_session_and_only_for_relevant_facts() {
    for TestStore { tl, .. } in all_stores().await {
        let memory = project_memory(&tl, "dir:/app");
        let port = add(&memory, "The admin port is 7070").await;
        let other = add(&memory, "Deploys happen on Tuesday mornings").await;
        let session = session_of(&tl, "dir:/app").await;
        ask(&session, "Which admin port do we have?").await;
        ask(&session, "Again: which admin port?").await;
        ask(&session_of(&tl, "dir:/app").await, "the admin port, please").await;

        let facts = memory.facts().await.unwrap();
        assert_eq!(facts.get(port).unwrap().uses, 2);
        assert!(facts.get(port).unwrap().last_used.is_some());
        assert_eq!(facts.get(other).unwrap().uses, 0);
    }
}

#[tokio::test]
async fn an_unused_fact_fades_from_requests_but_not_from_the_store() {
    for TestStore {
        tl, environment, ..
    } in all_stores().await
    {
        let memory = project_memory(&tl, "dir:/app");
        add(&memory, "An old remark that nobody ever needed again").await;
        environment.advance_days(90);
        for n in 0..60 {
            add(
                &memory,
                &format!("A newer remark number{n} about things of today"),
            )
            .await;
        }
        let session = session_of(&tl, "dir:/app").await;
        let request = request_within(&session, &Content::text("hi"), Some(4_000)).await;
        let section = request.section(SectionName::Memory).unwrap();
        assert!(section.text.contains("A newer remark"));
        assert!(!section.text.contains("An old remark"));
        assert!(
            texts(&memory)
                .await
                .iter()
                .any(|text| text.starts_with("An old remark"))
        );
    }
}

//! Tests of memory: who sees facts, what replaces them, and when they are in requests.

#![allow(clippy::unwrap_used, reason = "tests")]

mod proposals;
mod requests;
mod stores;

use throughline::{
    AddFactStatus, Error, ErrorKind, MemoryScope, NewFact, NewSession, Owner, PurgeOptions, Seq,
    SessionFilter, Similarity,
};

use stores::{TestStore, add, all_stores, facts_in_request, project_memory, session_of, texts};

#[tokio::test]
async fn facts_are_in_the_requests_of_their_project_only() {
    for TestStore { tl, .. } in all_stores().await {
        add(
            &project_memory(&tl, "dir:/app"),
            "Deploys happen on Tuesday",
        )
        .await;
        add(
            &project_memory(&tl, "dir:/else"),
            "Deploys never happen here",
        )
        .await;
        add(&tl.memory(MemoryScope::Owner), "Answer in English").await;
        let other = tl.on_behalf_of("bob".parse::<Owner>().unwrap());
        add(
            &project_memory(&other, "dir:/app"),
            "Bob keeps this to himself",
        )
        .await;

        let app = session_of(&tl, "dir:/app").await;
        let mine = facts_in_request(&app, "hi").await;
        let homeless = tl.create(NewSession::default()).await.unwrap();
        let bobs = session_of(&other, "dir:/app").await;

        assert_eq!(mine, ["Deploys happen on Tuesday", "Answer in English"]);
        assert_eq!(
            facts_in_request(&homeless, "hi").await,
            ["Answer in English"]
        );
        assert_eq!(
            facts_in_request(&bobs, "hi").await,
            ["Bob keeps this to himself"]
        );
        assert_eq!(
            texts(&project_memory(&tl, "dir:/else")).await,
            ["Deploys never happen here"]
        );
    }
}

#[tokio::test]
async fn a_memory_is_not_listed_as_a_session() {
    for TestStore { tl, .. } in all_stores().await {
        let memory = project_memory(&tl, "dir:/app");
        add(&memory, "a fact to keep").await;
        let session = memory.session().await.unwrap().unwrap();

        assert_eq!(tl.count(&SessionFilter::default()).await.unwrap(), 0);
        let last = tl.resolve(&"last".parse().unwrap(), &[]).await;
        assert!(matches!(last, Err(Error::NoSessions)));
        let start = &session.id().as_str()[..20];
        let prefix = tl.resolve(&start.parse().unwrap(), &[]).await;
        assert!(matches!(prefix, Err(Error::NoMatch(_))), "{prefix:?}");
        let by_full_id = tl
            .resolve(&session.id().as_str().parse().unwrap(), &[])
            .await;
        assert_eq!(by_full_id.unwrap().id(), session.id());
        let purge = PurgeOptions {
            max_sessions: Some(0),
            ..PurgeOptions::default()
        };
        assert!(tl.purge(purge).await.unwrap().trashed.is_empty());
    }
}

#[tokio::test]
async fn reserved_keys_are_refused() {
    let tl = &all_stores().await[0].tl;
    let new = || NewSession {
        key: Some("throughline:memory:owner".parse().unwrap()),
        ..NewSession::default()
    };
    let error = tl.create(new()).await.unwrap_err();
    assert!(matches!(error, Error::ReservedKey(_)));
    assert_eq!(error.kind(), ErrorKind::Invalid);
    let session = tl.create(NewSession::default()).await.unwrap();
    assert!(matches!(
        session.fork(None, new()).await,
        Err(Error::ReservedKey(_))
    ));
}

#[tokio::test]
async fn a_known_fact_is_not_added_twice() {
    for TestStore { tl, .. } in all_stores().await {
        let memory = project_memory(&tl, "dir:/app");
        let first = add(&memory, "The port is 8080.").await;

        let again = memory
            .add(NewFact::from_person("the port is 8080"))
            .await
            .unwrap();

        assert_eq!(
            (again.fact.seq, again.status),
            (first, AddFactStatus::Known)
        );
        assert_eq!(
            memory
                .session()
                .await
                .unwrap()
                .unwrap()
                .record()
                .await
                .unwrap()
                .info
                .head,
            Seq(1)
        );
    }
}

#[tokio::test]
async fn a_semantic_model_recognises_facts_in_other_words() {
    let tl = all_stores()
        .await
        .remove(0)
        .tl
        .with_similarity(Similarity::new(|_, _| 0.95));
    let memory = project_memory(&tl, "dir:/app");
    let first = add(&memory, "we ship on tuesdays").await;
    assert_eq!(
        add(&memory, "releases go out every second day of the week").await,
        first
    );
}

#[tokio::test]
async fn a_newer_fact_replaces_the_one_it_contradicts_and_both_stay_readable() {
    for TestStore { tl, .. } in all_stores().await {
        let memory = project_memory(&tl, "dir:/app");
        let old = add(&memory, "The port is 8080").await;
        add(&memory, "The admin port is 7070").await;
        let new = add(&memory, "The port is 9090").await;

        assert_eq!(
            texts(&memory).await,
            ["The admin port is 7070", "The port is 9090"]
        );
        let facts = memory.facts().await.unwrap();
        assert_eq!(facts.get(old).unwrap().superseded_by, Some(new));
        let history: Vec<Seq> = memory
            .history(Some(new))
            .await
            .unwrap()
            .iter()
            .map(|e| e.seq)
            .collect();
        assert_eq!(history, [old, new]);
        assert_eq!(memory.history(None).await.unwrap().len(), 3);
    }
}

#[tokio::test]
async fn a_fact_can_be_edited_forgotten_and_added_again() {
    for TestStore { tl, .. } in all_stores().await {
        let memory = project_memory(&tl, "dir:/app");
        let first = add(&memory, "Ask Ada about billing").await;
        let edited = memory
            .edit(first, "Ask Bob about billing", false)
            .await
            .unwrap()
            .fact;
        let stale = memory.edit(first, "Ask nobody", false).await.unwrap_err();
        assert_eq!(stale.kind(), ErrorKind::Conflict);

        assert!(
            memory
                .forget(edited.seq, Some("he left"))
                .await
                .unwrap()
                .forgotten
        );
        memory.forget(edited.seq, None).await.unwrap();
        assert!(texts(&memory).await.is_empty());

        let again = memory
            .add(NewFact::from_person("Ask Bob about billing"))
            .await
            .unwrap();
        assert_eq!(again.status, AddFactStatus::New);
        assert_eq!(
            memory.forget(Seq(99), None).await.unwrap_err().kind(),
            ErrorKind::NotFound
        );
    }
}

#[tokio::test]
async fn a_fact_can_be_replaced_explicitly() {
    let tl = &all_stores().await[0].tl;
    let memory = project_memory(tl, "dir:/app");
    let old = add(&memory, "We deploy with a shell script").await;
    let new = NewFact {
        supersedes: vec![old],
        ..NewFact::from_person("Deploys are done by the pipeline")
    };
    memory.add(new).await.unwrap();
    assert_eq!(texts(&memory).await, ["Deploys are done by the pipeline"]);
}

#[tokio::test]
async fn a_secret_is_refused_and_not_repeated() {
    let tl = &all_stores().await[0].tl;
    let memory = project_memory(tl, "dir:/app");
    let secret = NewFact::from_person("the password is hunter2");
    let refused = memory.add(secret.clone()).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Invalid);
    assert!(!refused.to_string().contains("hunter2"));
    memory
        .add(NewFact {
            force: true,
            ..secret
        })
        .await
        .unwrap();
    assert_eq!(texts(&memory).await.len(), 1);
}

#[tokio::test]
async fn a_promoted_fact_applies_to_every_project() {
    for TestStore { tl, .. } in all_stores().await {
        let memory = project_memory(&tl, "dir:/app");
        let seq = add(&memory, "Answer in English").await;
        let promoted = memory.promote(seq).await.unwrap().fact;

        assert!(texts(&memory).await.is_empty());
        let everywhere = tl.memory(MemoryScope::Owner);
        assert_eq!(texts(&everywhere).await, ["Answer in English"]);
        let source = promoted.source.unwrap();
        assert_eq!(
            (&source.session, source.seq),
            (memory.session().await.unwrap().unwrap().id(), seq)
        );
        assert_eq!(
            everywhere.promote(promoted.seq).await.unwrap_err().kind(),
            ErrorKind::Invalid
        );
    }
}

#[tokio::test]
async fn a_search_finds_facts_by_their_words_best_first() {
    for TestStore { tl, .. } in all_stores().await {
        let memory = project_memory(&tl, "dir:/app");
        for text in [
            "The admin port is 7070",
            "The port of Hamburg is large",
            "Deploys happen on Tuesday",
        ] {
            add(&memory, text).await;
        }
        let found = memory.search("admin port").await.unwrap();
        let found: Vec<&str> = found.iter().map(|found| found.fact.text.as_str()).collect();
        assert_eq!(
            found,
            ["The admin port is 7070", "The port of Hamburg is large"]
        );
        assert!(memory.search("kubernetes").await.unwrap().is_empty());
    }
}

#[tokio::test]
async fn concurrent_writers_add_a_fact_once() {
    for TestStore { tl, .. } in all_stores().await {
        let memory = project_memory(&tl, "dir:/app");
        let writers = (0..8).map(|_| memory.add(NewFact::from_person("The port is 8080")));
        for added in futures_util::future::join_all(writers).await {
            added.unwrap();
        }
        assert_eq!(texts(&memory).await.len(), 1);
    }
}

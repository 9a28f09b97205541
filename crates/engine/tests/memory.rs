//! What is remembered: who sees it, what replaces it, and when it comes up.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::sync::Mutex;

use throughline::context::{Encoding, Policy, Request, SectionName};
use throughline::llm::{Offline, Terms};
use throughline::{
    AddedHow, Asking, Body, Conflict, Content, Error, ErrorKind, Expect, Filter, Mark, Memory,
    MemoryScope, Message, NewFact, NewSession, Opening, Owner, Proposing, Purge, Role, Seq,
    Session, Similar, Throughline, Timestamp, Turn, World,
};

/// Time that stands still until it is moved.
#[derive(Debug)]
struct Still(Mutex<(Timestamp, u64)>);

impl Still {
    fn wait_days(&self, days: i64) {
        let mut state = self.0.lock().unwrap();
        state.0 += jiff::SignedDuration::from_hours(24 * days);
    }
}

impl World for Still {
    fn now(&self) -> Timestamp {
        self.0.lock().unwrap().0
    }

    fn roll(&self, bytes: &mut [u8]) {
        let mut state = self.0.lock().unwrap();
        state.1 += 1;
        let count = state.1.to_le_bytes();
        bytes
            .iter_mut()
            .zip(count.iter().cycle())
            .for_each(|(byte, roll)| *byte = *roll);
    }
}

/// Every store, empty, with a clock of the test's own.
struct Place {
    tl: Throughline,
    world: std::sync::Arc<Still>,
    _folder: tempfile::TempDir,
}

async fn places() -> Vec<Place> {
    let mut places = Vec::new();
    for kind in ["memory", "sqlite"] {
        let folder = tempfile::tempdir().unwrap();
        let address = match kind {
            "memory" => "memory:".to_owned(),
            _ => format!("sqlite:{}", folder.path().join("tl.db").display()),
        };
        let start = Timestamp::from_second(1_800_000_000).unwrap();
        let world = std::sync::Arc::new(Still(Mutex::new((start, 0))));
        let opening = Opening {
            world: world.clone(),
            ..Opening::default()
        };
        let tl = Throughline::open_with(&address.parse().unwrap(), opening)
            .await
            .unwrap();
        places.push(Place {
            tl,
            world,
            _folder: folder,
        });
    }
    places
}

fn of(tl: &Throughline, project: &str) -> Memory {
    tl.memory(MemoryScope::Project(project.parse().unwrap()))
}

async fn add(memory: &Memory, text: &str) -> Seq {
    memory.add(NewFact::said(text)).await.unwrap().fact.seq
}

async fn texts(memory: &Memory) -> Vec<String> {
    let facts = memory.list().await.unwrap();
    facts.into_iter().map(|fact| fact.text).collect()
}

async fn session_of(tl: &Throughline, project: &str) -> Session {
    let new = NewSession {
        project: Some(project.parse().unwrap()),
        workspace: Some("/app".into()),
        ..NewSession::default()
    };
    tl.create(new).await.unwrap()
}

async fn request(session: &Session, message: &str) -> Request {
    let message = Content::text(message);
    request_within(session, &message, None).await
}

async fn request_within(session: &Session, message: &Content, budget: Option<u64>) -> Request {
    let policy = Policy::default();
    let asking = Asking {
        policy: &policy,
        budget,
        window: 100_000,
        encoding: Encoding::Rough,
        agent: None,
        documents: &[],
        message: Some(message),
        before: None,
        model: None,
    };
    session.request(&asking).await.unwrap()
}

async fn remembered_for(session: &Session, message: &str) -> Vec<String> {
    let request = request(session, message).await;
    let text = &request.section(SectionName::Memory).unwrap().text;
    let lines = text.lines().filter_map(|line| line.strip_prefix("- "));
    lines.map(ToOwned::to_owned).collect()
}

async fn ask(session: &Session, question: &str) {
    let policy = Policy::default();
    let offline = Offline::default();
    let turn = Turn {
        model: &offline,
        policy: &policy,
        window: 100_000,
        encoding: Encoding::Rough,
        agent: None,
        documents: &[],
        summarizer: None,
        tools: None,
        terms: &Terms::NONE,
        stop: None,
    };
    let said = session
        .say(Content::text(question), Expect::Any, Conflict::Reject)
        .await
        .unwrap();
    let turned = session
        .answer(&said.entry, &turn, &mut |_| {})
        .await
        .unwrap();
    session.note_memory_used(&turned).await.unwrap();
}

#[tokio::test]
async fn what_is_remembered_is_in_the_requests_of_its_project_and_of_no_other() {
    for Place { tl, .. } in places().await {
        add(&of(&tl, "dir:/app"), "Deploys happen on Tuesday").await;
        add(&of(&tl, "dir:/else"), "Deploys never happen here").await;
        add(&tl.memory(MemoryScope::Owner), "Answer in English").await;
        let other = tl.on_behalf_of("bob".parse::<Owner>().unwrap());
        add(&of(&other, "dir:/app"), "Bob keeps this to himself").await;

        let app = session_of(&tl, "dir:/app").await;
        let mine = remembered_for(&app, "hi").await;
        let homeless = tl.create(NewSession::default()).await.unwrap();
        let bobs = session_of(&other, "dir:/app").await;

        assert_eq!(mine, ["Deploys happen on Tuesday", "Answer in English"]);
        assert_eq!(remembered_for(&homeless, "hi").await, ["Answer in English"]);
        assert_eq!(
            remembered_for(&bobs, "hi").await,
            ["Bob keeps this to himself"]
        );
        assert_eq!(
            texts(&of(&tl, "dir:/else")).await,
            ["Deploys never happen here"]
        );
    }
}

#[tokio::test]
async fn a_memory_is_no_session_of_anybodys() {
    for Place { tl, .. } in places().await {
        let memory = of(&tl, "dir:/app");
        add(&memory, "a fact to keep").await;
        let session = memory.session().await.unwrap().unwrap();

        assert_eq!(tl.count(&Filter::default()).await.unwrap(), 0);
        let last = tl.resolve(&"last".parse().unwrap(), &[]).await;
        assert!(matches!(last, Err(Error::NoSessions)));
        let start = &session.id().as_str()[..20];
        let prefix = tl.resolve(&start.parse().unwrap(), &[]).await;
        assert!(matches!(prefix, Err(Error::NoMatch(_))), "{prefix:?}");
        let whole = tl
            .resolve(&session.id().as_str().parse().unwrap(), &[])
            .await;
        assert_eq!(whole.unwrap().id(), session.id());
        let purge = Purge {
            max_sessions: Some(0),
            ..Purge::default()
        };
        assert!(tl.purge(purge).await.unwrap().trashed.is_empty());
    }
}

#[tokio::test]
async fn nobody_else_can_take_a_key_of_the_programs_own() {
    let tl = &places().await[0].tl;
    let new = || NewSession {
        key: Some("throughline:memory:owner".parse().unwrap()),
        ..NewSession::default()
    };
    let made = tl.create(new()).await.unwrap_err();
    assert!(matches!(made, Error::ReservedKey(_)));
    assert_eq!(made.kind(), ErrorKind::Invalid);
    let session = tl.create(NewSession::default()).await.unwrap();
    assert!(matches!(
        session.fork(None, new()).await,
        Err(Error::ReservedKey(_))
    ));
}

#[tokio::test]
async fn what_is_known_is_not_remembered_twice() {
    for Place { tl, .. } in places().await {
        let memory = of(&tl, "dir:/app");
        let first = add(&memory, "The port is 8080.").await;

        let again = memory.add(NewFact::said("the port is 8080")).await.unwrap();

        assert_eq!((again.fact.seq, again.how), (first, AddedHow::Known));
        assert_eq!(
            memory
                .session()
                .await
                .unwrap()
                .unwrap()
                .record()
                .await
                .unwrap()
                .card
                .head,
            Seq(1)
        );
    }
}

#[tokio::test]
async fn a_semantic_model_recognises_what_words_do_not() {
    let tl = places()
        .await
        .remove(0)
        .tl
        .comparing_with(Similar::new(|_, _| 0.95));
    let memory = of(&tl, "dir:/app");
    let first = add(&memory, "we ship on tuesdays").await;
    assert_eq!(
        add(&memory, "releases go out every second day of the week").await,
        first
    );
}

#[tokio::test]
async fn a_newer_fact_replaces_the_one_it_contradicts_and_both_stay_readable() {
    for Place { tl, .. } in places().await {
        let memory = of(&tl, "dir:/app");
        let old = add(&memory, "The port is 8080").await;
        add(&memory, "The admin port is 7070").await;
        let new = add(&memory, "The port is 9090").await;

        assert_eq!(
            texts(&memory).await,
            ["The admin port is 7070", "The port is 9090"]
        );
        let facts = memory.facts().await.unwrap();
        assert_eq!(facts.get(old).unwrap().superseded_by, Some(new));
        let told: Vec<Seq> = memory
            .history(Some(new))
            .await
            .unwrap()
            .iter()
            .map(|e| e.seq)
            .collect();
        assert_eq!(told, [old, new]);
        assert_eq!(memory.history(None).await.unwrap().len(), 3);
    }
}

#[tokio::test]
async fn a_fact_can_be_corrected_forgotten_and_said_again() {
    for Place { tl, .. } in places().await {
        let memory = of(&tl, "dir:/app");
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
            .add(NewFact::said("Ask Bob about billing"))
            .await
            .unwrap();
        assert_eq!(again.how, AddedHow::New);
        assert_eq!(
            memory.forget(Seq(99), None).await.unwrap_err().kind(),
            ErrorKind::NotFound
        );
    }
}

#[tokio::test]
async fn a_replacement_by_hand_is_possible_where_words_do_not_tell() {
    let tl = &places().await[0].tl;
    let memory = of(tl, "dir:/app");
    let old = add(&memory, "We deploy with a shell script").await;
    let new = NewFact {
        supersedes: vec![old],
        ..NewFact::said("Deploys are done by the pipeline")
    };
    memory.add(new).await.unwrap();
    assert_eq!(texts(&memory).await, ["Deploys are done by the pipeline"]);
}

#[tokio::test]
async fn a_secret_is_refused_and_not_repeated() {
    let tl = &places().await[0].tl;
    let memory = of(tl, "dir:/app");
    let secret = NewFact::said("the password is hunter2");
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
async fn a_promoted_fact_is_there_for_every_project() {
    for Place { tl, .. } in places().await {
        let memory = of(&tl, "dir:/app");
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

/// A session with a summary left behind that says these things.
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

#[tokio::test]
async fn what_belongs_to_a_file_comes_up_when_it_is_touched() {
    for Place { tl, .. } in places().await {
        let marks = [Mark::Folder("/app".into())];
        let project = tl.project("app", &marks, |_| false).await.unwrap().unwrap();
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
            ..NewFact::said("Tokens are rotated nightly")
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
        assert_eq!(memory.facts_for(&files).await.unwrap().len(), 1);
        assert!(
            memory
                .facts_for(&["docs".to_owned()])
                .await
                .unwrap()
                .is_empty()
        );
    }
}

#[tokio::test]
async fn what_a_document_lists_already_is_not_said_twice() {
    let tl = &places().await[0].tl;
    let memory = of(tl, "dir:/app");
    add(&memory, "The port is 8080").await;
    add(&memory, "Deploys happen on Tuesday").await;
    let session = session_of(tl, "dir:/app").await;
    let agents = "# Agents\n- The port is 8080\nDeploys happen on Tuesday, says Bob.";
    session
        .set_context("AGENTS.md", Some(agents))
        .await
        .unwrap();
    let remembered = remembered_for(&session, "hi").await;
    assert_eq!(remembered, ["Deploys happen on Tuesday"]);
}

#[tokio::test]
async fn facts_keep_their_order_in_requests_whichever_matter_most() {
    for Place { tl, world, .. } in places().await {
        let memory = of(&tl, "dir:/app");
        for text in ["The first thing", "A second matter", "Some third concern"] {
            add(&memory, text).await;
        }
        let before = remembered_for(&session_of(&tl, "dir:/app").await, "hi").await;
        world.wait_days(40);
        ask(
            &session_of(&tl, "dir:/app").await,
            "What was the third concern?",
        )
        .await;
        let best = memory.standing(&[], 1).await.unwrap();
        assert_eq!(best[0].text, "Some third concern");
        let after = remembered_for(&session_of(&tl, "dir:/app").await, "hi").await;
        assert_eq!(before, after);
    }
}

#[tokio::test]
async fn use_is_counted_once_a_session_and_only_where_a_fact_bears_on_what_was_said() {
    for Place { tl, .. } in places().await {
        let memory = of(&tl, "dir:/app");
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
async fn an_unused_fact_fades_from_requests_and_never_from_the_store() {
    for Place { tl, world, .. } in places().await {
        let memory = of(&tl, "dir:/app");
        add(&memory, "An old remark that nobody ever needed again").await;
        world.wait_days(90);
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

#[tokio::test]
async fn a_search_finds_facts_by_their_words_the_best_first() {
    for Place { tl, .. } in places().await {
        let memory = of(&tl, "dir:/app");
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
async fn writers_at_the_same_time_remember_a_thing_once() {
    for Place { tl, .. } in places().await {
        let memory = of(&tl, "dir:/app");
        let writers = (0..8).map(|_| memory.add(NewFact::said("The port is 8080")));
        for added in futures_util::future::join_all(writers).await {
            added.unwrap();
        }
        assert_eq!(texts(&memory).await.len(), 1);
    }
}

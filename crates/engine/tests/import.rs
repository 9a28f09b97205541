//! Tests of imports from other systems: rewinds, summaries, forks, rewritten sources.

#![allow(clippy::unwrap_used, reason = "tests")]

use throughline::{
    Body, EntryIdentity, ImportEvent, ImportReport, Importer, IncomingEntry, IncomingItem,
    IncomingOrigin, IncomingSession, Lineage, Message, Role, Seq, Session, SessionSpec, Summary,
    Throughline,
};

async fn open() -> Throughline {
    Throughline::open("memory:").await.unwrap()
}

fn session(id: &str) -> IncomingItem {
    IncomingItem::Session(Box::new(IncomingSession {
        source_system: Some("other".into()),
        id: id.into(),
        ..IncomingSession::default()
    }))
}

fn forked(id: &str, of: &str, at: Option<&str>) -> IncomingItem {
    IncomingItem::Session(Box::new(IncomingSession {
        source_system: Some("other".into()),
        id: id.into(),
        origin: Some(IncomingOrigin::Forked {
            session: of.into(),
            at: at.map(Into::into),
        }),
        ..IncomingSession::default()
    }))
}

fn user_message(id: &str, text: &str) -> IncomingItem {
    let message = Message::text(Role::User, text);
    IncomingItem::Entry(Box::new(IncomingEntry::message(
        1,
        Some(id.into()),
        None,
        message,
    )))
}

fn event(word: &str, what: ImportEvent) -> IncomingItem {
    IncomingItem::Entry(Box::new(IncomingEntry {
        identity: EntryIdentity::Position(word.into()),
        at: None,
        author: None,
        event: what,
        position: 1,
    }))
}

async fn import(tl: &Throughline, all: Vec<IncomingItem>) -> ImportReport {
    let mut importer = Importer::new(tl.clone());
    for incoming in all {
        importer.add(incoming).await.unwrap();
    }
    let report = importer.finish().await.unwrap();
    assert!(report.failed.is_empty(), "{:?}", report.failed);
    report
}

async fn find(tl: &Throughline, id: &str) -> Session {
    let spec: SessionSpec = id.parse().unwrap();
    tl.resolve(&spec, &[]).await.unwrap()
}

async fn texts(session: &Session) -> Vec<String> {
    let mut texts = Vec::new();
    let mut next = Seq(1);
    loop {
        let page = session.entries(next, 1000).await.unwrap();
        let Some(last) = page.last() else {
            return texts;
        };
        next = last.seq.next();
        let messages = page.iter().filter_map(|entry| entry.message());
        texts.extend(messages.map(|m| m.content.to_text().into_owned()));
    }
}

#[tokio::test]
async fn a_session_is_found_again_by_its_external_id() {
    let tl = open().await;
    let all = || {
        vec![
            session("11111111-aaaa"),
            user_message("a", "one"),
            user_message("b", "two"),
        ]
    };
    let first = import(&tl, all()).await;
    assert_eq!(
        (first.created, first.appended, first.already_stored),
        (1, 2, 0)
    );
    let again = import(&tl, all()).await;
    assert_eq!(
        (again.created, again.appended, again.already_stored),
        (0, 0, 2)
    );
    let mut grown = all();
    grown.push(user_message("c", "three"));
    assert_eq!(import(&tl, grown).await.appended, 1);
    let there = find(&tl, "11111111-aaaa").await;
    assert_eq!(texts(&there).await, ["one", "two", "three"]);
    let key = there.record().await.unwrap().info.key.unwrap();
    assert_eq!(key.as_str(), "other:11111111-aaaa");
}

#[tokio::test]
async fn a_source_that_was_rewritten_becomes_a_fork_and_the_same_one_every_time() {
    let tl = open().await;
    let id = "11111111-aaaa";
    import(
        &tl,
        vec![
            session(id),
            user_message("a", "one"),
            user_message("b", "two"),
            user_message("c", "three"),
        ],
    )
    .await;
    let rewritten = || {
        vec![
            session(id),
            user_message("a", "one"),
            user_message("b", "TWO"),
            user_message("c", "three"),
        ]
    };
    let report = import(&tl, rewritten()).await;
    assert_eq!((report.created, report.forked, report.appended), (1, 1, 2));
    let again = import(&tl, rewritten()).await;
    assert_eq!(
        (again.created, again.appended, again.already_stored),
        (0, 0, 3)
    );

    assert_eq!(texts(&find(&tl, id).await).await, ["one", "two", "three"]);
    let infos = tl
        .list_all(&throughline::SessionFilter::default())
        .await
        .unwrap();
    let fork = infos.iter().find(|info| info.id.as_str() != id).unwrap();
    let fork = tl.session(&fork.id).await.unwrap();
    assert_eq!(texts(&fork).await, ["one", "TWO", "three"]);
    let lineage = fork.header().await.unwrap().lineage;
    assert!(
        matches!(lineage, Lineage::Forked { at: Seq(1), .. }),
        "{lineage:?}"
    );
}

#[tokio::test]
async fn a_session_continued_on_both_sides_is_forked() {
    let tl = open().await;
    let id = "11111111-aaaa";
    import(&tl, vec![session(id), user_message("a", "one")]).await;
    let here = find(&tl, id).await;
    // Renaming the session locally does not cause a fork.
    here.rename(Some("mine")).await.unwrap();
    import(
        &tl,
        vec![
            session(id),
            user_message("a", "one"),
            user_message("b", "two"),
        ],
    )
    .await;
    assert_eq!(texts(&here).await, ["one", "two"]);

    here.append(Message::text(Role::User, "said here"))
        .await
        .unwrap();
    let grown = || {
        vec![
            session(id),
            user_message("b", "two"),
            user_message("c", "said there"),
        ]
    };
    let report = import(&tl, grown()).await;
    assert_eq!((report.forked, report.appended), (1, 1));
    assert_eq!(texts(&here).await, ["one", "two", "said here"]);
    let again = import(&tl, grown()).await;
    assert_eq!((again.forked, again.appended), (0, 0));
    // The same when reading resumes and only new entries are sent.
    let only_new = import(
        &tl,
        vec![
            session(id),
            user_message("c", "said there"),
            user_message("d", "more"),
        ],
    )
    .await;
    assert_eq!((only_new.forked, only_new.appended), (0, 1));
}

#[tokio::test]
async fn a_rewind_hides_the_entries_after_it() {
    let tl = open().await;
    let rewound = |to: &str| ImportEvent::Rewound {
        to: Some(to.into()),
    };
    let all = || {
        vec![
            session("11111111-aaaa"),
            user_message("a", "one"),
            user_message("b", "wrong"),
            event("r", rewound("a")),
            user_message("c", "right"),
            event("x", rewound("unknown")),
        ]
    };
    import(&tl, all()).await;
    assert_eq!(import(&tl, all()).await.appended, 0);
    let there = find(&tl, "11111111-aaaa").await;
    let state = there.record().await.unwrap().state;
    assert!(state.is_visible(Seq(1)) && !state.is_visible(Seq(2)) && state.is_visible(Seq(4)));
    assert_eq!(there.record().await.unwrap().info.head, Seq(4));
}

#[tokio::test]
async fn a_compaction_becomes_a_checkpoint_over_what_it_covers() {
    let tl = open().await;
    let compacted = |keeps: Option<&str>| ImportEvent::Compacted {
        summary: Summary {
            background: "So far".into(),
            ..Summary::default()
        },
        by: "other".into(),
        keeps: keeps.map(Into::into),
        usage: None,
    };
    let all = || {
        vec![
            session("11111111-aaaa"),
            user_message("a", "one"),
            user_message("b", "two"),
            user_message("c", "kept"),
            event("k1", compacted(Some("c"))),
            user_message("d", "four"),
            event("k2", compacted(None)),
        ]
    };
    import(&tl, all()).await;
    assert_eq!(import(&tl, all()).await.appended, 0);
    let there = find(&tl, "11111111-aaaa").await;
    let entries = there.entries(Seq(1), 100).await.unwrap();
    let covers: Vec<_> = entries
        .iter()
        .filter_map(|entry| match &entry.body {
            Body::Checkpoint(checkpoint) => Some((checkpoint.covers, checkpoint.messages)),
            _ => None,
        })
        .collect();
    assert_eq!(covers, [(Seq(2), 2), (Seq(5), 2)]);
}

#[tokio::test]
async fn a_fork_shares_what_it_repeats() {
    let tl = open().await;
    import(
        &tl,
        vec![
            session("11111111-aaaa"),
            user_message("a", "one"),
            user_message("b", "two"),
        ],
    )
    .await;
    let fork = || {
        vec![
            forked("22222222-bbbb", "11111111-aaaa", None),
            user_message("x", "one"),
            user_message("y", "other"),
        ]
    };
    let report = import(&tl, fork()).await;
    assert_eq!(
        (report.created, report.appended, report.already_stored),
        (1, 1, 1)
    );
    let there = find(&tl, "22222222-bbbb").await;
    assert_eq!(texts(&there).await, ["one", "other"]);
    let lineage = there.header().await.unwrap().lineage;
    assert!(
        matches!(lineage, Lineage::Forked { at: Seq(1), .. }),
        "{lineage:?}"
    );
    let again = import(&tl, fork()).await;
    assert_eq!(
        (again.created, again.appended, again.already_stored),
        (0, 0, 2)
    );
}

#[tokio::test]
async fn a_fork_that_repeats_nothing_is_made_at_the_entry_it_names() {
    let tl = open().await;
    import(
        &tl,
        vec![
            session("11111111-aaaa"),
            user_message("1", "one"),
            user_message("3", "two"),
            user_message("9", "x"),
        ],
    )
    .await;
    // Record 4 is not an entry: the one before it is used.
    let fork = vec![
        forked("22222222-bbbb", "11111111-aaaa", Some("4")),
        user_message("10", "on"),
    ];
    import(&tl, fork).await;
    let there = find(&tl, "22222222-bbbb").await;
    assert_eq!(texts(&there).await, ["one", "two", "on"]);
}

#[tokio::test]
async fn a_title_alone_creates_no_session_but_names_an_existing_one() {
    let tl = open().await;
    let titled = || ImportEvent::Titled {
        title: "Fix the Build".into(),
        by_person: true,
    };
    let only = vec![session("11111111-aaaa"), event("t", titled())];
    assert_eq!(import(&tl, only.clone()).await.created, 0);
    import(
        &tl,
        vec![session("11111111-aaaa"), user_message("a", "one")],
    )
    .await;
    import(&tl, only).await;
    let info = find(&tl, "11111111-aaaa")
        .await
        .record()
        .await
        .unwrap()
        .info;
    assert_eq!(info.name.unwrap().as_str(), "fix-the-build");
    assert_eq!(info.description.as_deref(), Some("Fix the Build"));
}

#[tokio::test]
async fn a_ledger_is_stored_and_visible_to_its_owner_only() {
    let tl = open().await;
    let row = |read: u64| throughline::LedgerRow {
        bytes: 10,
        modified: 1,
        read,
        digest: throughline::Digest::of(b"x"),
        reader: None,
        sessions: 1,
        messages: 2,
    };
    let mut ledger = tl.load_ledger("pi", "/sessions").await.unwrap();
    ledger
        .record(vec![("a".into(), row(1)), ("b".into(), row(2))])
        .await
        .unwrap();
    ledger.record(vec![("a".into(), row(3))]).await.unwrap();
    let again = tl.load_ledger("pi", "/sessions").await.unwrap();
    assert_eq!(again.row("a").unwrap().read, 3);
    assert_eq!(again.row("b").unwrap().read, 2);
    assert!(
        tl.load_ledger("pi", "/elsewhere")
            .await
            .unwrap()
            .row("a")
            .is_none()
    );
    let other = tl.on_behalf_of("somebody".parse().unwrap());
    assert!(
        other
            .load_ledger("pi", "/sessions")
            .await
            .unwrap()
            .row("a")
            .is_none()
    );
    assert!(
        tl.list_all(&throughline::SessionFilter::default())
            .await
            .unwrap()
            .is_empty()
    );
}

#[tokio::test]
async fn entries_added_to_a_local_fork_stay_in_it() {
    let tl = open().await;
    let origin = tl.create(throughline::NewSession::default()).await.unwrap();
    origin
        .append(Message::text(Role::User, "said here"))
        .await
        .unwrap();
    let new = throughline::NewSession {
        id: Some("22222222-bbbb".parse().unwrap()),
        key: Some("other:22222222-bbbb".parse().unwrap()),
        ..throughline::NewSession::default()
    };
    origin.fork(None, new).await.unwrap();
    let report = import(
        &tl,
        vec![session("22222222-bbbb"), user_message("x", "said there")],
    )
    .await;
    assert_eq!((report.created, report.forked, report.appended), (0, 0, 1));
    let there = find(&tl, "22222222-bbbb").await;
    assert_eq!(texts(&there).await, ["said here", "said there"]);
    assert_eq!(texts(&origin).await, ["said here"]);
}

#[tokio::test]
async fn a_long_session_is_imported_completely_and_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let store = format!("sqlite:{}", folder.path().join("sessions.db").display());
    let tl = Throughline::open(&store).await.unwrap();
    let count = 20_000;
    let all = |first_text: &str| {
        let mut all = vec![session("long-session"), user_message("m0", first_text)];
        for number in 1..count {
            // Another session in between, and an entry that is repeated much later.
            if number == 9_000 {
                all.extend([
                    session("short-session"),
                    user_message("s1", "Meanwhile"),
                    session("long-session"),
                ]);
            }
            if number == 15_000 {
                all.push(user_message("m0", first_text));
            }
            all.push(user_message(
                &format!("m{number}"),
                &format!("Step {number}"),
            ));
        }
        all
    };
    let first = import(&tl, all("Begin")).await;
    assert!(first.failed.is_empty(), "{:?}", first.failed);
    assert_eq!((first.created, first.forked), (2, 0));
    assert_eq!((first.appended, first.already_stored), (count + 1, 1));
    let long = find(&tl, "long-session").await;
    let texts = texts(&long).await;
    assert_eq!(texts.len() as u64, count);
    assert_eq!(texts[0], "Begin");
    for (number, text) in texts.iter().enumerate().skip(1) {
        assert_eq!(*text, format!("Step {number}"));
    }
    let again = import(&tl, all("Begin")).await;
    assert_eq!((again.created, again.appended), (0, 0));
    assert_eq!(again.already_stored, count + 2);
}

#[tokio::test]
async fn sources_are_reported_one_by_one() {
    let tl = open().await;
    let mut importer = Importer::new(tl.clone());
    for number in 0..3 {
        importer
            .add(session(&format!("session-{number}")))
            .await
            .unwrap();
        for index in 0..=number {
            let text = format!("{number}.{index}");
            importer.add(user_message(&text, &text)).await.unwrap();
        }
        importer.next_source();
    }
    importer.flush().await.unwrap();
    let reports: Vec<_> = importer
        .take_finished()
        .iter()
        .map(|r| r.appended)
        .collect();
    assert_eq!(reports, [1, 2, 3]);
    assert!(importer.take_finished().is_empty(), "each is reported once");
    let rest = importer.finish().await.unwrap();
    assert_eq!((rest.created, rest.appended), (0, 0));
}

#[tokio::test]
async fn a_session_from_two_sources_is_imported_once_and_in_order() {
    let tl = open().await;
    let mut importer = Importer::new(tl.clone());
    let first = [
        session("shared-session"),
        user_message("a", "one"),
        user_message("b", "two"),
    ];
    let second = [
        session("shared-session"),
        user_message("b", "two"),
        user_message("c", "three"),
    ];
    for source in [first, second] {
        for incoming in source {
            importer.add(incoming).await.unwrap();
        }
        importer.next_source();
    }
    importer.flush().await.unwrap();
    let reports = importer.take_finished();
    let figures = reports
        .iter()
        .map(|r| (r.created, r.appended, r.already_stored));
    assert_eq!(figures.collect::<Vec<_>>(), [(1, 2, 0), (0, 1, 1)]);
    let there = find(&tl, "shared-session").await;
    assert_eq!(texts(&there).await, ["one", "two", "three"]);
}

#[tokio::test]
async fn a_local_message_during_an_import_moves_the_rest_to_a_fork() {
    let tl = open().await;
    let mut importer = Importer::new(tl.clone());
    importer.add(session("long-session")).await.unwrap();
    let mut number = 0;
    let mut more = async |importer: &mut Importer, count: u64| {
        for _ in 0..count {
            number += 1;
            let text = format!("Step {number}");
            importer.add(user_message(&text, &text)).await.unwrap();
        }
    };
    more(&mut importer, 3_000).await;
    let here = find(&tl, "long-session").await;
    let imported = texts(&here).await.len();
    assert!(imported > 0 && imported < 3_000, "{imported}");
    here.append(Message::text(Role::User, "And I say"))
        .await
        .unwrap();
    more(&mut importer, 3_000).await;
    let report = importer.finish().await.unwrap();
    assert_eq!(
        (report.created, report.forked, report.appended),
        (2, 1, 6_000)
    );

    let mut local_texts = texts(&here).await;
    assert_eq!(local_texts.pop().as_deref(), Some("And I say"));
    assert_eq!(local_texts.len(), imported);
    let infos = tl
        .list_all(&throughline::SessionFilter::default())
        .await
        .unwrap();
    let fork = infos.iter().find(|info| info.id != *here.id()).unwrap();
    let fork = texts(&tl.session(&fork.id).await.unwrap()).await;
    assert_eq!(fork.len(), 6_000);
    for (number, text) in (1..).zip(&fork) {
        assert_eq!(*text, format!("Step {number}"));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn local_writes_during_an_import_lose_and_duplicate_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let store = format!("sqlite:{}", folder.path().join("sessions.db").display());
    let tl = Throughline::open(&store).await.unwrap();
    let count = 20_000;
    let all = || {
        let step = |number| user_message(&format!("m{number}"), &format!("Step {number}"));
        std::iter::once(session("long-session")).chain((0..count).map(step))
    };
    let writer = tokio::spawn({
        let tl = tl.clone();
        async move {
            let spec: SessionSpec = "long-session".parse().unwrap();
            let mut written = 0;
            while written < 40 {
                if let Ok(session) = tl.resolve(&spec, &[]).await {
                    let message = Message::text(Role::User, format!("Here {written}"));
                    session.append(message).await.unwrap();
                    written += 1;
                }
                tokio::task::yield_now().await;
            }
        }
    });
    let mut times = 0;
    loop {
        let mut importer = Importer::new(tl.clone());
        for incoming in all() {
            importer.add(incoming).await.unwrap();
        }
        let report = importer.finish().await.unwrap();
        assert_eq!(report.failed.is_empty(), !report.should_retry);
        times += 1;
        if !report.should_retry && writer.is_finished() {
            break;
        }
        assert!(times < 100, "the import succeeds once nobody else writes");
    }
    writer.await.unwrap();
    let again = import(&tl, all().collect()).await;
    assert_eq!(
        (again.created, again.appended, again.already_stored),
        (0, 0, count)
    );

    let mut here = Vec::new();
    let mut steps = std::collections::BTreeMap::<String, u64>::new();
    for info in tl
        .list_all(&throughline::SessionFilter::default())
        .await
        .unwrap()
    {
        let session = tl.session(&info.id).await.unwrap();
        let header = session.header().await.unwrap();
        let own = match header.lineage {
            Lineage::Forked { at, .. } => at.next(),
            Lineage::Root | Lineage::Continued { .. } => Seq(1),
        };
        let mut next = own;
        while let Some(entry) = session.entries(next, 1).await.unwrap().pop() {
            next = entry.seq.next();
            let Some(message) = entry.message() else {
                continue;
            };
            let text = message.content.to_text().into_owned();
            if text.starts_with("Here") {
                here.push(text);
            } else {
                *steps.entry(text).or_default() += 1;
            }
        }
    }
    assert_eq!(here.len(), 40);
    assert_eq!(steps.len() as u64, count);
    assert!(steps.values().all(|times| *times == 1), "some came twice");
}

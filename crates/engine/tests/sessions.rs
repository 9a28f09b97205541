//! Tests of the public session API.

#![allow(clippy::unwrap_used, reason = "tests")]

use throughline::{
    Block, Body, ConflictPolicy, Content, EntryIdentity, Error, ErrorKind, Expect, Importer,
    IncomingEntry, IncomingItem, IncomingSession, Json, MergeOutcome, MergeStyle, Message,
    NewSession, PurgeOptions, Role, Seq, Session, SessionFilter, SessionSpec, Throughline,
    ToolCall, ToolResult,
};

async fn open() -> Throughline {
    Throughline::open("memory:").await.unwrap()
}

async fn session_with(tl: &Throughline, texts: &[&str]) -> Session {
    let session = tl.create(NewSession::default()).await.unwrap();
    for text in texts {
        say(&session, text).await;
    }
    session
}

async fn say(session: &Session, text: &str) {
    session
        .append(Message::text(Role::User, text))
        .await
        .unwrap();
}

async fn texts(session: &Session) -> Vec<String> {
    let entries = session.entries(Seq(1), 1_000).await.unwrap();
    let messages = entries.iter().filter_map(|entry| entry.message());
    messages
        .map(|message| message.content.to_text().into_owned())
        .collect()
}

fn spec(text: &str) -> SessionSpec {
    text.parse().unwrap()
}

fn call(id: &str) -> Message {
    let call = ToolCall {
        id: id.into(),
        name: "read".into(),
        input: Json::parse("{}").unwrap(),
    };
    Message::new(Role::Assistant, Content(vec![Block::ToolCall(call)]))
}

fn result(id: &str) -> Message {
    let result = ToolResult {
        call_id: id.into(),
        content: Content::text("out"),
        is_error: false,
    };
    Message::new(Role::Tool, Content(vec![Block::ToolResult(result)]))
}

#[tokio::test]
async fn a_fork_never_separates_a_tool_call_from_its_result() {
    let tl = open().await;
    let session = session_with(&tl, &["look it up"]).await;
    for message in [call("a"), call("b"), result("a"), result("b")] {
        session.append(message).await.unwrap();
    }
    say(&session, "thanks").await;

    for (requested, got) in [(1, 1), (2, 4), (3, 5), (4, 5), (5, 5), (6, 6)] {
        let fork = session
            .fork(Some(Seq(requested)), NewSession::default())
            .await
            .unwrap();
        assert_eq!(fork.at, Seq(got), "requested {requested}");
    }
}

#[tokio::test]
async fn a_call_that_was_never_answered_is_ignored() {
    let tl = open().await;
    let session = session_with(&tl, &["look it up"]).await;
    session.append(call("a")).await.unwrap();
    say(&session, "never mind").await;
    session.append(result("a")).await.unwrap();
    let fork = session
        .fork(Some(Seq(2)), NewSession::default())
        .await
        .unwrap();
    assert_eq!(fork.at, Seq(2));
}

#[tokio::test]
async fn rewinding_keeps_tool_pairs_together_too() {
    let tl = open().await;
    let session = session_with(&tl, &["look"]).await;
    session.append(call("a")).await.unwrap();
    session.append(result("a")).await.unwrap();
    say(&session, "more").await;
    assert_eq!(session.rewind(Seq(2)).await.unwrap(), Seq(3));
    assert!(session.rewind(Seq(99)).await.is_err());
}

#[tokio::test]
async fn an_unchanged_origin_is_fast_forwarded_with_the_same_numbers() {
    let tl = open().await;
    let origin = session_with(&tl, &["1", "2"]).await;
    let fork = origin
        .fork(None, NewSession::default())
        .await
        .unwrap()
        .session;
    say(&fork, "3").await;
    say(&fork, "4").await;

    let merged = origin.merge(&fork, &MergeStyle::FastForward).await.unwrap();

    assert_eq!(merged, MergeOutcome::FastForwarded { entries: 2 });
    assert_eq!(texts(&origin).await, ["1", "2", "3", "4"]);
    let (ours, theirs) = (origin.record().await.unwrap(), fork.record().await.unwrap());
    assert_eq!(ours.info.digest, theirs.info.digest);
    let again = origin.merge(&fork, &MergeStyle::FastForward).await.unwrap();
    assert_eq!(again, MergeOutcome::UpToDate);
    assert!(origin.tree().await.unwrap().children[0].merged);
}

#[tokio::test]
async fn a_changed_origin_is_merged_only_in_the_requested_style() {
    let tl = open().await;
    let origin = session_with(&tl, &["1"]).await;
    let fork = origin
        .fork(None, NewSession::default())
        .await
        .unwrap()
        .session;
    say(&fork, "theirs").await;
    fork.pin("a fact").await.unwrap();
    fork.rename(Some("a name")).await.unwrap();
    say(&origin, "ours").await;

    let refused = origin
        .merge(&fork, &MergeStyle::FastForward)
        .await
        .unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Conflict);

    let merged = origin.merge(&fork, &MergeStyle::Append).await.unwrap();
    assert_eq!(merged, MergeOutcome::Appended { entries: 2 });
    assert_eq!(texts(&origin).await, ["1", "ours", "theirs"]);
    let record = origin.record().await.unwrap();
    assert_eq!(record.state.pins.len(), 1);
    assert_eq!(record.info.name, None);
    let head = record.info.head;
    origin.merge(&fork, &MergeStyle::Append).await.unwrap();
    assert_eq!(origin.record().await.unwrap().info.head, head);
}

#[tokio::test]
async fn a_fork_can_be_merged_as_a_summary() {
    let tl = open().await;
    let origin = session_with(&tl, &["1"]).await;
    let fork = origin
        .fork(None, NewSession::default())
        .await
        .unwrap()
        .session;
    say(&fork, "x").await;
    say(&origin, "2").await;
    let style = MergeStyle::Summary("tried x, no good".into());
    assert_eq!(
        origin.merge(&fork, &style).await.unwrap(),
        MergeOutcome::Summarized
    );
    let last = origin.tail(1).await.unwrap().remove(0);
    assert!(
        matches!(last.body, Body::Merged(merge) if merge.summary.as_deref() == Some("tried x, no good"))
    );
}

#[tokio::test]
async fn unrelated_sessions_cannot_be_merged() {
    let tl = open().await;
    let (a, b) = (
        session_with(&tl, &["a"]).await,
        session_with(&tl, &["b"]).await,
    );
    let style = MergeStyle::Append;
    assert!(matches!(
        a.merge(&b, &style).await,
        Err(Error::NotAFork { .. })
    ));
    assert!(matches!(
        a.merge(&a, &style).await,
        Err(Error::MergeIntoSelf(_))
    ));
}

#[tokio::test]
async fn a_session_is_found_by_id_prefix_key_and_name() {
    let tl = open().await;
    let id = |text: &str| Some(text.parse().unwrap());
    let new = NewSession {
        id: id("2026-01-01-aaa"),
        key: Some("bot:1".parse().unwrap()),
        ..NewSession::named("Auth Work").unwrap()
    };
    tl.create(new).await.unwrap();
    tl.create(NewSession {
        id: id("2026-01-02-bbb"),
        ..NewSession::default()
    })
    .await
    .unwrap();
    let listing = [id("2026-01-02-bbb").unwrap(), id("2026-01-01-aaa").unwrap()];
    let found = async |text: &str| {
        tl.resolve(&spec(text), &listing)
            .await
            .map(|session| session.id().to_string())
    };

    for text in ["2026-01-01-aaa", "2026-01-01", "bot:1", "auth-work", "2"] {
        assert_eq!(found(text).await.unwrap(), "2026-01-01-aaa", "{text}");
    }
    assert_eq!(found("1").await.unwrap(), "2026-01-02-bbb");
    assert!(matches!(found("2026").await, Err(Error::Ambiguous(a)) if a.candidates.len() == 2));
    assert!(matches!(found("nothing").await, Err(Error::NoMatch(_))));
    assert!(matches!(
        found("9").await,
        Err(Error::NotListed {
            number: 9,
            listed: 2
        })
    ));
    assert!(found("last").await.is_ok());
}

#[tokio::test]
async fn a_trashed_session_is_distinguished_from_a_missing_one() {
    let tl = open().await;
    let session = session_with(&tl, &["x"]).await;
    let text = spec(session.id().as_str());
    tl.trash(session.id()).await.unwrap();
    let error = tl.resolve(&text, &[]).await.unwrap_err();
    assert!(error.to_string().contains("is in the trash"));
    assert_eq!(&tl.resolve_trashed(&text, &[]).await.unwrap(), session.id());
    tl.restore(session.id()).await.unwrap();
    assert!(tl.resolve(&text, &[]).await.is_ok());
}

#[tokio::test]
async fn a_purge_does_what_is_requested_and_nothing_else() {
    let tl = open().await;
    for _ in 0..4 {
        session_with(&tl, &["x"]).await;
    }
    assert_eq!(
        tl.purge(PurgeOptions::default()).await.unwrap(),
        throughline::PurgeReport::default()
    );
    let rehearsal = PurgeOptions {
        max_sessions: Some(1),
        dry_run: true,
        ..PurgeOptions::default()
    };
    assert_eq!(tl.purge(rehearsal).await.unwrap().trashed.len(), 3);
    assert_eq!(tl.count(&SessionFilter::default()).await.unwrap(), 4);

    let most = PurgeOptions {
        max_sessions: Some(1),
        ..PurgeOptions::default()
    };
    assert_eq!(tl.purge(most).await.unwrap().trashed.len(), 3);
    assert_eq!(tl.list_trashed().await.unwrap().len(), 3);

    let young = PurgeOptions {
        grace: Some(jiff::SignedDuration::from_hours(1)),
        ..PurgeOptions::default()
    };
    assert!(tl.purge(young).await.unwrap().removed.is_empty());
    let all = PurgeOptions {
        grace: Some(jiff::SignedDuration::from_secs(-60)),
        ..PurgeOptions::default()
    };
    assert_eq!(tl.purge(all).await.unwrap().removed.len(), 3);
    assert_eq!(tl.count(&SessionFilter::default()).await.unwrap(), 1);
}

#[tokio::test]
async fn a_conflicting_append_becomes_a_fork_on_request() {
    let tl = open().await;
    let session = session_with(&tl, &["1", "2"]).await;
    let late = vec![session.new_entry(Message::text(Role::User, "late"))];
    let appended = session
        .append_all(late, Expect::At(Seq(1)), ConflictPolicy::Fork)
        .await
        .unwrap();
    assert_ne!(&appended.session, session.id());
    let fork = tl.session(&appended.session).await.unwrap();
    assert_eq!(texts(&fork).await, ["1", "late"]);
}

#[tokio::test]
async fn pins_are_removed_by_number_or_text() {
    let tl = open().await;
    let session = session_with(&tl, &[]).await;
    let pin = session.pin("one").await.unwrap();
    session.pin("two").await.unwrap();
    session.unpin(&pin.seq.to_string()).await.unwrap();
    session.unpin("two").await.unwrap();
    assert!(session.record().await.unwrap().state.pins.is_empty());
    assert!(matches!(
        session.unpin("two").await,
        Err(Error::NoSuchPin(_))
    ));
}

#[tokio::test]
async fn different_content_under_a_known_id_is_a_conflict() {
    let tl = open().await;
    let session = session_with(&tl, &[]).await;
    let entry_with_text = |text: &str| {
        let mut entry = session.new_entry(Message::text(Role::User, text));
        entry.id = throughline::EntryId::from_external(session.id(), "m1");
        entry.external_id = Some("m1".into());
        vec![entry]
    };
    let append = |entries| session.append_all(entries, Expect::Any, ConflictPolicy::Reject);
    append(entry_with_text("one")).await.unwrap();
    assert!(append(entry_with_text("one")).await.is_ok());
    let other = append(entry_with_text("two")).await.unwrap_err();
    assert_eq!(other.kind(), ErrorKind::Conflict);
    let report = import(
        &tl,
        vec![incoming(session.id().as_str(), "three", Some("m1"), 7)],
    )
    .await;
    assert_eq!(report.failed.len(), 1);
    assert_eq!(texts(&session).await, ["one"]);
}

#[tokio::test]
async fn a_fork_that_has_grown_is_merged_again_without_duplicates() {
    let tl = open().await;
    let origin = session_with(&tl, &["1"]).await;
    let fork = origin
        .fork(None, NewSession::default())
        .await
        .unwrap()
        .session;
    say(&fork, "a").await;
    say(&origin, "2").await;
    let append = |n: u64| MergeOutcome::Appended { entries: n };
    assert_eq!(
        origin.merge(&fork, &MergeStyle::Append).await.unwrap(),
        append(1)
    );
    assert_eq!(
        origin.merge(&fork, &MergeStyle::Append).await.unwrap(),
        MergeOutcome::UpToDate
    );
    say(&fork, "b").await;
    assert_eq!(
        origin.merge(&fork, &MergeStyle::Append).await.unwrap(),
        append(1)
    );
    assert_eq!(texts(&origin).await, ["1", "2", "a", "b"]);
}

#[tokio::test]
async fn a_name_is_found_as_it_was_typed() {
    let tl = open().await;
    tl.create(NewSession::named("Auth Work").unwrap())
        .await
        .unwrap();
    assert!(tl.resolve(&spec("Auth Work"), &[]).await.is_ok());
    assert!(tl.resolve(&spec("AUTH-WORK"), &[]).await.is_ok());
}

fn incoming(session: &str, text: &str, id: Option<&str>, line: u64) -> [IncomingItem; 2] {
    let session = IncomingSession {
        id: session.into(),
        ..IncomingSession::default()
    };
    let own = |id: &str| EntryIdentity::External(id.to_owned());
    let entry = IncomingEntry {
        identity: id.map_or(EntryIdentity::Content, own),
        ..IncomingEntry::message(line, None, None, Message::text(Role::User, text))
    };
    [
        IncomingItem::Session(Box::new(session)),
        IncomingItem::Entry(Box::new(entry)),
    ]
}

async fn import(tl: &Throughline, messages: Vec<[IncomingItem; 2]>) -> throughline::ImportReport {
    let mut importer = Importer::new(tl.clone());
    for incoming in messages.into_iter().flatten() {
        importer.add(incoming).await.unwrap();
    }
    importer.finish().await.unwrap()
}

#[tokio::test]
async fn an_import_can_be_repeated_without_duplicates() {
    let tl = open().await;
    let messages = || {
        vec![
            incoming("conv-1", "hello", Some("m1"), 1),
            incoming("a chat / with spaces", "hi", None, 2),
            incoming("conv-1", "ok", None, 3),
            incoming("conv-1", "ok", None, 4),
            incoming("conv-1", "hello", Some("m1"), 5),
        ]
    };
    let first = import(&tl, messages()).await;
    assert_eq!(
        (first.created, first.appended, first.already_stored),
        (2, 4, 1)
    );
    let again = import(&tl, messages()).await;
    assert_eq!(
        (again.created, again.appended, again.already_stored),
        (0, 0, 5)
    );

    let grown = import(
        &tl,
        [messages(), vec![incoming("conv-1", "new", None, 6)]].concat(),
    )
    .await;
    assert_eq!(grown.appended, 1);
    let session = tl.resolve(&spec("conv-1"), &[]).await.unwrap();
    assert_eq!(texts(&session).await, ["hello", "ok", "ok", "new"]);
    let entries = session.entries(Seq(1), 1).await.unwrap();
    assert_eq!(entries[0].external_id.as_deref(), Some("m1"));
    assert!(tl.resolve(&spec("a-chat-with-spaces"), &[]).await.is_ok());
}

#[tokio::test]
async fn a_session_that_rejects_messages_does_not_affect_others() {
    let tl = open().await;
    let trashed = session_with(&tl, &["x"]).await;
    tl.trash(trashed.id()).await.unwrap();
    let report = import(
        &tl,
        vec![
            incoming(trashed.id().as_str(), "lost?", None, 1),
            incoming("fine", "kept", None, 2),
            incoming("bad\u{7}", "control", None, 3),
        ],
    )
    .await;
    assert_eq!(report.appended, 1);
    assert_eq!(
        report
            .failed
            .iter()
            .map(|(line, _)| *line)
            .collect::<Vec<_>>(),
        [1, 3]
    );
}

#[tokio::test]
async fn the_working_set_follows_what_is_visible() {
    let tl = open().await;
    let session = session_with(&tl, &["old", "look at src/main.rs"]).await;
    session.decide("use SQLite").await.unwrap();
    let set = session.working_set(1, 100_000, 100).await.unwrap();
    assert_eq!(set.files_touched, ["src/main.rs"]);
    assert_eq!(set.decisions, ["use SQLite"]);
    assert_eq!(set.recent_messages.len(), 1);
    session.clear().await.unwrap();
    assert!(
        session
            .working_set(9, 100_000, 100)
            .await
            .unwrap()
            .recent_messages
            .is_empty()
    );
    assert_eq!(session.checkpoint_view().await.unwrap().version, 0);
}

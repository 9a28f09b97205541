//! Tests of copying a whole store into another of any kind.

#![allow(clippy::unwrap_used, reason = "a test")]

use throughline::{
    Append, Attachment, Block, Body, EntryId, Message, MigrationReport, NewEntry, Owner, Role, Seq,
    SessionHeader, SessionRef, Throughline, Timestamp, migrate,
};
use throughline_postgres::test_database::TestDatabase;

fn timestamp(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).unwrap()
}

fn session(owner: &str, id: &str) -> SessionRef {
    let owner: Owner = owner.parse().unwrap();
    owner.session(&id.parse().unwrap())
}

async fn create_session(tl: &Throughline, of: &SessionRef, key: Option<&str>) {
    let mut header = SessionHeader::new(of.id.clone(), timestamp(0));
    header.key = key.map(|key| key.parse().unwrap());
    tl.store().create(&of.owner, header).await.unwrap();
}

async fn say(tl: &Throughline, to: &SessionRef, text: &str) {
    let id = EntryId::derive(&[to.owner.as_str().as_bytes(), text.as_bytes()]);
    let new = NewEntry::text(id, timestamp(1), Role::User, text);
    tl.store()
        .append(to, Append::unconditional(vec![new]))
        .await
        .unwrap();
}

/// Fills a store with all kinds of content for two owners.
async fn fill(tl: &Throughline) {
    let store = tl.store();
    for owner in ["alice", "bob"] {
        let long = session(owner, "long");
        create_session(tl, &long, None).await;
        let entries = (0..2_500).map(|n| {
            let id = EntryId::derive(&[owner.as_bytes(), format!("n{n}").as_bytes()]);
            NewEntry::text(id, timestamp(n), Role::User, format!("{n}"))
        });
        let append = Append::unconditional(entries.collect());
        store.append(&long, append).await.unwrap();
        let fork = SessionHeader::new("branch".parse().unwrap(), timestamp(5));
        store.fork(&long, Seq(2_400), fork).await.unwrap();
        say(tl, &session(owner, "branch"), "another way").await;
        let twig = SessionHeader::new("a-twig".parse().unwrap(), timestamp(6));
        let branch = session(owner, "branch");
        store.fork(&branch, Seq(2_401), twig).await.unwrap();

        // A trashed session whose key another one has now.
        let old = session(owner, "old");
        create_session(tl, &old, Some("bot:7")).await;
        say(tl, &old, "old words").await;
        store.trash(&old, timestamp(50)).await.unwrap();
        create_session(tl, &session(owner, "new"), Some("bot:7")).await;

        let blob = store.put_blob(&long.owner, b"png".to_vec()).await.unwrap();
        let mut picture = Message::text(Role::User, "look");
        picture.content.0.push(Block::Attachment(Attachment {
            blob,
            media_type: "image/png".into(),
            bytes: 3,
            name: None,
        }));
        let id = EntryId::derive(&[owner.as_bytes(), b"picture"]);
        let new = NewEntry::new(id, timestamp(9), Body::Message(picture));
        let append = Append::unconditional(vec![new]);
        store.append(&session(owner, "new"), append).await.unwrap();
        store.erase(&long, &[Seq(3)], Some("a slip")).await.unwrap();
    }
}

async fn copy(from: &Throughline, to: &Throughline) -> MigrationReport {
    let migrated = migrate(from.store(), to.store(), &|_, _| ()).await.unwrap();
    assert_eq!(migrated.differing, [], "not the same");
    assert_eq!(migrated.only_there, []);
    migrated
}

/// Fills a store, copies it into another, changes it, and copies it again.
async fn check_repeated_copies(from: &Throughline, to: &Throughline) {
    fill(from).await;
    let first = copy(from, to).await;
    assert_eq!((first.owners, first.sessions), (2, 10));
    // Own entries only: the shared entries of forks are not copied again.
    assert_eq!(first.copied, 2 * (2_500 + 1 + 1 + 1));
    assert_eq!(first.entries, 2 * (2_500 + 2_401 + 2_401 + 1 + 1));
    assert_eq!((first.blobs, first.missing_blobs), (2, 0));

    let again = copy(from, to).await;
    assert_eq!((again.copied, again.blobs), (0, 0));
    assert_eq!(again.entries, first.entries);

    // Later changes are copied by the next migration.
    say(from, &session("alice", "long"), "later").await;
    say(from, &session("alice", "a-twig"), "later still").await;
    let store = from.store();
    store.restore(&session("bob", "old")).await.unwrap_err();
    store
        .trash(&session("bob", "new"), timestamp(60))
        .await
        .unwrap();
    store.restore(&session("bob", "old")).await.unwrap();
    store
        .erase(&session("alice", "long"), &[Seq(4)], Some("another"))
        .await
        .unwrap();
    let later = copy(from, to).await;
    assert_eq!(later.copied, 2);
    let report = to.check(&|_, _| ()).await.unwrap();
    assert_eq!(report.findings, []);
    assert_eq!(report.sessions, 10);
}

#[tokio::test]
async fn a_store_is_copied_from_memory_into_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", folder.path().join("tl.db").display());
    let from = Throughline::open("memory:").await.unwrap();
    check_repeated_copies(&from, &Throughline::open(&url).await.unwrap()).await;
}

#[tokio::test]
async fn a_store_is_copied_from_a_file_into_a_database_and_back() {
    let Some(trial) = TestDatabase::new() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| format!("sqlite:{}", folder.path().join(name).display());
    let from = Throughline::open(&file("one.db")).await.unwrap();
    let far = Throughline::open(&trial.url()).await.unwrap();
    check_repeated_copies(&from, &far).await;
    let back = Throughline::open(&file("two.db")).await.unwrap();
    copy(&far, &back).await;
    copy(&from, &back).await;
}

#[tokio::test]
async fn a_store_is_copied_while_it_is_written_to() {
    let Some(trial) = TestDatabase::new() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", folder.path().join("tl.db").display());
    let from = Throughline::open(&url).await.unwrap();
    let to = Throughline::open(&trial.url()).await.unwrap();
    fill(&from).await;
    let writer = {
        let from = from.clone();
        tokio::spawn(async move {
            for count in 0..200 {
                say(
                    &from,
                    &session("alice", "new"),
                    &format!("meanwhile {count}"),
                )
                .await;
                tokio::task::yield_now().await;
            }
        })
    };
    // Entries written after the last pass are missing; nothing else differs.
    let during = migrate(from.store(), to.store(), &|_, _| ()).await.unwrap();
    for differing in &during.differing {
        assert_eq!(differing.session.as_str(), "new", "{differing:?}");
    }
    writer.await.unwrap();
    let after = copy(&from, &to).await;
    assert_eq!(after.sessions, 10);
}

#[tokio::test]
async fn diverged_sessions_are_reported_and_left_unchanged() {
    let from = Throughline::open("memory:").await.unwrap();
    let to = Throughline::open("memory:").await.unwrap();
    let of = session("alice", "s");
    create_session(&from, &of, None).await;
    create_session(&to, &of, None).await;
    say(&from, &of, "one").await;
    say(&to, &of, "two").await;
    create_session(&to, &session("alice", "extra"), None).await;
    let migrated = migrate(from.store(), to.store(), &|_, _| ()).await.unwrap();
    assert_eq!(migrated.differing.len(), 1);
    assert_eq!(migrated.only_there[0].session.as_str(), "extra");
    let entries = to.store().read(&of, throughline::ReadRange::tail(9)).await;
    assert_eq!(
        entries.unwrap()[0].message().unwrap().content.to_text(),
        "two"
    );
}

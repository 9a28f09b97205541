//! A store with a little of everything, in one file.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use throughline_model::{
    Attachment, Block, Body, Content, Digest, EntryId, Mark, Message, NewEntry, Owner, Project,
    Role, Seq, SessionId, StoredEntry,
};
use throughline_sqlite::{Salvaged, SqliteStore, salvage};
use throughline_store::{Append, BlobStore, Catalog, Expect, LogStore, OnConflict, Store, Upkeep};

use super::{append, at, birth, entry, fill, findings, logs, open, run, session};

pub(crate) const PAGE: usize = 4096;

pub(crate) fn other() -> Owner {
    "telegram:77".parse().unwrap()
}

/// A store with a little of everything.
pub(crate) async fn make(path: &Path) -> SqliteStore {
    let store = open(path);
    fill(&store, "plain", 120, 200).await;
    fill(&store, "long", 7, 9_000).await;
    let origin = fill(&store, "origin", 30, 100).await;

    // Forks of forks, one inside what is inherited, and one whose origin is removed.
    for (of, fork, at) in [
        ("origin", "fork", 20),
        ("fork", "deep", 23),
        ("deep", "inside", 10),
        ("origin", "early", 5),
    ] {
        store
            .fork(&session(of), Seq(at), birth(fork))
            .await
            .unwrap();
        for name in ["a", "b", "c", "d", "e"] {
            append(
                &store,
                &session(fork),
                entry(&format!("{fork}-{name}"), name),
            )
            .await;
        }
    }
    let removed = fill(&store, "removed", 8, 100).await;
    store.fork(&removed, Seq(6), birth("orphan")).await.unwrap();
    append(&store, &session("orphan"), entry("orphan-7", "on my own")).await;
    store.trash(&removed, at(50)).await.unwrap();
    store.remove(&removed).await.unwrap();

    // A key that one session in use and one in the trash have.
    for (id, trashed) in [("first", true), ("second", false)] {
        let mut birth = birth(id);
        birth.key = Some("telegram:123".parse().unwrap());
        store.create(&Owner::local(), birth).await.unwrap();
        append(&store, &session(id), entry(id, id)).await;
        if trashed {
            store.trash(&session(id), at(60)).await.unwrap();
        }
    }

    let blob = store
        .put_blob(&Owner::local(), vec![0xab; 20_000])
        .await
        .unwrap();
    let mut message = Message::text(Role::User, "look");
    message.content = Content(vec![Block::Attachment(attachment(blob))]);
    let new = entry("picture", "");
    let new = NewEntry::new(new.id, new.at, Body::Message(message));
    append(&store, &origin, new).await;

    store
        .erase(&session("plain"), &[Seq(4)], None)
        .await
        .unwrap();
    let late = Append {
        expect: Expect::At(Seq(2)),
        on_conflict: OnConflict::Rebase,
        ..Append::any(vec![entry("late", "late")])
    };
    store.append(&session("plain"), late).await.unwrap();

    let mark = Mark::Folder("/home/ada/engine".into());
    let project = Project {
        id: mark.project_id().unwrap(),
        name: "engine".into(),
        marks: vec![mark],
    };
    store.put_project(&Owner::local(), &project).await.unwrap();
    let theirs = other().session(&"plain".parse().unwrap());
    store.create(&other(), birth("plain")).await.unwrap();
    let append = Append::any(vec![entry("theirs", "nobody else's")]);
    store.append(&theirs, append).await.unwrap();
    store
}

fn attachment(blob: Digest) -> Attachment {
    Attachment {
        blob,
        media_type: "image/png".into(),
        bytes: 20_000,
        name: None,
    }
}

pub(crate) type Logs = BTreeMap<(String, SessionId), Vec<StoredEntry>>;

/// The bytes of such a store in one file, and what is in it.
pub(crate) fn sample() -> &'static (Vec<u8>, Logs) {
    static SAMPLE: OnceLock<(Vec<u8>, Logs)> = OnceLock::new();
    // In a thread of its own, since whoever asks first may be running a test already.
    let make_it = || {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sessions.db");
        run(async {
            let store = make(&path).await;
            assert_eq!(findings(&store).await, []);
            let logs = logs(&store).await.unwrap();
            store.close().await.unwrap();
            (std::fs::read(&path).unwrap(), logs)
        })
    };
    SAMPLE.get_or_init(|| std::thread::spawn(make_it).join().unwrap())
}

pub(crate) fn written(bytes: &[u8]) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("damaged.db");
    std::fs::write(&path, bytes).unwrap();
    (folder, path)
}

pub(crate) async fn salvaged(path: &Path, into: &dyn Store) -> Salvaged {
    let salvaged = salvage(path, into, &|done, total| assert!(done <= total)).await;
    salvaged.expect("salvaged")
}

/// The ids of entries.
pub(crate) fn ids(logs: &Logs) -> BTreeSet<EntryId> {
    logs.values().flatten().map(|entry| entry.id).collect()
}

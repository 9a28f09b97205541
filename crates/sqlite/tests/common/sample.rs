//! A sample store with every kind of data, in one file.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use throughline_model::{
    Attachment, Block, Body, Content, Digest, EntryId, Message, NewEntry, Owner, Project,
    ProjectMarker, Role, Seq, SessionId, StoredEntry,
};
use throughline_sqlite::{SalvageReport, SqliteStore, salvage};
use throughline_store::{
    Append, BlobStore, Catalog, Expect, LogStore, Maintenance, OnConflict, Store,
};

use super::{append, at, fill_session, findings, header, logs, named_entry, open, run, session};

pub(crate) const PAGE: usize = 4096;

pub(crate) fn other_owner() -> Owner {
    "telegram:77".parse().unwrap()
}

/// Creates a store with every kind of data.
pub(crate) async fn create_sample_store(path: &Path) -> SqliteStore {
    let store = open(path);
    fill_session(&store, "plain", 120, 200).await;
    fill_session(&store, "long", 7, 9_000).await;
    let origin = fill_session(&store, "origin", 30, 100).await;

    // Forks of forks, one inside the inherited part, and one whose origin is removed.
    for (of, fork, at) in [
        ("origin", "fork", 20),
        ("fork", "deep", 23),
        ("deep", "inside", 10),
        ("origin", "early", 5),
    ] {
        store
            .fork(&session(of), Seq(at), header(fork))
            .await
            .unwrap();
        for name in ["a", "b", "c", "d", "e"] {
            append(
                &store,
                &session(fork),
                named_entry(&format!("{fork}-{name}"), name),
            )
            .await;
        }
    }
    let removed = fill_session(&store, "removed", 8, 100).await;
    store
        .fork(&removed, Seq(6), header("orphan"))
        .await
        .unwrap();
    append(
        &store,
        &session("orphan"),
        named_entry("orphan-7", "on my own"),
    )
    .await;
    store.trash(&removed, at(50)).await.unwrap();
    store.remove(&removed).await.unwrap();

    // A key that a live session and a trashed one have.
    for (id, trashed) in [("first", true), ("second", false)] {
        let mut keyed = header(id);
        keyed.key = Some("telegram:123".parse().unwrap());
        store.create(&Owner::local(), keyed).await.unwrap();
        append(&store, &session(id), named_entry(id, id)).await;
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
    let new = named_entry("picture", "");
    let new = NewEntry::new(new.id, new.at, Body::Message(message));
    append(&store, &origin, new).await;

    store
        .erase(&session("plain"), &[Seq(4)], None)
        .await
        .unwrap();
    let late = Append {
        expect: Expect::At(Seq(2)),
        on_conflict: OnConflict::Rebase,
        ..Append::unconditional(vec![named_entry("late", "late")])
    };
    store.append(&session("plain"), late).await.unwrap();

    let mark = ProjectMarker::Folder("/home/ada/engine".into());
    let project = Project {
        id: mark.project_id().unwrap(),
        name: "engine".into(),
        markers: vec![mark],
    };
    store.put_project(&Owner::local(), &project).await.unwrap();
    let theirs = other_owner().session(&"plain".parse().unwrap());
    store.create(&other_owner(), header("plain")).await.unwrap();
    let append = Append::unconditional(vec![named_entry("theirs", "nobody else's")]);
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

/// Returns the bytes of a sample store and its logs.
pub(crate) fn sample_store() -> &'static (Vec<u8>, Logs) {
    static SAMPLE: OnceLock<(Vec<u8>, Logs)> = OnceLock::new();
    // In a separate thread, since the first caller may already be inside a runtime.
    let make_it = || {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sessions.db");
        run(async {
            let store = create_sample_store(&path).await;
            assert_eq!(findings(&store).await, []);
            let logs = logs(&store).await.unwrap();
            store.close().await.unwrap();
            (std::fs::read(&path).unwrap(), logs)
        })
    };
    SAMPLE.get_or_init(|| std::thread::spawn(make_it).join().unwrap())
}

pub(crate) fn write_damaged_file(bytes: &[u8]) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("damaged.db");
    std::fs::write(&path, bytes).unwrap();
    (folder, path)
}

pub(crate) async fn run_salvage(path: &Path, into: &dyn Store) -> SalvageReport {
    let salvaged = salvage(path, into, &|done, total| assert!(done <= total)).await;
    salvaged.expect("salvaged")
}

/// Returns the ids of entries.
pub(crate) fn entry_ids(logs: &Logs) -> BTreeSet<EntryId> {
    logs.values().flatten().map(|entry| entry.id).collect()
}

//! Tests that a search returns what a fresh index would, whatever happens to the index files.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;
use std::path::{Path, PathBuf};

use jiff::tz::TimeZone;
use throughline::recall::Mode;
use throughline::{
    IndexRebuild, IndexWait, Message, NewSession, Role, SearchOptions, Seq, Throughline,
};

fn block_on<T>(work: impl Future<Output = T>) -> T {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_all().build().unwrap().block_on(work)
}

async fn open(folder: &Path) -> Throughline {
    let store = format!("sqlite:{}", folder.join("sessions.db").display());
    Throughline::open(&store).await.unwrap()
}

async fn search(tl: &Throughline, typed: &str) -> Vec<String> {
    let options = SearchOptions {
        query: typed,
        mode: Mode::Text,
        limit: 50,
        typing: false,
        project: None,
        listing: &[],
        zone: &TimeZone::UTC,
        index_wait: IndexWait::Unlimited,
    };
    let results = tl.search(&options).await.unwrap();
    let hits = results.found.hits.into_iter();
    let mut found: Vec<String> = hits
        .map(|hit| format!("{}/{} {}", hit.session, hit.seq, hit.text))
        .collect();
    found.sort();
    found
}

const QUERIES: [&str; 4] = ["heron", "\"blue heron\"", "port", "author:ada heron"];

async fn search_all(tl: &Throughline) -> Vec<Vec<String>> {
    let mut all = Vec::new();
    for typed in QUERIES {
        all.push(search(tl, typed).await);
    }
    all
}

/// Fills a store so that its index has several segments with deletions.
async fn fill_store(folder: &Path) {
    let tl = open(folder).await;
    for name in ["one", "two", "three"] {
        let session = tl.create(NewSession::named(name).unwrap()).await.unwrap();
        for number in 0..6 {
            let text = format!("the blue heron {name} {number} listens on port {number}");
            let message = Message::text(Role::User, text);
            session.append(message).await.unwrap();
            search(&tl, "heron").await;
        }
        session.erase(&[Seq(2)], None).await.unwrap();
        let message = Message::text(Role::User, "another blue heron");
        session.append(message).await.unwrap();
    }
    search(&tl, "heron").await;
    tl.close().await.unwrap();
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for file in fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push(path);
        }
    }
    found.sort();
    found
}

fn copy(from: &Path, to: &Path) {
    let _ = fs::remove_dir_all(to);
    fs::create_dir_all(to).unwrap();
    for path in files(from) {
        let target = to.join(path.strip_prefix(from).unwrap());
        fs::create_dir_all(target.parent().unwrap()).unwrap();
        fs::copy(&path, target).unwrap();
    }
}

type Damage = fn(&Path);

const DAMAGES: [(&str, Damage); 6] = [
    ("deleted", |path| fs::remove_file(path).unwrap()),
    ("emptied", |path| fs::write(path, b"").unwrap()),
    ("cut to five bytes", |path| {
        let bytes = fs::read(path).unwrap();
        fs::write(path, &bytes[..bytes.len().min(5)]).unwrap();
    }),
    ("cut in half", |path| {
        let bytes = fs::read(path).unwrap();
        fs::write(path, &bytes[..bytes.len() / 2]).unwrap();
    }),
    ("with flipped bytes", |path| {
        let mut bytes = fs::read(path).unwrap();
        let step = (bytes.len() / 7).max(1);
        for at in (0..bytes.len()).step_by(step) {
            bytes[at] ^= 0x11;
        }
        fs::write(path, bytes).unwrap();
    }),
    ("with one flipped bit", |path| {
        let mut bytes = fs::read(path).unwrap();
        let middle = bytes.len() / 3;
        if let Some(byte) = bytes.get_mut(middle) {
            *byte ^= 1;
        }
        fs::write(path, bytes).unwrap();
    }),
];

#[test]
fn a_damaged_file_never_changes_the_results() {
    let folder = tempfile::tempdir().unwrap();
    let (intact, index) = (
        folder.path().join("intact"),
        folder.path().join("sessions.index"),
    );
    block_on(async {
        fill_store(folder.path()).await;
        copy(&index, &intact);
        fs::remove_dir_all(&index).unwrap();
        let tl = open(folder.path()).await;
        let fresh = search_all(&tl).await;
        tl.close().await.unwrap();
        assert_eq!(fresh[0].len(), 18);
        let mut rebuilt = 0;
        for file in files(&intact) {
            for (damage_name, damage) in DAMAGES {
                copy(&intact, &index);
                let name = file.strip_prefix(&intact).unwrap();
                damage(&index.join(name));
                let tl = open(folder.path()).await;
                assert_eq!(
                    search_all(&tl).await,
                    fresh,
                    "{} {damage_name}",
                    name.display()
                );
                match tl.take_index_rebuild() {
                    Some(IndexRebuild::Damaged) => rebuilt += 1,
                    other => assert_eq!(other, None),
                }
                tl.close().await.unwrap();
            }
        }
        assert!(rebuilt > 20, "{rebuilt} rebuilds");
    });
}

#[test]
fn a_file_that_disappears_under_an_open_index_is_rebuilt() {
    let folder = tempfile::tempdir().unwrap();
    block_on(async {
        fill_store(folder.path()).await;
        let tl = open(folder.path()).await;
        let before = search_all(&tl).await;
        fs::remove_dir_all(folder.path().join("sessions.index/text")).unwrap();
        assert_eq!(search_all(&tl).await, before);
        assert_eq!(tl.take_index_rebuild(), Some(IndexRebuild::Damaged));
        assert_eq!(tl.take_index_rebuild(), None);
    });
}

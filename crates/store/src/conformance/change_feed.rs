//! Conformance cases for the change feed.

use throughline_model::{Owner, Seq};

use super::{append, append_expecting, at, header, owner, session_id, session_with, user_entry};
use crate::{Append, Change, ChangeKind, Position, Store};

async fn all_changes<S: Store>(store: &S) -> Vec<Change> {
    store.changes(Position(0), 10_000).await.unwrap()
}

/// A short description of a change.
fn describe_change(change: &Change) -> String {
    let what = match &change.kind {
        ChangeKind::Created => "created".to_owned(),
        ChangeKind::Appended(entry) => format!("{}", entry.seq),
        ChangeKind::Erased(seq) => format!("erased {seq}"),
        ChangeKind::Trashed => "trashed".to_owned(),
        ChangeKind::Restored => "restored".to_owned(),
        ChangeKind::Removed => "removed".to_owned(),
    };
    format!("{}: {what}", change.session)
}

async fn describe_changes<S: Store>(store: &S) -> Vec<String> {
    all_changes(store)
        .await
        .iter()
        .map(describe_change)
        .collect()
}

/// Changes are in the order they happened.
pub async fn changes_come_in_the_order_they_happened<S: Store>(store: &S) {
    let a = session_with(store, "a", &["one"]).await;
    let b = session_with(store, "b", &["uno"]).await;
    append(store, &a, "two").await;
    store.fork(&a, Seq(1), header("c")).await.unwrap();
    append(store, &b, "due").await;

    let expected = [
        "a: created",
        "a: 1",
        "b: created",
        "b: 1",
        "a: 2",
        "c: created",
        "b: 2",
    ];
    assert_eq!(describe_changes(store).await, expected);
    let changes = all_changes(store).await;
    assert!(changes.is_sorted_by(|a, b| a.position < b.position));
    let last = changes.last().map(|change| change.position);
    assert_eq!(Some(store.last_position().await.unwrap()), last);
    let ChangeKind::Appended(entry) = &changes[4].kind else {
        panic!("{:?}", changes[4]);
    };
    let entry = entry.decode().unwrap();
    assert_eq!(entry.message().unwrap().content.to_text(), "two");
    assert_eq!(changes[0].owner, owner());
}

/// A change stays at its position and keeps its fingerprint, whatever happens later.
pub async fn a_change_is_recognised_by_its_position_and_content<S: Store>(store: &S) {
    let a = session_with(store, "a", &["one", "two"]).await;
    let b = session_with(store, "b", &["uno"]).await;
    let before = all_changes(store).await;
    let mut digests: Vec<_> = before.iter().map(Change::fingerprint).collect();
    digests.sort_by_key(ToString::to_string);
    digests.dedup();
    assert_eq!(digests.len(), before.len());

    store.erase(&a, &[Seq(1)], None).await.unwrap();
    store.trash(&b, at(1)).await.unwrap();
    store.remove(&b).await.unwrap();
    for change in &before {
        let found = store.change_at(change.position).await.unwrap();
        match &change.kind {
            ChangeKind::Appended(_) if change.session == b.id => assert_eq!(found, None),
            _ => assert_eq!(found.unwrap().fingerprint(), change.fingerprint()),
        }
    }
    let last = store.last_position().await.unwrap();
    assert_eq!(store.change_at(Position(0)).await.unwrap(), None);
    assert_eq!(store.change_at(Position(last.0 + 1)).await.unwrap(), None);
}

/// Paging skips and repeats nothing.
pub async fn paging_skips_and_repeats_nothing<S: Store>(store: &S) {
    let a = session_with(store, "a", &["1", "2", "3"]).await;
    store.trash(&a, at(9)).await.unwrap();
    session_with(store, "b", &["1", "2"]).await;
    for limit in [1, 2, 3, 100] {
        let mut read = Vec::new();
        let mut after = Position(0);
        loop {
            let page = store.changes(after, limit).await.unwrap();
            assert!(page.len() <= limit);
            let Some(last) = page.last() else {
                break;
            };
            after = last.position;
            read.extend(page);
        }
        assert_eq!(read, all_changes(store).await, "by {limit}");
    }
}

/// An owner's changes are complete and contain nothing of others.
pub async fn an_owners_changes_are_isolated<S: Store>(store: &S) {
    let other: Owner = "mallory".parse().unwrap();
    let a = session_with(store, "a", &["one"]).await;
    store.create(&other, header("a")).await.unwrap();
    let theirs = other.session(&session_id("a"));
    append(store, &theirs, "uno").await;
    append(store, &a, "two").await;
    store.trash(&theirs, at(1)).await.unwrap();

    let of = async |owner: &Owner, after: Position, limit: usize| {
        let changes = store.owner_changes(owner, after, limit).await.unwrap();
        assert!(changes.iter().all(|change| change.owner == *owner));
        changes
    };
    let mine = of(&owner(), Position(0), 100).await;
    let story: Vec<_> = mine.iter().map(describe_change).collect();
    assert_eq!(story, ["a: created", "a: 1", "a: 2"]);
    let story: Vec<_> = of(&other, Position(0), 100).await;
    let story: Vec<_> = story.iter().map(describe_change).collect();
    assert_eq!(story, ["a: created", "a: 1", "a: trashed"]);
    assert_eq!(of(&owner(), Position(0), 2).await, mine[..2]);
    assert_eq!(of(&owner(), mine[1].position, 100).await, mine[2..]);
    let nobody: Owner = "nobody".parse().unwrap();
    assert_eq!(of(&nobody, Position(0), 100).await, []);
}

/// Trash and removal appear in the feed.
pub async fn trash_and_removal_are_in_the_feed<S: Store>(store: &S) {
    let a = session_with(store, "a", &["one"]).await;
    store.trash(&a, at(1)).await.unwrap();
    store.trash(&a, at(2)).await.unwrap();
    store.restore(&a).await.unwrap();
    store.trash(&a, at(3)).await.unwrap();
    let seen = store.last_position().await.unwrap();
    store.remove(&a).await.unwrap();

    let expected = [
        "a: created",
        "a: trashed",
        "a: restored",
        "a: trashed",
        "a: removed",
    ];
    assert_eq!(describe_changes(store).await, expected);
    let later = store.changes(seen, 10).await.unwrap();
    assert_eq!(
        later.iter().map(describe_change).collect::<Vec<_>>(),
        ["a: removed"]
    );
}

/// An erasure appears for the session that the entry was appended to.
pub async fn an_erasure_is_reported_for_the_appending_session<S: Store>(store: &S) {
    let a = session_with(store, "a", &["one", "two"]).await;
    store.fork(&a, Seq(2), header("b")).await.unwrap();
    let b = owner().session(&session_id("b"));
    append(store, &b, "three").await;
    store.erase(&b, &[Seq(1), Seq(3)], None).await.unwrap();

    let story = describe_changes(store).await;
    assert_eq!(story[story.len() - 2..], ["a: erased 1", "b: erased 3"]);
    // The earlier change no longer contains the content.
    let changes = all_changes(store).await;
    let ChangeKind::Appended(entry) = &changes[1].kind else {
        panic!("{:?}", changes[1]);
    };
    assert_eq!(entry.decode().unwrap().body.kind(), "erased");
}

/// Positions keep growing after a removal.
pub async fn positions_grow_after_a_removal<S: Store>(store: &S) {
    session_with(store, "a", &["one"]).await;
    let b = session_with(store, "b", &["two", "three"]).await;
    store.trash(&b, at(1)).await.unwrap();
    store.remove(&b).await.unwrap();
    let seen = store.last_position().await.unwrap();

    session_with(store, "c", &["four"]).await;

    let later = store.changes(seen, 10).await.unwrap();
    assert_eq!(
        later.iter().map(describe_change).collect::<Vec<_>>(),
        ["c: created", "c: 1"]
    );
}

/// A failed operation does not appear.
pub async fn a_failed_operation_is_not_in_the_feed<S: Store>(store: &S) {
    let a = session_with(store, "a", &["one"]).await;
    let before = describe_changes(store).await;
    store
        .append(&a, append_expecting(7, "late"))
        .await
        .unwrap_err();
    store.erase(&a, &[Seq(1), Seq(9)], None).await.unwrap_err();
    store.restore(&a).await.unwrap_err();
    store.remove(&a).await.unwrap_err();
    store.fork(&a, Seq(9), header("b")).await.unwrap_err();
    assert_eq!(describe_changes(store).await, before);
}

/// A repeated append does not appear again.
pub async fn a_repeat_is_not_in_the_feed<S: Store>(store: &S) {
    let a = session_with(store, "a", &[]).await;
    let entry = user_entry("once");
    for _ in 0..2 {
        store
            .append(&a, Append::unconditional(vec![entry.clone()]))
            .await
            .unwrap();
        store.create(&owner(), header("a")).await.unwrap();
    }
    assert_eq!(describe_changes(store).await, ["a: created", "a: 1"]);
}

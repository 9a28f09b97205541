//! Conformance cases for reads: tails, pages, ranges.

use throughline_model::Seq;

use super::{append, entry_id, session_with, user_entry};
use crate::{Append, ReadRange, Store};

async fn read_seqs<S: Store>(
    store: &S,
    session: &throughline_model::SessionRef,
    read: ReadRange,
) -> Vec<u64> {
    let entries = store.read_stored(session, read).await.unwrap();
    entries.iter().map(|entry| entry.seq.0).collect()
}

/// The tail is the last entries, oldest first.
pub async fn the_tail_is_the_last_entries<S: Store>(store: &S) {
    let session = session_with(store, "s", &["1", "2", "3", "4", "5"]).await;
    assert_eq!(read_seqs(store, &session, ReadRange::tail(2)).await, [4, 5]);
    assert_eq!(
        read_seqs(store, &session, ReadRange::tail(50)).await,
        [1, 2, 3, 4, 5]
    );
    assert_eq!(
        read_seqs(store, &session, ReadRange::up_to(Some(Seq(3)), 2)).await,
        [2, 3]
    );
}

/// Paging forward or backward returns every entry once.
pub async fn pages_cover_the_log_once<S: Store>(store: &S) {
    let session = session_with(store, "s", &[]).await;
    let entries = (0..25).map(|n| user_entry(&n.to_string())).collect();
    store
        .append(&session, Append::unconditional(entries))
        .await
        .unwrap();

    let mut forward = Vec::new();
    loop {
        let from = Seq(forward.last().copied().unwrap_or(0) + 1);
        let page = read_seqs(store, &session, ReadRange::starting_at(from, 7)).await;
        if page.is_empty() {
            break;
        }
        forward.extend(page);
    }
    assert_eq!(forward, (1..=25).collect::<Vec<_>>());

    let mut backward: Vec<u64> = Vec::new();
    let mut to = None;
    loop {
        let page = read_seqs(store, &session, ReadRange::up_to(to, 7)).await;
        let Some(first) = page.first().copied() else {
            break;
        };
        backward.splice(0..0, page);
        to = Some(Seq(first - 1));
    }
    assert_eq!(backward, forward);
}

/// A range includes both ends.
pub async fn a_range_includes_both_ends<S: Store>(store: &S) {
    let session = session_with(store, "s", &["1", "2", "3", "4"]).await;
    assert_eq!(
        read_seqs(store, &session, ReadRange::between(Seq(2), Seq(3), 10)).await,
        [2, 3]
    );
    assert_eq!(
        read_seqs(store, &session, ReadRange::between(Seq(3), Seq(3), 10)).await,
        [3]
    );
    assert_eq!(
        read_seqs(store, &session, ReadRange::between(Seq(1), Seq(4), 0)).await,
        [] as [u64; 0]
    );
}

/// Reading past the end returns nothing and is no error.
pub async fn reading_past_the_end_gives_nothing<S: Store>(store: &S) {
    let session = session_with(store, "s", &["1"]).await;
    assert!(
        read_seqs(store, &session, ReadRange::starting_at(Seq(2), 10))
            .await
            .is_empty()
    );
    assert!(
        read_seqs(store, &session, ReadRange::starting_at(Seq(u64::MAX), 10))
            .await
            .is_empty()
    );
    assert!(
        read_seqs(store, &session, ReadRange::between(Seq(5), Seq(2), 10))
            .await
            .is_empty()
    );
    assert!(
        read_seqs(store, &session, ReadRange::up_to(Some(Seq(0)), 10))
            .await
            .is_empty()
    );
}

/// A page may be short if entries are large, but never empty before the end.
pub async fn large_entries_make_short_pages<S: Store>(store: &S) {
    let session = session_with(store, "s", &[]).await;
    let large = "y".repeat(6 * 1024 * 1024);
    for _ in 0..5 {
        append(store, &session, &large).await;
    }
    let mut seen = Vec::new();
    loop {
        let from = Seq(seen.last().copied().unwrap_or(0) + 1);
        let page = read_seqs(store, &session, ReadRange::starting_at(from, 100)).await;
        if page.is_empty() {
            break;
        }
        seen.extend(page);
    }
    assert_eq!(seen, [1, 2, 3, 4, 5]);
    let tail = read_seqs(store, &session, ReadRange::tail(100)).await;
    assert_eq!(tail.last(), Some(&5));
}

/// Entries are found by id.
pub async fn locating_finds_entries_by_id<S: Store>(store: &S) {
    let session = session_with(store, "s", &["before"]).await;
    let new = user_entry("here");
    let id = new.id;
    store
        .append(&session, Append::unconditional(vec![new]))
        .await
        .unwrap();
    let found = store.locate(&session, &[entry_id(), id]).await.unwrap();
    assert_eq!(found, [None, Some(Seq(2))]);
}

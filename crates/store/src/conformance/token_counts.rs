//! Conformance cases for token counts.

use throughline_model::Seq;

use super::{append, header, owner, session_id, session_with};
use crate::Store;

/// Counts are stored per encoding.
pub async fn counts_are_stored_per_encoding<S: Store>(store: &S) {
    let session = session_with(store, "s", &["1", "2", "3"]).await;
    let counts = [(Seq(1), 10), (Seq(3), 30)];
    store
        .put_token_counts(&session, "a", &counts)
        .await
        .unwrap();
    store
        .put_token_counts(&session, "b", &[(Seq(1), 11)])
        .await
        .unwrap();
    let known = async |encoding: &str, from: u64, to: u64| {
        store
            .token_counts(&session, encoding, Seq(from), Seq(to))
            .await
            .unwrap()
    };
    assert_eq!(known("a", 1, 3).await, counts);
    assert_eq!(known("a", 2, 99).await, [(Seq(3), 30)]);
    assert_eq!(known("b", 1, 3).await, [(Seq(1), 11)]);
    assert_eq!(known("c", 1, 3).await, []);
}

/// A fork shares the counts of shared entries.
pub async fn a_fork_shares_counts<S: Store>(store: &S) {
    let origin = session_with(store, "origin", &["1", "2"]).await;
    store
        .put_token_counts(&origin, "a", &[(Seq(1), 10), (Seq(2), 20)])
        .await
        .unwrap();
    store.fork(&origin, Seq(1), header("branch")).await.unwrap();
    let branch = owner().session(&session_id("branch"));
    append(store, &branch, "other 2").await;
    let known = store
        .token_counts(&branch, "a", Seq(1), Seq(2))
        .await
        .unwrap();
    assert_eq!(known, [(Seq(1), 10)]);
}

/// Erasing an entry removes its count.
pub async fn erasing_forgets_the_count<S: Store>(store: &S) {
    let session = session_with(store, "s", &["long words", "2"]).await;
    store
        .put_token_counts(&session, "a", &[(Seq(1), 10), (Seq(2), 20)])
        .await
        .unwrap();
    store.erase(&session, &[Seq(1)], None).await.unwrap();
    let known = store
        .token_counts(&session, "a", Seq(1), Seq(2))
        .await
        .unwrap();
    assert_eq!(known, [(Seq(2), 20)]);
}

//! Conformance cases for erasing content while the digest chain stays valid.

use throughline_model::{Body, Seq};

use super::{append, assert_sound, header, owner, read_texts, session_id, session_with};
use crate::{ReadRange, Store};

/// The content is gone; number, digest and chain are unchanged.
pub async fn erased_content_is_gone_and_the_chain_whole<S: Store>(store: &S) {
    let session = session_with(store, "s", &["hello", "my key is hunter2", "bye"]).await;
    let before = store
        .read(&session, ReadRange::starting_at(Seq(1), 10))
        .await
        .unwrap();
    store
        .erase(&session, &[Seq(2)], Some("a leaked key"))
        .await
        .unwrap();
    let after = store
        .read(&session, ReadRange::starting_at(Seq(1), 10))
        .await
        .unwrap();
    assert_eq!(after[1].digest, before[1].digest);
    assert!(
        matches!(&after[1].body, Body::Erased(t) if t.reason.as_deref() == Some("a leaked key"))
    );
    assert_eq!(read_texts(store, &session).await, ["hello", "bye"]);
    assert_eq!(store.record(&session).await.unwrap().info.messages, 3);
    assert!(store.erase(&session, &[Seq(9)], None).await.is_err());
    append(store, &session, "on").await;
    assert_sound(store).await;
}

/// Forks share the entry, so they lose the content too; erasing from the fork works as
/// well.
pub async fn erasing_reaches_forks<S: Store>(store: &S) {
    let origin = session_with(store, "origin", &["secret one", "secret two", "x"]).await;
    store.fork(&origin, Seq(2), header("branch")).await.unwrap();
    let branch = owner().session(&session_id("branch"));
    append(store, &branch, "own").await;
    store.erase(&origin, &[Seq(1)], None).await.unwrap();
    store.erase(&branch, &[Seq(2)], None).await.unwrap();
    assert_eq!(read_texts(store, &branch).await, ["own"]);
    assert_eq!(read_texts(store, &origin).await, ["x"]);
    assert!(!format!("{:?}", store.record(&branch).await.unwrap()).contains("secret"));
    assert_sound(store).await;
}

/// Data derived from the content is erased too.
pub async fn an_erased_first_message_leaves_no_preview<S: Store>(store: &S) {
    let session = session_with(store, "s", &["hunter2", "hello"]).await;
    store.erase(&session, &[Seq(1)], None).await.unwrap();
    let info = store.record(&session).await.unwrap().info;
    assert_eq!(info.preview, "hello");
    assert_sound(store).await;
}

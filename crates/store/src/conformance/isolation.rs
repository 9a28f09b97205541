//! Conformance cases for the isolation of owners.

use throughline_model::{Owner, Seq};

use super::{append, at, header, owner, read_texts, session_id, session_with, user_entry};
use crate::{Append, ErrorKind, ReadRange, SessionFilter, Store};

fn stranger() -> Owner {
    "mallory".parse().expect("an owner")
}

/// A session of another owner appears not to exist.
pub async fn nobody_reads_anothers_session<S: Store>(store: &S) {
    session_with(store, "s", &["secret"]).await;
    let theirs = stranger().session(&session_id("s"));
    let kinds = [
        store.record(&theirs).await.map(|_| ()),
        store.header(&theirs).await.map(|_| ()),
        store.read(&theirs, ReadRange::tail(9)).await.map(|_| ()),
        store.locate(&theirs, &[]).await.map(|_| ()),
        store.fork(&theirs, Seq(1), header("f")).await.map(|_| ()),
    ];
    for result in kinds {
        assert_eq!(result.unwrap_err().kind(), ErrorKind::NotFound);
    }
}

/// A session of another owner cannot be changed.
pub async fn nobody_changes_anothers_session<S: Store>(store: &S) {
    let session = session_with(store, "s", &["mine"]).await;
    let theirs = stranger().session(&session_id("s"));
    let kinds = [
        store
            .append(&theirs, Append::unconditional(vec![user_entry("x")]))
            .await
            .map(|_| ()),
        store.trash(&theirs, at(0)).await,
        store.restore(&theirs).await,
        store.remove(&theirs).await,
        store.erase(&theirs, &[Seq(1)], None).await,
    ];
    for result in kinds {
        assert_eq!(result.unwrap_err().kind(), ErrorKind::NotFound);
    }
    assert_eq!(read_texts(store, &session).await, ["mine"]);
}

/// Ids are unique per owner only.
pub async fn one_id_may_serve_two_owners<S: Store>(store: &S) {
    let mine = session_with(store, "s", &["mine"]).await;
    store.create(&stranger(), header("s")).await.unwrap();
    let theirs = stranger().session(&session_id("s"));
    append(store, &theirs, "theirs").await;
    assert_eq!(read_texts(store, &mine).await, ["mine"]);
    assert_eq!(read_texts(store, &theirs).await, ["theirs"]);
}

/// Listings and lookups contain nothing of other owners.
pub async fn lists_and_candidates_are_isolated<S: Store>(store: &S) {
    let session = session_with(store, "s", &["mine"]).await;
    store.trash(&session, at(0)).await.unwrap();
    session_with(store, "t", &["mine"]).await;
    let other = stranger();
    assert!(
        store
            .list(&other, &SessionFilter::default(), None, 10)
            .await
            .unwrap()
            .items
            .is_empty()
    );
    assert_eq!(
        store
            .count(&other, &SessionFilter::default())
            .await
            .unwrap(),
        0
    );
    assert!(
        store
            .find_candidates(&other, "t", 10)
            .await
            .unwrap()
            .is_empty()
    );
    assert!(store.list_trashed(&other, at(9)).await.unwrap().is_empty());
    assert!(store.list_projects(&other).await.unwrap().is_empty());
}

/// Knowing a digest gives no access to another owner's bytes.
pub async fn blobs_are_isolated<S: Store>(store: &S) {
    let digest = store.put_blob(&owner(), b"private".to_vec()).await.unwrap();
    let peek = store.blob(&stranger(), &digest).await;
    assert_eq!(peek.unwrap_err().kind(), ErrorKind::NotFound);
    store
        .put_blob(&stranger(), b"private".to_vec())
        .await
        .unwrap();
    assert!(store.blob(&stranger(), &digest).await.is_ok());
}

/// Keys are separate per owner.
pub async fn keys_are_isolated<S: Store>(store: &S) {
    let mut mine = header("mine");
    mine.key = Some("k".parse().unwrap());
    store.create(&owner(), mine.clone()).await.unwrap();
    let mut theirs = header("theirs");
    theirs.key = mine.key;
    assert!(!store.create(&stranger(), theirs).await.unwrap().existed);
}

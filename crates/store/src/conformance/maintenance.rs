//! Conformance cases for checks and rebuilds.

use std::time::Duration;

use throughline_model::{Body, Owner, Seq};

use super::{append, append_body, at, header, owner, session_id, session_with};
use crate::{SessionFilter, Store};

/// Fills a store with some data of every kind.
async fn populate_store<S: Store>(store: &S) {
    let origin = session_with(store, "origin", &["1", "2"]).await;
    append_body(
        store,
        &origin,
        Body::Tagged {
            tags: vec!["t".parse().unwrap()],
        },
    )
    .await;
    append_body(store, &origin, Body::Pinned { text: "p".into() }).await;
    store.fork(&origin, Seq(2), header("branch")).await.unwrap();
    append(store, &owner().session(&session_id("branch")), "3").await;
    let gone = session_with(store, "gone", &["x"]).await;
    store.trash(&gone, at(0)).await.unwrap();
    store.put_blob(&owner(), b"bytes".to_vec()).await.unwrap();
}

/// A check of a sound store finds nothing.
pub async fn a_sound_store_has_no_findings<S: Store>(store: &S) {
    populate_store(store).await;
    let report = store.check(&|_, _| ()).await.unwrap();
    assert_eq!(report.findings, []);
    assert_eq!((report.sessions, report.blobs), (3, 1));
}

/// Rebuilding correct data does not change it.
pub async fn a_rebuild_changes_nothing<S: Store>(store: &S) {
    populate_store(store).await;
    let before = store
        .list(&owner(), &SessionFilter::default(), None, 10)
        .await
        .unwrap();
    let report = store.rebuild(&|_, _| ()).await.unwrap();
    assert_eq!(report.findings, []);
    assert_eq!(
        store
            .list(&owner(), &SessionFilter::default(), None, 10)
            .await
            .unwrap(),
        before
    );
}

/// All owners with sessions are known.
pub async fn owners_are_known<S: Store>(store: &S) {
    let other: Owner = "other".parse().unwrap();
    store.create(&other, header("s")).await.unwrap();
    session_with(store, "s", &[]).await;
    assert_eq!(store.owners().await.unwrap(), [owner(), other]);
}

/// Unreleased leases are listed without being acquired.
pub async fn leases_are_listed_and_not_taken<S: Store>(store: &S) {
    let (mine, other) = (owner(), "other".parse::<Owner>().unwrap());
    let minute = Duration::from_secs(60);
    let take = async |owner: &Owner, name, term| {
        let taken = store.acquire_lease(owner, name, "holder", term).await;
        taken.unwrap()
    };
    let held = take(&mine, "held", minute).await;
    let expired = take(&mine, "expired", Duration::ZERO).await;
    let given_back = take(&mine, "given back", minute).await;
    store.release_lease(&given_back).await.unwrap();
    let others = take(&other, "held", minute).await;
    let expected = [expired, held.clone(), others];
    assert_eq!(store.leases().await.unwrap(), expected);
    assert_eq!(store.leases().await.unwrap(), expected);
    store.renew_lease(&held, minute).await.unwrap();
}

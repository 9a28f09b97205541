//! Conformance cases for the trash: trashing, restoring, removing.

use throughline_model::Body;

use super::{append, append_body, at, header, owner, read_texts, session_id, session_with};
use crate::{ErrorKind, ReadRange, SessionFilter, SessionScope, Store, StoreError};

fn trash_filter() -> SessionFilter {
    SessionFilter {
        scope: SessionScope::Trash,
        ..SessionFilter::default()
    }
}

/// A session in the trash is neither listed nor read nor written.
pub async fn a_trashed_session_is_not_listed_or_read<S: Store>(store: &S) {
    let session = session_with(store, "s", &["1"]).await;
    store.trash(&session, at(5)).await.unwrap();
    store.trash(&session, at(9)).await.unwrap();
    assert_eq!(
        store
            .count(&owner(), &SessionFilter::default())
            .await
            .unwrap(),
        0
    );
    assert_eq!(store.count(&owner(), &trash_filter()).await.unwrap(), 1);
    assert!(matches!(
        store.record(&session).await,
        Err(StoreError::InTrash(_))
    ));
    assert!(store.read(&session, ReadRange::tail(1)).await.is_err());
    let refused = store
        .append(
            &session,
            super::Append::unconditional(vec![super::user_entry("2")]),
        )
        .await;
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::NotFound);
}

/// A restored session is unchanged.
pub async fn a_restored_session_is_unchanged<S: Store>(store: &S) {
    let session = session_with(store, "s", &["1"]).await;
    append_body(
        store,
        &session,
        Body::Tagged {
            tags: vec!["t".parse().unwrap()],
        },
    )
    .await;
    let before = store.record(&session).await.unwrap();
    store.trash(&session, at(5)).await.unwrap();
    store.restore(&session).await.unwrap();
    assert_eq!(store.record(&session).await.unwrap(), before);
    append(store, &session, "2").await;
    assert_eq!(read_texts(store, &session).await, ["1", "2"]);
    let again = store.restore(&session).await;
    assert!(matches!(again, Err(StoreError::NotInTrash(_))));
}

/// Only sessions in the trash can be removed; then they are gone.
pub async fn removal_is_from_the_trash_only<S: Store>(store: &S) {
    let session = session_with(store, "s", &["1"]).await;
    assert!(matches!(
        store.remove(&session).await,
        Err(StoreError::NotInTrash(_))
    ));
    store.trash(&session, at(5)).await.unwrap();
    store.remove(&session).await.unwrap();
    assert!(matches!(
        store.restore(&session).await,
        Err(StoreError::NoSuchSession(_))
    ));
    assert!(matches!(
        store.record(&session).await,
        Err(StoreError::NoSuchSession(_))
    ));
    let fresh = session_with(store, "s", &["new"]).await;
    assert_eq!(read_texts(store, &fresh).await, ["new"]);
}

/// A session that was restored and trashed again has a new trash time and is not
/// removed by a call with the old one.
pub async fn a_removal_checks_the_trash_time<S: Store>(store: &S) {
    let session = session_with(store, "s", &["1"]).await;
    store.trash(&session, at(5)).await.unwrap();
    let decided = store.list_trashed(&owner(), at(9)).await.unwrap();
    let [decided] = &decided[..] else {
        panic!("{decided:?}");
    };
    store.restore(&session).await.unwrap();
    let removing = store.remove_fenced(&session, Some(decided.at), None);
    assert!(matches!(removing.await, Err(StoreError::NotInTrash(_))));

    store.trash(&session, at(7)).await.unwrap();
    let removing = store.remove_fenced(&session, Some(decided.at), None);
    let refused = removing.await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Conflict);
    assert!(
        matches!(&refused, StoreError::TrashedAgain { id, at: since } if *id == session.id && *since == at(7)),
        "{refused:?}"
    );
    assert_eq!(store.list_trashed(&owner(), at(9)).await.unwrap().len(), 1);
    let removing = store.remove_fenced(&session, Some(at(7)), None);
    removing.await.unwrap();
    assert_eq!(store.list_trashed(&owner(), at(9)).await.unwrap(), []);
}

/// The key of a trashed session can be used for a new one.
pub async fn a_key_is_free_once_its_session_is_trashed<S: Store>(store: &S) {
    let mut first = header("first");
    first.key = Some("k".parse().unwrap());
    store.create(&owner(), first).await.unwrap();
    store
        .trash(&owner().session(&session_id("first")), at(5))
        .await
        .unwrap();
    let mut second = header("second");
    second.key = Some("k".parse().unwrap());
    let created = store.create(&owner(), second).await.unwrap();
    assert!(!created.existed);
}

/// Restoring a session fails if its key is used by another one.
pub async fn a_restore_cannot_take_a_key_back<S: Store>(store: &S) {
    a_key_is_free_once_its_session_is_trashed(store).await;
    let first = owner().session(&session_id("first"));
    let refused = store.restore(&first).await;
    assert!(matches!(refused, Err(StoreError::KeyTaken { .. })));
    let second = owner().session(&session_id("second"));
    store.trash(&second, at(6)).await.unwrap();
    store.restore(&first).await.unwrap();
}

/// A session in the trash keeps its id.
pub async fn an_id_in_the_trash_is_still_taken<S: Store>(store: &S) {
    let session = session_with(store, "s", &["1"]).await;
    store.trash(&session, at(5)).await.unwrap();
    let refused = store.create(&owner(), header("s")).await;
    assert!(matches!(refused, Err(StoreError::SessionExists(_))));
}

/// The longest-trashed session is first.
pub async fn the_trash_is_listed_by_age<S: Store>(store: &S) {
    for (id, second) in [("a", 30), ("b", 10), ("c", 20)] {
        let session = session_with(store, id, &[]).await;
        store.trash(&session, at(second)).await.unwrap();
    }
    let old = store.list_trashed(&owner(), at(25)).await.unwrap();
    let ids: Vec<_> = old.iter().map(|t| (t.info.id.to_string(), t.at)).collect();
    assert_eq!(ids, [("b".to_owned(), at(10)), ("c".to_owned(), at(20))]);
}

/// Copying a whole store includes sessions in the trash.
pub async fn a_trashed_session_can_be_copied<S: Store>(store: &S) {
    let session = session_with(store, "s", &["1", "2"]).await;
    let all = ReadRange::starting_at(throughline_model::Seq(1), 10);
    let log = store.read_stored(&session, all).await.unwrap();
    let session_header = store.header(&session).await.unwrap();
    assert_eq!(
        store.read_for_copy(&session, all).await.unwrap(),
        (session_header.clone(), log.clone())
    );
    store.trash(&session, at(5)).await.unwrap();
    assert_eq!(
        store.read_for_copy(&session, all).await.unwrap(),
        (session_header, log)
    );
    store.remove(&session).await.unwrap();
    let gone = store.read_for_copy(&session, all).await;
    assert!(matches!(gone, Err(StoreError::NoSuchSession(_))));
}

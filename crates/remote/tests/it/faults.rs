//! Network faults: lost responses, restarting servers, rate limits and size limits.

use std::time::Duration;

use throughline_model::{Body, EntryId, NewEntry, Role, Seq, SessionHeader, SessionId, TokenRole};
use throughline_server::{Limits, RateLimit};
use throughline_store::{
    Append, AppendKind, BlobStore, Catalog, Change, ChangeFeed, ChangeKind, Expect, LogStore,
    OnConflict, Position, ReadRange, SessionFilter, StoreError,
};

use crate::fault_proxy::FaultProxy;
use crate::harness::{TestServer, open, owner};

fn header(id: &str) -> SessionHeader {
    let at = throughline_model::Timestamp::from_second(1_800_000_000).unwrap();
    SessionHeader::new(id.parse().unwrap(), at)
}

fn text_entry(number: u8, text: &str) -> NewEntry {
    let at = throughline_model::Timestamp::from_second(1_800_000_000 + i64::from(number)).unwrap();
    NewEntry::text(EntryId::from_bytes([number; 16]), at, Role::User, text)
}

fn id(text: &str) -> SessionId {
    text.parse().unwrap()
}

/// Opens a store through a proxy that can drop responses.
async fn store_behind_proxy(served: &TestServer) -> (throughline_remote::RemoteStore, FaultProxy) {
    let proxy = FaultProxy::start(served.address).await;
    let token = served.create_token("ada", TokenRole::User).await;
    (open(proxy.address, &token).await.unwrap(), proxy)
}

#[tokio::test]
async fn an_append_whose_answer_is_lost_is_there_once() {
    let served = TestServer::start().await;
    let (store, proxy) = store_behind_proxy(&served).await;
    let ada = owner("ada");
    let session = ada.session(&id("s"));

    proxy.drop_next_response();
    let created = store.create(&ada, header("s")).await.unwrap();
    assert!(
        !created.existed,
        "the attempt whose response was lost created it"
    );

    proxy.drop_next_response();
    let append = Append::after(Seq(0), vec![text_entry(1, "one"), text_entry(2, "two")]);
    let appended = store.append(&session, append.clone()).await.unwrap();
    assert_eq!(proxy.dropped_responses(), 2);
    assert_eq!(appended.kind, AppendKind::Appended);
    let seqs: Vec<_> = appended.entries.iter().map(|entry| entry.seq).collect();
    assert_eq!(seqs, [Seq(1), Seq(2)]);

    // A repeat by the caller is reported as one.
    let again = store.append(&session, append).await.unwrap();
    assert_eq!(again.kind, AppendKind::Repeated);
    assert_eq!(again.entries, appended.entries);

    let stored = served
        .tl
        .store()
        .read(&session, ReadRange::tail(9))
        .await
        .unwrap();
    assert_eq!(stored, appended.entries);
}

#[tokio::test]
async fn a_conflict_whose_answer_is_lost_is_settled_as_the_first_time() {
    let served = TestServer::start().await;
    let (store, proxy) = store_behind_proxy(&served).await;
    let ada = owner("ada");
    let session = ada.session(&id("s"));
    store.create(&ada, header("s")).await.unwrap();
    let first = Append::unconditional(vec![text_entry(1, "one")]);
    store.append(&session, first).await.unwrap();

    proxy.drop_next_response();
    let rebased = Append {
        expect: Expect::At(Seq(0)),
        on_conflict: OnConflict::Rebase,
        ..Append::unconditional(vec![text_entry(2, "two")])
    };
    let rebased = store.append(&session, rebased).await.unwrap();
    assert_eq!(rebased.kind, AppendKind::Rebased);
    assert_eq!(rebased.entries[0].rebased, Some(Seq(0)));

    proxy.drop_next_response();
    let forked = Append {
        expect: Expect::At(Seq(1)),
        on_conflict: OnConflict::Fork(Box::new(header("late"))),
        ..Append::unconditional(vec![text_entry(3, "three")])
    };
    let forked = store.append(&session, forked).await.unwrap();
    assert_eq!(
        (forked.kind, forked.session),
        (AppendKind::Forked, id("late"))
    );

    proxy.drop_next_response();
    let refused = Append::after(Seq(1), vec![text_entry(4, "four")]);
    let refused = store.append(&session, refused).await.unwrap_err();
    let StoreError::Moved {
        expected, found, ..
    } = refused
    else {
        panic!("{refused:?}");
    };
    assert_eq!((expected, found), (Seq(1), Seq(2)));
    assert_eq!(proxy.dropped_responses(), 3);
}

#[tokio::test]
async fn what_was_done_though_its_answer_is_lost_is_done() {
    let served = TestServer::start().await;
    let (store, proxy) = store_behind_proxy(&served).await;
    let ada = owner("ada");
    let session = ada.session(&id("s"));
    let at = header("s").at;
    store.create(&ada, header("s")).await.unwrap();
    for cut in [true, false] {
        let next = || {
            if cut {
                proxy.drop_next_response();
            }
        };
        next();
        store.trash(&session, at).await.unwrap();
        next();
        store.restore(&session).await.unwrap();
    }
    // No response was lost here, so the refusal is reported.
    let refused = store.restore(&session).await.unwrap_err();
    assert!(matches!(refused, StoreError::NotInTrash(_)), "{refused:?}");
    store.trash(&session, at).await.unwrap();
    proxy.drop_next_response();
    store.remove(&session).await.unwrap();
    let refused = store.remove(&session).await.unwrap_err();
    assert!(
        matches!(refused, StoreError::NoSuchSession(_)),
        "{refused:?}"
    );
    proxy.drop_next_response();
    let digest = store.put_blob(&ada, b"bytes".to_vec()).await.unwrap();
    proxy.drop_next_response();
    assert_eq!(store.blob(&ada, &digest).await.unwrap(), b"bytes");
    assert_eq!(proxy.dropped_responses(), 5);
}

#[tokio::test]
async fn a_server_that_comes_back_is_found_again() {
    let mut served = TestServer::start().await;
    let store = served.store("ada").await;
    let ada = owner("ada");
    let session = ada.session(&id("s"));
    store.create(&ada, header("s")).await.unwrap();

    served.stop_serving().await;
    served.start_serving().await;
    store
        .append(&session, Append::unconditional(vec![text_entry(1, "one")]))
        .await
        .unwrap();

    // Even if it is down when the call is made.
    served.stop_serving().await;
    let pending = tokio::spawn({
        let (store, session) = (store.clone(), session.clone());
        async move {
            store
                .append(&session, Append::unconditional(vec![text_entry(2, "two")]))
                .await
        }
    });
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(!pending.is_finished());
    served.start_serving().await;
    let appended = pending.await.unwrap().unwrap();
    assert_eq!(appended.kind, AppendKind::Appended);
    assert_eq!(appended.entries[0].seq, Seq(2));
}

#[tokio::test]
async fn too_many_requests_are_made_when_they_may_be() {
    let limits = Limits {
        rate: Some(RateLimit {
            per_second: 2,
            burst: 2,
        }),
        ..Limits::default()
    };
    let served = TestServer::with_limits(limits).await;
    let store = served.store("ada").await;
    let ada = owner("ada");
    for _ in 0..5 {
        let count = store.count(&ada, &SessionFilter::default()).await.unwrap();
        assert_eq!(count, 0);
    }
}

#[tokio::test]
async fn a_waiter_is_notified_of_its_own_changes_only() {
    let served = TestServer::start().await;
    let (mine, theirs) = (served.store("ada").await, served.store("eve").await);
    let (ada, eve) = (owner("ada"), owner("eve"));
    let waiting = tokio::spawn({
        let mine = mine.clone();
        async move { mine.wait_for_change(Position(0)).await }
    });
    theirs.create(&eve, header("e")).await.unwrap();
    theirs
        .append(
            &eve.session(&id("e")),
            Append::unconditional(vec![text_entry(1, "psst")]),
        )
        .await
        .unwrap();
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(
        !waiting.is_finished(),
        "another owner's change was reported"
    );
    assert_eq!(mine.changes(Position(0), 9).await.unwrap(), []);

    mine.create(&ada, header("a")).await.unwrap();
    assert!(waiting.await.unwrap().unwrap());
    let changes = mine.changes(Position(0), 9).await.unwrap();
    let [
        Change {
            owner,
            kind: ChangeKind::Created,
            ..
        },
    ] = &changes[..]
    else {
        panic!("{changes:?}");
    };
    assert_eq!(*owner, ada);
}

#[tokio::test]
async fn pages_of_a_server_are_joined() {
    let limits = Limits {
        page_items: 3,
        ..Limits::default()
    };
    let served = TestServer::with_limits(limits).await;
    let store = served.store("ada").await;
    let ada = owner("ada");
    for number in 0..8 {
        let id = format!("s{number}");
        store.create(&ada, header(&id)).await.unwrap();
    }
    let all = store
        .list(&ada, &SessionFilter::default(), None, 100)
        .await
        .unwrap();
    assert_eq!((all.items.len(), all.next), (8, None));
    let five = store
        .list(&ada, &SessionFilter::default(), None, 5)
        .await
        .unwrap();
    assert_eq!(five.items[..], all.items[..5]);
    let rest = store
        .list(&ada, &SessionFilter::default(), five.next.as_ref(), 5)
        .await
        .unwrap();
    assert_eq!(rest.items[..], all.items[5..]);
    assert_eq!(store.changes(Position(0), 100).await.unwrap().len(), 8);
    assert_eq!(store.changes(Position(0), 7).await.unwrap().len(), 7);
}

#[tokio::test]
async fn a_large_log_is_imported_in_chunks() {
    let limits = Limits {
        body_bytes: 10_000,
        blob_bytes: 10_000,
        ..Limits::default()
    };
    let served = TestServer::with_limits(limits).await;
    let ada = owner("ada");
    let session = ada.session(&id("s"));
    let here = throughline_store::MemoryStore::new();
    here.create(&ada, header("s")).await.unwrap();
    for number in 0..20 {
        let entries = vec![text_entry(number, &"x".repeat(1_000))];
        here.append(&session, Append::unconditional(entries))
            .await
            .unwrap();
    }
    let log = here
        .read_stored(&session, ReadRange::starting_at(Seq(1), 100))
        .await;
    let log = log.unwrap();
    let store = served.store("ada").await;
    let new = store
        .import_log(&ada, header("s"), log.clone())
        .await
        .unwrap();
    assert_eq!(new, 20);
    let stored = store
        .read_stored(&session, ReadRange::starting_at(Seq(1), 100))
        .await;
    assert_eq!(stored.unwrap(), log);

    // Of a log that is forged at its end, nothing is stored.
    let mut forged = log;
    forged[19].payload = forged[19].payload.replace("xx", "yy");
    let refused = store
        .import_log(&ada, header("t"), forged)
        .await
        .unwrap_err();
    assert!(matches!(refused, StoreError::Damaged { .. }), "{refused:?}");
    let none = store.record(&ada.session(&id("t"))).await.unwrap_err();
    assert!(matches!(none, StoreError::NoSuchSession(_)), "{none:?}");

    // A request that is too large is refused before it is sent.
    let large = Append::unconditional(vec![text_entry(99, &"x".repeat(20_000))]);
    let refused = store.append(&session, large).await.unwrap_err();
    assert!(
        refused
            .to_string()
            .contains("accepts up to 10000 per request"),
        "{refused}"
    );
}

#[tokio::test]
async fn an_entry_that_is_damaged_on_the_server_is_reported_here() {
    let served = TestServer::start().await;
    let store = served.store("ada").await;
    let ada = owner("ada");
    let session = ada.session(&id("s"));
    store.create(&ada, header("s")).await.unwrap();
    for number in 1..=3 {
        let entries = vec![text_entry(number, "pay 10")];
        store
            .append(&session, Append::unconditional(entries))
            .await
            .unwrap();
    }
    served.execute_sql("UPDATE entry SET payload = replace(payload, '10', '99') WHERE seq = 2");
    for read in [
        ReadRange::starting_at(Seq(1), 9),
        ReadRange::tail(2),
        ReadRange::between(Seq(2), Seq(2), 1),
    ] {
        let error = store.read_stored(&session, read).await.unwrap_err();
        let StoreError::Damaged { seq, .. } = error else {
            panic!("{error:?}");
        };
        assert_eq!(seq, Seq(2));
    }
    let sound = store.read(&session, ReadRange::tail(1)).await.unwrap();
    assert!(matches!(sound[0].body, Body::Message(_)));
}

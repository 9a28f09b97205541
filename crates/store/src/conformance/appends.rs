//! Conformance cases for appends: numbering, atomicity, conflicts, repeats.

use throughline_model::{Body, GENESIS, Json, Message, Role, Seq, fold};

use super::{
    append, append_expecting, body_entry, header, message_entry, owner, read_texts, session_id,
    session_with, user_entry,
};
use crate::{Append, AppendKind, ErrorKind, Expect, OnConflict, ReadRange, Store, StoreError};

/// The first entry is number 1.
pub async fn first_entry_is_number_one<S: Store>(store: &S) {
    let session = session_with(store, "s", &[]).await;
    assert_eq!(store.record(&session).await.unwrap().info.head, Seq::ZERO);

    let appended = append(store, &session, "one").await;

    assert_eq!(appended.entries[0].seq, Seq(1));
    assert_eq!(appended.kind, AppendKind::Appended);
}

/// Sequence numbers have no gaps.
pub async fn numbers_have_no_gaps<S: Store>(store: &S) {
    let session = session_with(store, "s", &["1", "2"]).await;
    let three = store
        .append(
            &session,
            Append::unconditional(vec![user_entry("3"), user_entry("4"), user_entry("5")]),
        )
        .await
        .unwrap();
    let seqs: Vec<_> = three.entries.iter().map(|entry| entry.seq.0).collect();
    assert_eq!(seqs, [3, 4, 5]);
    assert_eq!(read_texts(store, &session).await, ["1", "2", "3", "4", "5"]);
}

/// If one entry of an append is invalid, none is stored.
pub async fn an_append_is_all_or_nothing<S: Store>(store: &S) {
    let session = session_with(store, "s", &["1"]).await;
    let mut picture = Message::text(Role::User, "look");
    picture.content.0.push(throughline_model::Block::Attachment(
        throughline_model::Attachment {
            blob: GENESIS,
            media_type: "image/png".into(),
            bytes: 1,
            name: None,
        },
    ));

    let refused = store
        .append(
            &session,
            Append::unconditional(vec![user_entry("2"), message_entry(picture)]),
        )
        .await;

    assert!(matches!(refused, Err(StoreError::NoSuchBlob(_))));
    assert_eq!(read_texts(store, &session).await, ["1"]);
    assert_eq!(store.record(&session).await.unwrap().info.messages, 1);
}

/// A writer with an outdated head is rejected, and the error contains the current head.
pub async fn a_stale_head_is_refused<S: Store>(store: &S) {
    let session = session_with(store, "s", &["one"]).await;
    append(store, &session, "two").await;

    let late = store.append(&session, append_expecting(1, "late")).await;

    let error = late.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    assert!(matches!(
        error,
        StoreError::Moved {
            expected: Seq(1),
            found: Seq(2),
            ..
        }
    ));
    assert_eq!(read_texts(store, &session).await, ["one", "two"]);
}

/// An expected head beyond the end is rejected.
pub async fn a_head_beyond_the_end_is_refused<S: Store>(store: &S) {
    let session = session_with(store, "s", &["one"]).await;
    for on_conflict in [OnConflict::Reject, OnConflict::Rebase] {
        let early = Append {
            on_conflict,
            ..append_expecting(7, "early")
        };
        assert!(store.append(&session, early).await.is_err());
    }
    assert_eq!(read_texts(store, &session).await, ["one"]);
}

/// A rebase stores the entries of both writers and marks the later ones.
pub async fn a_rebase_is_appended_and_marked<S: Store>(store: &S) {
    let session = session_with(store, "s", &["one", "two"]).await;
    let late = Append {
        on_conflict: OnConflict::Rebase,
        ..append_expecting(1, "late")
    };

    let appended = store.append(&session, late).await.unwrap();

    assert_eq!(appended.kind, AppendKind::Rebased);
    assert_eq!(appended.entries[0].seq, Seq(3));
    let read = store.read(&session, ReadRange::tail(1)).await.unwrap();
    assert_eq!(read[0].rebased, Some(Seq(1)));
    let on_time = Append {
        on_conflict: OnConflict::Rebase,
        ..append_expecting(3, "on time")
    };
    let appended = store.append(&session, on_time).await.unwrap();
    assert_eq!(
        (appended.kind, appended.entries[0].rebased),
        (AppendKind::Appended, None)
    );
}

fn append_or_fork(head: u64, text: &str) -> Append {
    Append {
        on_conflict: OnConflict::Fork(Box::new(header("late-fork"))),
        ..append_expecting(head, text)
    }
}

/// A conflicting append can become a fork at the expected head.
pub async fn a_conflict_can_become_a_fork<S: Store>(store: &S) {
    let session = session_with(store, "s", &["one", "two"]).await;

    let appended = store
        .append(&session, append_or_fork(1, "late"))
        .await
        .unwrap();

    assert_eq!(appended.kind, AppendKind::Forked);
    assert_eq!(appended.session, session_id("late-fork"));
    assert_eq!(appended.entries[0].seq, Seq(2));
    assert_eq!(read_texts(store, &session).await, ["one", "two"]);
    let fork = owner().session(&appended.session);
    assert_eq!(read_texts(store, &fork).await, ["one", "late"]);
}

/// Retrying an append that became a fork returns that fork.
pub async fn a_retried_fork_finds_the_first<S: Store>(store: &S) {
    let session = session_with(store, "s", &["one", "two"]).await;
    let late = append_or_fork(1, "late");

    let first = store.append(&session, late.clone()).await.unwrap();
    let again = store.append(&session, late).await.unwrap();

    assert_eq!(again.kind, AppendKind::Repeated);
    assert_eq!(
        (again.session, again.entries),
        (first.session, first.entries)
    );
}

/// Repeating an append with the same entry ids has no effect and returns the same
/// result.
pub async fn a_repeated_append_changes_nothing<S: Store>(store: &S) {
    let session = session_with(store, "s", &["one"]).await;
    let two = Append {
        expect: Expect::At(Seq(1)),
        ..Append::unconditional(vec![user_entry("2"), user_entry("3")])
    };

    let first = store.append(&session, two.clone()).await.unwrap();
    let again = store.append(&session, two).await.unwrap();

    assert_eq!(again.kind, AppendKind::Repeated);
    assert_eq!(again.entries, first.entries);
    assert_eq!(read_texts(store, &session).await, ["one", "2", "3"]);
}

/// A repeat is recognized whatever was appended in between.
pub async fn a_repeat_is_known_however_far_the_session_moved<S: Store>(store: &S) {
    let session = session_with(store, "s", &[]).await;
    let early = Append::unconditional(vec![user_entry("early")]);
    store.append(&session, early.clone()).await.unwrap();
    for _ in 0..50 {
        append(store, &session, "more").await;
    }

    let again = store.append(&session, early).await.unwrap();

    assert_eq!(
        (again.kind, again.entries[0].seq),
        (AppendKind::Repeated, Seq(1))
    );
    assert_eq!(store.record(&session).await.unwrap().info.head, Seq(51));
}

/// A known id among new ones is rejected.
pub async fn a_reused_id_is_refused<S: Store>(store: &S) {
    let session = session_with(store, "s", &[]).await;
    let known = user_entry("known");
    store
        .append(&session, Append::unconditional(vec![known.clone()]))
        .await
        .unwrap();

    for entries in [
        vec![user_entry("new"), known.clone()],
        vec![known, user_entry("new")],
    ] {
        let mixed = store.append(&session, Append::unconditional(entries)).await;
        assert!(matches!(mixed, Err(StoreError::EntryIdReused { .. })));
    }
    assert_eq!(read_texts(store, &session).await, ["known"]);
}

/// Two entries of one append cannot have the same id.
pub async fn an_id_may_not_come_twice_in_one_append<S: Store>(store: &S) {
    let session = session_with(store, "s", &[]).await;
    let one = user_entry("x");
    let doubled = store
        .append(&session, Append::unconditional(vec![one.clone(), one]))
        .await;
    assert_eq!(doubled.unwrap_err().kind(), ErrorKind::Conflict);
    assert!(read_texts(store, &session).await.is_empty());
}

/// An append without entries is rejected.
pub async fn an_empty_append_is_refused<S: Store>(store: &S) {
    let session = session_with(store, "s", &[]).await;
    let nothing = store
        .append(&session, Append::unconditional(Vec::new()))
        .await;
    assert_eq!(nothing.unwrap_err().kind(), ErrorKind::Invalid);
}

/// An append does not create a session.
pub async fn an_append_to_no_session_is_refused<S: Store>(store: &S) {
    let nowhere = owner().session(&session_id("nowhere"));
    let refused = store
        .append(&nowhere, Append::unconditional(vec![user_entry("x")]))
        .await;
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::NotFound);
    assert!(store.record(&nowhere).await.is_err());
}

/// The stored record equals the fold of the log.
pub async fn the_record_is_the_fold<S: Store>(store: &S) {
    let session = session_with(store, "s", &["hello"]).await;
    let bodies = vec![
        Body::Pinned {
            text: "a fact".into(),
        },
        Body::Decided {
            text: "a decision".into(),
        },
        Body::Tagged {
            tags: vec!["t".parse().unwrap(), "u".parse().unwrap()],
        },
        Body::Untagged {
            tags: vec!["t".parse().unwrap()],
        },
        Body::Described {
            description: Some("about".into()),
        },
        Body::Rewound { to: Seq(1) },
        Body::Archived,
    ];
    let entries = bodies.into_iter().map(body_entry).collect();
    store
        .append(&session, Append::unconditional(entries))
        .await
        .unwrap();

    let log = store
        .read(&session, ReadRange::starting_at(Seq(1), 100))
        .await
        .unwrap();
    let session_header = store.header(&session).await.unwrap();

    assert_eq!(
        store.record(&session).await.unwrap(),
        fold(&session_header, &log)
    );
}

/// Each entry's digest covers the previous one.
pub async fn digests_chain<S: Store>(store: &S) {
    let session = session_with(store, "s", &["a", "b", "c"]).await;
    let mut previous = GENESIS;
    for stored in store
        .read_stored(&session, ReadRange::starting_at(Seq(1), 10))
        .await
        .unwrap()
    {
        stored.verify(&previous).unwrap();
        previous = stored.digest;
    }
    assert_eq!(store.record(&session).await.unwrap().info.digest, previous);
}

/// Concurrent appends are all stored, each once.
pub async fn concurrent_appends_all_land<S: Store>(store: &S) {
    let session = session_with(store, "s", &[]).await;
    let texts_in: Vec<String> = (0..100).map(|n| format!("{n}")).collect();
    let mut waiting = Vec::new();
    for text in &texts_in {
        waiting.push(store.append(&session, Append::unconditional(vec![user_entry(text)])));
    }
    let mut seqs = Vec::new();
    for one in join_all(waiting).await {
        seqs.push(one.unwrap().entries[0].seq.0);
    }
    seqs.sort_unstable();
    assert_eq!(seqs, (1..=100).collect::<Vec<_>>());
    let mut stored = read_texts(store, &session).await;
    stored.sort_by_key(|text| text.parse::<u32>().unwrap());
    assert_eq!(stored, texts_in);
}

/// Polls all futures concurrently.
async fn join_all<F: Future>(futures: Vec<F>) -> Vec<F::Output> {
    let mut futures: Vec<_> = futures.into_iter().map(|f| (Box::pin(f), None)).collect();
    std::future::poll_fn(move |context| {
        let mut pending = false;
        for (future, output) in &mut futures {
            if output.is_none() {
                match future.as_mut().poll(context) {
                    std::task::Poll::Ready(value) => *output = Some(value),
                    std::task::Poll::Pending => pending = true,
                }
            }
        }
        if pending {
            return std::task::Poll::Pending;
        }
        std::task::Poll::Ready(futures.iter_mut().filter_map(|(_, o)| o.take()).collect())
    })
    .await
}

/// Of many writers that expect the same head, exactly one succeeds.
pub async fn of_writers_that_expect_one_head_one_wins<S: Store>(store: &S) {
    let session = session_with(store, "s", &["start"]).await;
    let appends = (0..20)
        .map(|_| store.append(&session, append_expecting(1, "mine")))
        .collect();
    let results = join_all(appends).await;
    assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 1);
    assert_eq!(read_texts(store, &session).await, ["start", "mine"]);
}

/// Any text is returned unchanged.
pub async fn hostile_text_survives<S: Store>(store: &S) {
    let session = session_with(store, "s", &[]).await;
    let long = "x".repeat(3_000_000);
    let hostile = [
        "",
        "\0",
        "a\0b",
        "'; DROP TABLE entry; --",
        "\u{202e}\u{1b}[2J",
        "𝕏\u{fffd}",
        &long,
    ];
    for text in hostile {
        append(store, &session, text).await;
    }
    assert_eq!(read_texts(store, &session).await, hostile);
}

/// Entries of later versions are preserved unchanged.
pub async fn unknown_kinds_survive<S: Store>(store: &S) {
    let session = session_with(store, "s", &[]).await;
    let payload = r#"{"kind":"levitated","height": 1.50}"#;
    let unknown = Body::Unknown {
        kind: "levitated".into(),
        payload: Json::parse(payload).unwrap(),
    };
    store
        .append(
            &session,
            Append::unconditional(vec![body_entry(unknown.clone())]),
        )
        .await
        .unwrap();
    let stored = store
        .read_stored(&session, ReadRange::tail(1))
        .await
        .unwrap();
    assert_eq!(stored[0].payload, payload);
    assert_eq!(stored[0].decode().unwrap().body, unknown);
}

/// An imported log keeps its digests, also in parts and repeatedly.
pub async fn an_imported_log_keeps_its_digests<S: Store>(store: &S) {
    let source = session_with(store, "source", &["a", "b", "c", "d"]).await;
    let log = store
        .read_stored(&source, ReadRange::starting_at(Seq(1), 10))
        .await
        .unwrap();
    let head = store.record(&source).await.unwrap().info.digest;
    let copy = header("copy");

    let owner = owner();
    assert_eq!(
        store
            .import_log(&owner, copy.clone(), log[..2].to_vec())
            .await
            .unwrap(),
        2
    );
    assert_eq!(
        store
            .import_log(&owner, copy.clone(), log.clone())
            .await
            .unwrap(),
        2
    );
    assert_eq!(
        store
            .import_log(&owner, copy.clone(), log.clone())
            .await
            .unwrap(),
        0
    );

    let copied = owner.session(&copy.id);
    assert_eq!(store.record(&copied).await.unwrap().info.digest, head);
    assert_eq!(read_texts(store, &copied).await, ["a", "b", "c", "d"]);
}

/// A diverged log is rejected, and nothing is changed.
pub async fn a_diverged_log_is_not_imported<S: Store>(store: &S) {
    let one = session_with(store, "one", &["a", "b"]).await;
    let two = session_with(store, "two", &["a", "x", "y"]).await;
    let log = store
        .read_stored(&two, ReadRange::starting_at(Seq(1), 10))
        .await
        .unwrap();
    let refused = store.import_log(&owner(), header("one"), log).await;
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::Conflict);
    assert_eq!(read_texts(store, &one).await, ["a", "b"]);
}

/// A log with a broken digest chain is rejected.
pub async fn a_forged_log_is_not_imported<S: Store>(store: &S) {
    let source = session_with(store, "source", &["pay 10"]).await;
    let mut log = store
        .read_stored(&source, ReadRange::starting_at(Seq(1), 10))
        .await
        .unwrap();
    log[0].payload = log[0].payload.replace("10", "99");
    let refused = store.import_log(&owner(), header("copy"), log).await;
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::Damaged);
}

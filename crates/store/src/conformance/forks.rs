//! Conformance cases for forks: sharing, reading, and surviving the origin.

use throughline_model::{Body, Lineage, NameSource, Seq, SessionRef, fold};

use super::{
    append, append_body, assert_sound, at, header, owner, read_texts, session_id, session_with,
};
use crate::{Append, ErrorKind, ReadRange, Store};

async fn fork<S: Store>(store: &S, of: &SessionRef, seq: u64, id: &str) -> SessionRef {
    store.fork(of, Seq(seq), header(id)).await.unwrap();
    owner().session(&session_id(id))
}

async fn remove_session<S: Store>(store: &S, session: &SessionRef) {
    store.trash(session, at(0)).await.unwrap();
    store.remove(session).await.unwrap();
}

/// Shared entries have the same number in both; later entries are separate.
pub async fn a_fork_shares_its_past_and_diverges<S: Store>(store: &S) {
    let origin = session_with(store, "origin", &["1", "2", "3"]).await;
    let branch = fork(store, &origin, 2, "branch").await;

    let appended = append(store, &branch, "branch 3").await;
    append(store, &origin, "4").await;

    assert_eq!(appended.entries[0].seq, Seq(3));
    assert_eq!(read_texts(store, &branch).await, ["1", "2", "branch 3"]);
    assert_eq!(read_texts(store, &origin).await, ["1", "2", "3", "4"]);
    let tail = store.read(&branch, ReadRange::tail(2)).await.unwrap();
    assert_eq!(tail.iter().map(|e| e.seq.0).collect::<Vec<_>>(), [2, 3]);
    let lineage = store.record(&branch).await.unwrap().info.lineage;
    assert_eq!(
        lineage,
        Lineage::Forked {
            session: session_id("origin"),
            at: Seq(2)
        }
    );
}

/// Forks of forks read their shared entries at any depth.
pub async fn a_fork_of_a_fork_reads_through<S: Store>(store: &S) {
    let mut session = session_with(store, "f0", &["0"]).await;
    for depth in 1..=12_u64 {
        session = fork(store, &session, depth, &format!("f{depth}")).await;
        append(store, &session, &depth.to_string()).await;
    }
    let all: Vec<_> = (0..=12).map(|n| n.to_string()).collect();
    assert_eq!(read_texts(store, &session).await, all);
    let middle = store
        .read(&session, ReadRange::between(Seq(4), Seq(6), 10))
        .await
        .unwrap();
    assert_eq!(
        middle.iter().map(|e| e.seq.0).collect::<Vec<_>>(),
        [4, 5, 6]
    );
    let tail = store.read(&session, ReadRange::tail(3)).await.unwrap();
    assert_eq!(
        tail.iter().map(|e| e.seq.0).collect::<Vec<_>>(),
        [11, 12, 13]
    );
}

/// A fork can start at an entry that its origin inherited.
pub async fn a_fork_within_the_inherited_part<S: Store>(store: &S) {
    let origin = session_with(store, "origin", &["1", "2", "3"]).await;
    let branch = fork(store, &origin, 3, "branch").await;
    append(store, &branch, "4").await;
    let twig = fork(store, &branch, 2, "twig").await;
    append(store, &twig, "twig").await;
    assert_eq!(read_texts(store, &twig).await, ["1", "2", "twig"]);
    assert_eq!(read_texts(store, &branch).await, ["1", "2", "3", "4"]);
}

/// A fork at zero shares nothing.
pub async fn a_fork_at_zero_is_empty<S: Store>(store: &S) {
    let origin = session_with(store, "origin", &["1"]).await;
    let branch = fork(store, &origin, 0, "branch").await;
    assert!(read_texts(store, &branch).await.is_empty());
    assert_eq!(append(store, &branch, "x").await.entries[0].seq, Seq(1));
}

/// A fork beyond the head is rejected.
pub async fn a_fork_past_the_head_is_refused<S: Store>(store: &S) {
    let origin = session_with(store, "origin", &["1"]).await;
    let refused = store.fork(&origin, Seq(2), header("branch")).await;
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::NotFound);
    let nowhere = owner().session(&session_id("branch"));
    assert!(store.record(&nowhere).await.is_err());
}

/// A fork's record is the fold of its own entries, not of its origin's.
pub async fn a_fork_has_the_record_of_its_entries<S: Store>(store: &S) {
    let origin = session_with(store, "origin", &["1"]).await;
    append_body(
        store,
        &origin,
        Body::Pinned {
            text: "early".into(),
        },
    )
    .await;
    append_body(
        store,
        &origin,
        Body::Pinned {
            text: "late".into(),
        },
    )
    .await;
    append(store, &origin, "4").await;

    let branch = fork(store, &origin, 2, "branch").await;

    let record = store.record(&branch).await.unwrap();
    assert_eq!(record.info.messages, 1);
    assert_eq!(record.state.pins.len(), 1);
    let log = store
        .read(&branch, ReadRange::starting_at(Seq(1), 10))
        .await
        .unwrap();
    let session_header = store.header(&branch).await.unwrap();
    assert_eq!(record, fold(&session_header, &log));
}

/// A fork survives the removal of its origin.
pub async fn a_fork_survives_its_origin<S: Store>(store: &S) {
    let origin = session_with(store, "origin", &["1", "2", "3"]).await;
    let branch = fork(store, &origin, 2, "branch").await;
    append(store, &branch, "b").await;

    remove_session(store, &origin).await;

    assert!(store.record(&origin).await.is_err());
    assert_eq!(read_texts(store, &branch).await, ["1", "2", "b"]);
    let twig = fork(store, &branch, 1, "twig").await;
    assert_eq!(read_texts(store, &twig).await, ["1"]);
}

/// A fork survives the removal of all its ancestors, in any order; unshared data is
/// removed.
pub async fn a_fork_survives_a_chain_of_removals<S: Store>(store: &S) {
    let a = session_with(store, "a", &["1", "2"]).await;
    let b = fork(store, &a, 2, "b").await;
    append(store, &b, "3").await;
    let c = fork(store, &b, 3, "c").await;
    append(store, &c, "4").await;
    remove_session(store, &b).await;
    remove_session(store, &a).await;
    assert_eq!(read_texts(store, &c).await, ["1", "2", "3", "4"]);
    remove_session(store, &c).await;
    // All ids are available again.
    let again = session_with(store, "a", &["new"]).await;
    assert_eq!(read_texts(store, &again).await, ["new"]);
    assert_sound(store).await;
}

/// A fork inherits neither its origin's name nor its archived status.
pub async fn a_fork_is_not_named_by_its_origin<S: Store>(store: &S) {
    let origin = session_with(store, "origin", &["1"]).await;
    let name = Some("auth".parse().unwrap());
    append_body(
        store,
        &origin,
        Body::Renamed {
            name,
            by: NameSource::Person,
        },
    )
    .await;
    append_body(store, &origin, Body::Archived).await;
    let branch = fork(store, &origin, 3, "branch").await;
    let info = store.record(&branch).await.unwrap().info;
    assert_eq!(info.name, None);
    assert_eq!(info.status, throughline_model::Status::Active);
}

/// Retrying a fork returns the same fork.
pub async fn forking_twice_with_one_id_is_one_fork<S: Store>(store: &S) {
    let origin = session_with(store, "origin", &["1", "2"]).await;
    let first = store.fork(&origin, Seq(1), header("branch")).await.unwrap();
    let again = store.fork(&origin, Seq(1), header("branch")).await.unwrap();
    assert_eq!(first, again);
    let other = store.fork(&origin, Seq(2), header("branch")).await;
    assert_eq!(other.unwrap_err().kind(), ErrorKind::Conflict);
}

/// The record is correct wherever a long log is forked.
pub async fn forks_at_many_places_have_the_right_record<S: Store>(store: &S) {
    let origin = session_with(store, "origin", &[]).await;
    for batch in 0..5_u64 {
        let entries = (0..500)
            .map(|n| super::user_entry(&format!("{batch} {n}")))
            .collect();
        store
            .append(&origin, Append::unconditional(entries))
            .await
            .unwrap();
    }
    for seq in [1, 511, 512, 513, 1023, 1024, 1025, 1700, 2499, 2500] {
        let branch = fork(store, &origin, seq, &format!("at-{seq}")).await;
        let record = store.record(&branch).await.unwrap();
        assert_eq!(record.info.messages, seq);
        assert_eq!(record.info.head, Seq(seq));
        append(store, &branch, "on").await;
    }
    assert_sound(store).await;
}

/// Importing a fork's own log again has no effect and can be continued.
pub async fn a_fork_imports_its_own_log<S: Store>(store: &S) {
    let origin = session_with(store, "origin", &["1", "2"]).await;
    let branch = fork(store, &origin, 2, "branch").await;
    let twig = fork(store, &branch, 2, "twig").await;
    append(store, &twig, "3").await;
    let log = store
        .read_stored(&twig, ReadRange::starting_at(Seq(1), 10))
        .await
        .unwrap();
    let session_header = store.header(&branch).await.unwrap();
    let adopted = store
        .import_log(&owner(), session_header.clone(), log.clone())
        .await
        .unwrap();
    assert_eq!(adopted, 1);
    assert_eq!(
        store
            .import_log(&owner(), session_header, log)
            .await
            .unwrap(),
        0
    );
    assert_eq!(read_texts(store, &branch).await, ["1", "2", "3"]);
}

//! Conformance cases for leases.

use std::time::Duration;

use throughline_model::{Owner, Seq};

use super::{append_expecting, at, owner, read_texts, session_with, user_entry};
use crate::{Append, AppendKind, ErrorKind, Fence, Lease, Store, StoreError};

const LONG_TERM: Duration = Duration::from_secs(3_600);

/// Acquires a lease that expires at once.
async fn acquire_expired<S: Store>(store: &S, name: &str, holder: &str) -> Lease {
    let owner = owner();
    let taken = store.acquire_lease(&owner, name, holder, Duration::ZERO);
    taken.await.unwrap()
}

async fn acquire_long<S: Store>(store: &S, name: &str, holder: &str) -> Lease {
    let owner = owner();
    let taken = store.acquire_lease(&owner, name, holder, LONG_TERM);
    taken.await.unwrap()
}

fn with_fence(lease: &Lease, append: Append) -> Append {
    Append {
        fence: Some(lease.fence()),
        ..append
    }
}

fn assert_lost<T: std::fmt::Debug>(result: Result<T, StoreError>, name: &str) {
    let error = result.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    assert!(
        matches!(&error, StoreError::LeaseLost { name: lost } if lost == name),
        "{error:?}"
    );
}

/// While a lease is held, others are rejected with the name of the holder.
pub async fn a_lease_is_held_by_one<S: Store>(store: &S) {
    let lease = acquire_long(store, "work", "a").await;
    assert_eq!((&lease.owner, lease.name.as_str()), (&owner(), "work"));

    let refused = store.acquire_lease(&owner(), "work", "b", LONG_TERM).await;

    let refused = refused.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Conflict);
    let StoreError::LeaseHeld {
        name,
        holder,
        until,
    } = refused
    else {
        panic!("{refused:?}");
    };
    assert_eq!((name.as_str(), holder.as_str()), ("work", "a"));
    assert_eq!(until, lease.expires_at);
    acquire_long(store, "other work", "b").await;
}

/// Leases are separate per owner.
pub async fn leases_are_isolated<S: Store>(store: &S) {
    let mine = acquire_long(store, "work", "a").await;
    let other: Owner = "other".parse().unwrap();
    let theirs = store
        .acquire_lease(&other, "work", "b", LONG_TERM)
        .await
        .unwrap();
    let forged = Lease {
        owner: other,
        ..mine.clone()
    };
    assert_lost(store.renew_lease(&forged, LONG_TERM).await, "work");
    store.release_lease(&theirs).await.unwrap();
    store.renew_lease(&mine, LONG_TERM).await.unwrap();
}

/// A holder can reacquire its lease, and an expired lease can be acquired by others.
pub async fn fencing_tokens_only_grow<S: Store>(store: &S) {
    let mut numbers = Vec::new();
    numbers.push(acquire_long(store, "work", "a").await.fencing_token);
    numbers.push(acquire_expired(store, "work", "a").await.fencing_token);
    numbers.push(acquire_expired(store, "work", "b").await.fencing_token);
    let third = acquire_long(store, "work", "c").await;
    numbers.push(third.fencing_token);
    store.release_lease(&third).await.unwrap();
    let last = acquire_long(store, "work", "a").await;
    numbers.push(last.fencing_token);
    // No lease remains, and still no fencing token is reused.
    store.release_lease(&last).await.unwrap();
    for name in ["other work", "work"] {
        let lease = acquire_long(store, name, "a").await;
        numbers.push(lease.fencing_token);
        store.release_lease(&lease).await.unwrap();
    }
    assert!(numbers.is_sorted_by(|a, b| a < b), "{numbers:?}");
}

/// An active holder keeps its lease, even if it renews late.
pub async fn a_renewed_lease_holds<S: Store>(store: &S) {
    let lease = acquire_expired(store, "work", "a").await;
    let renewed = store.renew_lease(&lease, LONG_TERM).await.unwrap();
    assert!(renewed.expires_at > lease.expires_at);
    assert_eq!(renewed.fencing_token, lease.fencing_token);
    let refused = store.acquire_lease(&owner(), "work", "b", LONG_TERM).await;
    assert!(matches!(refused, Err(StoreError::LeaseHeld { .. })));
}

/// A holder that was replaced cannot get its lease back.
pub async fn a_lease_that_was_taken_over_is_lost<S: Store>(store: &S) {
    let slow = acquire_expired(store, "work", "a").await;
    let next = acquire_long(store, "work", "b").await;
    assert_lost(store.renew_lease(&slow, LONG_TERM).await, "work");
    // Releasing has no effect on another holder's lease.
    store.release_lease(&slow).await.unwrap();
    store.renew_lease(&next, LONG_TERM).await.unwrap();
}

/// A released lease is available.
pub async fn a_released_lease_is_free<S: Store>(store: &S) {
    let lease = acquire_long(store, "work", "a").await;
    store.release_lease(&lease).await.unwrap();
    assert_lost(store.renew_lease(&lease, LONG_TERM).await, "work");
    acquire_long(store, "work", "b").await;
}

/// Of many concurrent requests, exactly one succeeds.
pub async fn of_concurrent_requests_one_gets_the_lease<S: Store>(store: &S) {
    let take = async |number: usize| {
        let holder = format!("holder {number}");
        store
            .acquire_lease(&owner(), "work", &holder, LONG_TERM)
            .await
    };
    let (a, b, c, d) = tokio::join!(take(1), take(2), take(3), take(4));
    let got = [a, b, c, d];
    assert_eq!(got.iter().filter(|taken| taken.is_ok()).count(), 1);
    let held = |taken: &Result<_, _>| matches!(taken, Err(StoreError::LeaseHeld { .. }));
    assert_eq!(got.iter().filter(|taken| held(taken)).count(), 3);
}

/// A slow holder cannot overwrite newer work.
pub async fn an_append_under_a_lost_lease_is_refused<S: Store>(store: &S) {
    let session = session_with(store, "s", &["one"]).await;
    let slow = acquire_expired(store, "work", "a").await;
    let on_time = with_fence(&slow, Append::unconditional(vec![user_entry("on time")]));
    store.append(&session, on_time.clone()).await.unwrap();
    let next = acquire_long(store, "work", "b").await;

    // The head is as expected: only the lost lease prevents the append.
    let late = with_fence(&slow, append_expecting(2, "late"));
    assert_lost(store.append(&session, late).await, "work");
    // Repeating an append from before the loss returns its result.
    let again = store.append(&session, on_time).await.unwrap();
    assert_eq!(again.kind, AppendKind::Repeated);

    let after = with_fence(&next, append_expecting(2, "next"));
    store.append(&session, after).await.unwrap();
    assert_eq!(
        read_texts(store, &session).await,
        ["one", "on time", "next"]
    );
    assert_eq!(
        store.record(&session).await.unwrap().info.head,
        Seq(3),
        "a refused append leaves nothing behind"
    );
}

/// A released or nonexistent lease does not allow writes.
pub async fn an_append_needs_the_lease_it_names<S: Store>(store: &S) {
    let session = session_with(store, "s", &[]).await;
    let lease = acquire_long(store, "work", "a").await;
    store.release_lease(&lease).await.unwrap();
    let late = with_fence(&lease, Append::unconditional(vec![user_entry("late")]));
    assert_lost(store.append(&session, late).await, "work");
    let forged = Append {
        fence: Some(Fence {
            name: "never".to_owned(),
            fencing_token: 1,
            outer: None,
        }),
        ..Append::unconditional(vec![user_entry("forged")])
    };
    assert_lost(store.append(&session, forged).await, "never");
    assert_eq!(read_texts(store, &session).await, Vec::<String>::new());
}

/// Without its lease, a holder can neither trash nor remove a session.
pub async fn a_purge_under_a_lost_lease_is_refused<S: Store>(store: &S) {
    let kept = session_with(store, "kept", &["one"]).await;
    let old = session_with(store, "old", &["two"]).await;
    store.trash(&old, at(1)).await.unwrap();
    let slow = acquire_expired(store, "purge", "a").await;
    let next = acquire_long(store, "purge", "b").await;

    let fence = slow.fence();
    let trashing = store.trash_fenced(&kept, at(2), Some(&fence));
    assert_lost(trashing.await, "purge");
    assert_lost(store.remove_fenced(&old, None, Some(&fence)).await, "purge");
    assert_eq!(read_texts(store, &kept).await, ["one"]);
    assert_eq!(store.list_trashed(&owner(), at(9)).await.unwrap().len(), 1);

    let fence = next.fence();
    store.remove_fenced(&old, None, Some(&fence)).await.unwrap();
    let trashing = store.trash_fenced(&kept, at(2), Some(&fence));
    trashing.await.unwrap();
    let trashed = store.list_trashed(&owner(), at(9)).await.unwrap();
    assert_eq!(trashed[0].info.id, kept.id);
    assert_eq!(trashed.len(), 1);
}

/// Peeking at a lease does not change it.
pub async fn peeking_changes_nothing<S: Store>(store: &S) {
    assert_eq!(store.peek_lease(&owner(), "work").await.unwrap(), None);
    let lease = acquire_long(store, "work", "a").await;
    let seen = store.peek_lease(&owner(), "work").await.unwrap();
    assert_eq!(seen.as_ref(), Some(&lease));
    let other: Owner = "other".parse().unwrap();
    assert_eq!(store.peek_lease(&other, "work").await.unwrap(), None);

    let renewed = store.renew_lease(&lease, LONG_TERM).await.unwrap();
    let seen = store.peek_lease(&owner(), "work").await.unwrap();
    assert_eq!(seen, Some(renewed));
    store.release_lease(&lease).await.unwrap();
    assert_eq!(store.peek_lease(&owner(), "work").await.unwrap(), None);

    // An expired lease can be acquired, but is valid until someone does.
    let slow = acquire_expired(store, "work", "a").await;
    assert_eq!(store.peek_lease(&owner(), "work").await.unwrap(), None);
    let session = session_with(store, "s", &[]).await;
    let late = with_fence(
        &slow,
        Append::unconditional(vec![user_entry("late, and still first")]),
    );
    store.append(&session, late).await.unwrap();
    store.renew_lease(&slow, LONG_TERM).await.unwrap();
}

/// Nested work requires both leases.
pub async fn an_append_needs_the_outer_lease_too<S: Store>(store: &S) {
    let session = session_with(store, "s", &[]).await;
    let turn = acquire_expired(store, "turn", "a").await;
    let part = acquire_long(store, "part", "a").await;
    let both = |text: &str| Append {
        fence: Some(part.fence().nested_in(Some(turn.fence()))),
        ..Append::unconditional(vec![user_entry(text)])
    };
    store.append(&session, both("in time")).await.unwrap();
    acquire_long(store, "turn", "b").await;
    let late = store.append(&session, both("late")).await.unwrap_err();
    assert!(matches!(late, StoreError::LeaseLost { .. }), "{late:?}");
    assert_eq!(read_texts(store, &session).await, ["in time"]);
}

/// How far the store's clock is set back.
const ONE_DAY: Duration = Duration::from_secs(24 * 3_600);

/// If the clock is set back, the lease of a dead holder does not last until the old
/// time.
pub async fn a_clock_set_back_does_not_prolong_a_lease<S: Store>(
    store: &S,
    set_back: impl AsyncFn(Duration),
) {
    let dead = acquire_long(store, "work", "dead").await;
    set_back(ONE_DAY).await;
    assert_eq!(store.peek_lease(&owner(), "work").await.unwrap(), None);
    let next = acquire_long(store, "work", "next").await;
    assert!(next.fencing_token > dead.fencing_token);
    assert_lost(store.renew_lease(&dead, LONG_TERM).await, "work");
}

/// An active holder renews by the new time, and no one else acquires the lease.
pub async fn a_holder_renews_by_a_clock_set_back<S: Store>(
    store: &S,
    set_back: impl AsyncFn(Duration),
) {
    let lease = acquire_long(store, "work", "a").await;
    set_back(ONE_DAY).await;
    let renewed = store.renew_lease(&lease, LONG_TERM).await.unwrap();
    let refused = store.acquire_lease(&owner(), "work", "b", LONG_TERM).await;
    assert!(matches!(refused, Err(StoreError::LeaseHeld { .. })));
    let seen = store.peek_lease(&owner(), "work").await.unwrap();
    assert_eq!(seen, Some(renewed));
}

/// A small clock correction does not expire a lease.
pub async fn a_clock_correction_takes_no_lease<S: Store>(
    store: &S,
    set_back: impl AsyncFn(Duration),
) {
    let lease = acquire_long(store, "work", "a").await;
    set_back(crate::MAX_CLOCK_CORRECTION / 2).await;
    let refused = store.acquire_lease(&owner(), "work", "b", LONG_TERM).await;
    assert!(matches!(refused, Err(StoreError::LeaseHeld { .. })));
    store.renew_lease(&lease, LONG_TERM).await.unwrap();
}

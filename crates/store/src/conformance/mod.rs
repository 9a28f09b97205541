//! The conformance suite that every store must pass.
//!
//! A store's tests call [`conformance!`](crate::conformance!) with an expression that
//! creates an empty store; each case becomes a separate test. Cases use the store
//! through its traits only and specify the behavior required of any store.

#![allow(
    clippy::unwrap_used,
    clippy::missing_panics_doc,
    reason = "a suite of tests"
)]

pub mod api_tokens;
pub mod appends;
pub mod blobs;
pub mod change_feed;
pub mod erasure;
pub mod forks;
pub mod isolation;
pub mod leases;
pub mod listing;
pub mod maintenance;
pub mod processes;
pub mod random;
pub mod reads;
pub mod token_counts;
pub mod torture;
pub mod trash;

#[doc(hidden)]
pub use proptest;

use std::any::Any;
use std::sync::atomic::{AtomicU64, Ordering};

use throughline_model::{
    Body, EntryId, Message, NewEntry, Owner, Role, Seq, SessionHeader, SessionId, SessionRef,
    Timestamp,
};

use crate::{Append, AppendOutcome, CheckReport, Expect, Store, StoreError};

/// An empty store, and resources that must outlive it.
#[derive(Debug)]
pub struct Fixture<S> {
    /// The store.
    pub store: S,
    /// The folder or server of the store.
    pub guard: Box<dyn Any + Send>,
}

/// Runs a case to completion.
pub fn run<T>(case: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime for the test")
        .block_on(case)
}

/// Defines a test for each case, on a store created by `$make`.
#[macro_export]
macro_rules! conformance {
    ($make:expr) => {
        $crate::session_conformance! { $make }
        $crate::conformance_cases! { $make;
            api_tokens: a_token_is_found_by_its_hash, a_revoked_token_stays_on_record,
                tokens_are_listed_in_the_order_they_were_made, one_hash_is_one_token;
            maintenance: a_sound_store_has_no_findings, a_rebuild_changes_nothing, owners_are_known,
                leases_are_listed_and_not_taken;
        }
        $crate::random_conformance! { $make, $crate::conformance::random::assert_agrees_with_memory }
    };
}

/// Defines a test for each case that concerns an owner's data: for stores that do not
/// support API tokens and maintenance, such as remote ones.
#[macro_export]
macro_rules! session_conformance {
    ($make:expr) => {
        $crate::conformance_cases! { $make;
            appends: first_entry_is_number_one, numbers_have_no_gaps, an_append_is_all_or_nothing,
                a_stale_head_is_refused, a_head_beyond_the_end_is_refused,
                a_rebase_is_appended_and_marked, a_conflict_can_become_a_fork,
                a_retried_fork_finds_the_first, a_repeated_append_changes_nothing,
                a_repeat_is_known_however_far_the_session_moved, a_reused_id_is_refused,
                an_id_may_not_come_twice_in_one_append, an_empty_append_is_refused,
                an_append_to_no_session_is_refused, the_record_is_the_fold,
                digests_chain, concurrent_appends_all_land,
                of_writers_that_expect_one_head_one_wins, hostile_text_survives,
                unknown_kinds_survive, an_imported_log_keeps_its_digests,
                a_diverged_log_is_not_imported, a_forged_log_is_not_imported;
            reads: the_tail_is_the_last_entries, pages_cover_the_log_once, a_range_includes_both_ends,
                reading_past_the_end_gives_nothing, large_entries_make_short_pages,
                locating_finds_entries_by_id;
            forks: a_fork_shares_its_past_and_diverges, a_fork_of_a_fork_reads_through,
                a_fork_within_the_inherited_part, a_fork_at_zero_is_empty,
                a_fork_past_the_head_is_refused, a_fork_has_the_record_of_its_entries,
                a_fork_survives_its_origin, a_fork_survives_a_chain_of_removals,
                a_fork_is_not_named_by_its_origin, forking_twice_with_one_id_is_one_fork,
                forks_at_many_places_have_the_right_record, a_fork_imports_its_own_log;
            listing: latest_activity_comes_first, pages_are_complete_and_stable,
                ties_are_broken_by_id, filters_narrow, counts_agree_with_lists,
                candidates_are_found_by_id_prefix_key_and_name,
                an_exact_candidate_is_never_crowded_out, a_key_gets_or_creates,
                an_id_is_taken_once, creating_twice_with_one_header_is_one_session, projects_are_stored,
                children_are_found_by_parent, internal_sessions_are_listed_only_on_request;
            trash: a_trashed_session_is_not_listed_or_read, a_restored_session_is_unchanged,
                removal_is_from_the_trash_only, a_key_is_free_once_its_session_is_trashed,
                a_removal_checks_the_trash_time,
                a_restore_cannot_take_a_key_back, an_id_in_the_trash_is_still_taken,
                the_trash_is_listed_by_age, a_trashed_session_can_be_copied;
            blobs: stored_bytes_are_returned, the_same_bytes_are_one_blob, an_append_needs_its_attachments,
                removal_deletes_unshared_attachments;
            isolation: nobody_reads_anothers_session, one_id_may_serve_two_owners,
                lists_and_candidates_are_isolated, blobs_are_isolated, keys_are_isolated,
                nobody_changes_anothers_session;
            erasure: erased_content_is_gone_and_the_chain_whole,
                erasing_reaches_forks, an_erased_first_message_leaves_no_preview;
            token_counts: counts_are_stored_per_encoding, a_fork_shares_counts, erasing_forgets_the_count;
            change_feed: a_change_is_recognised_by_its_position_and_content, changes_come_in_the_order_they_happened, paging_skips_and_repeats_nothing,
                an_owners_changes_are_isolated, trash_and_removal_are_in_the_feed,
                an_erasure_is_reported_for_the_appending_session,
                positions_grow_after_a_removal, a_failed_operation_is_not_in_the_feed,
                a_repeat_is_not_in_the_feed;
            leases: a_lease_is_held_by_one, leases_are_isolated, fencing_tokens_only_grow,
                a_renewed_lease_holds, a_lease_that_was_taken_over_is_lost,
                a_released_lease_is_free, of_concurrent_requests_one_gets_the_lease,
                an_append_under_a_lost_lease_is_refused, an_append_needs_the_lease_it_names,
                a_purge_under_a_lost_lease_is_refused, peeking_changes_nothing,
                an_append_needs_the_outer_lease_too;
        }
    };
}

/// Defines a test for each case in which the store's clock is set back. `$set_back` is
/// an `async fn(&Fixture<S>, Duration)` that does so, or shifts every lease
/// accordingly.
#[macro_export]
macro_rules! clock_conformance {
    ($make:expr, $set_back:expr) => {
        $crate::clock_conformance! { $make, $set_back;
            a_clock_set_back_does_not_prolong_a_lease,
            a_holder_renews_by_a_clock_set_back,
            a_clock_correction_takes_no_lease
        }
    };
    ($make:expr, $set_back:expr; $($case:ident),+) => {
        mod clock {
            use super::*;
            $(#[test]
            fn $case() {
                $crate::conformance::run(async {
                    let fixture = $make;
                    let set_back = async |by| $set_back(&fixture, by).await;
                    $crate::conformance::leases::$case(&fixture.store, set_back).await;
                });
            })+
        }
    };
}

/// Implementation of [`conformance!`](crate::conformance!).
#[macro_export]
#[doc(hidden)]
macro_rules! conformance_cases {
    ($make:expr; $($module:ident: $($case:ident),+;)+) => {
        $(mod $module {
            use super::*;
            $(#[test]
            fn $case() {
                $crate::conformance::run(async {
                    let fixture = $make;
                    $crate::conformance::$module::$case(&fixture.store).await;
                });
            })+
        })+
    };
}

/// Source of unique ids for cases.
static COUNTER: AtomicU64 = AtomicU64::new(1);

pub(crate) fn next_counter() -> u64 {
    COUNTER.fetch_add(1, Ordering::Relaxed)
}

/// The owner used by tests that need only one.
pub fn owner() -> Owner {
    Owner::local()
}

/// A test time, this many seconds after the first.
pub fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).expect("in range")
}

pub(crate) fn entry_id() -> EntryId {
    EntryId::derive(&[&next_counter().to_le_bytes()])
}

pub(crate) fn session_id(text: &str) -> SessionId {
    text.parse().expect("a session id")
}

/// A test session header with this id.
pub fn header(id: &str) -> SessionHeader {
    SessionHeader::new(session_id(id), at(0))
}

pub(crate) fn user_entry(text: &str) -> NewEntry {
    let second = i64::try_from(next_counter()).expect("small");
    NewEntry::text(entry_id(), at(second), Role::User, text)
}

pub(crate) fn body_entry(body: Body) -> NewEntry {
    let second = i64::try_from(next_counter()).expect("small");
    NewEntry::new(entry_id(), at(second), body)
}

pub(crate) fn message_entry(message: Message) -> NewEntry {
    body_entry(Body::Message(message))
}

/// The result of a check; `None` if the store does not support checks. Stores that must
/// support them are tested by the cases of [`maintenance`].
pub(crate) async fn check_store<S: Store>(store: &S) -> Option<CheckReport> {
    match store.check(&|_, _| ()).await {
        Err(StoreError::Unsupported(_)) => None,
        report => Some(report.unwrap()),
    }
}

/// Asserts that a check finds no problems.
pub(crate) async fn assert_sound<S: Store>(store: &S) {
    let report = check_store(store).await;
    let findings = report.map(|report| report.findings);
    assert!(findings.iter().all(Vec::is_empty), "{findings:?}");
}

/// Creates a session with these messages.
pub(crate) async fn session_with<S: Store>(store: &S, id: &str, texts: &[&str]) -> SessionRef {
    let owner = owner();
    store.create(&owner, header(id)).await.expect("created");
    let session = owner.session(&session_id(id));
    for text in texts {
        append(store, &session, text).await;
    }
    session
}

pub(crate) async fn append<S: Store>(store: &S, to: &SessionRef, text: &str) -> AppendOutcome {
    store
        .append(to, Append::unconditional(vec![user_entry(text)]))
        .await
        .expect("appended")
}

pub(crate) async fn append_body<S: Store>(store: &S, to: &SessionRef, new: Body) -> Seq {
    let appended = store
        .append(to, Append::unconditional(vec![body_entry(new)]))
        .await
        .expect("appended");
    appended.entries[0].seq
}

pub(crate) fn append_expecting(head: u64, text: &str) -> Append {
    Append {
        expect: Expect::At(Seq(head)),
        ..Append::unconditional(vec![user_entry(text)])
    }
}

/// The texts of all messages, in order.
pub(crate) async fn read_texts<S: Store>(store: &S, of: &SessionRef) -> Vec<String> {
    let entries = store
        .read(of, crate::ReadRange::starting_at(Seq(1), 10_000))
        .await
        .expect("read");
    entries
        .iter()
        .filter_map(|entry| entry.message())
        .map(|message| message.content.to_text().into_owned())
        .collect()
}

//! Appends to a session, and how conflicts between concurrent writers are resolved.
//!
//! [`decide_append`] is the decision itself: a pure function that every store calls
//! within its transaction, with the head it finds.

use serde::{Deserialize, Serialize};
use throughline_model::{Digest, Entry, EntryId, NewEntry, Seq, SessionHeader, SessionId};

use crate::{Fence, StoreError};

/// The maximum payload of one entry, in bytes. Larger content belongs in a blob.
pub const MAX_ENTRY_BYTES: u64 = 256 * 1024 * 1024;

/// Rejects a payload that is too large to store.
pub fn refuse_large_entry(payload: &str) -> Result<(), StoreError> {
    let bytes = payload.len() as u64;
    if bytes > MAX_ENTRY_BYTES {
        return Err(StoreError::TooLarge {
            what: "an entry",
            bytes,
            max: MAX_ENTRY_BYTES,
        });
    }
    Ok(())
}

/// The head that a writer expects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Expect {
    /// Any head.
    Any,
    /// Exactly this head: any other means that another writer appended meanwhile.
    At(Seq),
}

/// What to do if the head is not the expected one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnConflict {
    /// Fail with [`StoreError::Moved`], which contains the current head.
    Reject,
    /// Append after the current head, marking the entries with the expected head.
    Rebase,
    /// Append the entries to a new fork, created at the expected head.
    ///
    /// The writer chooses the fork's id, so that a retry finds the fork of the first
    /// attempt.
    Fork(Box<SessionHeader>),
}

/// The payload of an entry, and its hash.
pub type EncodedPayload = (String, Digest);

/// A set of entry ids. Callers choose the ids, so the hash is randomly seeded; sets are
/// large, so the hash is a fast one.
pub type EntryIds = std::collections::HashSet<EntryId, foldhash::fast::RandomState>;

/// An append. Atomic: all entries are stored or none.
#[derive(Clone, Debug)]
pub struct Append {
    /// The head that the writer expects.
    pub expect: Expect,
    /// What to do if the head is another.
    pub on_conflict: OnConflict,
    /// The entries to append.
    pub entries: Vec<NewEntry>,
    /// Their payloads, if they were encoded beforehand; otherwise empty.
    pub encoded: Vec<EncodedPayload>,
    /// The lease it requires, if any: the append is rejected once another holder has
    /// that lease.
    pub fence: Option<Fence>,
}

impl Append {
    /// Appends after the current head, whatever it is.
    pub fn unconditional(entries: Vec<NewEntry>) -> Self {
        Self {
            expect: Expect::Any,
            on_conflict: OnConflict::Reject,
            entries,
            encoded: Vec::new(),
            fence: None,
        }
    }

    /// Appends only if the head is `head`.
    pub fn after(head: Seq, entries: Vec<NewEntry>) -> Self {
        Self {
            expect: Expect::At(head),
            ..Self::unconditional(entries)
        }
    }
}

/// The result of an append.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppendOutcome {
    /// The session that has the entries: another one if they became a fork.
    pub session: SessionId,
    /// The entries as stored.
    pub entries: Vec<Entry>,
    /// How the append was carried out.
    pub kind: AppendKind,
}

/// How an append was carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AppendKind {
    /// As requested.
    Appended,
    /// The head had changed; the entries follow it, marked as rebased.
    Rebased,
    /// The head had changed; the entries are in a fork.
    Forked,
    /// The entries were already stored: a repeat of an earlier append, without effect.
    Repeated,
}

/// What a store must do for an append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AppendDecision {
    /// Append now, with the expected head if it was outdated.
    Append {
        /// Set if the entries must be marked as rebased.
        rebased: Option<Seq>,
    },
    /// Fork at this entry, and append there.
    Fork(Seq),
    /// Return the entries that start here: they are already stored.
    Repeat(Seq),
}

/// Decides how to carry out an append, given the head of the session, the positions at
/// which the entries' ids are found in it, and whether the required lease is still
/// held.
pub fn decide_append(
    session: &SessionId,
    head: Seq,
    append: &Append,
    found: &[Option<Seq>],
    holds: bool,
) -> Result<AppendDecision, StoreError> {
    if append.entries.is_empty() {
        return Err(StoreError::NothingToAppend);
    }
    if let Some(start) = find_repeat(session, &append.entries, found)? {
        return Ok(AppendDecision::Repeat(start));
    }
    if let (Some(fence), false) = (&append.fence, holds) {
        return Err(fence.lost_error());
    }
    reject_duplicate_ids(session, &append.entries)?;
    match (append.expect, &append.on_conflict) {
        (Expect::Any, _) => Ok(AppendDecision::Append { rebased: None }),
        (Expect::At(expected), _) if expected == head => {
            Ok(AppendDecision::Append { rebased: None })
        }
        (Expect::At(expected), _) if expected > head => Err(StoreError::NoSuchEntry {
            id: session.clone(),
            seq: expected,
            head,
        }),
        (Expect::At(expected), OnConflict::Reject) => Err(StoreError::Moved {
            id: session.clone(),
            expected,
            found: head,
        }),
        (Expect::At(expected), OnConflict::Rebase) => Ok(AppendDecision::Append {
            rebased: Some(expected),
        }),
        (Expect::At(expected), OnConflict::Fork(_)) => Ok(AppendDecision::Fork(expected)),
    }
}

/// The position of the entries, if this repeats the append that stored them.
///
/// If only some of them are stored, or in another order, that is an error: ids were
/// reused.
pub fn find_repeat(
    session: &SessionId,
    entries: &[NewEntry],
    found: &[Option<Seq>],
) -> Result<Option<Seq>, StoreError> {
    let Some(known) = found.iter().position(Option::is_some) else {
        return Ok(None);
    };
    let start = found.first().copied().flatten();
    let in_order = start.is_some_and(|start| {
        (start.0..)
            .zip(found)
            .all(|(seq, found)| *found == Some(Seq(seq)))
    });
    match start {
        Some(start) if in_order => Ok(Some(start)),
        _ => Err(StoreError::EntryIdReused {
            id: session.clone(),
            entry: entries[known].id,
        }),
    }
}

fn reject_duplicate_ids(session: &SessionId, entries: &[NewEntry]) -> Result<(), StoreError> {
    if entries.len() < 2 {
        return Ok(());
    }
    let mut ids: Vec<EntryId> = entries.iter().map(|entry| entry.id).collect();
    ids.sort_unstable();
    match ids.windows(2).find(|pair| pair[0] == pair[1]) {
        None => Ok(()),
        Some(pair) => Err(StoreError::EntryIdReused {
            id: session.clone(),
            entry: pair[0],
        }),
    }
}

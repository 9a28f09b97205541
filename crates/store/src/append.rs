//! How entries are appended, and what happens when two writers meet.
//!
//! [`settle`] is the decision itself, pure, made by every store inside its
//! transaction: what an append comes to, given the head it finds.

use serde::{Deserialize, Serialize};
use throughline_model::{Digest, Entry, EntryId, NewEntry, Seq, SessionHeader, SessionId};

use crate::{Fence, StoreError};

/// The largest payload of one entry, in bytes. Larger content belongs in a blob.
pub const MAX_ENTRY_BYTES: u64 = 256 * 1024 * 1024;

/// Refuses a payload that is too large to store.
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

/// The head a writer believes in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Expect {
    /// Whatever it is.
    Any,
    /// Exactly this one: anything else means that somebody wrote meanwhile.
    At(Seq),
}

/// What to do when the head is not the expected one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnConflict {
    /// Refuse with [`StoreError::Moved`], which has the new head.
    Reject,
    /// Append after what is there, marked with the head the writer believed in.
    Rebase,
    /// Put the entries into this new fork, made at the expected head.
    ///
    /// The writer chooses the fork's id, so that a retry finds the fork of the first try.
    Fork(Box<SessionHeader>),
}

/// The payload of an entry, and the hash of it.
pub type EncodedPayload = (String, Digest);

/// A set of entry ids. They are the callers' own, so that the hash is seeded by chance; and
/// there are many, so that it is a fast one.
pub type EntryIds = std::collections::HashSet<EntryId, foldhash::fast::RandomState>;

/// An append: all of it happens or none.
#[derive(Clone, Debug)]
pub struct Append {
    /// The head the writer believes in.
    pub expect: Expect,
    /// What to do if it is another.
    pub on_conflict: OnConflict,
    /// What to append.
    pub entries: Vec<NewEntry>,
    /// Their payloads, where they were encoded beforehand; empty where not.
    pub encoded: Vec<EncodedPayload>,
    /// The lease it is appended under, if any: refused once that is another's.
    pub fence: Option<Fence>,
}

impl Append {
    /// Appends after whatever is there.
    pub fn unconditional(entries: Vec<NewEntry>) -> Self {
        Self {
            expect: Expect::Any,
            on_conflict: OnConflict::Reject,
            entries,
            encoded: Vec::new(),
            fence: None,
        }
    }

    /// Appends after `head`, or not at all.
    pub fn after(head: Seq, entries: Vec<NewEntry>) -> Self {
        Self {
            expect: Expect::At(head),
            ..Self::unconditional(entries)
        }
    }
}

/// What became of an append.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppendOutcome {
    /// The session that has the entries: another one where they became a fork.
    pub session: SessionId,
    /// The entries as stored.
    pub entries: Vec<Entry>,
    /// How it went.
    pub kind: AppendKind,
}

/// How an append went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AppendKind {
    /// As asked.
    Appended,
    /// The session had moved; the entries follow what was there, marked.
    Rebased,
    /// The session had moved; the entries are in a fork.
    Forked,
    /// They were there already: a repeat of an earlier append, which changed nothing.
    Repeated,
}

/// What an append comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AppendDecision {
    /// Append now; with the believed head where it was wrong.
    Append {
        /// Set where the entries are to be marked as rebased.
        rebased: Option<Seq>,
    },
    /// Fork at this entry, and append there.
    Fork(Seq),
    /// Answer with the entries that start here: they are there already.
    Repeat(Seq),
}

/// Decides what an append comes to, given the head of the session, where in it each of the
/// entries' ids is found, and whether the lease it names still holds.
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

/// Where the entries stand already, if this is a repeat of the append that made them.
///
/// Some but not all of them, or in another order, is no repeat but a misuse of ids.
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

//! Merges a fork into the session it was forked from.

use throughline_model::{
    Body, Entry, EntryId, Lineage, Merge, MergeMode, NewEntry, Record, Seq, SessionState,
};
use throughline_store::{AppendKind, Expect, ReadRange};

use crate::{ConflictPolicy, Error, Session};

/// How to merge a fork if its origin has changed since.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MergeStyle {
    /// Fail: only a fast-forward is allowed.
    FastForward,
    /// Append the fork's messages.
    Append,
    /// Append only this summary of the fork.
    Summary(String),
}

/// The result of a merge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MergeOutcome {
    /// The session already had everything.
    UpToDate,
    /// The session had not changed: the fork's entries became its own, with the same
    /// numbers.
    FastForwarded {
        /// The number of entries.
        entries: u64,
    },
    /// The fork's messages were appended.
    Appended {
        /// The number of messages.
        entries: u64,
    },
    /// One entry with a summary was appended.
    Summarized,
}

impl Session {
    /// Merges a fork of this session into it.
    ///
    /// If this session has not changed since the fork, the fork's entries become its
    /// own, with the same numbers and digests; otherwise `style` decides. Merging again
    /// changes nothing.
    pub async fn merge(&self, fork: &Session, style: &MergeStyle) -> Result<MergeOutcome, Error> {
        if self.id() == fork.id() {
            return Err(Error::MergeIntoSelf(self.id().clone()));
        }
        let ours = self.record().await?;
        let theirs = fork.record().await?;
        let at = match &theirs.info.lineage {
            Lineage::Forked { session, at } if session == self.id() => *at,
            _ => {
                return Err(Error::NotAFork {
                    fork: fork.id().clone(),
                    into: self.id().clone(),
                });
            }
        };
        if theirs.info.head == at || self.contains_head_of(&theirs).await? {
            return Ok(MergeOutcome::UpToDate);
        }
        if ours.info.head == at {
            return self.fast_forward(fork, at).await;
        }
        match style {
            MergeStyle::FastForward => Err(Error::Diverged {
                fork: fork.id().clone(),
                into: self.id().clone(),
                at,
            }),
            MergeStyle::Append => self.merge_messages(fork, &theirs, at).await,
            MergeStyle::Summary(summary) => {
                let merge = self.new_merge_entry(fork, theirs.info.head, Some(summary), 0);
                Ok(match self.append_merge(vec![merge]).await? {
                    AppendKind::Repeated => MergeOutcome::UpToDate,
                    _ => MergeOutcome::Summarized,
                })
            }
        }
    }

    /// Returns whether the fork's head is an entry of this session.
    async fn contains_head_of(&self, theirs: &Record) -> Result<bool, Error> {
        let head = theirs.info.head;
        let same = self.read_stored(ReadRange::between(head, head, 1)).await?;
        Ok(same
            .first()
            .is_some_and(|stored| stored.digest == theirs.info.digest))
    }

    async fn fast_forward(&self, fork: &Session, at: Seq) -> Result<MergeOutcome, Error> {
        let header = self.header().await?;
        let mut next = at.next();
        let mut entries = 0;
        loop {
            let page = fork
                .read_stored(ReadRange::starting_at(next, 1_000))
                .await?;
            let Some(last) = page.last() else {
                return Ok(MergeOutcome::FastForwarded { entries });
            };
            next = last.seq.next();
            let owner = self.tl.owner();
            entries += self
                .tl
                .store
                .import_log(owner, header.clone(), page)
                .await?;
        }
    }

    async fn merge_messages(
        &self,
        fork: &Session,
        theirs: &Record,
        at: Seq,
    ) -> Result<MergeOutcome, Error> {
        let mut taken = Vec::new();
        let mut next = at.next();
        loop {
            let page = fork.entries(next, 1_000).await?;
            let Some(last) = page.last() else {
                break;
            };
            next = last.seq.next();
            taken.extend(
                page.iter()
                    .filter(|entry| is_mergeable(entry, &theirs.state))
                    .map(|entry| NewEntry {
                        id: EntryId::derive(&[
                            b"merge",
                            fork.id().as_str().as_bytes(),
                            entry.id.as_bytes(),
                        ]),
                        at: entry.at,
                        external_id: None,
                        author: entry.author.clone(),
                        body: entry.body.clone(),
                    }),
            );
        }
        // Entries that an earlier merge appended are skipped.
        let ids: Vec<_> = taken.iter().map(|new| new.id).collect();
        let known = self.tl.store.locate(&self.reference, &ids).await?;
        let mut known = known.iter();
        taken.retain(|_| known.next().is_some_and(Option::is_none));
        let count = taken.len() as u64;
        if count == 0 {
            return Ok(MergeOutcome::UpToDate);
        }
        let mut entries = vec![self.new_merge_entry(fork, theirs.info.head, None, count)];
        entries.append(&mut taken);
        self.append_merge(entries).await?;
        Ok(MergeOutcome::Appended { entries: count })
    }

    /// Appends all entries of a merge atomically. A repeated merge is recognized by its
    /// ids.
    async fn append_merge(&self, entries: Vec<NewEntry>) -> Result<AppendKind, Error> {
        let appended = self.append_all(entries, Expect::Any, ConflictPolicy::Reject);
        Ok(appended.await?.kind)
    }

    /// Creates the entry that records the merge.
    fn new_merge_entry(
        &self,
        fork: &Session,
        through: Seq,
        summary: Option<&str>,
        entries: u64,
    ) -> NewEntry {
        let mode = match summary {
            None => MergeMode::Appended,
            Some(_) => MergeMode::Summarized,
        };
        let id = EntryId::derive(&[
            b"merged",
            fork.id().as_str().as_bytes(),
            &through.0.to_le_bytes(),
            summary.unwrap_or_default().as_bytes(),
        ]);
        let merge = Merge {
            from: fork.id().clone(),
            through,
            mode,
            entries,
            summary: summary.map(ToOwned::to_owned),
        };
        NewEntry::new(id, self.tl.now(), Body::Merged(merge))
    }
}

/// Returns whether an entry keeps its meaning in another log: visible messages, pins
/// and decisions in effect, tags and documents. Entries that refer to others by number
/// do not.
fn is_mergeable(entry: &Entry, state: &SessionState) -> bool {
    let visible = || {
        state
            .visible
            .iter()
            .any(|span| span.from <= entry.seq && span.to.is_none_or(|to| entry.seq <= to))
    };
    match &entry.body {
        Body::Message(_) => visible(),
        Body::Pinned { .. } => state.pins.iter().any(|pin| pin.seq == entry.seq),
        Body::Decided { .. } => state.decisions.iter().any(|d| d.seq == entry.seq),
        Body::Tagged { .. }
        | Body::ContextSet { .. }
        | Body::Foreign { .. }
        | Body::Unknown { .. } => true,
        _ => false,
    }
}

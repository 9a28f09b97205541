//! Bringing a fork back into the session it came from.

use throughline_model::{
    Body, Entry, EntryId, Lineage, Merge, MergeMode, NewEntry, Record, Seq, SessionState,
};
use throughline_store::{AppendKind, Expect, ReadRange};

use crate::{ConflictPolicy, Error, Session};

/// How to merge a fork whose origin has gone on meanwhile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MergeStyle {
    /// Not at all: only a fast-forward will do.
    FastForward,
    /// Its messages after what is there.
    Append,
    /// This summary of it, and nothing else.
    Summary(String),
}

/// What a merge came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MergeOutcome {
    /// There was nothing that the session did not have.
    UpToDate,
    /// The session had not moved: the fork's entries are now its own, number by number.
    FastForwarded {
        /// How many.
        entries: u64,
    },
    /// They follow what was there.
    Appended {
        /// How many.
        entries: u64,
    },
    /// One entry tells what it came to.
    Summarized,
}

impl Session {
    /// Merges a fork of this session into it.
    ///
    /// Where this session has not moved since the fork, its entries become this one's
    /// own, with the same numbers and digests; otherwise `style` says what to do.
    /// Merging the same again changes nothing.
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

    /// Whether the fork's head is an entry of this session.
    async fn contains_head_of(&self, theirs: &Record) -> Result<bool, Error> {
        let head = theirs.info.head;
        let same = self.read_stored(ReadRange::between(head, head, 1)).await?;
        Ok(same
            .first()
            .is_some_and(|stored| stored.digest == theirs.info.digest))
    }

    async fn fast_forward(&self, fork: &Session, at: Seq) -> Result<MergeOutcome, Error> {
        let birth = self.header().await?;
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
            entries += self.tl.store.import_log(owner, birth.clone(), page).await?;
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
        // What an earlier merge has brought is not brought again.
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

    /// Appends in one go, so that a merge is there whole or not at all. A repeat is
    /// recognised by its ids.
    async fn append_merge(&self, entries: Vec<NewEntry>) -> Result<AppendKind, Error> {
        let appended = self.append_all(entries, Expect::Any, ConflictPolicy::Reject);
        Ok(appended.await?.kind)
    }

    /// The entry that tells of a merge.
    fn new_merge_entry(
        &self,
        fork: &Session,
        through: Seq,
        summary: Option<&str>,
        entries: u64,
    ) -> NewEntry {
        let how = match summary {
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
            mode: how,
            entries,
            summary: summary.map(ToOwned::to_owned),
        };
        NewEntry::new(id, self.tl.now(), Body::Merged(merge))
    }
}

/// Whether an entry means the same in another log: what was said and not taken back,
/// and facts and decisions; not what points at other entries by number.
fn is_mergeable(entry: &Entry, standing: &SessionState) -> bool {
    let visible = || {
        standing
            .visible
            .iter()
            .any(|span| span.from <= entry.seq && span.to.is_none_or(|to| entry.seq <= to))
    };
    match &entry.body {
        Body::Message(_) => visible(),
        Body::Pinned { .. } => standing.pins.iter().any(|pin| pin.seq == entry.seq),
        Body::Decided { .. } => standing.decisions.iter().any(|d| d.seq == entry.seq),
        Body::Tagged { .. }
        | Body::ContextSet { .. }
        | Body::Foreign { .. }
        | Body::Unknown { .. } => true,
        _ => false,
    }
}

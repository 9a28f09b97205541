//! A handle to one session and the operations on it.

use throughline_model::{
    Body, Checkpoint, CheckpointView, Entry, NameSource, NewEntry, Record, Seq, SessionHeader,
    SessionId, SessionRef, StoredEntry, Tag, WorkingSet,
};
use throughline_store::{
    Append, AppendKind, AppendOutcome, Expect, Fence, OnConflict, ReadRange, StoreError,
};

use crate::safe_cut::next_safe_cut;
use crate::{Error, NewSession, Throughline};

/// What to do if another writer appended first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ConflictPolicy {
    /// Fail, and report the new head.
    #[default]
    Reject,
    /// Append after the other entries, marked as rebased.
    Rebase,
    /// Append to a new fork.
    Fork,
}

/// A new fork, and the entry it was made at.
#[derive(Clone, Debug)]
pub struct ForkOutcome {
    /// The new session.
    pub session: Session,
    /// The last shared entry. It is later than requested if the cut would have
    /// separated a tool call from its result.
    pub at: Seq,
}

/// A handle to one session. Cheap to clone; holds no state but the id.
#[derive(Clone, Debug)]
pub struct Session {
    pub(crate) tl: Throughline,
    pub(crate) reference: SessionRef,
    /// The fencing token of the claim that entries are appended under, if any.
    pub(crate) fence: Option<Fence>,
}

impl Session {
    pub(crate) fn new(tl: Throughline, id: &SessionId) -> Self {
        let reference = tl.owner.session(id);
        Self {
            tl,
            reference,
            fence: None,
        }
    }

    /// Returns a handle whose appends are refused once the lease belongs to another
    /// process.
    pub(crate) fn with_fence(&self, fence: Option<Fence>) -> Self {
        Self {
            fence,
            ..self.clone()
        }
    }

    /// The session's id.
    pub fn id(&self) -> &SessionId {
        &self.reference.id
    }

    /// The session's owner and id.
    pub fn reference(&self) -> &SessionRef {
        &self.reference
    }

    /// Returns a handle to another session of the same owner, without checking that it
    /// exists.
    #[must_use]
    pub fn other_session(&self, id: &SessionId) -> Self {
        self.tl.handle(id)
    }

    /// Returns the session's record. One lookup, whatever the length of the log.
    pub async fn record(&self) -> Result<Record, Error> {
        Ok(self.tl.store.record(&self.reference).await?)
    }

    /// Returns the session's header.
    pub async fn header(&self) -> Result<SessionHeader, Error> {
        Ok(self.tl.store.header(&self.reference).await?)
    }

    /// Appends one entry after the current head. It is durable when this returns.
    pub async fn append(&self, body: impl Into<Body>) -> Result<Entry, Error> {
        self.append_entry(self.tl.new_entry(body.into())).await
    }

    /// Appends one entry that already has an id.
    pub(crate) async fn append_entry(&self, new: NewEntry) -> Result<Entry, Error> {
        let appended = self
            .append_all(vec![new], Expect::Any, ConflictPolicy::Reject)
            .await?;
        let mut entries = appended.entries;
        entries
            .pop()
            .ok_or_else(|| StoreError::NothingToAppend.into())
    }

    /// Appends entries atomically, after the head that the caller expects.
    pub async fn append_all(
        &self,
        entries: Vec<NewEntry>,
        expect: Expect,
        conflict: ConflictPolicy,
    ) -> Result<AppendOutcome, Error> {
        let on_conflict = match conflict {
            ConflictPolicy::Reject => OnConflict::Reject,
            ConflictPolicy::Rebase => OnConflict::Rebase,
            ConflictPolicy::Fork => {
                let header = NewSession::default().into_header(&*self.tl.environment);
                OnConflict::Fork(Box::new(header))
            }
        };
        // Only entries with an external id can be sent twice; they are compared below.
        let with_external_id: Vec<_> = entries
            .iter()
            .filter(|new| new.external_id.is_some())
            .cloned()
            .collect();
        let append = Append {
            expect,
            on_conflict,
            fence: self.fence.clone(),
            ..Append::unconditional(entries)
        };
        let appended = self.tl.store.append(&self.reference, append).await?;
        if appended.kind == AppendKind::Repeated {
            let is_same = |new: &NewEntry| {
                let mut stored = appended.entries.iter().filter(|entry| entry.id == new.id);
                stored.all(|entry| entry.body == new.body)
            };
            // A repeated append must have the same content: a different body under a
            // used id would be lost.
            if let Some(other) = with_external_id.iter().find(|new| !is_same(new)) {
                return Err(StoreError::EntryIdReused {
                    id: self.id().clone(),
                    entry: other.id,
                }
                .into());
            }
        }
        Ok(appended)
    }

    /// Creates an entry with the current time, for [`append_all`](Self::append_all).
    pub fn new_entry(&self, body: impl Into<Body>) -> NewEntry {
        self.tl.new_entry(body.into())
    }

    /// Returns entries starting at `from`. A page is shorter if entries are large, and
    /// empty only at the end of the log.
    pub async fn entries(&self, from: Seq, limit: usize) -> Result<Vec<Entry>, Error> {
        self.read(ReadRange::starting_at(from, limit)).await
    }

    /// Returns the last entries, oldest first.
    pub async fn tail(&self, limit: usize) -> Result<Vec<Entry>, Error> {
        self.read(ReadRange::tail(limit)).await
    }

    /// Returns a range of entries.
    pub async fn read(&self, read: ReadRange) -> Result<Vec<Entry>, Error> {
        Ok(self.tl.store.read(&self.reference, read).await?)
    }

    /// Returns a range of entries as they are stored.
    pub async fn read_stored(&self, read: ReadRange) -> Result<Vec<StoredEntry>, Error> {
        Ok(self.tl.store.read_stored(&self.reference, read).await?)
    }

    /// Creates a session that shares the entries up to `at` (default: the head).
    pub async fn fork(&self, at: Option<Seq>, new: NewSession) -> Result<ForkOutcome, Error> {
        new.reject_reserved_key()?;
        let head = self.record().await?.info.head;
        let at = match at {
            None => head,
            Some(at) => next_safe_cut(self, at, head).await?,
        };
        let header = new.into_header(&*self.tl.environment);
        let record = self.tl.store.fork(&self.reference, at, header).await?;
        Ok(ForkOutcome {
            session: self.tl.handle(&record.info.id),
            at,
        })
    }

    /// Sets or removes the name.
    pub async fn rename(&self, name: Option<&str>) -> Result<Entry, Error> {
        let name = name.map(str::parse).transpose()?;
        let by = NameSource::Person;
        self.append(Body::Renamed { name, by }).await
    }

    /// Sets or removes the description.
    pub async fn describe(&self, description: Option<&str>) -> Result<Entry, Error> {
        let description = description.map(ToOwned::to_owned);
        self.append(Body::Described { description }).await
    }

    /// Adds tags.
    pub async fn tag(&self, tags: Vec<Tag>) -> Result<Entry, Error> {
        self.append(Body::Tagged { tags }).await
    }

    /// Removes tags.
    pub async fn untag(&self, tags: Vec<Tag>) -> Result<Entry, Error> {
        self.append(Body::Untagged { tags }).await
    }

    /// Pins a text, so that it is part of every request. Returns the existing pin if
    /// there is one.
    pub async fn pin(&self, text: &str) -> Result<Entry, Error> {
        let pins = self.record().await?.state.pins;
        if let Some(pin) = pins.iter().find(|pin| pin.text == text)
            && let Some(entry) = self
                .read(ReadRange::between(pin.seq, pin.seq, 1))
                .await?
                .pop()
        {
            return Ok(entry);
        }
        self.append(Body::Pinned { text: text.into() }).await
    }

    /// Removes a pin, given its entry number or its text.
    pub async fn unpin(&self, which: &str) -> Result<Entry, Error> {
        let pins = self.record().await?.state.pins;
        let number: Option<Seq> = which.parse().ok();
        let pin = pins
            .iter()
            .find(|pin| Some(pin.seq) == number || pin.text == which)
            .ok_or_else(|| Error::NoSuchPin(which.to_owned()))?;
        self.append(Body::Unpinned { pin: pin.seq }).await
    }

    /// Records a decision.
    pub async fn decide(&self, text: &str) -> Result<Entry, Error> {
        self.append(Body::Decided { text: text.into() }).await
    }

    /// Archives the session. Does nothing if it is archived already.
    pub async fn archive(&self) -> Result<(), Error> {
        self.set_status(throughline_model::Status::Archived, Body::Archived)
            .await
    }

    /// Unarchives the session. Does nothing if it is active already.
    pub async fn unarchive(&self) -> Result<(), Error> {
        self.set_status(throughline_model::Status::Active, Body::Unarchived)
            .await
    }

    async fn set_status(&self, status: throughline_model::Status, body: Body) -> Result<(), Error> {
        if self.record().await?.info.status != status {
            self.append(body).await?;
        }
        Ok(())
    }

    /// Clears the context: the model no longer sees earlier entries, people still do.
    pub async fn clear(&self) -> Result<Entry, Error> {
        self.clear_after(Expect::Any).await
    }

    /// Clears the context, if the head is the one that the caller expects.
    pub async fn clear_after(&self, expect: Expect) -> Result<Entry, Error> {
        let entry = self.new_entry(Body::Cleared);
        let appended = self
            .append_all(vec![entry], expect, ConflictPolicy::Reject)
            .await?;
        let cleared = appended.entries.into_iter().next_back();
        cleared.ok_or_else(|| StoreError::NothingToAppend.into())
    }

    /// Hides the entries after `to`. Returns the entry it actually rewound to, which is
    /// later than requested if the cut would have separated a tool call from its
    /// result.
    pub async fn rewind(&self, to: Seq) -> Result<Seq, Error> {
        self.rewind_after(to, Expect::Any).await
    }

    /// Rewinds, if the head is the one that the caller expects.
    pub async fn rewind_after(&self, to: Seq, expect: Expect) -> Result<Seq, Error> {
        let head = self.record().await?.info.head;
        if to > head {
            return Err(StoreError::NoSuchEntry {
                id: self.id().clone(),
                seq: to,
                head,
            }
            .into());
        }
        let to = next_safe_cut(self, to, head).await?;
        let entry = self.new_entry(Body::Rewound { to });
        self.append_all(vec![entry], expect, ConflictPolicy::Reject)
            .await?;
        Ok(to)
    }

    /// Permanently replaces the content of entries by tombstones.
    pub async fn erase(&self, entries: &[Seq], reason: Option<&str>) -> Result<(), Error> {
        Ok(self
            .tl
            .store
            .erase(&self.reference, entries, reason)
            .await?)
    }

    /// Returns the checkpoint in effect, with its entry.
    pub async fn checkpoint(&self) -> Result<Option<(Entry, Checkpoint)>, Error> {
        let Some(current) = self.record().await?.state.checkpoint() else {
            return Ok(None);
        };
        let mut entries = self
            .read(ReadRange::between(current.seq, current.seq, 1))
            .await?;
        Ok(entries.pop().and_then(|entry| match entry.body.clone() {
            Body::Checkpoint(checkpoint) => Some((entry, *checkpoint)),
            _ => None,
        }))
    }

    /// Returns the working set: the last summary, pins and decisions in effect, and the
    /// latest messages.
    ///
    /// Reads at most `window` of the entries after the checkpoint.
    pub async fn working_set(
        &self,
        recent: usize,
        limit: u64,
        window: usize,
    ) -> Result<WorkingSet, Error> {
        let record = self.record().await?;
        let checkpoint = self.checkpoint().await?;
        let mut after = Vec::new();
        for span in record.state.verbatim_spans().into_iter().rev() {
            let missing = window.saturating_sub(after.len());
            if missing == 0 {
                break;
            }
            let read = ReadRange {
                from: span.from,
                to: span.to,
                limit: missing,
                from_end: true,
            };
            let mut earlier = self.read(read).await?;
            earlier.append(&mut after);
            after = earlier;
        }
        let checkpoint = checkpoint.as_ref().map(|(_, checkpoint)| checkpoint);
        Ok(WorkingSet::of(&record, checkpoint, &after, recent, limit))
    }

    /// Returns the checkpoint in effect as a document.
    pub async fn checkpoint_view(&self) -> Result<CheckpointView, Error> {
        let record = self.record().await?;
        let checkpoint = self.checkpoint().await?;
        let checkpoint = checkpoint
            .as_ref()
            .map(|(entry, checkpoint)| (checkpoint, entry.at));
        Ok(CheckpointView::of(&record, checkpoint))
    }
}

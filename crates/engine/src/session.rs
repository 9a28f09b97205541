//! A session as a value: what can be done with one.

use throughline_model::{
    Body, Checkpoint, CheckpointView, Entry, NameSource, NewEntry, Record, Seq, SessionHeader,
    SessionId, SessionRef, StoredEntry, Tag, WorkingSet,
};
use throughline_store::{
    Append, AppendKind, AppendOutcome, Expect, Fence, OnConflict, ReadRange, StoreError,
};

use crate::safe_cut::next_safe_cut;
use crate::{Error, NewSession, Throughline};

/// What to do when somebody else appended first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ConflictPolicy {
    /// Refuse, and tell the new head.
    #[default]
    Reject,
    /// Append after it, marked.
    Rebase,
    /// Put the entries into a new fork.
    Fork,
}

/// A fork, and the entry it was made at.
#[derive(Clone, Debug)]
pub struct ForkOutcome {
    /// The new session.
    pub session: Session,
    /// The last entry it shares: later than asked for where that would have parted a
    /// tool's call from its result.
    pub at: Seq,
}

/// One session. Cheap to clone; holds no state but its id.
#[derive(Clone, Debug)]
pub struct Session {
    pub(crate) tl: Throughline,
    pub(crate) reference: SessionRef,
    /// The claim under which it is written to, where there is one.
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

    /// The same; what is appended through it is refused once this lease is another's.
    pub(crate) fn with_fence(&self, fence: Option<Fence>) -> Self {
        Self {
            fence,
            ..self.clone()
        }
    }

    /// Its id.
    pub fn id(&self) -> &SessionId {
        &self.reference.id
    }

    /// Whose it is, and which.
    pub fn reference(&self) -> &SessionRef {
        &self.reference
    }

    /// Another session of the same owner, whether or not there is one.
    #[must_use]
    pub fn other_session(&self, id: &SessionId) -> Self {
        self.tl.handle(id)
    }

    /// What is known about it: one lookup, whatever its length.
    pub async fn record(&self) -> Result<Record, Error> {
        Ok(self.tl.store.record(&self.reference).await?)
    }

    /// How it was born.
    pub async fn header(&self) -> Result<SessionHeader, Error> {
        Ok(self.tl.store.header(&self.reference).await?)
    }

    /// Appends one thing after whatever is there; it is durable when this returns.
    pub async fn append(&self, body: impl Into<Body>) -> Result<Entry, Error> {
        self.append_entry(self.tl.new_entry(body.into())).await
    }

    /// Appends one entry that has its id already.
    pub(crate) async fn append_entry(&self, new: NewEntry) -> Result<Entry, Error> {
        let appended = self
            .append_all(vec![new], Expect::Any, ConflictPolicy::Reject)
            .await?;
        let mut entries = appended.entries;
        entries
            .pop()
            .ok_or_else(|| StoreError::NothingToAppend.into())
    }

    /// Appends entries, all or none, after the head the caller believes in.
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
                let birth = NewSession::default().into_header(&*self.tl.environment);
                OnConflict::Fork(Box::new(birth))
            }
        };
        // Kept to compare with what is there, where an id was given from outside: only
        // those can come again.
        let again: Vec<_> = entries
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
            let said = |new: &NewEntry| {
                let mut there = appended.entries.iter().filter(|entry| entry.id == new.id);
                there.all(|entry| entry.body == new.body)
            };
            // A repeat says the same again. Other words under an old id would be lost.
            if let Some(other) = again.iter().find(|new| !said(new)) {
                return Err(StoreError::EntryIdReused {
                    id: self.id().clone(),
                    entry: other.id,
                }
                .into());
            }
        }
        Ok(appended)
    }

    /// An entry of now, to append with [`append_all`](Self::append_all).
    pub fn new_entry(&self, body: impl Into<Body>) -> NewEntry {
        self.tl.new_entry(body.into())
    }

    /// Entries from `from` on. Pages are short where entries are large, and empty only
    /// at the end.
    pub async fn entries(&self, from: Seq, limit: usize) -> Result<Vec<Entry>, Error> {
        self.read(ReadRange::starting_at(from, limit)).await
    }

    /// The last entries, oldest first.
    pub async fn tail(&self, limit: usize) -> Result<Vec<Entry>, Error> {
        self.read(ReadRange::tail(limit)).await
    }

    /// Any stretch of entries.
    pub async fn read(&self, read: ReadRange) -> Result<Vec<Entry>, Error> {
        Ok(self.tl.store.read(&self.reference, read).await?)
    }

    /// Any stretch of entries, as they are stored.
    pub async fn read_stored(&self, read: ReadRange) -> Result<Vec<StoredEntry>, Error> {
        Ok(self.tl.store.read_stored(&self.reference, read).await?)
    }

    /// Makes a session that shares the entries up to `at` (the head, where not said).
    pub async fn fork(&self, at: Option<Seq>, new: NewSession) -> Result<ForkOutcome, Error> {
        new.reject_reserved_key()?;
        let head = self.record().await?.info.head;
        let at = match at {
            None => head,
            Some(at) => next_safe_cut(self, at, head).await?,
        };
        let birth = new.into_header(&*self.tl.environment);
        let record = self.tl.store.fork(&self.reference, at, birth).await?;
        Ok(ForkOutcome {
            session: self.tl.handle(&record.info.id),
            at,
        })
    }

    /// Gives it a name, or takes it away.
    pub async fn rename(&self, name: Option<&str>) -> Result<Entry, Error> {
        let name = name.map(str::parse).transpose()?;
        let by = NameSource::Person;
        self.append(Body::Renamed { name, by }).await
    }

    /// Says what it is about, or takes that away.
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

    /// Keeps a fact always in view. Pinned already: answers with that pin.
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

    /// Takes a pin back, by its entry's number or its text.
    pub async fn unpin(&self, which: &str) -> Result<Entry, Error> {
        let pins = self.record().await?.state.pins;
        let number: Option<Seq> = which.parse().ok();
        let pin = pins
            .iter()
            .find(|pin| Some(pin.seq) == number || pin.text == which)
            .ok_or_else(|| Error::NoSuchPin(which.to_owned()))?;
        self.append(Body::Unpinned { pin: pin.seq }).await
    }

    /// Notes a decision.
    pub async fn decide(&self, text: &str) -> Result<Entry, Error> {
        self.append(Body::Decided { text: text.into() }).await
    }

    /// Puts it away. Put away already: nothing changes.
    pub async fn archive(&self) -> Result<(), Error> {
        self.set_status(throughline_model::Status::Archived, Body::Archived)
            .await
    }

    /// Takes it up again. In use already: nothing changes.
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

    /// Starts anew: the model no longer sees what came before, people still do.
    pub async fn clear(&self) -> Result<Entry, Error> {
        self.clear_after(Expect::Any).await
    }

    /// The same, after the head the caller believes in.
    pub async fn clear_after(&self, expect: Expect) -> Result<Entry, Error> {
        let entry = self.new_entry(Body::Cleared);
        let appended = self
            .append_all(vec![entry], expect, ConflictPolicy::Reject)
            .await?;
        let cleared = appended.entries.into_iter().next_back();
        cleared.ok_or_else(|| StoreError::NothingToAppend.into())
    }

    /// Takes back what was said after `to`; tells where it really went back to, which is
    /// later than asked for where that would have parted a tool's call from its result.
    pub async fn rewind(&self, to: Seq) -> Result<Seq, Error> {
        self.rewind_after(to, Expect::Any).await
    }

    /// The same, after the head the caller believes in.
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

    /// Replaces the content of entries for good.
    pub async fn erase(&self, entries: &[Seq], reason: Option<&str>) -> Result<(), Error> {
        Ok(self
            .tl
            .store
            .erase(&self.reference, entries, reason)
            .await?)
    }

    /// The checkpoint in force, and its entry.
    pub async fn checkpoint(&self) -> Result<Option<(Entry, Checkpoint)>, Error> {
        let Some(mark) = self.record().await?.state.checkpoint() else {
            return Ok(None);
        };
        let mut entries = self.read(ReadRange::between(mark.seq, mark.seq, 1)).await?;
        Ok(entries.pop().and_then(|entry| match entry.body.clone() {
            Body::Checkpoint(checkpoint) => Some((entry, *checkpoint)),
            _ => None,
        }))
    }

    /// What an agent keeps in mind: the last summary, what stands, the latest messages.
    ///
    /// Reads what came after the checkpoint, at most `window` entries of it.
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

    /// The checkpoint in force as a document.
    pub async fn checkpoint_view(&self) -> Result<CheckpointView, Error> {
        let record = self.record().await?;
        let checkpoint = self.checkpoint().await?;
        let checkpoint = checkpoint
            .as_ref()
            .map(|(entry, checkpoint)| (checkpoint, entry.at));
        Ok(CheckpointView::of(&record, checkpoint))
    }
}

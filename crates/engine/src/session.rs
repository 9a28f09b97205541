//! A session as a value: what can be done with one.

use throughline_model::{
    Birth, Body, Checkpoint, CheckpointView, Entry, NamedBy, NewEntry, Record, Seq, SessionId,
    SessionRef, StoredEntry, Tag, WorkingSet,
};
use throughline_store::{Append, Appended, Expect, Fence, How, OnConflict, Read, StoreError};

use crate::boundary::whole_turns;
use crate::{Error, NewSession, Throughline};

/// What to do when somebody else appended first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Conflict {
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
pub struct Forked {
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
    pub(crate) fn fenced(&self, fence: Option<Fence>) -> Self {
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
    pub fn of(&self, id: &SessionId) -> Self {
        self.tl.handle(id)
    }

    /// What is known about it: one lookup, whatever its length.
    pub async fn record(&self) -> Result<Record, Error> {
        Ok(self.tl.store.record(&self.reference).await?)
    }

    /// How it was born.
    pub async fn birth(&self) -> Result<Birth, Error> {
        Ok(self.tl.store.birth(&self.reference).await?)
    }

    /// Appends one thing after whatever is there; it is durable when this returns.
    pub async fn append(&self, body: impl Into<Body>) -> Result<Entry, Error> {
        self.append_new(self.tl.entry(body.into())).await
    }

    /// Appends one entry that has its id already.
    pub(crate) async fn append_new(&self, new: NewEntry) -> Result<Entry, Error> {
        let appended = self
            .append_all(vec![new], Expect::Any, Conflict::Reject)
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
        conflict: Conflict,
    ) -> Result<Appended, Error> {
        let on_conflict = match conflict {
            Conflict::Reject => OnConflict::Reject,
            Conflict::Rebase => OnConflict::Rebase,
            Conflict::Fork => {
                let birth = NewSession::default().birth(&*self.tl.world);
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
            ..Append::any(entries)
        };
        let appended = self.tl.store.append(&self.reference, append).await?;
        if appended.how == How::Repeated {
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
    pub fn entry(&self, body: impl Into<Body>) -> NewEntry {
        self.tl.entry(body.into())
    }

    /// Entries from `from` on. Pages are short where entries are large, and empty only
    /// at the end.
    pub async fn entries(&self, from: Seq, limit: usize) -> Result<Vec<Entry>, Error> {
        self.read(Read::from(from, limit)).await
    }

    /// The last entries, oldest first.
    pub async fn tail(&self, limit: usize) -> Result<Vec<Entry>, Error> {
        self.read(Read::tail(limit)).await
    }

    /// Any stretch of entries.
    pub async fn read(&self, read: Read) -> Result<Vec<Entry>, Error> {
        Ok(self.tl.store.read(&self.reference, read).await?)
    }

    /// Any stretch of entries, as they are stored.
    pub async fn read_stored(&self, read: Read) -> Result<Vec<StoredEntry>, Error> {
        Ok(self.tl.store.read_stored(&self.reference, read).await?)
    }

    /// Makes a session that shares the entries up to `at` (the head, where not said).
    pub async fn fork(&self, at: Option<Seq>, new: NewSession) -> Result<Forked, Error> {
        new.refuse_own_key()?;
        let head = self.record().await?.card.head;
        let at = match at {
            None => head,
            Some(at) => whole_turns(self, at, head).await?,
        };
        let birth = new.birth(&*self.tl.world);
        let record = self.tl.store.fork(&self.reference, at, birth).await?;
        Ok(Forked {
            session: self.tl.handle(&record.card.id),
            at,
        })
    }

    /// Gives it a name, or takes it away.
    pub async fn rename(&self, name: Option<&str>) -> Result<Entry, Error> {
        let name = name.map(str::parse).transpose()?;
        let by = NamedBy::Person;
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
        let pins = self.record().await?.standing.pins;
        if let Some(pin) = pins.iter().find(|pin| pin.text == text)
            && let Some(entry) = self.read(Read::between(pin.seq, pin.seq, 1)).await?.pop()
        {
            return Ok(entry);
        }
        self.append(Body::Pinned { text: text.into() }).await
    }

    /// Takes a pin back, by its entry's number or its text.
    pub async fn unpin(&self, which: &str) -> Result<Entry, Error> {
        let pins = self.record().await?.standing.pins;
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
        if self.record().await?.card.status != status {
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
        let entry = self.entry(Body::Cleared);
        let appended = self
            .append_all(vec![entry], expect, Conflict::Reject)
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
        let head = self.record().await?.card.head;
        if to > head {
            return Err(StoreError::NoSuchEntry {
                id: self.id().clone(),
                seq: to,
                head,
            }
            .into());
        }
        let to = whole_turns(self, to, head).await?;
        let entry = self.entry(Body::Rewound { to });
        self.append_all(vec![entry], expect, Conflict::Reject)
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
        let Some(mark) = self.record().await?.standing.checkpoint() else {
            return Ok(None);
        };
        let mut entries = self.read(Read::between(mark.seq, mark.seq, 1)).await?;
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
        for span in record.standing.uncovered().into_iter().rev() {
            let missing = window.saturating_sub(after.len());
            if missing == 0 {
                break;
            }
            let read = Read {
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

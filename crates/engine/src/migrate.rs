//! Copying a whole store into another, of whatever kind, while it is in use.
//!
//! Logs come over as they are, digests included, so that a copy is proven by comparing
//! them. Everything can be stopped at any time and run again: what is there already is
//! compared, not copied. Forks share their entries in the copy as well, where their
//! origin is in use. What is derived is made anew, and the feed starts anew.
//!
//! Nothing is ever taken away from where it is copied to: sessions that are there and not
//! in the other are told.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use throughline_model::{
    Body, Digest, Lineage, Owner, Seq, SessionHeader, SessionId, SessionInfo, SessionRef,
    StoredEntry, Timestamp,
};
use throughline_store::{
    ProgressCallback, ReadRange, SessionFilter, SessionScope, Store, StoreError,
};

use crate::Error;

/// Entries brought over at once.
const PAGE: usize = 1_000;

/// How often what came meanwhile is brought over before it is left for the next time.
const MAX_PASSES: usize = 8;

/// A session that is not the same in both stores.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct SessionDifference {
    /// Whose.
    pub owner: Owner,
    /// Which.
    pub session: SessionId,
    /// What is not the same.
    pub what: String,
}

/// What a migration did, and what it proved.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct MigrationReport {
    /// Owners there are.
    pub owners: u64,
    /// Sessions that are the same in both, in use or in the trash.
    pub sessions: u64,
    /// Entries whose digest and content are the same in both.
    pub entries: u64,
    /// Entries that were brought over now.
    pub copied: u64,
    /// Tokens there are.
    pub tokens: u64,
    /// Attachments that were brought over now.
    pub blobs: u64,
    /// Attachments that entries name and the store does not have.
    pub missing_blobs: u64,
    /// What is not the same: the copy is not whole.
    pub differing: Vec<SessionDifference>,
    /// Sessions that are only where it was copied to.
    pub only_there: Vec<SessionDifference>,
}

/// Copies a whole store into another, and compares them. Told how far it is in entries.
pub async fn migrate(
    from: &dyn Store,
    to: &dyn Store,
    progress: ProgressCallback<'_>,
) -> Result<MigrationReport, Error> {
    let mut migrating = Migration {
        from,
        to,
        progress,
        done: 0,
        total: 0,
        copied_blobs: HashSet::new(),
        report: MigrationReport::default(),
    };
    // Whatever is written meanwhile comes in the next round, which has less to do.
    for _ in 0..MAX_PASSES {
        let before = migrating.report.copied;
        let changed = migrating.copy_pass().await?;
        if migrating.report.copied == before && !changed {
            break;
        }
    }
    migrating.copy_tokens().await?;
    migrating.compare_stores().await?;
    Ok(migrating.report)
}

/// A session as a listing has it.
#[derive(Clone, Debug)]
struct ListedSession {
    info: SessionInfo,
    trashed_at: Option<Timestamp>,
}

type SessionMap = BTreeMap<SessionId, ListedSession>;

struct Migration<'a> {
    from: &'a dyn Store,
    to: &'a dyn Store,
    progress: ProgressCallback<'a>,
    done: u64,
    total: u64,
    /// Attachments that are there for certain.
    copied_blobs: HashSet<(Owner, Digest)>,
    report: MigrationReport,
}

impl Migration<'_> {
    /// Brings over what is not there yet; tells whether anything besides entries changed.
    async fn copy_pass(&mut self) -> Result<bool, Error> {
        let owners = self.from.owners().await?;
        self.report.owners = owners.len() as u64;
        let mut changed = false;
        let mut all = Vec::new();
        for owner in owners {
            let here = list_sessions(self.from, &owner).await?;
            all.push((owner, here));
        }
        let heads = all.iter().flat_map(|(_, sessions)| sessions.values());
        self.total = heads.map(|listed| listed.info.head.0).sum();
        self.done = 0;
        for (owner, here) in &all {
            for project in self.from.list_projects(owner).await? {
                self.to.put_project(owner, &project).await?;
            }
            changed |= self.copy_owner(owner, here).await?;
        }
        (self.progress)(self.total, self.total);
        Ok(changed)
    }

    async fn copy_owner(&mut self, owner: &Owner, here: &SessionMap) -> Result<bool, Error> {
        let mut changed = false;
        let there = list_sessions(self.to, owner).await?;
        // What is in the trash first, and into the trash at once: it may have had a key that
        // another has now.
        for (id, listed) in here
            .iter()
            .filter(|(_, listed)| listed.trashed_at.is_some())
        {
            let trashed = listed.trashed_at.unwrap_or(Timestamp::UNIX_EPOCH);
            let known = there.get(id);
            let in_trash = known.is_some_and(|known| known.trashed_at.is_some());
            if !in_trash {
                self.copy_log(owner, listed, known, here).await?;
                self.to.trash(&owner.session(id), trashed).await?;
                changed = true;
            } else if known.is_some_and(|known| known.info.head != listed.info.head) {
                self.to.restore(&owner.session(id)).await?;
                self.copy_log(owner, listed, known, here).await?;
                self.to.trash(&owner.session(id), trashed).await?;
            } else {
                self.report_progress(listed.info.head.0);
            }
        }
        for id in order_origins_first(here) {
            let listed = &here[&id];
            let known = there.get(&id);
            if known.is_some_and(|known| known.trashed_at.is_some()) {
                self.to.restore(&owner.session(&id)).await?;
                changed = true;
            }
            self.copy_log(owner, listed, known, here).await?;
        }
        Ok(changed)
    }

    fn report_progress(&mut self, entries: u64) {
        self.done += entries;
        (self.progress)(self.done.min(self.total), self.total);
    }

    /// Brings a session's log over, from where it is there already.
    async fn copy_log(
        &mut self,
        owner: &Owner,
        listed: &ListedSession,
        known: Option<&ListedSession>,
        here: &SessionMap,
    ) -> Result<(), Error> {
        let of = owner.session(&listed.info.id);
        let mut next = known.map_or(Seq(1), |known| known.info.head.next());
        self.report_progress(next.0 - 1);
        let mut born = known.is_some();
        loop {
            let page = self
                .from
                .read_for_copy(&of, ReadRange::starting_at(next, PAGE))
                .await;
            let (birth, mut entries) = match page {
                Ok(page) => page,
                // Removed meanwhile: there is nothing more to bring over.
                Err(StoreError::NoSuchSession(_)) => return Ok(()),
                Err(error) => return Err(error.into()),
            };
            if !born {
                born = true;
                if let Some(shared) = self.copy_fork(owner, &birth, here).await? {
                    self.report_progress(shared.0);
                    next = shared.next();
                    entries.retain(|entry| entry.seq > shared);
                    if entries.is_empty() && listed.info.head > shared {
                        continue;
                    }
                }
            }
            let last = entries.last().map(|entry| entry.seq);
            if last.is_none() && known.is_some() {
                return Ok(());
            }
            self.copy_attachments(owner, &entries).await?;
            let count = entries.len() as u64;
            match self.to.import_log(owner, birth, entries).await {
                Ok(new) => self.report.copied += new,
                // It has gone another way there: told by the comparison.
                Err(StoreError::Moved { .. } | StoreError::KeyTaken { .. }) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
            self.report_progress(count);
            match last {
                None => return Ok(()),
                Some(last) => next = last.next(),
            }
        }
    }

    /// Makes a fork there as it is here, if its origin is in use in both; tells how many
    /// entries it shares.
    async fn copy_fork(
        &mut self,
        owner: &Owner,
        birth: &SessionHeader,
        here: &SessionMap,
    ) -> Result<Option<Seq>, Error> {
        let Lineage::Forked { session, at } = &birth.lineage else {
            return Ok(None);
        };
        let in_use = |listed: &ListedSession| listed.trashed_at.is_none();
        if !here.get(session).is_some_and(in_use) || *at == Seq::ZERO {
            return Ok(None);
        }
        let origin = owner.session(session);
        let one = ReadRange::between(*at, *at, 1);
        let same = match self.to.read_stored(&origin, one).await {
            Ok(there) => there == self.from.read_stored(&origin, one).await?,
            Err(_) => false,
        };
        // An id that was taken again names another session: its entry is another.
        let shares = self
            .from
            .read_for_copy(&owner.session(&birth.id), one)
            .await?
            .1;
        if !same || self.to.read_stored(&origin, one).await? != shares {
            return Ok(None);
        }
        self.to.fork(&origin, *at, birth.clone()).await?;
        if self.to.header(&owner.session(&birth.id)).await? != *birth {
            // What it was completed with has been erased since: a copy of its own, then.
            let fork = owner.session(&birth.id);
            self.to.trash(&fork, birth.at).await?;
            self.to.remove(&fork).await?;
            return Ok(None);
        }
        Ok(Some(*at))
    }

    /// Brings over the attachments that entries name.
    async fn copy_attachments(
        &mut self,
        owner: &Owner,
        entries: &[StoredEntry],
    ) -> Result<(), Error> {
        for stored in entries {
            // What cannot be decoded names nothing that could be shown.
            let Ok(entry) = stored.decode() else {
                continue;
            };
            let message = entry.message().into_iter();
            for attachment in message.flat_map(|message| message.content.attachments()) {
                if !self.copied_blobs.insert((owner.clone(), attachment.blob)) {
                    continue;
                }
                match self.from.blob(owner, &attachment.blob).await {
                    Ok(bytes) => {
                        self.to.put_blob(owner, bytes).await?;
                        self.report.blobs += 1;
                    }
                    Err(StoreError::NoSuchBlob(_)) => self.report.missing_blobs += 1,
                    Err(error) => return Err(error.into()),
                }
            }
        }
        Ok(())
    }

    /// Brings over who may call, taken back or not.
    async fn copy_tokens(&mut self) -> Result<(), Error> {
        let there = self.to.list_tokens().await?;
        for token in self.from.list_tokens().await? {
            match there.iter().find(|known| known.id == token.id) {
                None => self.to.insert_token(&token).await?,
                Some(known) => {
                    if let (Some(at), None) = (token.revoked_at, known.revoked_at) {
                        self.to.revoke_token(&token.id, at).await?;
                    }
                }
            }
            self.report.tokens += 1;
        }
        Ok(())
    }

    /// Compares both stores, entry by entry.
    async fn compare_stores(&mut self) -> Result<(), Error> {
        for owner in self.from.owners().await? {
            let here = list_sessions(self.from, &owner).await?;
            let there = list_sessions(self.to, &owner).await?;
            for (id, listed) in &here {
                let of = owner.session(id);
                let differs = match there.get(id) {
                    None => Some("it is not there".to_owned()),
                    Some(known) if known.trashed_at.is_some() != listed.trashed_at.is_some() => {
                        Some("it is in the trash in one of them".to_owned())
                    }
                    Some(_) => self.find_difference(&of, listed.info.head).await?,
                };
                match differs {
                    None => self.report.sessions += 1,
                    Some(what) => self.report.differing.push(SessionDifference {
                        owner: owner.clone(),
                        session: id.clone(),
                        what,
                    }),
                }
            }
            for id in there.keys().filter(|id| !here.contains_key(*id)) {
                self.report.only_there.push(SessionDifference {
                    owner: owner.clone(),
                    session: id.clone(),
                    what: "it is only there".to_owned(),
                });
            }
        }
        Ok(())
    }

    /// What is not the same about a session's log up to an entry, if anything. Content that
    /// was erased here since is erased there as well.
    async fn find_difference(
        &mut self,
        of: &SessionRef,
        head: Seq,
    ) -> Result<Option<String>, Error> {
        let mut next = Seq(1);
        while next <= head {
            let read = ReadRange::between(next, head, PAGE);
            let (Ok((_, here)), Ok((_, there))) = (
                self.from.read_for_copy(of, read).await,
                self.to.read_for_copy(of, read).await,
            ) else {
                return Ok(Some(format!("entry {next} cannot be read in both")));
            };
            let both = here.len().min(there.len());
            if both == 0 {
                return Ok(Some(format!("entry {next} is only in one of them")));
            }
            for (ours, theirs) in here.iter().zip(&there) {
                if ours == theirs {
                    self.report.entries += 1;
                    continue;
                }
                if !self.copy_erasure(of, ours, theirs).await? {
                    return Ok(Some(format!("entry {} is not the same", ours.seq)));
                }
                self.report.entries += 1;
            }
            next = Seq(next.0 + both as u64);
        }
        Ok(None)
    }

    /// Erases there what was erased here; tells whether that was it.
    async fn copy_erasure(
        &self,
        of: &SessionRef,
        ours: &StoredEntry,
        theirs: &StoredEntry,
    ) -> Result<bool, Error> {
        let reason = match ours.decode().map(|entry| entry.body) {
            Ok(Body::Erased(tombstone)) if ours.digest == theirs.digest => tombstone.reason,
            _ => return Ok(false),
        };
        let erased = self.to.erase(of, &[ours.seq], reason.as_deref()).await;
        match erased {
            Ok(()) => Ok(true),
            Err(StoreError::InTrash(_)) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

/// Everything an owner has, in use and in the trash, the program's own included.
async fn list_sessions(store: &dyn Store, owner: &Owner) -> Result<SessionMap, Error> {
    let filter = SessionFilter {
        include_internal: true,
        ..SessionFilter::default()
    };
    let mut all = SessionMap::new();
    let mut after = None;
    loop {
        let page = store.list(owner, &filter, after.as_ref(), 1_000).await?;
        for card in page.items {
            let listed = ListedSession {
                info: card,
                trashed_at: None,
            };
            all.insert(listed.info.id.clone(), listed);
        }
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    for trashed in store.list_trashed(owner, Timestamp::MAX).await? {
        let listed = ListedSession {
            info: trashed.info,
            trashed_at: Some(trashed.at),
        };
        all.insert(listed.info.id.clone(), listed);
    }
    debug_assert_eq!(filter.scope, SessionScope::Live);
    Ok(all)
}

/// The sessions in use, forks after what they were forked from.
fn order_origins_first(sessions: &SessionMap) -> Vec<SessionId> {
    let mut order = Vec::new();
    let mut placed = BTreeSet::new();
    for start in sessions.keys() {
        let mut chain = vec![start];
        while let Some(Lineage::Forked { session, .. }) = chain
            .last()
            .and_then(|id| sessions.get(*id))
            .map(|listed| &listed.info.lineage)
        {
            // Ids that were taken again could lead round in a circle.
            if chain.contains(&session) {
                break;
            }
            chain.push(session);
        }
        for id in chain.into_iter().rev() {
            let in_use = sessions.get(id).is_some_and(|s| s.trashed_at.is_none());
            if in_use && placed.insert(id.clone()) {
                order.push(id.clone());
            }
        }
    }
    order
}

//! Migration: copies a whole store into another one of any kind, while it is in use.
//!
//! Logs are copied as they are, digests included, so the copy can be verified by
//! comparing them. A migration can be interrupted at any time and run again: what has
//! been copied is compared, not copied again. Forks whose origin is not in the trash
//! share their entries in the copy as well. Derived data is rebuilt in the target, and
//! its change feed starts anew.
//!
//! Invariant: nothing is removed from the target. Sessions that exist only there are
//! reported.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use throughline_model::{
    Body, Digest, Lineage, Owner, Seq, SessionHeader, SessionId, SessionInfo, SessionRef,
    StoredEntry, Timestamp,
};
use throughline_store::{
    ProgressCallback, ReadRange, SessionFilter, SessionScope, Store, StoreError,
};

use crate::Error;

/// The number of entries copied at a time.
const PAGE: usize = 1_000;

/// The most passes over the source. Entries written during the last pass are left for
/// the next migration.
const MAX_PASSES: usize = 8;

/// A session that differs between the stores.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct SessionDifference {
    /// The session's owner.
    pub owner: Owner,
    /// The session.
    pub session: SessionId,
    /// What differs.
    pub what: String,
}

/// The result of a migration and of the comparison after it.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct MigrationReport {
    /// The number of owners.
    pub owners: u64,
    /// Sessions that are equal in both stores, including those in the trash.
    pub sessions: u64,
    /// Entries that are equal in both stores, by digest and content.
    pub entries: u64,
    /// Entries copied by this run.
    pub copied: u64,
    /// The number of API tokens.
    pub tokens: u64,
    /// Attachments copied by this run.
    pub blobs: u64,
    /// Attachments that entries refer to and the source store does not have.
    pub missing_blobs: u64,
    /// Sessions that differ. If there are any, the copy is incomplete.
    pub differing: Vec<SessionDifference>,
    /// Sessions that exist only in the target store.
    pub only_there: Vec<SessionDifference>,
}

/// Copies a whole store into another and compares them. Progress is reported in
/// entries.
pub async fn migrate(
    from: &dyn Store,
    to: &dyn Store,
    progress: ProgressCallback<'_>,
) -> Result<MigrationReport, Error> {
    let mut migration = Migration {
        from,
        to,
        progress,
        done: 0,
        total: 0,
        copied_blobs: HashSet::new(),
        report: MigrationReport::default(),
    };
    // Entries written during a pass are copied by the next one, which has less to do.
    for _ in 0..MAX_PASSES {
        let before = migration.report.copied;
        let changed = migration.copy_pass().await?;
        if migration.report.copied == before && !changed {
            break;
        }
    }
    migration.copy_tokens().await?;
    migration.compare_stores().await?;
    Ok(migration.report)
}

/// A session, with the time it was moved to the trash.
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
    /// Attachments known to be in the target store.
    copied_blobs: HashSet<(Owner, Digest)>,
    report: MigrationReport,
}

impl Migration<'_> {
    /// Copies what the target does not have yet; returns whether anything besides
    /// entries changed.
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
        // Trashed sessions come first and go to the trash at once: a session in use may
        // now have a key that a trashed one had.
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

    /// Copies the rest of a session's log, starting after the last entry the target
    /// has.
    async fn copy_log(
        &mut self,
        owner: &Owner,
        listed: &ListedSession,
        known: Option<&ListedSession>,
        here: &SessionMap,
    ) -> Result<(), Error> {
        let session_ref = owner.session(&listed.info.id);
        let mut next = known.map_or(Seq(1), |known| known.info.head.next());
        self.report_progress(next.0 - 1);
        let mut created = known.is_some();
        loop {
            let page = self
                .from
                .read_for_copy(&session_ref, ReadRange::starting_at(next, PAGE))
                .await;
            let (header, mut entries) = match page {
                Ok(page) => page,
                // Removed meanwhile: there is nothing left to copy.
                Err(StoreError::NoSuchSession(_)) => return Ok(()),
                Err(error) => return Err(error.into()),
            };
            if !created {
                created = true;
                if let Some(shared) = self.copy_fork(owner, &header, here).await? {
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
            match self.to.import_log(owner, header, entries).await {
                Ok(new) => self.report.copied += new,
                // The session has diverged in the target; the comparison reports it.
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

    /// Creates a fork in the target if its origin is in use in both stores; returns the
    /// last entry that both share.
    async fn copy_fork(
        &mut self,
        owner: &Owner,
        header: &SessionHeader,
        here: &SessionMap,
    ) -> Result<Option<Seq>, Error> {
        let Lineage::Forked { session, at } = &header.lineage else {
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
        // A reused id names a different session, whose entry differs.
        let shares = self
            .from
            .read_for_copy(&owner.session(&header.id), one)
            .await?
            .1;
        if !same || self.to.read_stored(&origin, one).await? != shares {
            return Ok(None);
        }
        self.to.fork(&origin, *at, header.clone()).await?;
        if self.to.header(&owner.session(&header.id)).await? != *header {
            // A value the fork inherited has been erased since, so it gets a full copy
            // instead.
            let fork = owner.session(&header.id);
            self.to.trash(&fork, header.at).await?;
            self.to.remove(&fork).await?;
            return Ok(None);
        }
        Ok(Some(*at))
    }

    /// Copies the attachments that entries refer to.
    async fn copy_attachments(
        &mut self,
        owner: &Owner,
        entries: &[StoredEntry],
    ) -> Result<(), Error> {
        for stored in entries {
            // An entry that cannot be decoded has no attachments to copy.
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

    /// Copies the API tokens, including revoked ones.
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

    /// Compares both stores entry by entry.
    async fn compare_stores(&mut self) -> Result<(), Error> {
        for owner in self.from.owners().await? {
            let here = list_sessions(self.from, &owner).await?;
            let there = list_sessions(self.to, &owner).await?;
            for (id, listed) in &here {
                let session_ref = owner.session(id);
                let differs = match there.get(id) {
                    None => Some("missing in the target store".to_owned()),
                    Some(known) if known.trashed_at.is_some() != listed.trashed_at.is_some() => {
                        Some("in the trash in only one of the stores".to_owned())
                    }
                    Some(_) => self.find_difference(&session_ref, listed.info.head).await?,
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
                    what: "exists only in the target store".to_owned(),
                });
            }
        }
        Ok(())
    }

    /// Returns the first difference in a session's log up to `head`, if any. Content
    /// that was erased in the source is erased in the target as well.
    async fn find_difference(
        &mut self,
        session_ref: &SessionRef,
        head: Seq,
    ) -> Result<Option<String>, Error> {
        let mut next = Seq(1);
        while next <= head {
            let read = ReadRange::between(next, head, PAGE);
            let (Ok((_, here)), Ok((_, there))) = (
                self.from.read_for_copy(session_ref, read).await,
                self.to.read_for_copy(session_ref, read).await,
            ) else {
                return Ok(Some(format!("entry {next} cannot be read in both stores")));
            };
            let both = here.len().min(there.len());
            if both == 0 {
                return Ok(Some(format!(
                    "entry {next} exists in only one of the stores"
                )));
            }
            for (ours, theirs) in here.iter().zip(&there) {
                if ours == theirs {
                    self.report.entries += 1;
                    continue;
                }
                if !self.copy_erasure(session_ref, ours, theirs).await? {
                    return Ok(Some(format!("entry {} differs", ours.seq)));
                }
                self.report.entries += 1;
            }
            next = Seq(next.0 + both as u64);
        }
        Ok(None)
    }

    /// Erases an entry in the target if it was erased in the source; returns whether
    /// that was the difference.
    async fn copy_erasure(
        &self,
        session_ref: &SessionRef,
        ours: &StoredEntry,
        theirs: &StoredEntry,
    ) -> Result<bool, Error> {
        let reason = match ours.decode().map(|entry| entry.body) {
            Ok(Body::Erased(tombstone)) if ours.digest == theirs.digest => tombstone.reason,
            _ => return Ok(false),
        };
        let erased = self
            .to
            .erase(session_ref, &[ours.seq], reason.as_deref())
            .await;
        match erased {
            Ok(()) => Ok(true),
            Err(StoreError::InTrash(_)) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

/// Lists all sessions of an owner, including trashed and internal ones.
async fn list_sessions(store: &dyn Store, owner: &Owner) -> Result<SessionMap, Error> {
    let filter = SessionFilter {
        include_internal: true,
        ..SessionFilter::default()
    };
    let mut all = SessionMap::new();
    let mut after = None;
    loop {
        let page = store.list(owner, &filter, after.as_ref(), 1_000).await?;
        for info in page.items {
            let listed = ListedSession {
                info,
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

/// Orders the sessions in use so that forks come after their origins.
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
            // Reused ids could form a cycle.
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

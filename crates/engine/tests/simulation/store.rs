//! A process's way to the store: every call takes a while, in which the process may be stalled
//! or killed, or others may call. The store itself is in memory and shared by all.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use throughline::{
    Append, Appended, Birth, Candidate, Card, Change, Created, Cursor, Digest, EntryId, Fence,
    Filter, Lease, LeaseHolder, Owner, Page, Position, Progress, Project, Read, Record, Report,
    Seq, SessionRef, StoreError, StoredEntry, Timestamp, Token, TokenId, Trashed,
};
use throughline_store::{
    Access, BlobStore, Catalog, Feed, Leases, LogStore, MemoryStore, TokenStore, Upkeep,
};
use tokio::sync::oneshot;

use crate::executor::{ProcessId, Simulation};
use crate::writer::{Queue, Work};

pub(crate) struct SimulatedStore {
    pub(crate) simulation: Simulation,
    pub(crate) process: ProcessId,
    pub(crate) queue: Queue,
    pub(crate) store: Arc<MemoryStore>,
    /// How often each holder was refused a lease.
    pub(crate) refused: Mutex<BTreeMap<String, usize>>,
}

impl std::fmt::Debug for SimulatedStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SimulatedStore")
    }
}

impl SimulatedStore {
    /// How often a piece of work with this id was refused a lease.
    pub(crate) fn refusals(&self, id: &EntryId) -> usize {
        let refused = self.refused.lock().unwrap();
        let of_id = |holder: &str| LeaseHolder::parse(holder).id == id.to_string();
        let refused = refused.iter().filter(|(holder, _)| of_id(holder));
        refused.map(|(_, times)| times).sum()
    }

    /// The time a call is on its way.
    async fn latency(&self) {
        self.simulation.sleep(self.simulation.millis_below(3)).await;
    }

    async fn write<T, F, R>(&self, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnMut(Arc<MemoryStore>) -> R + Send + 'static,
        R: Future<Output = Result<T, StoreError>> + Send + 'static,
    {
        self.latency().await;
        let (reply, answer) = oneshot::channel();
        let write = Box::new(Work {
            work,
            result: None,
            reply,
        });
        self.queue.submit(&self.simulation, self.process, write);
        let answer = answer.await.map_err(|_| StoreError::Closed)?;
        self.latency().await;
        answer
    }
}

#[async_trait]
impl LogStore for SimulatedStore {
    async fn create(&self, owner: &Owner, birth: Birth) -> Result<Created, StoreError> {
        let owner = owner.clone();
        self.write(move |store| {
            let (owner, birth) = (owner.clone(), birth.clone());
            async move { store.create(&owner, birth).await }
        })
        .await
    }

    async fn append(&self, to: &SessionRef, append: Append) -> Result<Appended, StoreError> {
        let to = to.clone();
        self.write(move |store| {
            let (to, append) = (to.clone(), append.clone());
            async move { store.append(&to, append).await }
        })
        .await
    }

    async fn record(&self, of: &SessionRef) -> Result<Record, StoreError> {
        self.latency().await;
        self.store.record(of).await
    }

    async fn birth(&self, of: &SessionRef) -> Result<Birth, StoreError> {
        self.latency().await;
        self.store.birth(of).await
    }

    async fn read_stored(
        &self,
        of: &SessionRef,
        read: Read,
    ) -> Result<Vec<StoredEntry>, StoreError> {
        self.latency().await;
        self.store.read_stored(of, read).await
    }

    async fn copy_of(
        &self,
        of: &SessionRef,
        read: Read,
    ) -> Result<(Birth, Vec<StoredEntry>), StoreError> {
        self.latency().await;
        self.store.copy_of(of, read).await
    }

    async fn fork(&self, of: &SessionRef, at: Seq, birth: Birth) -> Result<Record, StoreError> {
        self.latency().await;
        self.store.fork(of, at, birth).await
    }

    async fn locate(
        &self,
        of: &SessionRef,
        ids: &[EntryId],
    ) -> Result<Vec<Option<Seq>>, StoreError> {
        self.latency().await;
        self.store.locate(of, ids).await
    }

    async fn erase(
        &self,
        of: &SessionRef,
        entries: &[Seq],
        reason: Option<&str>,
    ) -> Result<(), StoreError> {
        self.latency().await;
        self.store.erase(of, entries, reason).await
    }

    async fn adopt(
        &self,
        owner: &Owner,
        birth: Birth,
        entries: Vec<StoredEntry>,
    ) -> Result<u64, StoreError> {
        self.latency().await;
        self.store.adopt(owner, birth, entries).await
    }
}

#[async_trait]
impl Catalog for SimulatedStore {
    async fn list(
        &self,
        owner: &Owner,
        filter: &Filter,
        after: Option<&Cursor>,
        limit: usize,
    ) -> Result<Page<Card>, StoreError> {
        self.latency().await;
        self.store.list(owner, filter, after, limit).await
    }

    async fn count(&self, owner: &Owner, filter: &Filter) -> Result<u64, StoreError> {
        self.latency().await;
        self.store.count(owner, filter).await
    }

    async fn candidates(
        &self,
        owner: &Owner,
        text: &str,
        limit: usize,
    ) -> Result<Vec<Candidate>, StoreError> {
        self.latency().await;
        self.store.candidates(owner, text, limit).await
    }

    async fn trash_under(
        &self,
        session: &SessionRef,
        at: Timestamp,
        fence: Option<&Fence>,
    ) -> Result<(), StoreError> {
        self.latency().await;
        self.store.trash_under(session, at, fence).await
    }

    async fn restore(&self, session: &SessionRef) -> Result<(), StoreError> {
        self.latency().await;
        self.store.restore(session).await
    }

    async fn trashed(&self, owner: &Owner, before: Timestamp) -> Result<Vec<Trashed>, StoreError> {
        self.latency().await;
        self.store.trashed(owner, before).await
    }

    async fn remove_under(
        &self,
        session: &SessionRef,
        trashed_at: Option<Timestamp>,
        fence: Option<&Fence>,
    ) -> Result<(), StoreError> {
        self.latency().await;
        self.store.remove_under(session, trashed_at, fence).await
    }

    async fn projects(&self, owner: &Owner) -> Result<Vec<Project>, StoreError> {
        self.latency().await;
        self.store.projects(owner).await
    }

    async fn put_project(&self, owner: &Owner, project: &Project) -> Result<(), StoreError> {
        self.latency().await;
        self.store.put_project(owner, project).await
    }
}

#[async_trait]
impl Leases for SimulatedStore {
    async fn take_lease(
        &self,
        owner: &Owner,
        name: &str,
        holder: &str,
        term: Duration,
    ) -> Result<Lease, StoreError> {
        let (taker, owner, name) = (holder.to_owned(), owner.clone(), name.to_owned());
        let taken = self
            .write(move |store| {
                let (owner, name, holder) = (owner.clone(), name.clone(), taker.clone());
                async move { store.take_lease(&owner, &name, &holder, term).await }
            })
            .await;
        if let Err(StoreError::LeaseHeld { .. }) = taken {
            let mut refused = self.refused.lock().unwrap();
            *refused.entry(holder.to_owned()).or_default() += 1;
        }
        taken
    }

    async fn renew_lease(&self, lease: &Lease, term: Duration) -> Result<Lease, StoreError> {
        let lease = lease.clone();
        self.write(move |store| {
            let lease = lease.clone();
            async move { store.renew_lease(&lease, term).await }
        })
        .await
    }

    async fn release_lease(&self, lease: &Lease) -> Result<(), StoreError> {
        let lease = lease.clone();
        self.write(move |store| {
            let lease = lease.clone();
            async move { store.release_lease(&lease).await }
        })
        .await
    }

    async fn peek_lease(&self, owner: &Owner, name: &str) -> Result<Option<Lease>, StoreError> {
        self.latency().await;
        self.store.peek_lease(owner, name).await
    }
}

#[async_trait]
impl Feed for SimulatedStore {
    async fn last_position(&self) -> Result<Position, StoreError> {
        self.latency().await;
        self.store.last_position().await
    }

    async fn changes(&self, after: Position, limit: usize) -> Result<Vec<Change>, StoreError> {
        self.latency().await;
        self.store.changes(after, limit).await
    }

    async fn changes_of(
        &self,
        owner: &Owner,
        after: Position,
        limit: usize,
    ) -> Result<Vec<Change>, StoreError> {
        self.latency().await;
        self.store.changes_of(owner, after, limit).await
    }
}

#[async_trait]
impl BlobStore for SimulatedStore {
    async fn put_blob(&self, owner: &Owner, bytes: Vec<u8>) -> Result<Digest, StoreError> {
        self.latency().await;
        self.store.put_blob(owner, bytes).await
    }

    async fn blob(&self, owner: &Owner, digest: &Digest) -> Result<Vec<u8>, StoreError> {
        self.latency().await;
        self.store.blob(owner, digest).await
    }
}

#[async_trait]
impl TokenStore for SimulatedStore {
    async fn token_counts(
        &self,
        of: &SessionRef,
        encoding: &str,
        from: Seq,
        to: Seq,
    ) -> Result<Vec<(Seq, u64)>, StoreError> {
        self.latency().await;
        self.store.token_counts(of, encoding, from, to).await
    }

    async fn put_token_counts(
        &self,
        of: &SessionRef,
        encoding: &str,
        counts: &[(Seq, u64)],
    ) -> Result<(), StoreError> {
        self.latency().await;
        self.store.put_token_counts(of, encoding, counts).await
    }
}

#[async_trait]
impl Access for SimulatedStore {
    async fn put_token(&self, token: &Token) -> Result<(), StoreError> {
        self.latency().await;
        self.store.put_token(token).await
    }

    async fn token(&self, hash: &Digest) -> Result<Option<Token>, StoreError> {
        self.latency().await;
        self.store.token(hash).await
    }

    async fn tokens(&self) -> Result<Vec<Token>, StoreError> {
        self.latency().await;
        self.store.tokens().await
    }

    async fn revoke_token(&self, id: &TokenId, at: Timestamp) -> Result<Token, StoreError> {
        self.latency().await;
        self.store.revoke_token(id, at).await
    }
}

#[async_trait]
impl Upkeep for SimulatedStore {
    async fn owners(&self) -> Result<Vec<Owner>, StoreError> {
        self.latency().await;
        self.store.owners().await
    }

    async fn leases(&self) -> Result<Vec<Lease>, StoreError> {
        self.latency().await;
        self.store.leases().await
    }

    async fn check(&self, progress: Progress<'_>) -> Result<Report, StoreError> {
        self.latency().await;
        self.store.check(progress).await
    }

    async fn rebuild(&self, progress: Progress<'_>) -> Result<Report, StoreError> {
        self.latency().await;
        self.store.rebuild(progress).await
    }

    async fn backup(&self, to: &Path, progress: Progress<'_>) -> Result<(), StoreError> {
        self.latency().await;
        self.store.backup(to, progress).await
    }

    async fn size(&self) -> Result<u64, StoreError> {
        self.latency().await;
        self.store.size().await
    }

    async fn close(&self) -> Result<(), StoreError> {
        self.latency().await;
        self.store.close().await
    }
}

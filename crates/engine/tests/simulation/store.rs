//! A process's connection to the shared store in memory. Every call takes some time, during
//! which the process may be stalled or killed and others may call.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use throughline::{
    ApiToken, Append, AppendOutcome, Candidate, Change, CheckReport, CreateOutcome, Cursor, Digest,
    EntryId, Fence, Lease, LeaseHolder, Owner, Page, Position, ProgressCallback, Project,
    ReadRange, Record, Seq, SessionFilter, SessionHeader, SessionInfo, SessionRef, StoreError,
    StoredEntry, Timestamp, TokenId, TrashedSession,
};
use throughline_store::{
    ApiTokens, BlobStore, Catalog, ChangeFeed, LeaseStore, LogStore, Maintenance, MemoryStore,
    TokenCounts,
};
use tokio::sync::oneshot;

use crate::executor::{ProcessId, Simulation};
use crate::writer::{Queue, WriteJob};

pub(crate) struct SimulatedStore {
    pub(crate) simulation: Simulation,
    pub(crate) process: ProcessId,
    pub(crate) queue: Queue,
    pub(crate) store: Arc<MemoryStore>,
    /// How often each holder was refused a lease.
    pub(crate) refusals_by_holder: Mutex<BTreeMap<String, usize>>,
}

impl std::fmt::Debug for SimulatedStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SimulatedStore")
    }
}

impl SimulatedStore {
    /// Returns how often the holder with this id was refused a lease.
    pub(crate) fn refusals(&self, id: &EntryId) -> usize {
        let refused = self.refusals_by_holder.lock().unwrap();
        let of_id = |holder: &str| LeaseHolder::parse(holder).id == id.to_string();
        let refused = refused.iter().filter(|(holder, _)| of_id(holder));
        refused.map(|(_, times)| times).sum()
    }

    /// Waits for the simulated latency of a call.
    async fn simulate_latency(&self) {
        self.simulation
            .sleep(self.simulation.random_duration(3))
            .await;
    }

    async fn write<T, F, R>(&self, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnMut(Arc<MemoryStore>) -> R + Send + 'static,
        R: Future<Output = Result<T, StoreError>> + Send + 'static,
    {
        self.simulate_latency().await;
        let (reply, answer) = oneshot::channel();
        let write = Box::new(WriteJob {
            work,
            result: None,
            reply,
        });
        self.queue.submit(&self.simulation, self.process, write);
        let answer = answer.await.map_err(|_| StoreError::Closed)?;
        self.simulate_latency().await;
        answer
    }
}

#[async_trait]
impl LogStore for SimulatedStore {
    async fn create(
        &self,
        owner: &Owner,
        header: SessionHeader,
    ) -> Result<CreateOutcome, StoreError> {
        let owner = owner.clone();
        self.write(move |store| {
            let (owner, header) = (owner.clone(), header.clone());
            async move { store.create(&owner, header).await }
        })
        .await
    }

    async fn append(&self, to: &SessionRef, append: Append) -> Result<AppendOutcome, StoreError> {
        let to = to.clone();
        self.write(move |store| {
            let (to, append) = (to.clone(), append.clone());
            async move { store.append(&to, append).await }
        })
        .await
    }

    async fn record(&self, of: &SessionRef) -> Result<Record, StoreError> {
        self.simulate_latency().await;
        self.store.record(of).await
    }

    async fn header(&self, of: &SessionRef) -> Result<SessionHeader, StoreError> {
        self.simulate_latency().await;
        self.store.header(of).await
    }

    async fn read_stored(
        &self,
        of: &SessionRef,
        read: ReadRange,
    ) -> Result<Vec<StoredEntry>, StoreError> {
        self.simulate_latency().await;
        self.store.read_stored(of, read).await
    }

    async fn read_for_copy(
        &self,
        of: &SessionRef,
        read: ReadRange,
    ) -> Result<(SessionHeader, Vec<StoredEntry>), StoreError> {
        self.simulate_latency().await;
        self.store.read_for_copy(of, read).await
    }

    async fn fork(
        &self,
        of: &SessionRef,
        at: Seq,
        header: SessionHeader,
    ) -> Result<Record, StoreError> {
        self.simulate_latency().await;
        self.store.fork(of, at, header).await
    }

    async fn locate(
        &self,
        of: &SessionRef,
        ids: &[EntryId],
    ) -> Result<Vec<Option<Seq>>, StoreError> {
        self.simulate_latency().await;
        self.store.locate(of, ids).await
    }

    async fn erase(
        &self,
        of: &SessionRef,
        entries: &[Seq],
        reason: Option<&str>,
    ) -> Result<(), StoreError> {
        self.simulate_latency().await;
        self.store.erase(of, entries, reason).await
    }

    async fn import_log(
        &self,
        owner: &Owner,
        header: SessionHeader,
        entries: Vec<StoredEntry>,
    ) -> Result<u64, StoreError> {
        self.simulate_latency().await;
        self.store.import_log(owner, header, entries).await
    }
}

#[async_trait]
impl Catalog for SimulatedStore {
    async fn list(
        &self,
        owner: &Owner,
        filter: &SessionFilter,
        after: Option<&Cursor>,
        limit: usize,
    ) -> Result<Page<SessionInfo>, StoreError> {
        self.simulate_latency().await;
        self.store.list(owner, filter, after, limit).await
    }

    async fn count(&self, owner: &Owner, filter: &SessionFilter) -> Result<u64, StoreError> {
        self.simulate_latency().await;
        self.store.count(owner, filter).await
    }

    async fn find_candidates(
        &self,
        owner: &Owner,
        text: &str,
        limit: usize,
    ) -> Result<Vec<Candidate>, StoreError> {
        self.simulate_latency().await;
        self.store.find_candidates(owner, text, limit).await
    }

    async fn trash_fenced(
        &self,
        session: &SessionRef,
        at: Timestamp,
        fence: Option<&Fence>,
    ) -> Result<(), StoreError> {
        self.simulate_latency().await;
        self.store.trash_fenced(session, at, fence).await
    }

    async fn restore(&self, session: &SessionRef) -> Result<(), StoreError> {
        self.simulate_latency().await;
        self.store.restore(session).await
    }

    async fn list_trashed(
        &self,
        owner: &Owner,
        before: Timestamp,
    ) -> Result<Vec<TrashedSession>, StoreError> {
        self.simulate_latency().await;
        self.store.list_trashed(owner, before).await
    }

    async fn remove_fenced(
        &self,
        session: &SessionRef,
        trashed_at: Option<Timestamp>,
        fence: Option<&Fence>,
    ) -> Result<(), StoreError> {
        self.simulate_latency().await;
        self.store.remove_fenced(session, trashed_at, fence).await
    }

    async fn list_projects(&self, owner: &Owner) -> Result<Vec<Project>, StoreError> {
        self.simulate_latency().await;
        self.store.list_projects(owner).await
    }

    async fn put_project(&self, owner: &Owner, project: &Project) -> Result<(), StoreError> {
        self.simulate_latency().await;
        self.store.put_project(owner, project).await
    }
}

#[async_trait]
impl LeaseStore for SimulatedStore {
    async fn acquire_lease(
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
                async move { store.acquire_lease(&owner, &name, &holder, term).await }
            })
            .await;
        if let Err(StoreError::LeaseHeld { .. }) = taken {
            let mut refused = self.refusals_by_holder.lock().unwrap();
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
        self.simulate_latency().await;
        self.store.peek_lease(owner, name).await
    }
}

#[async_trait]
impl ChangeFeed for SimulatedStore {
    async fn last_position(&self) -> Result<Position, StoreError> {
        self.simulate_latency().await;
        self.store.last_position().await
    }

    async fn changes(&self, after: Position, limit: usize) -> Result<Vec<Change>, StoreError> {
        self.simulate_latency().await;
        self.store.changes(after, limit).await
    }

    async fn owner_changes(
        &self,
        owner: &Owner,
        after: Position,
        limit: usize,
    ) -> Result<Vec<Change>, StoreError> {
        self.simulate_latency().await;
        self.store.owner_changes(owner, after, limit).await
    }
}

#[async_trait]
impl BlobStore for SimulatedStore {
    async fn put_blob(&self, owner: &Owner, bytes: Vec<u8>) -> Result<Digest, StoreError> {
        self.simulate_latency().await;
        self.store.put_blob(owner, bytes).await
    }

    async fn blob(&self, owner: &Owner, digest: &Digest) -> Result<Vec<u8>, StoreError> {
        self.simulate_latency().await;
        self.store.blob(owner, digest).await
    }
}

#[async_trait]
impl TokenCounts for SimulatedStore {
    async fn token_counts(
        &self,
        of: &SessionRef,
        encoding: &str,
        from: Seq,
        to: Seq,
    ) -> Result<Vec<(Seq, u64)>, StoreError> {
        self.simulate_latency().await;
        self.store.token_counts(of, encoding, from, to).await
    }

    async fn put_token_counts(
        &self,
        of: &SessionRef,
        encoding: &str,
        counts: &[(Seq, u64)],
    ) -> Result<(), StoreError> {
        self.simulate_latency().await;
        self.store.put_token_counts(of, encoding, counts).await
    }
}

#[async_trait]
impl ApiTokens for SimulatedStore {
    async fn insert_token(&self, token: &ApiToken) -> Result<(), StoreError> {
        self.simulate_latency().await;
        self.store.insert_token(token).await
    }

    async fn token_by_hash(&self, hash: &Digest) -> Result<Option<ApiToken>, StoreError> {
        self.simulate_latency().await;
        self.store.token_by_hash(hash).await
    }

    async fn list_tokens(&self) -> Result<Vec<ApiToken>, StoreError> {
        self.simulate_latency().await;
        self.store.list_tokens().await
    }

    async fn revoke_token(&self, id: &TokenId, at: Timestamp) -> Result<ApiToken, StoreError> {
        self.simulate_latency().await;
        self.store.revoke_token(id, at).await
    }
}

#[async_trait]
impl Maintenance for SimulatedStore {
    async fn owners(&self) -> Result<Vec<Owner>, StoreError> {
        self.simulate_latency().await;
        self.store.owners().await
    }

    async fn leases(&self) -> Result<Vec<Lease>, StoreError> {
        self.simulate_latency().await;
        self.store.leases().await
    }

    async fn check(&self, progress: ProgressCallback<'_>) -> Result<CheckReport, StoreError> {
        self.simulate_latency().await;
        self.store.check(progress).await
    }

    async fn rebuild(&self, progress: ProgressCallback<'_>) -> Result<CheckReport, StoreError> {
        self.simulate_latency().await;
        self.store.rebuild(progress).await
    }

    async fn backup(&self, to: &Path, progress: ProgressCallback<'_>) -> Result<(), StoreError> {
        self.simulate_latency().await;
        self.store.backup(to, progress).await
    }

    async fn size(&self) -> Result<u64, StoreError> {
        self.simulate_latency().await;
        self.store.size().await
    }

    async fn close(&self) -> Result<(), StoreError> {
        self.simulate_latency().await;
        self.store.close().await
    }
}

//! The entry point of the library: a store of sessions, on behalf of one owner.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use throughline_context::Calibration;
use throughline_model::{
    AgentRef, Digest, Key, Lineage, Name, NameError, NewEntry, Owner, ProjectId, SessionHeader,
    SessionId, SessionInfo, Timestamp,
};
use throughline_store::{
    CheckReport, Cursor, LogStore, Page, ProgressCallback, SessionFilter, Store, StoreError,
    TrashedSession,
};

use crate::open::{self, OpenOptions, StoreAddress};
use crate::retrieval::IndexHandle;
use crate::{Environment, Error, LazyReranker, Session, Similarity, lease};

/// The properties of a new session; all are optional.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewSession {
    /// Its id; by default generated from the time.
    pub id: Option<SessionId>,
    /// A stable name chosen by an agent. If a session with this key exists, it is
    /// returned instead.
    pub key: Option<Key>,
    /// Its name.
    pub name: Option<Name>,
    /// Its agent.
    pub agent: Option<AgentRef>,
    /// The project it belongs to.
    pub project: Option<ProjectId>,
    /// The workspace folder.
    pub workspace: Option<String>,
    /// The creation time; by default now.
    pub at: Option<Timestamp>,
    /// The session that it continues from.
    pub continued_from: Option<SessionId>,
}

impl NewSession {
    /// A session with a name, which is sanitized.
    pub fn named(name: &str) -> Result<Self, NameError> {
        Ok(Self {
            name: Some(name.parse()?),
            ..Self::default()
        })
    }

    /// Fails if the key is reserved for internal sessions.
    pub(crate) fn reject_reserved_key(&self) -> Result<(), Error> {
        match &self.key {
            Some(key) if key.is_internal() => Err(Error::ReservedKey(key.clone())),
            _ => Ok(()),
        }
    }

    pub(crate) fn into_header(self, environment: &dyn Environment) -> SessionHeader {
        let at = self.at.unwrap_or_else(|| environment.now());
        SessionHeader {
            key: self.key,
            name: self.name,
            agent: self.agent,
            project: self.project,
            workspace: self.workspace,
            lineage: match self.continued_from {
                None => Lineage::Root,
                Some(session) => Lineage::Continued { session },
            },
            ..SessionHeader::new(self.id.unwrap_or_else(|| environment.new_session_id()), at)
        }
    }
}

/// A store of sessions, on behalf of one owner. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Throughline {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) owner: Owner,
    pub(crate) environment: Arc<dyn Environment>,
    pub(crate) similarity: Similarity,
    pub(crate) reranker: Option<LazyReranker>,
    calibration: Arc<Mutex<Calibration>>,
    pub(crate) index: Arc<IndexHandle>,
    pub(crate) lease_term: Duration,
    /// The name under which processes that wait for this one see it.
    pub(crate) description: Option<Arc<str>>,
    pub(crate) wait_listener: Option<lease::WaitListener>,
}

impl Throughline {
    /// Opens the store at an address (`sqlite:PATH`, `postgres://…`, `https://…` or
    /// `memory:`) as the local owner or, with a server, as the owner that the server
    /// determines.
    pub async fn open(url: &str) -> Result<Self, Error> {
        Self::open_with(&url.parse()?, OpenOptions::default()).await
    }

    /// Opens a store with options.
    pub async fn open_with(address: &StoreAddress, options: OpenOptions) -> Result<Self, Error> {
        let opened = open::open_store(address, &options).await?;
        let (owner, environment) = (opened.owner, options.environment);
        Ok(Self::new(opened.store, owner, environment, opened.index))
    }

    /// Uses a store that is already open, of any kind. Its index is in the folder
    /// [`OpenOptions::cache_dir`], or temporary.
    pub fn with_store(store: Arc<dyn Store>, options: OpenOptions) -> Self {
        let owner = options.owner.unwrap_or_else(Owner::local);
        let index = IndexHandle::in_folder(options.cache_dir);
        Self::new(store, owner, options.environment, index)
    }

    fn new(
        store: Arc<dyn Store>,
        owner: Owner,
        environment: Arc<dyn Environment>,
        index: Arc<IndexHandle>,
    ) -> Self {
        Self {
            store,
            owner,
            environment,
            similarity: Similarity::default(),
            reranker: None,
            calibration: Arc::default(),
            index,
            lease_term: lease::TERM,
            description: None,
            wait_listener: None,
        }
    }

    /// Returns a handle to the same store on behalf of another owner.
    #[must_use]
    pub fn on_behalf_of(&self, owner: Owner) -> Self {
        Self {
            owner,
            ..self.clone()
        }
    }

    /// Sets how the similarity of facts is measured.
    #[must_use]
    pub fn with_similarity(self, similarity: Similarity) -> Self {
        Self { similarity, ..self }
    }

    /// Sets the model that reranks search results and recalled excerpts; `None` to use
    /// only the built-in model.
    #[must_use]
    pub fn with_reranker(self, reranker: Option<LazyReranker>) -> Self {
        Self { reranker, ..self }
    }

    /// Sets how long a lease lasts without being renewed, before another process may
    /// take it.
    #[must_use]
    pub fn with_lease_term(self, lease_term: Duration) -> Self {
        Self { lease_term, ..self }
    }

    /// The owner that this handle acts for.
    pub fn owner(&self) -> &Owner {
        &self.owner
    }

    /// The current time.
    pub fn now(&self) -> Timestamp {
        self.environment.now()
    }

    /// Returns what has been learned about how models count tokens.
    pub fn calibration(&self) -> Calibration {
        self.lock_calibration().clone()
    }

    /// Sets what was learned about token counts in an earlier run.
    pub fn set_calibration(&self, learned: Calibration) {
        *self.lock_calibration() = learned;
    }

    /// Records the token count that a provider reported for an estimated request.
    pub(crate) fn record_token_usage(&self, model: &str, reported: u64, estimated: u64) {
        self.lock_calibration().observe(model, reported, estimated);
    }

    /// Converts a number of a model's tokens into tokens as estimated here.
    pub(crate) fn to_estimated_tokens(&self, model: Option<&str>, tokens: u64) -> u64 {
        model.map_or(tokens, |model| {
            self.lock_calibration().scale_budget(model, tokens)
        })
    }

    fn lock_calibration(&self) -> MutexGuard<'_, Calibration> {
        // The calibration is consistent even if a thread panicked while holding the
        // lock.
        self.calibration
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// The underlying store.
    pub fn store(&self) -> &dyn Store {
        &*self.store
    }

    /// Creates a session.
    pub async fn create(&self, new: NewSession) -> Result<Session, Error> {
        Ok(self.get_or_create(new).await?.0)
    }

    /// Returns the session that has the key, or creates it; the flag tells whether it
    /// existed.
    pub async fn get_or_create(&self, new: NewSession) -> Result<(Session, bool), Error> {
        new.reject_reserved_key()?;
        let header = new.into_header(&*self.environment);
        let created = self.store.create(&self.owner, header).await?;
        Ok((self.handle(&created.record.info.id), created.existed))
    }

    /// Returns a session by its id; fails if it does not exist.
    pub async fn session(&self, id: &SessionId) -> Result<Session, Error> {
        self.store.record(&self.owner.session(id)).await?;
        Ok(self.handle(id))
    }

    /// Returns a session by its id without checking that it exists; operations on a
    /// missing one fail. Saves a lookup if another one follows anyway.
    pub fn session_unchecked(&self, id: &SessionId) -> Session {
        self.handle(id)
    }

    pub(crate) fn handle(&self, id: &SessionId) -> Session {
        Session::new(self.clone(), id)
    }

    /// Returns one page of sessions, latest activity first.
    pub async fn list(
        &self,
        filter: &SessionFilter,
        after: Option<&Cursor>,
        limit: usize,
    ) -> Result<Page<SessionInfo>, Error> {
        Ok(self.store.list(&self.owner, filter, after, limit).await?)
    }

    /// Returns the number of sessions that match.
    pub async fn count(&self, filter: &SessionFilter) -> Result<u64, Error> {
        Ok(self.store.count(&self.owner, filter).await?)
    }

    /// Returns every session that matches.
    pub async fn list_all(&self, filter: &SessionFilter) -> Result<Vec<SessionInfo>, Error> {
        let mut all = Vec::new();
        let mut after = None;
        loop {
            let page = self.list(filter, after.as_ref(), 1_000).await?;
            all.extend(page.items);
            after = page.next;
            if after.is_none() {
                return Ok(all);
            }
        }
    }

    /// Moves a session to the trash.
    pub async fn trash(&self, id: &SessionId) -> Result<(), Error> {
        let session = self.owner.session(id);
        Ok(self.store.trash(&session, self.now()).await?)
    }

    /// Restores a session from the trash.
    pub async fn restore(&self, id: &SessionId) -> Result<Session, Error> {
        self.store.restore(&self.owner.session(id)).await?;
        Ok(self.handle(id))
    }

    /// Returns the sessions in the trash, oldest first.
    pub async fn list_trashed(&self) -> Result<Vec<TrashedSession>, Error> {
        Ok(self.store.list_trashed(&self.owner, Timestamp::MAX).await?)
    }

    /// Stores the bytes of an attachment.
    pub async fn put_blob(&self, bytes: Vec<u8>) -> Result<Digest, Error> {
        Ok(self.store.put_blob(&self.owner, bytes).await?)
    }

    /// Returns the bytes of an attachment.
    pub async fn blob(&self, digest: &Digest) -> Result<Vec<u8>, Error> {
        Ok(self.store.blob(&self.owner, digest).await?)
    }

    /// Checks the integrity of the whole store.
    pub async fn check(&self, progress: ProgressCallback<'_>) -> Result<CheckReport, Error> {
        Ok(self.store.check(progress).await?)
    }

    /// Rebuilds all derived data.
    pub async fn rebuild(&self, progress: ProgressCallback<'_>) -> Result<CheckReport, Error> {
        Ok(self.store.rebuild(progress).await?)
    }

    /// Writes a consistent copy of the whole store while it is in use.
    pub async fn backup(&self, to: &Path, progress: ProgressCallback<'_>) -> Result<(), Error> {
        Ok(self.store.backup(to, progress).await?)
    }

    /// Waits until all pending writes are durable and closes the store.
    pub async fn close(&self) -> Result<(), Error> {
        self.index.wait_for_background().await;
        Ok(self.store.close().await?)
    }

    /// Creates an entry with the current time.
    pub(crate) fn new_entry(&self, body: throughline_model::Body) -> NewEntry {
        NewEntry::new(self.environment.new_entry_id(), self.now(), body)
    }
}

/// Returns a session's record, or `None` if it does not exist or is in the trash.
pub(crate) async fn find_record(
    tl: &Throughline,
    id: &SessionId,
) -> Result<Option<throughline_model::Record>, Error> {
    match LogStore::record(&*tl.store, &tl.owner.session(id)).await {
        Ok(record) => Ok(Some(record)),
        Err(StoreError::NoSuchSession(_) | StoreError::InTrash(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

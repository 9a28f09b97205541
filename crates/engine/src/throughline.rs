//! A store of sessions, on behalf of one owner.

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

/// What a new session starts with; all of it may be left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewSession {
    /// Its id; minted from the time where there is none.
    pub id: Option<SessionId>,
    /// An agent's stable name for it: if a session has it, that one is found instead.
    pub key: Option<Key>,
    /// Its name.
    pub name: Option<Name>,
    /// Its agent.
    pub agent: Option<AgentRef>,
    /// The project it belongs to.
    pub project: Option<ProjectId>,
    /// The folder it is in.
    pub workspace: Option<String>,
    /// When it was made; now where there is none.
    pub at: Option<Timestamp>,
    /// The session whose summary it starts from.
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

    /// The program's own sessions are not made by anybody else.
    pub(crate) fn reject_reserved_key(&self) -> Result<(), Error> {
        match &self.key {
            Some(key) if key.is_internal() => Err(Error::ReservedKey(key.clone())),
            _ => Ok(()),
        }
    }

    pub(crate) fn into_header(self, world: &dyn Environment) -> SessionHeader {
        let at = self.at.unwrap_or_else(|| world.now());
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
            ..SessionHeader::new(self.id.unwrap_or_else(|| world.new_session_id()), at)
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
    /// What others call this when they wait for it.
    pub(crate) description: Option<Arc<str>>,
    pub(crate) wait_listener: Option<lease::WaitListener>,
}

impl Throughline {
    /// Opens the store at an address (`sqlite:PATH`, `postgres://…`, `https://…` or
    /// `memory:`) for the local owner, or for whoever a server takes us for.
    pub async fn open(url: &str) -> Result<Self, Error> {
        Self::open_with(&url.parse()?, OpenOptions::default()).await
    }

    /// Opens a store with everything said.
    pub async fn open_with(address: &StoreAddress, opening: OpenOptions) -> Result<Self, Error> {
        let opened = open::open_store(address, &opening).await?;
        let (owner, world) = (opened.owner, opening.environment);
        Ok(Self::new(opened.store, owner, world, opened.index))
    }

    /// Uses a store that is open already, of any kind. Its index is in the folder
    /// [`Opening::cache`], or goes with the program.
    pub fn with_store(store: Arc<dyn Store>, opening: OpenOptions) -> Self {
        let owner = opening.owner.unwrap_or_else(Owner::local);
        let index = IndexHandle::in_folder(opening.cache_dir);
        Self::new(store, owner, opening.environment, index)
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

    /// The same store on behalf of another owner.
    #[must_use]
    pub fn on_behalf_of(&self, owner: Owner) -> Self {
        Self {
            owner,
            ..self.clone()
        }
    }

    /// The same store, with this way of telling how alike facts are.
    #[must_use]
    pub fn with_similarity(self, similar: Similarity) -> Self {
        Self {
            similarity: similar,
            ..self
        }
    }

    /// The same store, with a model that compares again what a search finds first, and what
    /// is recalled for a request; none for the model in the binary alone.
    #[must_use]
    pub fn with_reranker(self, again: Option<LazyReranker>) -> Self {
        Self {
            reranker: again,
            ..self
        }
    }

    /// The same store; who does what must happen once is replaced after so long without a
    /// sign of life from them.
    #[must_use]
    pub fn with_lease_term(self, lease_term: Duration) -> Self {
        Self { lease_term, ..self }
    }

    /// On whose behalf.
    pub fn owner(&self) -> &Owner {
        &self.owner
    }

    /// What time it is for this store.
    pub fn now(&self) -> Timestamp {
        self.environment.now()
    }

    /// What has been learned of how models count tokens.
    pub fn calibration(&self) -> Calibration {
        self.lock_calibration().clone()
    }

    /// Takes up what was learned earlier.
    pub fn set_calibration(&self, learned: Calibration) {
        *self.lock_calibration() = learned;
    }

    /// Takes in what a provider reported for a request that was estimated.
    pub(crate) fn record_token_usage(&self, model: &str, reported: u64, estimated: u64) {
        self.lock_calibration().observe(model, reported, estimated);
    }

    /// How many of our tokens are so many of a model's.
    pub(crate) fn to_estimated_tokens(&self, model: Option<&str>, tokens: u64) -> u64 {
        model.map_or(tokens, |model| {
            self.lock_calibration().scale_budget(model, tokens)
        })
    }

    fn lock_calibration(&self) -> MutexGuard<'_, Calibration> {
        // What a panicking thread had learned is as good as before.
        self.calibration
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// The store itself.
    pub fn store(&self) -> &dyn Store {
        &*self.store
    }

    /// Makes a session.
    pub async fn create(&self, new: NewSession) -> Result<Session, Error> {
        Ok(self.get_or_create(new).await?.0)
    }

    /// Finds the session that holds the key, or makes it; tells whether it was there.
    pub async fn get_or_create(&self, new: NewSession) -> Result<(Session, bool), Error> {
        new.reject_reserved_key()?;
        let birth = new.into_header(&*self.environment);
        let created = self.store.create(&self.owner, birth).await?;
        Ok((self.handle(&created.record.info.id), created.existed))
    }

    /// A session by its id, which must exist.
    pub async fn session(&self, id: &SessionId) -> Result<Session, Error> {
        self.store.record(&self.owner.session(id)).await?;
        Ok(self.handle(id))
    }

    /// A session by its id, whether or not it exists: what is done with one that does not
    /// fails. Saves a lookup where that comes anyway.
    pub fn session_unchecked(&self, id: &SessionId) -> Session {
        self.handle(id)
    }

    pub(crate) fn handle(&self, id: &SessionId) -> Session {
        Session::new(self.clone(), id)
    }

    /// One page of sessions, latest activity first.
    pub async fn list(
        &self,
        filter: &SessionFilter,
        after: Option<&Cursor>,
        limit: usize,
    ) -> Result<Page<SessionInfo>, Error> {
        Ok(self.store.list(&self.owner, filter, after, limit).await?)
    }

    /// How many sessions match.
    pub async fn count(&self, filter: &SessionFilter) -> Result<u64, Error> {
        Ok(self.store.count(&self.owner, filter).await?)
    }

    /// Every session that matches, page by page.
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

    /// Puts a session into the trash.
    pub async fn trash(&self, id: &SessionId) -> Result<(), Error> {
        let session = self.owner.session(id);
        Ok(self.store.trash(&session, self.now()).await?)
    }

    /// Takes a session out of the trash.
    pub async fn restore(&self, id: &SessionId) -> Result<Session, Error> {
        self.store.restore(&self.owner.session(id)).await?;
        Ok(self.handle(id))
    }

    /// What is in the trash, longest there first.
    pub async fn list_trashed(&self) -> Result<Vec<TrashedSession>, Error> {
        Ok(self.store.list_trashed(&self.owner, Timestamp::MAX).await?)
    }

    /// Keeps the bytes of an attachment.
    pub async fn put_blob(&self, bytes: Vec<u8>) -> Result<Digest, Error> {
        Ok(self.store.put_blob(&self.owner, bytes).await?)
    }

    /// The bytes of an attachment.
    pub async fn blob(&self, digest: &Digest) -> Result<Vec<u8>, Error> {
        Ok(self.store.blob(&self.owner, digest).await?)
    }

    /// Checks the whole store.
    pub async fn check(&self, progress: ProgressCallback<'_>) -> Result<CheckReport, Error> {
        Ok(self.store.check(progress).await?)
    }

    /// Makes everything derived anew.
    pub async fn rebuild(&self, progress: ProgressCallback<'_>) -> Result<CheckReport, Error> {
        Ok(self.store.rebuild(progress).await?)
    }

    /// Makes a consistent copy of the whole store while it is in use.
    pub async fn backup(&self, to: &Path, progress: ProgressCallback<'_>) -> Result<(), Error> {
        Ok(self.store.backup(to, progress).await?)
    }

    /// Waits until everything under way is durable and lets go of the store.
    pub async fn close(&self) -> Result<(), Error> {
        self.index.wait_for_background().await;
        Ok(self.store.close().await?)
    }

    /// A new entry of now.
    pub(crate) fn new_entry(&self, body: throughline_model::Body) -> NewEntry {
        NewEntry::new(self.environment.new_entry_id(), self.now(), body)
    }
}

/// What is not there is no error here.
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

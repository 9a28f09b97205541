//! Search and recall: the search index of a store, and keeping it up to date.
//!
//! The index is derived data, beside the store or in its database. It is opened when
//! first needed, updated from the store's change feed by whichever process needs it
//! first, and rebuilt if it has another version or is damaged. If the index lags behind
//! the store, the results say so.

mod embedding_reranker;
mod excerpts;
mod index_consistency;
mod indexing;
mod lazy_reranker;
mod passages;
mod project_sessions;
mod search;
mod search_scope;

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

use throughline_postgres::{PostgresIndex, PostgresStore};
use throughline_recall::{ErrorKind, FolderIndex, Hit, Index, Query, RecallError, private_files};
use throughline_store::Position;
use tokio::runtime::Handle;
use tokio::task::{JoinError, JoinHandle};

use crate::Error;

pub use embedding_reranker::EmbeddingReranker;
pub(crate) use excerpts::StalenessTolerance;
pub use indexing::{IndexProgress, IndexProgressSink, IndexWait};
pub use lazy_reranker::{LazyReranker, RerankBudget};
pub(crate) use passages::{EntryLocation, to_passage};
pub use search::{SearchOptions, SearchResults};

/// Where the index is stored.
#[derive(Debug)]
enum IndexLocation {
    /// In a folder that persists.
    Persistent(PathBuf),
    /// In a temporary folder, created on first use and removed with the process.
    Temporary(Mutex<Option<tempfile::TempDir>>),
}

impl IndexLocation {
    fn from_folder(folder: Option<PathBuf>) -> Self {
        match folder {
            Some(folder) => Self::Persistent(folder),
            None => Self::Temporary(Mutex::default()),
        }
    }
}

/// The index of a store, opened on first use.
#[derive(Debug)]
pub(crate) struct IndexHandle {
    location: IndexLocation,
    /// The store whose tables hold the index, if it is in the database.
    postgres: Option<PostgresStore>,
    open: Mutex<Option<OpenIndex>>,
    /// The last search and its hits: a message is often searched for by several
    /// requests.
    last_search: Mutex<Option<CachedSearch>>,
    /// The sessions of the project that was used last.
    project_sessions: Mutex<Option<project_sessions::ProjectSessions>>,
    /// Background tasks on the index.
    background_tasks: Mutex<Vec<JoinHandle<()>>>,
    /// Whether a background task is updating the index.
    is_indexing: AtomicBool,
    /// Why the index was last rebuilt, until that has been reported.
    last_rebuild: Mutex<Option<IndexRebuild>>,
    /// Whether all of its anchors have been found in the store.
    verified: Mutex<bool>,
    /// Whether the store is a local file, so that reading entries is cheap.
    is_local: bool,
}

/// Why an index was rebuilt automatically.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexRebuild {
    /// Its files could not be read.
    Damaged,
    /// It was built from entries that the store does not have, as after restoring a
    /// backup.
    Mismatch,
}

impl std::fmt::Display for IndexRebuild {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Damaged => "The search index was damaged and has been rebuilt.",
            Self::Mismatch => "The search index did not match the store and has been rebuilt.",
        })
    }
}

/// An open index.
#[derive(Clone, Debug)]
pub(crate) enum OpenIndex {
    Folder(FolderIndex),
    Tables(PostgresIndex),
}

impl OpenIndex {
    pub(crate) fn as_index(&self) -> &dyn Index {
        match self {
            Self::Folder(index) => index,
            Self::Tables(index) => index,
        }
    }
}

/// The hits of a search, with the positions of store and index at the time.
#[derive(Clone, Debug)]
struct CachedSearch {
    query: Query,
    position: Position,
    watermark: Position,
    hits: Vec<Hit>,
}

impl IndexHandle {
    /// The index beside a store's file: `sessions.db` has `sessions.index`.
    pub(crate) fn beside_store(store: &std::path::Path) -> Arc<Self> {
        let folder = store.with_extension("index");
        if private_files::is_open_to_others(&folder) {
            // Earlier versions created indexes readable by others; a health check
            // reports what remains.
            let _ = private_files::restrict_all(&folder);
        }
        Self::new(IndexLocation::Persistent(folder), None, true)
    }

    /// The index in a store's own tables. Encodings that models compute on this machine
    /// are cached in a folder, or temporarily.
    pub(crate) fn in_postgres(store: &PostgresStore, folder: Option<PathBuf>) -> Arc<Self> {
        Self::new(
            IndexLocation::from_folder(folder),
            Some(store.clone()),
            false,
        )
    }

    /// The index of a store elsewhere, in a folder or temporary.
    pub(crate) fn in_folder(folder: Option<PathBuf>) -> Arc<Self> {
        Self::new(IndexLocation::from_folder(folder), None, false)
    }

    /// An index that lasts as long as the process.
    pub(crate) fn temporary() -> Arc<Self> {
        Self::in_folder(None)
    }

    fn new(folder: IndexLocation, postgres: Option<PostgresStore>, is_local: bool) -> Arc<Self> {
        Arc::new(Self {
            location: folder,
            postgres,
            open: Mutex::default(),
            last_search: Mutex::default(),
            project_sessions: Mutex::default(),
            background_tasks: Mutex::default(),
            is_indexing: AtomicBool::new(false),
            last_rebuild: Mutex::default(),
            verified: Mutex::default(),
            is_local,
        })
    }

    fn folder_path(&self) -> Result<PathBuf, Error> {
        match &self.location {
            IndexLocation::Persistent(path) => Ok(path.clone()),
            IndexLocation::Temporary(temp_dir) => {
                let mut temp_dir = temp_dir.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some(folder) = &*temp_dir {
                    return Ok(folder.path().to_owned());
                }
                let folder = private_files::temporary_folder("throughline-", None);
                let folder = folder.map_err(|source| RecallError::Io {
                    during: "creating a folder for it",
                    source,
                })?;
                Ok(temp_dir.insert(folder).path().to_owned())
            }
        }
    }

    /// Returns the hits of the same search, if the store has not changed since.
    fn cached_search(&self, query: &Query, at: Position) -> Option<CachedSearch> {
        let cached = self
            .last_search
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let is_same = |cached_search: &&CachedSearch| {
            cached_search.query == *query && cached_search.position == at
        };
        cached.as_ref().filter(is_same).cloned()
    }

    fn cache_search(&self, cached: CachedSearch) {
        *self
            .last_search
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = Some(cached);
    }

    /// Opens the index. One that has another version or is damaged is replaced by an
    /// empty one.
    fn open_index(&self) -> Result<OpenIndex, Error> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(index) = &*open {
            return Ok(index.clone());
        }
        let path = self.folder_path()?;
        let opened = match &self.postgres {
            Some(store) => OpenIndex::Tables(PostgresIndex::new(store, &path)),
            None => {
                let (index, error) = FolderIndex::open_or_rebuild(&path)?;
                // A rebuild after a version change is not reported.
                if error.is_some_and(|error| !matches!(error, RecallError::Stale { .. })) {
                    self.note_rebuild(IndexRebuild::Damaged);
                }
                OpenIndex::Folder(index)
            }
        };
        Ok(open.insert(opened).clone())
    }

    /// Opens the index without changing it; `None` if there is none yet, or only a
    /// temporary one.
    pub(crate) fn open_existing(&self) -> Result<Option<OpenIndex>, Error> {
        if let Some(store) = &self.postgres {
            let index = PostgresIndex::new(store, &self.folder_path()?);
            return match index.state() {
                Err(RecallError::Stale { .. }) => Ok(None),
                Err(error) => Err(error.into()),
                Ok(_) => Ok(Some(OpenIndex::Tables(index))),
            };
        }
        let IndexLocation::Persistent(folder) = &self.location else {
            return Ok(None);
        };
        Ok(FolderIndex::examine(folder)?.map(OpenIndex::Folder))
    }

    /// The index's folder, if it is beside the store's file.
    pub(crate) fn local_folder(&self) -> Option<PathBuf> {
        match &self.location {
            IndexLocation::Persistent(folder) if self.is_local => Some(folder.clone()),
            _ => None,
        }
    }

    /// Runs work on the index in the background. A failure is reported by the next
    /// update of the index.
    fn spawn_background(&self, work: impl FnOnce() + Send + 'static) {
        let Ok(runtime) = Handle::try_current() else {
            return work();
        };
        let mut tasks = self
            .background_tasks
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        tasks.retain(|work| !work.is_finished());
        tasks.push(runtime.spawn_blocking(work));
    }

    /// Waits for the background tasks.
    pub(crate) async fn wait_for_background(&self) {
        let next = || {
            let mut tasks = self
                .background_tasks
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            tasks.pop()
        };
        while let Some(work) = next() {
            unwrap_join(work.await);
        }
    }

    fn note_rebuild(&self, why: IndexRebuild) {
        *self
            .last_rebuild
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = Some(why);
    }

    /// Drops an unusable index, so that it is rebuilt from the beginning. If another
    /// process has replaced it meanwhile, it is only reopened. Blocking.
    fn discard(&self, why: IndexRebuild) -> Result<(), Error> {
        let open_index = {
            let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
            open.clone()
        };
        match open_index {
            Some(OpenIndex::Tables(index)) => index.clear()?,
            Some(OpenIndex::Folder(index)) => {
                index.discard()?;
                *self.open.lock().unwrap_or_else(PoisonError::into_inner) = None;
            }
            // Opening replaces an index that cannot be opened.
            None => return Ok(()),
        }
        self.set_verified(false);
        self.note_rebuild(why);
        Ok(())
    }

    /// Clears the index, so that it is rebuilt from the beginning. Blocking.
    fn clear(&self) -> Result<(), Error> {
        if self.postgres.is_some()
            && let OpenIndex::Tables(index) = self.open_index()?
        {
            return Ok(index.clear()?);
        }
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        *open = None;
        Ok(FolderIndex::clear(&self.folder_path()?)?)
    }
}

/// Runs blocking work on a thread for it, or in place if there is no runtime.
pub(crate) async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    match Handle::try_current() {
        Ok(runtime) => unwrap_join(runtime.spawn_blocking(work).await),
        Err(_) => work(),
    }
}

/// Runs blocking work on the index. A panic is reported as damage: the index library
/// panics only if it reads something that it did not write.
pub(crate) async fn run_index_task<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    let Ok(runtime) = Handle::try_current() else {
        return work();
    };
    match runtime.spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => {
            let panic = error.into_panic();
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
            let message = text.unwrap_or_else(|| "the engine panicked".to_owned());
            Err(RecallError::Crashed(message).into())
        }
    }
}

/// Whether an error means that the index must be rebuilt.
fn needs_rebuild(error: &Error) -> bool {
    matches!(error, Error::Recall(error) if error.kind() == ErrorKind::Rebuild)
}

/// Whether an error means that another process is working on the index.
fn is_busy(error: &Error) -> bool {
    matches!(error, Error::Recall(RecallError::Busy(_)))
}

fn unwrap_join<T>(result: Result<T, JoinError>) -> T {
    result.unwrap_or_else(|panicked| std::panic::resume_unwind(panicked.into_panic()))
}

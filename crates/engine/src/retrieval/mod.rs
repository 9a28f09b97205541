//! Finding what was ever said: the index beside the store or in it, kept up with it.
//!
//! The index is derived. It is opened when it is first needed, fed behind the appends by
//! whichever process is first to need it, and made anew when it is of another version
//! or damaged. What cannot be found because the index is behind is told, never hidden.

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

/// Where the index is.
#[derive(Debug)]
enum IndexLocation {
    /// Beside the store.
    Persistent(PathBuf),
    /// Nowhere yet: the store is in memory, and so the index goes with the program.
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

/// The index of a store, which may not be open yet.
#[derive(Debug)]
pub(crate) struct IndexHandle {
    location: IndexLocation,
    /// The store whose tables the index is in, where it is in the store.
    postgres: Option<PostgresStore>,
    open: Mutex<Option<OpenIndex>>,
    /// What was looked for last, and found: one message is answered from more than one
    /// request.
    last_search: Mutex<Option<CachedSearch>>,
    /// Which sessions the project that was asked about last has.
    project_sessions: Mutex<Option<project_sessions::ProjectSessions>>,
    /// What goes on behind requests.
    background_tasks: Mutex<Vec<JoinHandle<()>>>,
    /// Whether the index is being fed there.
    is_indexing: AtomicBool,
    /// Why the index was last rebuilt, until somebody was told.
    last_rebuild: Mutex<Option<IndexRebuild>>,
    /// Whether all of its anchors were found in the store.
    verified: Mutex<bool>,
    /// Whether it is beside a store's file, so that reading entries costs little.
    is_local: bool,
}

/// Why an index was rebuilt by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexRebuild {
    /// Its files could not be read.
    Damaged,
    /// It was made from entries that the store does not have, as after a backup is restored.
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

/// An index that is open.
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

/// What a search came to, when the store was at a position and the index at another.
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
            // Indexes of earlier versions were; what stays open is named by a check.
            let _ = private_files::restrict_all(&folder);
        }
        Self::new(IndexLocation::Persistent(folder), None, true)
    }

    /// The index in a store's own tables. What models make of passages on this machine is
    /// kept in a folder, or goes with the program.
    pub(crate) fn in_postgres(store: &PostgresStore, folder: Option<PathBuf>) -> Arc<Self> {
        Self::new(
            IndexLocation::from_folder(folder),
            Some(store.clone()),
            false,
        )
    }

    /// The index in a folder of its own, or none that lasts: the store is elsewhere.
    pub(crate) fn in_folder(folder: Option<PathBuf>) -> Arc<Self> {
        Self::new(IndexLocation::from_folder(folder), None, false)
    }

    /// An index that goes with the program.
    pub(crate) fn temporary() -> Arc<Self> {
        Self::in_folder(None)
    }

    fn new(folder: IndexLocation, within: Option<PostgresStore>, beside: bool) -> Arc<Self> {
        Arc::new(Self {
            location: folder,
            postgres: within,
            open: Mutex::default(),
            last_search: Mutex::default(),
            project_sessions: Mutex::default(),
            background_tasks: Mutex::default(),
            is_indexing: AtomicBool::new(false),
            last_rebuild: Mutex::default(),
            verified: Mutex::default(),
            is_local: beside,
        })
    }

    fn folder_path(&self) -> Result<PathBuf, Error> {
        match &self.location {
            IndexLocation::Persistent(path) => Ok(path.clone()),
            IndexLocation::Temporary(made) => {
                let mut made = made.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some(folder) = &*made {
                    return Ok(folder.path().to_owned());
                }
                let folder = private_files::temporary_folder("throughline-", None);
                let folder = folder.map_err(|source| RecallError::Io {
                    during: "making a folder for it",
                    source,
                })?;
                Ok(made.insert(folder).path().to_owned())
            }
        }
    }

    /// What the same search came to, if nothing has happened since.
    fn cached_search(&self, query: &Query, at: Position) -> Option<CachedSearch> {
        let lately = self
            .last_search
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let same = |one: &&CachedSearch| one.query == *query && one.position == at;
        lately.as_ref().filter(same).cloned()
    }

    fn cache_search(&self, lately: CachedSearch) {
        *self
            .last_search
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = Some(lately);
    }

    /// The index, opened; one of another version or damaged is made anew, and empty.
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
                // An index of another version is nothing to be told of.
                if error.is_some_and(|error| !matches!(error, RecallError::Stale { .. })) {
                    self.note_rebuild(IndexRebuild::Damaged);
                }
                OpenIndex::Folder(index)
            }
        };
        Ok(open.insert(opened).clone())
    }

    /// The index as it is; `None` where there is none yet, or where it only lasts as long as
    /// the program.
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

    /// The index's folder, where it lies beside the store's file.
    pub(crate) fn local_folder(&self) -> Option<PathBuf> {
        match &self.location {
            IndexLocation::Persistent(folder) if self.is_local => Some(folder.clone()),
            _ => None,
        }
    }

    /// Does something to the index that nobody waits for. Should it fail, whoever feeds the
    /// index next is told.
    fn spawn_background(&self, work: impl FnOnce() + Send + 'static) {
        let Ok(runtime) = Handle::try_current() else {
            return work();
        };
        let mut behind = self
            .background_tasks
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        behind.retain(|work| !work.is_finished());
        behind.push(runtime.spawn_blocking(work));
    }

    /// Waits for what goes on behind requests.
    pub(crate) async fn wait_for_background(&self) {
        let next = || {
            let mut behind = self
                .background_tasks
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            behind.pop()
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

    /// Drops an index that turned out to be unusable, so that it is fed from the beginning.
    /// One that another process replaced meanwhile is only opened again. Takes its time.
    fn discard(&self, why: IndexRebuild) -> Result<(), Error> {
        let known = {
            let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
            open.clone()
        };
        match known {
            Some(OpenIndex::Tables(index)) => index.clear()?,
            Some(OpenIndex::Folder(index)) => {
                index.discard()?;
                *self.open.lock().unwrap_or_else(PoisonError::into_inner) = None;
            }
            // Opening it replaces one that cannot be opened.
            None => return Ok(()),
        }
        self.set_verified(false);
        self.note_rebuild(why);
        Ok(())
    }

    /// Empties the index, so that it is fed from the beginning. Takes its time.
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

/// Does something that takes its time where that keeps nobody waiting; in place where there
/// is no runtime with threads for it.
pub(crate) async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    match Handle::try_current() {
        Ok(runtime) => unwrap_join(runtime.spawn_blocking(work).await),
        Err(_) => work(),
    }
}

/// Asks the index, where that keeps nobody waiting. An engine that panics on what it reads
/// has read something that it did not write.
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
            let what = text.unwrap_or_else(|| "the engine panicked".to_owned());
            Err(RecallError::Crashed(what).into())
        }
    }
}

/// Whether an error means that the index is to be rebuilt.
fn needs_rebuild(error: &Error) -> bool {
    matches!(error, Error::Recall(error) if error.kind() == ErrorKind::Rebuild)
}

/// Whether an error means that another process is at work on the index.
fn is_busy(error: &Error) -> bool {
    matches!(error, Error::Recall(RecallError::Busy(_)))
}

fn unwrap_join<T>(ended: Result<T, JoinError>) -> T {
    ended.unwrap_or_else(|panicked| std::panic::resume_unwind(panicked.into_panic()))
}

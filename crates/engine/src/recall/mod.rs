//! Finding what was ever said: the index beside the store or in it, kept up with it.
//!
//! The index is derived. It is opened when it is first needed, fed behind the appends by
//! whichever process is first to need it, and made anew when it is of another version
//! or damaged. What cannot be found because the index is behind is told, never hidden.

mod again;
mod embeddings;
mod excerpts;
mod feeding;
mod matching;
mod passages;
mod projects;
mod search;
mod within;

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

use throughline_postgres::{PostgresIndex, PostgresStore};
use throughline_recall::{ErrorKind, FolderIndex, Hit, Index, Query, RecallError, private};
use throughline_store::Position;
use tokio::runtime::Handle;
use tokio::task::{JoinError, JoinHandle};

use crate::Error;

pub use again::{Again, Within};
pub use embeddings::Embeddings;
pub(crate) use excerpts::MayLack;
pub use feeding::{Caught, Fed, Patience};
pub(crate) use passages::{Place, passage};
pub use search::{Searched, Searching};

/// Where the index is.
#[derive(Debug)]
enum Folder {
    /// Beside the store.
    Beside(PathBuf),
    /// Nowhere yet: the store is in memory, and so the index goes with the program.
    Passing(Mutex<Option<tempfile::TempDir>>),
}

impl Folder {
    fn of(folder: Option<PathBuf>) -> Self {
        match folder {
            Some(folder) => Self::Beside(folder),
            None => Self::Passing(Mutex::default()),
        }
    }
}

/// The index of a store, which may not be open yet.
#[derive(Debug)]
pub(crate) struct Shelf {
    folder: Folder,
    /// The store whose tables the index is in, where it is in the store.
    within: Option<PostgresStore>,
    open: Mutex<Option<OpenIndex>>,
    /// What was looked for last, and found: one message is answered from more than one
    /// request.
    lately: Mutex<Option<Lately>>,
    /// Which sessions the project that was asked about last has.
    members: Mutex<Option<projects::Members>>,
    /// What goes on behind requests.
    behind: Mutex<Vec<JoinHandle<()>>>,
    /// Whether the index is being fed there.
    feeding: AtomicBool,
    /// Why the index was last rebuilt, until somebody was told.
    rebuilt: Mutex<Option<IndexRebuild>>,
    /// Whether all of its anchors were found in the store.
    matched: Mutex<bool>,
    /// Whether it is beside a store's file, so that reading entries costs little.
    beside: bool,
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
    pub(crate) fn index(&self) -> &dyn Index {
        match self {
            Self::Folder(index) => index,
            Self::Tables(index) => index,
        }
    }
}

/// What a search came to, when the store was at a position and the index at another.
#[derive(Clone, Debug)]
struct Lately {
    query: Query,
    at: Position,
    watermark: Position,
    hits: Vec<Hit>,
}

impl Shelf {
    /// The index beside a store's file: `sessions.db` has `sessions.index`.
    pub(crate) fn beside(store: &std::path::Path) -> Arc<Self> {
        let folder = store.with_extension("index");
        if private::is_open_to_others(&folder) {
            // Indexes of earlier versions were; what stays open is named by a check.
            let _ = private::restrict_all(&folder);
        }
        Self::at(Folder::Beside(folder), None, true)
    }

    /// The index in a store's own tables. What models make of passages on this machine is
    /// kept in a folder, or goes with the program.
    pub(crate) fn within(store: &PostgresStore, folder: Option<PathBuf>) -> Arc<Self> {
        Self::at(Folder::of(folder), Some(store.clone()), false)
    }

    /// The index in a folder of its own, or none that lasts: the store is elsewhere.
    pub(crate) fn apart(folder: Option<PathBuf>) -> Arc<Self> {
        Self::at(Folder::of(folder), None, false)
    }

    /// An index that goes with the program.
    pub(crate) fn passing() -> Arc<Self> {
        Self::apart(None)
    }

    fn at(folder: Folder, within: Option<PostgresStore>, beside: bool) -> Arc<Self> {
        Arc::new(Self {
            folder,
            within,
            open: Mutex::default(),
            lately: Mutex::default(),
            members: Mutex::default(),
            behind: Mutex::default(),
            feeding: AtomicBool::new(false),
            rebuilt: Mutex::default(),
            matched: Mutex::default(),
            beside,
        })
    }

    fn path(&self) -> Result<PathBuf, Error> {
        match &self.folder {
            Folder::Beside(path) => Ok(path.clone()),
            Folder::Passing(made) => {
                let mut made = made.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some(folder) = &*made {
                    return Ok(folder.path().to_owned());
                }
                let folder = private::temporary_folder("throughline-", None);
                let folder = folder.map_err(|source| RecallError::Io {
                    during: "making a folder for it",
                    source,
                })?;
                Ok(made.insert(folder).path().to_owned())
            }
        }
    }

    /// What the same search came to, if nothing has happened since.
    fn lately(&self, query: &Query, at: Position) -> Option<Lately> {
        let lately = self.lately.lock().unwrap_or_else(PoisonError::into_inner);
        let same = |one: &&Lately| one.query == *query && one.at == at;
        lately.as_ref().filter(same).cloned()
    }

    fn remember(&self, lately: Lately) {
        *self.lately.lock().unwrap_or_else(PoisonError::into_inner) = Some(lately);
    }

    /// The index, opened; one of another version or damaged is made anew, and empty.
    fn index(&self) -> Result<OpenIndex, Error> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(index) = &*open {
            return Ok(index.clone());
        }
        let path = self.path()?;
        let opened = match &self.within {
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
    pub(crate) fn examine(&self) -> Result<Option<OpenIndex>, Error> {
        if let Some(store) = &self.within {
            let index = PostgresIndex::new(store, &self.path()?);
            return match index.state() {
                Err(RecallError::Stale { .. }) => Ok(None),
                Err(error) => Err(error.into()),
                Ok(_) => Ok(Some(OpenIndex::Tables(index))),
            };
        }
        let Folder::Beside(folder) = &self.folder else {
            return Ok(None);
        };
        Ok(FolderIndex::examine(folder)?.map(OpenIndex::Folder))
    }

    /// The index's folder, where it lies beside the store's file.
    pub(crate) fn folder_beside(&self) -> Option<PathBuf> {
        match &self.folder {
            Folder::Beside(folder) if self.beside => Some(folder.clone()),
            _ => None,
        }
    }

    /// Does something to the index that nobody waits for. Should it fail, whoever feeds the
    /// index next is told.
    fn behind(&self, work: impl FnOnce() + Send + 'static) {
        let Ok(runtime) = Handle::try_current() else {
            return work();
        };
        let mut behind = self.behind.lock().unwrap_or_else(PoisonError::into_inner);
        behind.retain(|work| !work.is_finished());
        behind.push(runtime.spawn_blocking(work));
    }

    /// Waits for what goes on behind requests.
    pub(crate) async fn settled(&self) {
        let next = || {
            let mut behind = self.behind.lock().unwrap_or_else(PoisonError::into_inner);
            behind.pop()
        };
        while let Some(work) = next() {
            joined(work.await);
        }
    }

    fn note_rebuild(&self, why: IndexRebuild) {
        *self.rebuilt.lock().unwrap_or_else(PoisonError::into_inner) = Some(why);
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
        self.set_matched(false);
        self.note_rebuild(why);
        Ok(())
    }

    /// Empties the index, so that it is fed from the beginning. Takes its time.
    fn clear(&self) -> Result<(), Error> {
        if self.within.is_some()
            && let OpenIndex::Tables(index) = self.index()?
        {
            return Ok(index.clear()?);
        }
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        *open = None;
        Ok(FolderIndex::clear(&self.path()?)?)
    }
}

/// Does something that takes its time where that keeps nobody waiting; in place where there
/// is no runtime with threads for it.
pub(crate) async fn aside<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    match Handle::try_current() {
        Ok(runtime) => joined(runtime.spawn_blocking(work).await),
        Err(_) => work(),
    }
}

/// Asks the index, where that keeps nobody waiting. An engine that panics on what it reads
/// has read something that it did not write.
pub(crate) async fn ask_index<T: Send + 'static>(
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

fn joined<T>(ended: Result<T, JoinError>) -> T {
    ended.unwrap_or_else(|panicked| std::panic::resume_unwind(panicked.into_panic()))
}

//! Finding what was ever said: the index beside the store, kept up with it.
//!
//! The index is derived. It is opened when it is first needed, fed behind the appends by
//! whichever process is first to need it, and made anew when it is of another version
//! or damaged. What cannot be found because the index is behind is told, never hidden.

mod again;
mod embeddings;
mod excerpts;
mod feeding;
mod passages;
mod projects;
mod search;
mod within;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use throughline_recall::{ErrorKind, Feeder, Hit, Index, Query, RecallError};
use throughline_store::Position;
use tokio::task::{JoinError, JoinHandle};

use crate::Error;

pub use again::{Again, Within};
pub use embeddings::Embeddings;
pub use feeding::{Caught, Fed, Patience};
pub use search::{Searched, Searching};

/// Where the index is.
#[derive(Debug)]
enum Folder {
    /// Beside the store.
    Beside(PathBuf),
    /// Nowhere yet: the store is in memory, and so the index goes with the program.
    Passing(Mutex<Option<tempfile::TempDir>>),
}

/// The index of a store, which may not be open yet.
#[derive(Debug)]
pub(crate) struct Shelf {
    folder: Folder,
    open: Mutex<Option<Index>>,
    /// What was looked for last, at which watermark, and found: one message is answered
    /// from more than one request.
    lately: Mutex<Option<Lately>>,
    /// Which sessions the project that was asked about last has.
    members: Mutex<Option<projects::Members>>,
    /// A feeder that is done but for files it merges.
    finishing: tokio::sync::Mutex<Option<JoinHandle<Result<(), RecallError>>>>,
}

/// What a search came to.
#[derive(Debug)]
struct Lately {
    query: Query,
    at: Position,
    hits: Vec<Hit>,
}

impl Shelf {
    /// The index beside a store's file: `sessions.db` has `sessions.index`.
    pub(crate) fn beside(store: &std::path::Path) -> Arc<Self> {
        Self::at(Folder::Beside(store.with_extension("index")))
    }

    /// The index in a folder of its own: the store is elsewhere.
    pub(crate) fn within(folder: PathBuf) -> Arc<Self> {
        Self::at(Folder::Beside(folder))
    }

    /// An index that goes with the program.
    pub(crate) fn passing() -> Arc<Self> {
        Self::at(Folder::Passing(Mutex::default()))
    }

    fn at(folder: Folder) -> Arc<Self> {
        Arc::new(Self {
            folder,
            open: Mutex::default(),
            lately: Mutex::default(),
            members: Mutex::default(),
            finishing: tokio::sync::Mutex::default(),
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
                let folder = tempfile::tempdir().map_err(|source| RecallError::Io {
                    during: "making a folder for it",
                    source,
                })?;
                Ok(made.insert(folder).path().to_owned())
            }
        }
    }

    /// What the same search came to, if nothing has happened since.
    fn lately(&self, query: &Query, at: Position) -> Option<Vec<Hit>> {
        let lately = self.lately.lock().unwrap_or_else(PoisonError::into_inner);
        let same = |one: &&Lately| one.query == *query && one.at == at;
        lately.as_ref().filter(same).map(|one| one.hits.clone())
    }

    fn remember(&self, lately: Lately) {
        *self.lately.lock().unwrap_or_else(PoisonError::into_inner) = Some(lately);
    }

    /// The index, opened; one of another version or damaged is made anew, and empty.
    fn index(&self) -> Result<Index, Error> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(index) = &*open {
            return Ok(index.clone());
        }
        let path = self.path()?;
        let index = match Index::open(&path) {
            Err(error) if error.kind() == ErrorKind::Rebuild => {
                Index::clear(&path)?;
                Index::open(&path)?
            }
            opened => opened?,
        };
        Ok(open.insert(index).clone())
    }

    /// Lets a feeder merge its files while nobody waits: until then they are read as they
    /// were.
    async fn let_finish(&self, feeder: Feeder) {
        let finishing = tokio::task::spawn_blocking(move || feeder.finish());
        *self.finishing.lock().await = Some(finishing);
    }

    /// Waits for a feeder that is still merging.
    pub(crate) async fn finished(&self) -> Result<(), Error> {
        match self.finishing.lock().await.take() {
            Some(finishing) => Ok(joined(finishing.await)?),
            None => Ok(()),
        }
    }

    /// Empties the index, so that it is fed from the beginning.
    async fn clear(&self) -> Result<(), Error> {
        self.finished().await?;
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        *open = None;
        Ok(Index::clear(&self.path()?)?)
    }
}

/// Does something that takes its time where that keeps nobody waiting.
async fn aside<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    joined(tokio::task::spawn_blocking(work).await)
}

fn joined<T>(ended: Result<T, JoinError>) -> T {
    ended.unwrap_or_else(|panicked| std::panic::resume_unwind(panicked.into_panic()))
}

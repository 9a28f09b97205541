//! The index in a folder that one process feeds and any number read.
//!
//! In the folder are `about.json`, which says what the index was made with, the files of
//! the full-text engine under `text/`, what models made of passages under `encoded/`,
//! `verified.json`, which lists the files whose checksums were compared, and
//! `feeding.lock`, held by whoever feeds.
//!
//! Invariant: what a reader sees is one commit, whole; the watermark is part of it.

mod directory;
mod filter;
mod leftovers;
mod scan;
mod schema;
mod sight;
mod stock;
mod text;
mod typing;
mod vectors;
mod verify;

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use tantivy::directory::error::OpenReadError;
use tantivy::{IndexReader, ReloadPolicy, Searcher, TantivyError};
use throughline_model::Digest;

use crate::encoded::{self, Encoded, Encodings};
use crate::error::During as _;
use crate::model::DIGEST;
use crate::prepared::{PREPARED, PreparedTokenizer};
use crate::private;
use crate::{ErrorKind, Feeder, Index, IndexState, Passage, RecallError, Scope, Sight};
use directory::CheckedDirectory;
use filter::Filter;
use schema::{Fields, schema};
use sight::FolderSight;
use stock::FolderStock;
use vectors::{VectorPlugin, Vectors};

/// Raised whenever an index made before would be read wrongly.
const FORMAT: u32 = 2;

/// An index in a folder, open. Cheap to clone.
#[derive(Clone)]
pub struct FolderIndex(Arc<Open>);

struct Open {
    folder: PathBuf,
    /// The file that was there when it was opened; an index that was rebuilt has another.
    made: Option<Mark>,
    engine: tantivy::Index,
    fields: Fields,
    reader: IndexReader,
    seen: Mutex<Seen>,
    encodings: Encodings,
}

/// The commit that is being read, and the file it was read from.
#[derive(Clone, Default)]
struct Seen {
    mark: Option<Mark>,
    state: IndexState,
    vectors: Arc<[Vectors]>,
}

/// One commit.
struct View {
    searcher: Searcher,
    fields: Fields,
    /// Those of each segment.
    vectors: Arc<[Vectors]>,
    state: IndexState,
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct About {
    format: u32,
    model: String,
}

impl About {
    fn needed() -> Self {
        Self {
            format: FORMAT,
            model: DIGEST.to_owned(),
        }
    }
}

impl std::fmt::Display for About {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let model: String = self.model.chars().take(12).collect();
        write!(f, "with format {} and model {model}", self.format)
    }
}

impl FolderIndex {
    /// Opens the index in a folder, making an empty one where there is none.
    ///
    /// Fails with [`RecallError::Stale`] if it was made by another version or model, and
    /// with [`RecallError::Damaged`] if it cannot be read: see
    /// [`FolderIndex::open_or_rebuild`].
    pub fn open(folder: &Path) -> Result<Self, RecallError> {
        private::create_folder(folder).during("making its folder")?;
        if !folder.join("about.json").exists() {
            // Whoever gets here first makes it; the others wait.
            let lock = lock_file(folder)?;
            lock.lock().during("waiting to make the index")?;
            if !folder.join("about.json").exists() {
                make(folder)?;
            }
        }
        Self::open_made(folder)
    }

    /// Opens the index in a folder; one that is of another version or damaged is replaced by
    /// an empty one, to be fed from the beginning. Tells what was wrong with it.
    ///
    /// Fails with [`RecallError::Busy`] if it has to be replaced while another process
    /// feeds it.
    pub fn open_or_rebuild(folder: &Path) -> Result<(Self, Option<RecallError>), RecallError> {
        match Self::open(folder) {
            Err(error) if error.kind() == ErrorKind::Rebuild => {}
            opened => return Ok((opened?, None)),
        }
        let Some(_lock) = try_lock(folder)? else {
            return Err(RecallError::Busy(folder.to_owned()));
        };
        // Again, now that nobody else is at it: another process may have replaced it.
        match Self::open_made(folder) {
            Err(error) if error.kind() == ErrorKind::Rebuild => {
                delete(folder)?;
                make(folder)?;
                Ok((Self::open_made(folder)?, Some(error)))
            }
            opened => Ok((opened?, None)),
        }
    }

    fn open_made(folder: &Path) -> Result<Self, RecallError> {
        let damaged = |source| RecallError::Damaged {
            folder: folder.to_owned(),
            source,
        };
        let about = folder.join("about.json");
        let made = Mark::of(&about);
        match fs::read(&about) {
            Ok(bytes) => match serde_json::from_slice::<About>(&bytes) {
                Ok(made) if made == About::needed() => {}
                Ok(made) => {
                    return Err(RecallError::Stale {
                        place: folder.display().to_string(),
                        made: made.to_string(),
                        needed: About::needed().to_string(),
                    });
                }
                Err(error) => return Err(error.into()),
            },
            Err(error) => return Err(damaged(error.into())),
        }
        // Indexes of earlier versions were open to others.
        private::restrict_all(folder).during("restricting its permissions")?;
        let (engine, fields) = open_engine(folder).map_err(damaged)?;
        verify::verify(folder, &engine, verify::Scope::Changed).map_err(damaged)?;
        let reader = engine
            .reader_builder()
            .reload_policy(ReloadPolicy::Manual)
            .doc_store_cache_num_blocks(200)
            .try_into()
            .map_err(damaged)?;
        let index = Self(Arc::new(Open {
            folder: folder.to_owned(),
            made,
            engine,
            fields,
            reader,
            seen: Mutex::default(),
            encodings: Encodings::within(folder),
        }));
        index.view()?;
        Ok(index)
    }

    /// Deletes everything in an index's folder, so that it can be fed from the beginning.
    ///
    /// Fails with [`RecallError::Busy`] while another process feeds it. Indexes that are
    /// open in other processes go on reading what was there until they are opened again.
    pub fn clear(folder: &Path) -> Result<(), RecallError> {
        if !folder.exists() {
            return Ok(());
        }
        let Some(_lock) = try_lock(folder)? else {
            return Err(RecallError::Busy(folder.to_owned()));
        };
        delete(folder)
    }

    /// Deletes this index, unless another process has replaced it since it was opened.
    ///
    /// Fails with [`RecallError::Busy`] while another process feeds it.
    pub fn discard(&self) -> Result<(), RecallError> {
        let folder = &self.0.folder;
        let Some(_lock) = try_lock(folder)? else {
            return Err(RecallError::Busy(folder.clone()));
        };
        if Mark::of(&folder.join("about.json")) == self.0.made {
            delete(folder)?;
        }
        Ok(())
    }

    /// Compares every file with its checksum, whether it was compared before or not.
    pub fn verify(&self) -> Result<(), RecallError> {
        let folder = &self.0.folder;
        verify::verify(folder, &self.0.engine, verify::Scope::All).map_err(|source| {
            RecallError::Damaged {
                folder: folder.clone(),
                source,
            }
        })
    }

    /// Opens the index in a folder as it is, to be examined; `None` where there is none yet
    /// or it is of another version, which are no faults: it is made anew when it is needed.
    ///
    /// Fails with [`RecallError::Damaged`] if it cannot be read.
    pub fn examine(folder: &Path) -> Result<Option<Self>, RecallError> {
        if !folder.join("about.json").exists() {
            return Ok(None);
        }
        match Self::open_made(folder) {
            Err(RecallError::Stale { .. }) => Ok(None),
            opened => opened.map(Some),
        }
    }

    /// The files in the folder that belong to nothing; `None` while it is being fed.
    pub fn leftovers(&self) -> Result<Option<Vec<PathBuf>>, RecallError> {
        let Some(_lock) = try_lock(&self.0.folder)? else {
            return Ok(None);
        };
        leftovers::find(&self.0.folder, &self.0.engine).map(Some)
    }

    fn engine(&self) -> &tantivy::Index {
        &self.0.engine
    }

    /// The newest commit, whoever made it.
    fn view(&self) -> Result<View, RecallError> {
        let Open {
            folder,
            engine,
            fields,
            reader,
            seen,
            ..
        } = &*self.0;
        let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let mark = Mark::of(&folder.join("text/meta.json"));
            if mark.is_some() && seen.mark == mark {
                break;
            }
            // The watermark first: should a commit come between, it is behind what is
            // seen, and never ahead of it.
            let meta = engine.load_metas().during("reading the last commit")?;
            let state = match meta.payload.as_deref() {
                Some(payload) => serde_json::from_str(payload)?,
                None => IndexState::default(),
            };
            reader.reload().during("opening the last commit")?;
            let searcher = reader.searcher();
            let vectors = searcher.segment_readers().iter().map(Vectors::of);
            match vectors.collect() {
                Ok(vectors) => {
                    *seen = Seen {
                        mark,
                        state,
                        vectors,
                    };
                    break;
                }
                // The engine's lock protects its own files while it opens them, not the vectors:
                // another process may have merged the segment and removed them. It has then
                // committed, and that commit is opened instead.
                Err(error)
                    if is_missing_file(&error)
                        && Mark::of(&folder.join("text/meta.json")) != mark => {}
                Err(error) => return Err(error).during("opening the last commit"),
            }
        }
        Ok(View {
            searcher: reader.searcher(),
            fields: *fields,
            vectors: Arc::clone(&seen.vectors),
            state: seen.state.clone(),
        })
    }
}

impl Index for FolderIndex {
    fn feeder(&self) -> Result<Option<Feeder>, RecallError> {
        let Some(lock) = try_lock(&self.0.folder)? else {
            return Ok(None);
        };
        leftovers::remove(&self.0.folder, &self.0.engine)?;
        Ok(Some(Feeder::new(FolderStock::new(self.clone(), lock)?)))
    }

    fn state(&self) -> Result<IndexState, RecallError> {
        Ok(self.view()?.state)
    }

    fn passages(&self) -> Result<u64, RecallError> {
        Ok(self.view()?.searcher.num_docs())
    }

    fn scan(&self, each: &mut dyn FnMut(Passage)) -> Result<IndexState, RecallError> {
        let view = self.view()?;
        let upto = view.state.upto;
        sight::scan(&view, &mut |passage| {
            if passage.position <= upto {
                each(passage);
            }
        })?;
        Ok(view.state)
    }

    fn sight(&self, scope: &Scope, phrases: &[String]) -> Result<Box<dyn Sight + '_>, RecallError> {
        let view = self.view()?;
        let filter = Filter::new(&view, scope, phrases)?;
        Ok(Box::new(FolderSight { view, filter }))
    }

    fn encoded(&self, model: &Digest) -> Result<Arc<Encoded>, RecallError> {
        Ok(self.0.encodings.of(model))
    }
}

impl std::fmt::Debug for FolderIndex {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("FolderIndex").field(&self.0.folder).finish()
    }
}

/// What a file that is replaced and never written to looks like from outside: it differs
/// after every replacement.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Mark {
    written: std::time::SystemTime,
    length: u64,
    file: u64,
}

impl Mark {
    fn of(path: &Path) -> Option<Self> {
        let meta = fs::metadata(path).ok()?;
        #[cfg(unix)]
        let file = std::os::unix::fs::MetadataExt::ino(&meta);
        #[cfg(not(unix))]
        let file = 0;
        Some(Self {
            written: meta.modified().ok()?,
            length: meta.len(),
            file,
        })
    }
}

fn make(folder: &Path) -> Result<(), RecallError> {
    let during = "making the index";
    let text = folder.join("text");
    // What a crash left of an earlier attempt.
    if text.is_dir() {
        fs::remove_dir_all(&text).during(during)?;
    } else if text.exists() {
        fs::remove_file(&text).during(during)?;
    }
    private::create_folder(&text).during(during)?;
    let (schema, _) = schema();
    tantivy::Index::builder()
        .schema(schema)
        .register_plugin(Arc::new(VectorPlugin))
        .open_or_create(CheckedDirectory::open(&text).during(during)?)
        .during(during)?;
    // Last, and at once: an index with it is complete.
    let about = serde_json::to_vec(&About::needed())?;
    let mut file = tempfile::NamedTempFile::new_in(folder).during(during)?;
    file.write_all(&about).during(during)?;
    file.as_file().sync_all().during(during)?;
    let persisted = file.persist(folder.join("about.json"));
    persisted.map_err(|error| error.error).during(during)?;
    Ok(())
}

/// Deletes what an index consists of, first of all what says that it is complete. Files
/// that nobody here made stay.
fn delete(folder: &Path) -> Result<(), RecallError> {
    for name in [
        "about.json",
        "about.json.new",
        "verified.json",
        "text",
        encoded::FOLDER,
    ] {
        let file = folder.join(name);
        let deleted = if file.is_dir() {
            fs::remove_dir_all(&file)
        } else {
            fs::remove_file(&file)
        };
        match deleted {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(error).during("deleting the index");
            }
            _ => {}
        }
    }
    Ok(())
}

fn open_engine(folder: &Path) -> tantivy::Result<(tantivy::Index, Fields)> {
    let (schema, fields) = schema();
    let directory = CheckedDirectory::open(&folder.join("text"))?;
    let mut engine = tantivy::Index::open(directory)?;
    if engine.schema() != schema {
        let what = "its fields are others".to_owned();
        return Err(TantivyError::SchemaError(what));
    }
    engine.register_plugin(Arc::new(VectorPlugin));
    let prepared = PreparedTokenizer::default();
    engine.tokenizers().register(PREPARED, prepared);
    Ok((engine, fields))
}

fn is_missing_file(error: &TantivyError) -> bool {
    matches!(
        error,
        TantivyError::OpenReadError(OpenReadError::FileDoesNotExist(_))
    )
}

fn lock_file(folder: &Path) -> Result<File, RecallError> {
    private::file_options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(folder.join("feeding.lock"))
        .during("opening its lock")
}

fn try_lock(folder: &Path) -> Result<Option<File>, RecallError> {
    let file = lock_file(folder)?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(fs::TryLockError::WouldBlock) => Ok(None),
        Err(fs::TryLockError::Error(error)) => Err(error).during("taking its lock"),
    }
}

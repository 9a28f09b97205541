//! The index: a folder that one process feeds and any number read.
//!
//! In the folder are `about.json`, which says what the index was made with, the files of
//! the full-text engine under `text/`, what models made of passages under `encoded/`, and
//! `feeding.lock`, held by whoever feeds.
//!
//! Invariant: what a reader sees is one commit, whole; the watermark is part of it.

use std::collections::HashMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tantivy::directory::MmapDirectory;
use tantivy::{IndexReader, ReloadPolicy, Searcher};
use throughline_model::Digest;

use crate::compare::Again;
use crate::encoded::{self, Encoded};
use crate::error::During as _;
use crate::feeder::Feeder;
use crate::model::DIGEST;
use crate::prepared::{PREPARED, PreparedTokenizer};
use crate::schema::{Fields, schema};
use crate::search;
use crate::vectors::{VectorPlugin, Vectors};
use crate::{Compare, Found, Query, RecallError};

/// Raised whenever an index made before would be read wrongly.
const FORMAT: u32 = 1;

/// An index, open. Cheap to clone.
#[derive(Clone)]
pub struct Index(Arc<Open>);

struct Open {
    folder: PathBuf,
    engine: tantivy::Index,
    fields: Fields,
    reader: IndexReader,
    seen: Mutex<Seen>,
    encoded: Mutex<HashMap<Digest, Arc<Encoded>>>,
}

/// The commit that is being read, and the file it was read from.
#[derive(Clone, Default)]
struct Seen {
    mark: Option<Mark>,
    commit: Commit,
    vectors: Arc<[Vectors]>,
}

/// What a commit says besides its documents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Commit {
    /// The position up to which the store is in the index.
    pub(crate) upto: u64,
}

/// One commit, as a search sees it.
pub(crate) struct View {
    pub(crate) searcher: Searcher,
    pub(crate) fields: Fields,
    /// Those of each segment.
    pub(crate) vectors: Arc<[Vectors]>,
    pub(crate) watermark: u64,
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

impl Index {
    /// Opens the index in a folder, making an empty one where there is none.
    ///
    /// Fails with [`RecallError::Stale`] if it was made by another version or model, and
    /// with [`RecallError::Damaged`] if it cannot be read: [`Index::clear`] it then, open
    /// it again, and feed it from the beginning.
    pub fn open(folder: &Path) -> Result<Self, RecallError> {
        fs::create_dir_all(folder).during("making its folder")?;
        let about = folder.join("about.json");
        if !about.exists() {
            // Whoever gets here first makes it; the others wait.
            let lock = lock_file(folder)?;
            lock.lock().during("waiting to make the index")?;
            if !about.exists() {
                make(folder)?;
            }
        }
        let made = fs::read(&about).during("reading what made the index")?;
        match serde_json::from_slice::<About>(&made) {
            Ok(made) if made == About::needed() => {}
            Ok(made) => {
                return Err(RecallError::Stale {
                    folder: folder.to_owned(),
                    made: made.to_string(),
                    needed: About::needed().to_string(),
                });
            }
            Err(error) => return Err(error.into()),
        }
        let damaged = |source| RecallError::Damaged {
            folder: folder.to_owned(),
            source,
        };
        let (engine, fields) = open_engine(folder).map_err(damaged)?;
        let reader = engine
            .reader_builder()
            .reload_policy(ReloadPolicy::Manual)
            .doc_store_cache_num_blocks(200)
            .try_into()
            .map_err(damaged)?;
        let index = Self(Arc::new(Open {
            folder: folder.to_owned(),
            engine,
            fields,
            reader,
            seen: Mutex::default(),
            encoded: Mutex::default(),
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
        let during = "deleting the index";
        for name in ["about.json", "text", encoded::FOLDER] {
            let file = folder.join(name);
            let deleted = if file.is_dir() {
                fs::remove_dir_all(&file)
            } else {
                fs::remove_file(&file)
            };
            match deleted {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(error).during(during);
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The one writer of the index, or `None` while another has it.
    pub fn feeder(&self) -> Result<Option<Feeder>, RecallError> {
        match try_lock(&self.0.folder)? {
            Some(lock) => Feeder::new(self.clone(), lock).map(Some),
            None => Ok(None),
        }
    }

    /// The position up to which the store is in the index.
    pub fn watermark(&self) -> Result<u64, RecallError> {
        Ok(self.view()?.watermark)
    }

    /// How many passages are in the index, of all owners.
    pub fn passages(&self) -> Result<u64, RecallError> {
        Ok(self.view()?.searcher.num_docs())
    }

    /// Looks for something.
    pub fn search(&self, query: &Query) -> Result<Found, RecallError> {
        search::search(&self.view()?, query, None)
    }

    /// Looks for something, and lets a model compare the first hits again for as long as
    /// `within` allows. If it fails, the hits are as without it, and it is told why.
    pub fn search_again(
        &self,
        query: &Query,
        by: &dyn Compare,
        within: Duration,
    ) -> Result<Found, RecallError> {
        let again = Again {
            by,
            kept: &self.encoded(&by.digest()),
            owner: &query.scope.owner,
            within,
        };
        search::search(&self.view()?, query, Some(&again))
    }

    /// What a model made of passages.
    fn encoded(&self, model: &Digest) -> Arc<Encoded> {
        let all = self.0.encoded.lock();
        let mut all = all.unwrap_or_else(PoisonError::into_inner);
        let known = all.entry(*model);
        let new = || Arc::new(Encoded::new(&self.0.folder, model));
        Arc::clone(known.or_insert_with(new))
    }

    /// Deletes what models made of passages: of what is gone, nothing may stay.
    pub(crate) fn forget_encoded(&self) -> Result<(), RecallError> {
        match fs::remove_dir_all(self.0.folder.join(encoded::FOLDER)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(error).during("deleting what models made of passages")
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn engine(&self) -> &tantivy::Index {
        &self.0.engine
    }

    /// The newest commit, whoever made it.
    pub(crate) fn view(&self) -> Result<View, RecallError> {
        let Open {
            folder,
            engine,
            fields,
            reader,
            seen,
            ..
        } = &*self.0;
        let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
        let mark = Mark::of(folder);
        if mark.is_none() || seen.mark != mark {
            // The watermark first: should a commit come between, it is behind what is
            // seen, and never ahead of it.
            let meta = engine.load_metas().during("reading the last commit")?;
            let commit = match meta.payload.as_deref() {
                Some(payload) => serde_json::from_str(payload)?,
                None => Commit::default(),
            };
            reader.reload().during("opening the last commit")?;
            let searcher = reader.searcher();
            let vectors = searcher.segment_readers().iter().map(Vectors::of);
            let vectors: Result<_, _> = vectors.collect();
            *seen = Seen {
                mark,
                commit,
                vectors: vectors.during("opening the last commit")?,
            };
        }
        Ok(View {
            searcher: reader.searcher(),
            fields: *fields,
            vectors: Arc::clone(&seen.vectors),
            watermark: seen.commit.upto,
        })
    }
}

impl std::fmt::Debug for Index {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Index").field(&self.0.folder).finish()
    }
}

/// What the engine's list of files looks like from outside: it is replaced, never
/// written to, and so differs after every commit.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Mark {
    written: std::time::SystemTime,
    length: u64,
    file: u64,
}

impl Mark {
    fn of(folder: &Path) -> Option<Self> {
        let meta = fs::metadata(folder.join("text/meta.json")).ok()?;
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
    if text.exists() {
        fs::remove_dir_all(&text).during(during)?;
    }
    fs::create_dir(&text).during(during)?;
    let (schema, _) = schema();
    tantivy::Index::builder()
        .schema(schema)
        .register_plugin(Arc::new(VectorPlugin))
        .create_in_dir(&text)
        .during(during)?;
    // Last, and at once: an index with it is complete.
    let about = serde_json::to_vec(&About::needed())?;
    let unfinished = folder.join("about.json.new");
    fs::write(&unfinished, about).during(during)?;
    fs::rename(&unfinished, folder.join("about.json")).during(during)
}

fn open_engine(folder: &Path) -> tantivy::Result<(tantivy::Index, Fields)> {
    let (schema, fields) = schema();
    let directory = MmapDirectory::open(folder.join("text"))?;
    let mut engine = tantivy::Index::open(directory)?;
    if engine.schema() != schema {
        let what = "its fields are others".to_owned();
        return Err(tantivy::TantivyError::SchemaError(what));
    }
    engine.register_plugin(Arc::new(VectorPlugin));
    let prepared = PreparedTokenizer::default();
    engine.tokenizers().register(PREPARED, prepared);
    Ok((engine, fields))
}

fn lock_file(folder: &Path) -> Result<File, RecallError> {
    File::options()
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

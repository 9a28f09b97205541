//! A search index in a folder, written by one process and read by any number.
//!
//! The folder contains `about.json`, which records the format and model of the index; the
//! files of the full-text engine under `text/`; cached model encodings under `encoded/`;
//! `verified.json`, which lists the files whose checksums were verified; and `feeding.lock`,
//! held by the indexing process.
//!
//! Invariant: a reader sees one complete commit; the watermark is part of it.

mod bm25;
mod directory;
mod doc_filter;
mod folder_reader;
mod folder_writer;
mod leftovers;
mod schema;
mod term_lookup;
mod vector_scan;
mod vectors;
mod verify;

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use tantivy::directory::error::OpenReadError;
use tantivy::{ReloadPolicy, Searcher, TantivyError};
use throughline_model::Digest;

use crate::analysis::{PRETOKENIZED, PretokenizedTokenizer};
use crate::encoding_cache::{self, EncodingCache, EncodingCaches};
use crate::error::ErrorContext as _;
use crate::private_files;
use crate::static_model::DIGEST;
use crate::{ErrorKind, Index, IndexReader, IndexState, Indexer, Passage, RecallError, Scope};
use directory::ChecksummedDirectory;
use doc_filter::DocFilter;
use folder_reader::FolderIndexReader;
use folder_writer::FolderIndexWriter;
use schema::{Fields, schema};
use vectors::{SegmentVectors, VectorPlugin};

/// The format version; raised whenever older indexes would be read incorrectly.
const FORMAT: u32 = 2;

/// An open index in a folder. Cheap to clone.
#[derive(Clone)]
pub struct FolderIndex(Arc<OpenIndex>);

struct OpenIndex {
    folder: PathBuf,
    /// The identity of the manifest when the index was opened; a rebuilt index has another.
    manifest_identity: Option<FileIdentity>,
    engine: tantivy::Index,
    fields: Fields,
    reader: tantivy::IndexReader,
    loaded: Mutex<LoadedCommit>,
    encodings: EncodingCaches,
}

/// The commit being read, and the identity of the file it was read from.
#[derive(Clone, Default)]
struct LoadedCommit {
    identity: Option<FileIdentity>,
    state: IndexState,
    vectors: Arc<[SegmentVectors]>,
}

/// One commit of the index.
struct CommitView {
    searcher: Searcher,
    fields: Fields,
    /// The vectors of each segment.
    vectors: Arc<[SegmentVectors]>,
    state: IndexState,
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct IndexManifest {
    format: u32,
    model: String,
}

impl IndexManifest {
    fn expected() -> Self {
        Self {
            format: FORMAT,
            model: DIGEST.to_owned(),
        }
    }
}

impl std::fmt::Display for IndexManifest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let model: String = self.model.chars().take(12).collect();
        write!(f, "with format {} and model {model}", self.format)
    }
}

impl FolderIndex {
    /// Opens the index in a folder, creating an empty one if there is none.
    ///
    /// Fails with [`RecallError::Stale`] if it was built by another version or model, and with
    /// [`RecallError::Damaged`] if it cannot be read: see [`FolderIndex::open_or_rebuild`].
    pub fn open(folder: &Path) -> Result<Self, RecallError> {
        private_files::create_folder(folder).during("creating the index folder")?;
        if !folder.join("about.json").exists() {
            // The first process to get here creates it; the others wait.
            let lock = lock_file(folder)?;
            lock.lock().during("waiting to create the index")?;
            if !folder.join("about.json").exists() {
                create(folder)?;
            }
        }
        Self::open_existing(folder)
    }

    /// Opens the index in a folder; replaces one that is stale or damaged by an empty one, to
    /// be rebuilt from the beginning. Also returns what was wrong with it.
    ///
    /// Fails with [`RecallError::Busy`] if it has to be replaced while another process writes
    /// to it.
    pub fn open_or_rebuild(folder: &Path) -> Result<(Self, Option<RecallError>), RecallError> {
        match Self::open(folder) {
            Err(error) if error.kind() == ErrorKind::Rebuild => {}
            opened => return Ok((opened?, None)),
        }
        let Some(_lock) = try_lock(folder)? else {
            return Err(RecallError::Busy(folder.to_owned()));
        };
        // Try again under the lock: another process may have replaced it.
        match Self::open_existing(folder) {
            Err(error) if error.kind() == ErrorKind::Rebuild => {
                delete_files(folder)?;
                create(folder)?;
                Ok((Self::open_existing(folder)?, Some(error)))
            }
            opened => Ok((opened?, None)),
        }
    }

    fn open_existing(folder: &Path) -> Result<Self, RecallError> {
        let damaged = |source| RecallError::Damaged {
            folder: folder.to_owned(),
            source,
        };
        let about = folder.join("about.json");
        let made = FileIdentity::read(&about);
        match fs::read(&about) {
            Ok(bytes) => match serde_json::from_slice::<IndexManifest>(&bytes) {
                Ok(made) if made == IndexManifest::expected() => {}
                Ok(made) => {
                    return Err(RecallError::Stale {
                        location: folder.display().to_string(),
                        found: made.to_string(),
                        expected: IndexManifest::expected().to_string(),
                    });
                }
                Err(error) => return Err(error.into()),
            },
            Err(error) => return Err(damaged(error.into())),
        }
        // Indexes built by earlier versions were readable by others.
        private_files::restrict_all(folder).during("restricting the permissions of its files")?;
        let (engine, fields) = open_engine(folder).map_err(damaged)?;
        verify::verify(folder, &engine, verify::VerifyScope::Changed).map_err(damaged)?;
        let reader = engine
            .reader_builder()
            .reload_policy(ReloadPolicy::Manual)
            .doc_store_cache_num_blocks(200)
            .try_into()
            .map_err(damaged)?;
        let index = Self(Arc::new(OpenIndex {
            folder: folder.to_owned(),
            manifest_identity: made,
            engine,
            fields,
            reader,
            loaded: Mutex::default(),
            encodings: EncodingCaches::in_folder(folder),
        }));
        index.latest_view()?;
        Ok(index)
    }

    /// Deletes everything in an index folder, so that it can be rebuilt from the beginning.
    ///
    /// Fails with [`RecallError::Busy`] while another process writes to it. Other processes
    /// that have the index open continue to read the old content until they reopen it.
    pub fn clear(folder: &Path) -> Result<(), RecallError> {
        if !folder.exists() {
            return Ok(());
        }
        let Some(_lock) = try_lock(folder)? else {
            return Err(RecallError::Busy(folder.to_owned()));
        };
        delete_files(folder)
    }

    /// Deletes this index, unless another process has replaced it since it was opened.
    ///
    /// Fails with [`RecallError::Busy`] while another process writes to it.
    pub fn discard(&self) -> Result<(), RecallError> {
        let folder = &self.0.folder;
        let Some(_lock) = try_lock(folder)? else {
            return Err(RecallError::Busy(folder.clone()));
        };
        if FileIdentity::read(&folder.join("about.json")) == self.0.manifest_identity {
            delete_files(folder)?;
        }
        Ok(())
    }

    /// Verifies the checksum of every file, including those verified before.
    pub fn verify(&self) -> Result<(), RecallError> {
        let folder = &self.0.folder;
        verify::verify(folder, &self.0.engine, verify::VerifyScope::All).map_err(|source| {
            RecallError::Damaged {
                folder: folder.clone(),
                source,
            }
        })
    }

    /// Opens the index in a folder for inspection, without changing it. Returns `None` if
    /// there is none or it is of another version, which is no fault: it is rebuilt when
    /// needed.
    ///
    /// Fails with [`RecallError::Damaged`] if it cannot be read.
    pub fn examine(folder: &Path) -> Result<Option<Self>, RecallError> {
        if !folder.join("about.json").exists() {
            return Ok(None);
        }
        match Self::open_existing(folder) {
            Err(RecallError::Stale { .. }) => Ok(None),
            opened => opened.map(Some),
        }
    }

    /// Returns the files in the folder that belong to nothing; `None` while it is being
    /// written.
    pub fn leftovers(&self) -> Result<Option<Vec<PathBuf>>, RecallError> {
        let Some(_lock) = try_lock(&self.0.folder)? else {
            return Ok(None);
        };
        leftovers::find(&self.0.folder, &self.0.engine).map(Some)
    }

    fn engine(&self) -> &tantivy::Index {
        &self.0.engine
    }

    /// Returns the newest commit.
    fn latest_view(&self) -> Result<CommitView, RecallError> {
        let OpenIndex {
            folder,
            engine,
            fields,
            reader,
            loaded: seen,
            ..
        } = &*self.0;
        let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let mark = FileIdentity::read(&folder.join("text/meta.json"));
            if mark.is_some() && seen.identity == mark {
                break;
            }
            // Read the watermark first: if a commit happens in between, the watermark is
            // behind the data, never ahead of it.
            let meta = engine.load_metas().during("reading the last commit")?;
            let state = match meta.payload.as_deref() {
                Some(payload) => serde_json::from_str(payload)?,
                None => IndexState::default(),
            };
            reader.reload().during("opening the last commit")?;
            let searcher = reader.searcher();
            let vectors = searcher.segment_readers().iter().map(SegmentVectors::open);
            match vectors.collect() {
                Ok(vectors) => {
                    *seen = LoadedCommit {
                        identity: mark,
                        state,
                        vectors,
                    };
                    break;
                }
                // The engine's lock protects its own files while it opens them, but not the
                // vectors: another process may have merged the segment and removed them. It
                // has then committed, and that commit is opened instead.
                Err(error)
                    if is_missing_file(&error)
                        && FileIdentity::read(&folder.join("text/meta.json")) != mark => {}
                Err(error) => return Err(error).during("opening the last commit"),
            }
        }
        Ok(CommitView {
            searcher: reader.searcher(),
            fields: *fields,
            vectors: Arc::clone(&seen.vectors),
            state: seen.state.clone(),
        })
    }
}

impl Index for FolderIndex {
    fn indexer(&self) -> Result<Option<Indexer>, RecallError> {
        let Some(lock) = try_lock(&self.0.folder)? else {
            return Ok(None);
        };
        leftovers::remove(&self.0.folder, &self.0.engine)?;
        Ok(Some(Indexer::new(FolderIndexWriter::new(
            self.clone(),
            lock,
        )?)))
    }

    fn state(&self) -> Result<IndexState, RecallError> {
        Ok(self.latest_view()?.state)
    }

    fn passage_count(&self) -> Result<u64, RecallError> {
        Ok(self.latest_view()?.searcher.num_docs())
    }

    fn scan(&self, each: &mut dyn FnMut(Passage)) -> Result<IndexState, RecallError> {
        let view = self.latest_view()?;
        let upto = view.state.upto;
        folder_reader::scan_passages(&view, &mut |passage| {
            if passage.position <= upto {
                each(passage);
            }
        })?;
        Ok(view.state)
    }

    fn reader(
        &self,
        scope: &Scope,
        phrases: &[String],
    ) -> Result<Box<dyn IndexReader + '_>, RecallError> {
        let view = self.latest_view()?;
        let filter = DocFilter::new(&view, scope, phrases)?;
        Ok(Box::new(FolderIndexReader { view, filter }))
    }

    fn encoding_cache(&self, model: &Digest) -> Result<Arc<EncodingCache>, RecallError> {
        Ok(self.0.encodings.for_model(model))
    }
}

impl std::fmt::Debug for FolderIndex {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("FolderIndex").field(&self.0.folder).finish()
    }
}

/// Identifies a version of a file that is replaced and never modified: it differs after every
/// replacement.
#[derive(Clone, Copy, PartialEq, Eq)]
struct FileIdentity {
    modified: std::time::SystemTime,
    length: u64,
    inode: u64,
}

impl FileIdentity {
    fn read(path: &Path) -> Option<Self> {
        let meta = fs::metadata(path).ok()?;
        #[cfg(unix)]
        let file = std::os::unix::fs::MetadataExt::ino(&meta);
        #[cfg(not(unix))]
        let file = 0;
        Some(Self {
            modified: meta.modified().ok()?,
            length: meta.len(),
            inode: file,
        })
    }
}

fn create(folder: &Path) -> Result<(), RecallError> {
    let during = "creating the index";
    let text = folder.join("text");
    // Remove what a crash left of an earlier attempt.
    if text.is_dir() {
        fs::remove_dir_all(&text).during(during)?;
    } else if text.exists() {
        fs::remove_file(&text).during(during)?;
    }
    private_files::create_folder(&text).during(during)?;
    let (schema, _) = schema();
    tantivy::Index::builder()
        .schema(schema)
        .register_plugin(Arc::new(VectorPlugin))
        .open_or_create(ChecksummedDirectory::open(&text).during(during)?)
        .during(during)?;
    // Written last and atomically: an index with a manifest is complete.
    let about = serde_json::to_vec(&IndexManifest::expected())?;
    let mut file = tempfile::NamedTempFile::new_in(folder).during(during)?;
    file.write_all(&about).during(during)?;
    file.as_file().sync_all().during(during)?;
    let persisted = file.persist(folder.join("about.json"));
    persisted.map_err(|error| error.error).during(during)?;
    Ok(())
}

/// Deletes the files of an index, the manifest first, since it marks the index as complete.
/// Unknown files stay.
fn delete_files(folder: &Path) -> Result<(), RecallError> {
    for name in [
        "about.json",
        "about.json.new",
        "verified.json",
        "text",
        encoding_cache::FOLDER,
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
    let directory = ChecksummedDirectory::open(&folder.join("text"))?;
    let mut engine = tantivy::Index::open(directory)?;
    if engine.schema() != schema {
        let what = "the schema is different".to_owned();
        return Err(TantivyError::SchemaError(what));
    }
    engine.register_plugin(Arc::new(VectorPlugin));
    let prepared = PretokenizedTokenizer::default();
    engine.tokenizers().register(PRETOKENIZED, prepared);
    Ok((engine, fields))
}

fn is_missing_file(error: &TantivyError) -> bool {
    matches!(
        error,
        TantivyError::OpenReadError(OpenReadError::FileDoesNotExist(_))
    )
}

fn lock_file(folder: &Path) -> Result<File, RecallError> {
    private_files::file_options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(folder.join("feeding.lock"))
        .during("opening the index lock")
}

fn try_lock(folder: &Path) -> Result<Option<File>, RecallError> {
    let file = lock_file(folder)?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(fs::TryLockError::WouldBlock) => Ok(None),
        Err(fs::TryLockError::Error(error)) => Err(error).during("taking the index lock"),
    }
}

//! The search index in the database, written by one process at a time and searched by all.
//!
//! What is indexed and how it is ranked is defined in `throughline_recall`; this module
//! stores it. The migration documents the tables. Terms are stored in blocks of passages
//! (`postings`) and scored by BM25 in this process, with the owner's own counts. Vectors
//! are compared in the database if it has pgvector, and otherwise read and compared here.
//! The search is exhaustive: every passage in scope is compared.
//!
//! A writer locks the `watermark` row for the duration of a batch. Batches are thus
//! serialized, each commits together with the watermark it leads to, and a batch made for
//! an earlier watermark is discarded.
//!
//! Calls block, and must come from threads that may block inside the store's runtime.

mod blocks;
mod filter;
mod index_reader;
mod index_writer;
mod insert_passages;
mod postings;
mod purge_terms;
mod scan;
mod vectors;

use std::fmt;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use throughline_model::Digest;
use throughline_recall::{
    EncodingCache, EncodingCaches, Index, IndexReader, IndexState, Indexer, Passage, RecallError,
    STATIC_DIGEST, Scope, private_files,
};
use throughline_store::StoreError;
use tokio::runtime::Handle;

use crate::PostgresStore;
use crate::error::Fault;
use crate::retry::retry;
use crate::rows;
use crate::tx::{Tx, TxMode};
use index_reader::PostgresIndexReader;
use index_writer::PostgresIndexWriter;

/// Incremented whenever older indexes can no longer be read correctly.
const INDEX_FORMAT: u32 = 1;

/// The tables of the index, except the watermark.
const TABLES: [&str; 5] = ["passage", "passage_text", "passage_beyond", "block", "word"];

/// Passages `p` joined with their text `t`.
const PASSAGE_JOIN: &str = "throughline.passage p JOIN throughline.passage_text t
    ON t.owner = p.owner AND t.session = p.session AND t.seq = p.seq";

/// The search index in a store's database. Cheap to clone.
#[derive(Clone)]
pub struct PostgresIndex {
    store: PostgresStore,
    folder: PathBuf,
    encodings: Arc<Mutex<Option<CachedEncodings>>>,
}

/// Cached passage encodings, with the removal count at which they were opened.
type CachedEncodings = (i64, Arc<EncodingCaches>);

impl fmt::Debug for PostgresIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PostgresIndex").field(&self.store).finish()
    }
}

/// How far the feed has been indexed, and how many removals there have been.
#[derive(Clone, Debug, Default)]
struct Watermark {
    state: IndexState,
    removals: i64,
}

impl PostgresIndex {
    /// Returns the index of a store; `folder` caches model encodings of passages on this
    /// machine.
    pub fn new(store: &PostgresStore, folder: &Path) -> Self {
        Self {
            store: store.clone(),
            folder: folder.to_owned(),
            encodings: Arc::default(),
        }
    }

    /// Empties the index, so that it is rebuilt from the start of the feed; waits for a
    /// running batch.
    pub fn clear(&self) -> Result<(), RecallError> {
        let store = &self.store;
        block_on(retry(store.inner.time_limit, |_| {
            Box::pin(async move {
                let tx = store.begin_system(TxMode::Write).await?;
                let done = clear_tables(&tx).await;
                tx.finish(done).await
            })
        }))
    }

    fn read_watermark(&self) -> Result<Watermark, RecallError> {
        let store = &self.store;
        let row = block_on(retry(store.inner.time_limit, |_| {
            Box::pin(async move {
                let tx = store.begin_system(TxMode::ReadCommitted).await?;
                let done = tx.query_opt(READING_WATERMARK, SELECT_WATERMARK, &[]).await;
                tx.finish(done).await
            })
        }))?;
        match row {
            Some(row) => decode_watermark(&row),
            None => Ok(Watermark::default()),
        }
    }
}

impl Index for PostgresIndex {
    fn indexer(&self) -> Result<Option<Indexer>, RecallError> {
        let writer = PostgresIndexWriter::try_new(&self.store)?;
        Ok(writer.map(Indexer::new))
    }

    fn state(&self) -> Result<IndexState, RecallError> {
        Ok(self.read_watermark()?.state)
    }

    fn passage_count(&self) -> Result<u64, RecallError> {
        let store = &self.store;
        let row = block_on(retry(store.inner.time_limit, |_| {
            Box::pin(async move {
                let tx = store.begin_system(TxMode::Read).await?;
                let count = "SELECT count(*) FROM throughline.passage";
                let done = tx.query("counting passages", count, &[]).await;
                tx.finish(done).await
            })
        }))?;
        let counted = row.iter().map(|row| rows::get::<i64>(row, 0));
        let counted: i64 = counted.sum::<Result<_, _>>().map_err(to_recall_error)?;
        Ok(counted.unsigned_abs())
    }

    fn scan(&self, each: &mut dyn FnMut(Passage)) -> Result<IndexState, RecallError> {
        scan::scan(&self.store, each)
    }

    fn reader(
        &self,
        scope: &Scope,
        phrases: &[String],
    ) -> Result<Box<dyn IndexReader + '_>, RecallError> {
        let sight = PostgresIndexReader::new(&self.store, scope, phrases)?;
        Ok(Box::new(sight))
    }

    fn encoding_cache(&self, model: &Digest) -> Result<Arc<EncodingCache>, RecallError> {
        let removals = self.read_watermark()?.removals;
        let mut known = self
            .encodings
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let encodings = match &*known {
            Some((at, encodings)) if *at == removals => Arc::clone(encodings),
            _ => {
                let encodings = open_encodings(&self.folder, removals)?;
                Arc::clone(&known.insert((removals, Arc::new(encodings))).1)
            }
        };
        Ok(encodings.for_model(model))
    }
}

/// Opens this machine's cache of passage encodings, and clears it if passages were removed
/// from the index, on any machine, since it was written.
fn open_encodings(folder: &Path, removals: i64) -> Result<EncodingCaches, RecallError> {
    let encodings = EncodingCaches::in_folder(folder);
    let note = folder.join("removals");
    let now = removals.to_string();
    let failed = |source| RecallError::Io {
        during: "opening the passage cache",
        source,
    };
    match std::fs::read_to_string(&note) {
        Ok(then) if then == now => return Ok(encodings),
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(failed(error)),
        _ => {}
    }
    encodings.delete_all()?;
    private_files::create_folder(folder).map_err(failed)?;
    let mut options = private_files::file_options();
    options.write(true).create(true).truncate(true);
    let mut file = options.open(&note).map_err(failed)?;
    file.write_all(now.as_bytes()).map_err(failed)?;
    Ok(encodings)
}

const READING_WATERMARK: &str = "reading the index state";
const SELECT_WATERMARK: &str = "SELECT made, upto, removals, anchors FROM throughline.watermark";

/// Decodes the watermark; fails if the index has another format or model.
fn decode_watermark(row: &tokio_postgres::Row) -> Result<Watermark, RecallError> {
    let read = || -> Result<(String, i64, i64, String), StoreError> {
        Ok((
            rows::get(row, 0)?,
            rows::get(row, 1)?,
            rows::get(row, 2)?,
            rows::get(row, 3)?,
        ))
    };
    let (made, upto, removals, anchors) = read().map_err(to_recall_error)?;
    if made != index_version() {
        let format = made
            .split(' ')
            .next()
            .and_then(|format| format.parse().ok());
        if format.is_some_and(|format: u32| format > INDEX_FORMAT) {
            return Err(RecallError::Database {
                during: READING_WATERMARK,
                source: "a newer version of this program created it: upgrade to use it".into(),
            });
        }
        return Err(RecallError::Stale {
            location: "the database".to_owned(),
            found: format!("with {made}"),
            expected: format!("with {}", index_version()),
        });
    }
    Ok(Watermark {
        state: IndexState {
            upto: upto.unsigned_abs(),
            anchors: serde_json::from_str(&anchors)?,
        },
        removals,
    })
}

/// The index format and model of this program.
fn index_version() -> String {
    let model: String = STATIC_DIGEST.chars().take(12).collect();
    format!("{INDEX_FORMAT} {model}")
}

/// Inserts the watermark row if there is none.
async fn insert_watermark(tx: &Tx) -> Result<(), Fault> {
    tx.execute(
        READING_WATERMARK,
        "INSERT INTO throughline.watermark (made) VALUES ($1) ON CONFLICT DO NOTHING",
        params![index_version()],
    )
    .await?;
    Ok(())
}

async fn clear_tables(tx: &Tx) -> Result<(), Fault> {
    let doing = "emptying the index";
    insert_watermark(tx).await?;
    let lock = "SELECT FROM throughline.watermark FOR UPDATE";
    tx.execute(doing, lock, &[]).await?;
    for table in TABLES {
        let delete = format!("DELETE FROM throughline.{table}");
        tx.execute(doing, &delete, &[]).await?;
    }
    tx.execute(
        doing,
        "UPDATE throughline.watermark SET made = $1, upto = 0, anchors = '[]', removals = removals + 1",
        params![index_version()],
    )
    .await?;
    Ok(())
}

/// Blocks on a database operation; must be called on a thread that may block.
fn block_on<T, E: Into<StoreError>>(
    work: impl Future<Output = Result<T, E>>,
) -> Result<T, RecallError> {
    let done = Handle::current().block_on(work);
    done.map_err(|error| to_recall_error(error.into()))
}

/// Wraps a store error in a recall error.
fn to_recall_error(error: StoreError) -> RecallError {
    RecallError::Database {
        during: "querying the database",
        source: error.into(),
    }
}

//! The index in the database: fed by whichever process is first to need it, searched by all.
//!
//! What is indexed and how it is ranked is `throughline_recall`'s; here is where it is kept.
//! The tables are told in their migration. Words are in blocks of passages (`postings`), and
//! are scored in the program by BM25, from the owner's own counts; vectors are compared in the
//! database where it has pgvector, and are read and compared here where it has not. Every
//! passage in scope is compared.
//!
//! Whoever feeds holds the row of `watermark` for as long as a batch takes: batches come one
//! after another, each with the watermark it leads to, and one made for an earlier watermark
//! is not taken in.
//!
//! The index is asked from threads that may wait, inside the runtime of the store.

mod blocks;
mod filter;
mod fold;
mod postings;
mod scan;
mod scour;
mod sight;
mod stock;
mod vectors;

use std::fmt;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use throughline_model::Digest;
use throughline_recall::{
    Encoded, Encodings, Feeder, Index, IndexState, Passage, RecallError, STATIC_DIGEST, Scope,
    Sight, private,
};
use throughline_store::StoreError;
use tokio::runtime::Handle;

use crate::PostgresStore;
use crate::error::Fault;
use crate::patience::patiently;
use crate::rows;
use crate::tx::{Purpose, Tx};
use sight::PostgresSight;
use stock::PostgresStock;

/// Raised whenever an index made before would be read wrongly.
const FORMAT: u32 = 1;

/// The tables of the index, all but the watermark.
const TABLES: [&str; 5] = ["passage", "passage_text", "passage_beyond", "block", "word"];

/// Passages `p` with the rest of them, `t`.
const PASSAGES: &str = "throughline.passage p JOIN throughline.passage_text t
    ON t.owner = p.owner AND t.session = p.session AND t.seq = p.seq";

/// The index in a store's database. Cheap to clone.
#[derive(Clone)]
pub struct PostgresIndex {
    store: PostgresStore,
    folder: PathBuf,
    encodings: Arc<Mutex<Option<AsOf>>>,
}

/// What models made of passages, as of so many removals.
type AsOf = (i64, Arc<Encodings>);

impl fmt::Debug for PostgresIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PostgresIndex").field(&self.store).finish()
    }
}

/// How far the index goes.
#[derive(Clone, Debug, Default)]
struct Mark {
    state: IndexState,
    removals: i64,
}

impl PostgresIndex {
    /// The index of a store; `folder` is for what models make of passages on this machine.
    pub fn new(store: &PostgresStore, folder: &Path) -> Self {
        Self {
            store: store.clone(),
            folder: folder.to_owned(),
            encodings: Arc::default(),
        }
    }

    /// Empties the index, so that it is fed from the beginning; waits for whoever feeds it.
    pub fn clear(&self) -> Result<(), RecallError> {
        let store = &self.store;
        waiting(patiently(store.shared.patience, |_| {
            Box::pin(async move {
                let tx = store.serve(Purpose::Write).await?;
                let done = clear(&tx).await;
                tx.finish(done).await
            })
        }))
    }

    fn mark(&self) -> Result<Mark, RecallError> {
        let store = &self.store;
        let row = waiting(patiently(store.shared.patience, |_| {
            Box::pin(async move {
                let tx = store.serve(Purpose::Follow).await?;
                let done = tx.optional(MARK_DOING, MARK, &[]).await;
                tx.finish(done).await
            })
        }))?;
        match row {
            Some(row) => read_mark(&row),
            None => Ok(Mark::default()),
        }
    }
}

impl Index for PostgresIndex {
    fn feeder(&self) -> Result<Option<Feeder>, RecallError> {
        let stock = PostgresStock::try_new(&self.store)?;
        Ok(stock.map(Feeder::new))
    }

    fn state(&self) -> Result<IndexState, RecallError> {
        Ok(self.mark()?.state)
    }

    fn passages(&self) -> Result<u64, RecallError> {
        let store = &self.store;
        let row = waiting(patiently(store.shared.patience, |_| {
            Box::pin(async move {
                let tx = store.serve(Purpose::Read).await?;
                let count = "SELECT count(*) FROM throughline.passage";
                let done = tx.query("counting passages", count, &[]).await;
                tx.finish(done).await
            })
        }))?;
        let counted = row.iter().map(|row| rows::get::<i64>(row, 0));
        let counted: i64 = counted.sum::<Result<_, _>>().map_err(refused)?;
        Ok(counted.unsigned_abs())
    }

    fn scan(&self, each: &mut dyn FnMut(Passage)) -> Result<IndexState, RecallError> {
        scan::scan(&self.store, each)
    }

    fn sight(&self, scope: &Scope, phrases: &[String]) -> Result<Box<dyn Sight + '_>, RecallError> {
        let sight = PostgresSight::new(&self.store, scope, phrases)?;
        Ok(Box::new(sight))
    }

    fn encoded(&self, model: &Digest) -> Result<Arc<Encoded>, RecallError> {
        let removals = self.mark()?.removals;
        let mut known = self
            .encodings
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let encodings = match &*known {
            Some((at, encodings)) if *at == removals => Arc::clone(encodings),
            _ => {
                let encodings = encodings(&self.folder, removals)?;
                Arc::clone(&known.insert((removals, Arc::new(encodings))).1)
            }
        };
        Ok(encodings.of(model))
    }
}

/// What models made of passages on this machine; none of it is left from before something
/// was taken out of the index, on whatever machine.
fn encodings(folder: &Path, removals: i64) -> Result<Encodings, RecallError> {
    let encodings = Encodings::within(folder);
    let note = folder.join("removals");
    let now = removals.to_string();
    let failed = |source| RecallError::Io {
        during: "looking after what models made of passages",
        source,
    };
    match std::fs::read_to_string(&note) {
        Ok(then) if then == now => return Ok(encodings),
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(failed(error)),
        _ => {}
    }
    encodings.forget()?;
    private::create_folder(folder).map_err(failed)?;
    let mut options = private::file_options();
    options.write(true).create(true).truncate(true);
    let mut file = options.open(&note).map_err(failed)?;
    file.write_all(now.as_bytes()).map_err(failed)?;
    Ok(encodings)
}

const MARK_DOING: &str = "finding how far the index goes";
const MARK: &str = "SELECT made, upto, removals, anchors FROM throughline.watermark";

/// How far the index goes, if this program can read it.
fn read_mark(row: &tokio_postgres::Row) -> Result<Mark, RecallError> {
    let read = || -> Result<(String, i64, i64, String), StoreError> {
        Ok((
            rows::get(row, 0)?,
            rows::get(row, 1)?,
            rows::get(row, 2)?,
            rows::get(row, 3)?,
        ))
    };
    let (made, upto, removals, anchors) = read().map_err(refused)?;
    if made != needed() {
        let format = made
            .split(' ')
            .next()
            .and_then(|format| format.parse().ok());
        if format.is_some_and(|format: u32| format > FORMAT) {
            return Err(RecallError::Database {
                during: MARK_DOING,
                source: "a newer version of this program made it: use that one".into(),
            });
        }
        return Err(RecallError::Stale {
            place: "the database".to_owned(),
            made: format!("with {made}"),
            needed: needed(),
        });
    }
    Ok(Mark {
        state: IndexState {
            upto: upto.unsigned_abs(),
            anchors: serde_json::from_str(&anchors)?,
        },
        removals,
    })
}

/// The format and model of an index that this program makes.
fn needed() -> String {
    let model: String = STATIC_DIGEST.chars().take(12).collect();
    format!("{FORMAT} {model}")
}

/// Makes the row of the watermark, where there is none yet.
async fn make_mark(tx: &Tx) -> Result<(), Fault> {
    tx.execute(
        MARK_DOING,
        "INSERT INTO throughline.watermark (made) VALUES ($1) ON CONFLICT DO NOTHING",
        params![needed()],
    )
    .await?;
    Ok(())
}

async fn clear(tx: &Tx) -> Result<(), Fault> {
    let doing = "emptying the index";
    make_mark(tx).await?;
    let lock = "SELECT FROM throughline.watermark FOR UPDATE";
    tx.execute(doing, lock, &[]).await?;
    for table in TABLES {
        let delete = format!("DELETE FROM throughline.{table}");
        tx.execute(doing, &delete, &[]).await?;
    }
    tx.execute(
        doing,
        "UPDATE throughline.watermark SET made = $1, upto = 0, anchors = '[]', removals = removals + 1",
        params![needed()],
    )
    .await?;
    Ok(())
}

/// Waits for the database, on a thread that may.
fn waiting<T, E: Into<StoreError>>(
    work: impl Future<Output = Result<T, E>>,
) -> Result<T, RecallError> {
    let done = Handle::current().block_on(work);
    done.map_err(|error| refused(error.into()))
}

/// What the store said, as an index says it.
fn refused(error: StoreError) -> RecallError {
    RecallError::Database {
        during: "asking the database",
        source: error.into(),
    }
}

//! What a feeder writes to: the tables of the index, a transaction a batch.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use throughline_model::{Owner, Seq};
use throughline_recall::{
    Document, IndexState, IndexWriter, OwnedSession, Passage, RecallError, StoredPassage,
    extract_terms,
};
use throughline_store::StoreError;
use tokio_postgres::Row;

use super::blocks::drop_block;
use super::insert_passages::insert_passages;
use super::postings::{BLOCK_SPAN, PassageLength, decode_lengths, encode_lengths};
use super::purge_terms::purge_terms;
use super::vectors::VectorStorage;
use super::{
    READING_WATERMARK, SELECT_WATERMARK, block_on, decode_watermark, insert_watermark,
    to_recall_error,
};
use crate::PostgresStore;
use crate::error::Fault;
use crate::rows;
use crate::tx::{Tx, TxMode};

/// A passage's words are in documents that are so many passages away, at most.
const CONTEXT_REACH: i64 = 2;

/// The index, open for writing.
pub(super) struct PostgresIndexWriter {
    store: PostgresStore,
    vectors: VectorStorage,
    /// The transaction of a batch, which holds the watermark.
    tx: Option<Tx>,
    batch: PendingWrites,
}

/// What a batch changes.
#[derive(Default)]
pub(super) struct PendingWrites {
    removed: BTreeSet<(OwnedSession, Seq)>,
    removed_sessions: BTreeSet<OwnedSession>,
    pub(super) new: BTreeMap<(OwnedSession, Seq), Document>,
    /// Blocks that hold words of what is removed.
    dropped_blocks: BTreeSet<(Owner, i64)>,
    /// The words of what is to be gone for good.
    purged_terms: BTreeMap<Owner, BTreeSet<String>>,
}

impl PostgresIndexWriter {
    /// The index, or `None` while another feeds it.
    pub(super) fn try_new(store: &PostgresStore) -> Result<Option<Self>, RecallError> {
        let (tx, vectors, row) = block_on(async {
            let mut tx = store.begin_system(TxMode::Write).await?;
            if tx
                .query_opt(READING_WATERMARK, SELECT_WATERMARK, &[])
                .await?
                .is_none()
            {
                // By itself: whoever makes it at the same time waits for that only.
                let made = insert_watermark(&tx).await;
                tx.finish(made).await?;
                tx = store.begin_system(TxMode::Write).await?;
            }
            let vectors = VectorStorage::detect(&tx).await?;
            let lock = format!("{SELECT_WATERMARK} FOR UPDATE SKIP LOCKED");
            let row = tx.query_opt(READING_WATERMARK, &lock, &[]).await?;
            Ok::<_, Fault>((tx, vectors, row))
        })?;
        let mut stock = Self {
            store: store.clone(),
            vectors,
            tx: Some(tx),
            batch: PendingWrites::default(),
        };
        let Some(row) = row else {
            stock.rollback();
            return Ok(None);
        };
        match decode_watermark(&row) {
            Ok(_) => Ok(Some(stock)),
            Err(error) => {
                stock.rollback();
                Err(error)
            }
        }
    }

    fn tx(&self) -> Result<&Tx, RecallError> {
        self.tx
            .as_ref()
            .ok_or_else(|| to_recall_error(StoreError::Closed))
    }

    /// Notes the words of a passage that is to be gone, or of all of a session's.
    fn collect_purged_terms(
        &mut self,
        place: &OwnedSession,
        seq: Option<Seq>,
    ) -> Result<(), RecallError> {
        let (owner, session) = (place.0.as_str(), place.1.as_str());
        let found = block_on(self.tx()?.query(
            "reading what is to be gone",
            "SELECT kept FROM throughline.passage_text
             WHERE owner = $1 AND session = $2 AND ($3::bigint IS NULL OR seq = $3)",
            params![owner, session, seq.map(rows::seq_to_i64)],
        ))?;
        let mut words = BTreeSet::new();
        for row in &found {
            let passage = decode_passage(row)?;
            words.extend(extract_terms(&passage.text));
            words.extend(extract_terms(passage.author.as_deref().unwrap_or("")));
        }
        let gone = self.batch.purged_terms.entry(place.0.clone()).or_default();
        gone.extend(words);
        Ok(())
    }

    /// The places that a statement gives.
    fn select_numbered(
        &self,
        place: &OwnedSession,
        sql: &str,
        seq: Option<Seq>,
    ) -> Result<Vec<NumberedPassage>, RecallError> {
        let tx = self.tx()?;
        let (owner, session) = (place.0.as_str(), place.1.as_str());
        let seq = seq.map(rows::seq_to_i64);
        let found = block_on(tx.query(
            "finding what is around a passage",
            sql,
            params![owner, session, seq, CONTEXT_REACH],
        ))?;
        let read = found.iter().map(|row| decode_numbered(&place.0, row));
        read.collect::<Result<_, _>>().map_err(to_recall_error)
    }
}

/// The passage in the first column of a row.
fn decode_passage(row: &Row) -> Result<Passage, RecallError> {
    let kept: &str = rows::get(row, 0).map_err(to_recall_error)?;
    Ok(serde_json::from_str::<StoredPassage>(kept)?.passage)
}

/// A passage with its number.
type NumberedPassage = ((OwnedSession, Seq), i64);

fn decode_numbered(owner: &Owner, row: &Row) -> Result<NumberedPassage, StoreError> {
    let place = (owner.clone(), rows::parse_column(row, 0)?);
    let seq = rows::seq_from_i64(rows::get(row, 1)?);
    Ok(((place, seq), rows::get(row, 2)?))
}

/// A passage and those around it; of a whole session, all of its.
const SELECT_NEIGHBORS: &str = "
    (SELECT session, seq, number FROM throughline.passage
     WHERE owner = $1 AND session = $2 AND seq >= $3 ORDER BY seq LIMIT $4::bigint + 1)
    UNION ALL
    (SELECT session, seq, number FROM throughline.passage
     WHERE owner = $1 AND session = $2 AND seq < $3 ORDER BY seq DESC LIMIT $4)
    UNION ALL
    (SELECT session, seq, number FROM throughline.passage
     WHERE owner = $1 AND session = $2 AND $3 IS NULL)
    UNION ALL
    (SELECT p.session, p.seq, p.number
     FROM throughline.passage_beyond b JOIN throughline.passage p
         ON p.owner = b.owner AND p.session = b.session AND p.seq = b.seq
     WHERE b.owner = $1 AND b.origin = $2)";

impl IndexWriter for PostgresIndexWriter {
    fn begin(&mut self) -> Result<IndexState, RecallError> {
        let lock = format!("{SELECT_WATERMARK} FOR UPDATE");
        let lock = if self.tx.is_some() {
            SELECT_WATERMARK
        } else {
            &lock
        };
        if self.tx.is_none() {
            self.tx = Some(block_on(self.store.begin_system(TxMode::Write))?);
        }
        let row = block_on(self.tx()?.query_opt(READING_WATERMARK, lock, &[]))?;
        let row = row.ok_or_else(|| to_recall_error(StoreError::Closed))?;
        Ok(decode_watermark(&row)?.state)
    }

    /// Also all that share a block with any of them: their words go with the block.
    fn find_neighbors(
        &mut self,
        place: &OwnedSession,
        seq: Option<Seq>,
    ) -> Result<Vec<(OwnedSession, Seq)>, RecallError> {
        let near = self.select_numbered(place, SELECT_NEIGHBORS, seq)?;
        self.collect_purged_terms(place, seq)?;
        let mut touched: BTreeSet<(OwnedSession, Seq)> = BTreeSet::new();
        let mut blocks = BTreeSet::new();
        for (one, number) in near {
            if number >= 0 {
                blocks.insert(number / BLOCK_SPAN);
            }
            touched.insert(one);
        }
        for block in blocks {
            if !self.batch.dropped_blocks.insert((place.0.clone(), block)) {
                continue;
            }
            let first = block * BLOCK_SPAN;
            let range = params![place.0.as_str(), first, first + BLOCK_SPAN];
            let mates = block_on(self.tx()?.query(
                "reading a block",
                "SELECT session, seq, number FROM throughline.passage
                 WHERE owner = $1 AND number >= $2 AND number < $3",
                range,
            ))?;
            for row in &mates {
                touched.insert(decode_numbered(&place.0, row).map_err(to_recall_error)?.0);
            }
        }
        // What is asked about goes.
        touched.retain(|(other, at)| other != place || seq.is_some_and(|seq| seq != *at));
        Ok(touched.into_iter().collect())
    }

    fn passages(
        &self,
        place: &OwnedSession,
        range: Range<Seq>,
        count: usize,
        last: bool,
    ) -> Result<Vec<Passage>, RecallError> {
        let order = if last { "DESC" } else { "ASC" };
        let sql = format!(
            "SELECT kept FROM throughline.passage_text
             WHERE owner = $1 AND session = $2 AND seq >= $3 AND seq < $4
             ORDER BY seq {order} LIMIT $5"
        );
        let (owner, session) = (place.0.as_str(), place.1.as_str());
        let (start, end) = (rows::seq_to_i64(range.start), rows::seq_to_i64(range.end));
        let most = rows::u64_to_i64(count as u64);
        let within = params![owner, session, start, end, most];
        let found = block_on(self.tx()?.query("reading what was fed", &sql, within))?;
        let read = found.iter().map(decode_passage);
        let mut passages = read.collect::<Result<Vec<_>, RecallError>>()?;
        if last {
            passages.reverse();
        }
        Ok(passages)
    }

    fn remove(&mut self, place: &OwnedSession, seq: Option<Seq>) -> Result<(), RecallError> {
        match seq {
            Some(seq) => {
                self.batch.removed.insert((place.clone(), seq));
            }
            None => {
                self.batch.removed_sessions.insert(place.clone());
            }
        }
        Ok(())
    }

    fn put(&mut self, document: Document, _is_known: bool) -> Result<(), RecallError> {
        let passage = &document.stored.passage;
        let place = (passage.owner.clone(), passage.session.clone());
        self.batch.new.insert((place, passage.seq), document);
        Ok(())
    }

    fn commit(&mut self, state: &IndexState) -> Result<(), RecallError> {
        let anchors = serde_json::to_string(&state.anchors)?;
        let batch = std::mem::take(&mut self.batch);
        let vectors = self.vectors;
        let Some(tx) = self.tx.take() else {
            return Err(to_recall_error(StoreError::Closed));
        };
        block_on(async {
            let done = write_batch(&tx, vectors, batch, (state.upto, anchors)).await;
            tx.finish(done).await
        })
    }

    fn rollback(&mut self) {
        self.batch = PendingWrites::default();
        if let Some(tx) = self.tx.take() {
            // Nothing hangs on it: a connection that is lost undoes it as well.
            let nothing = Fault::Store(StoreError::Closed);
            let undoing = async {
                tx.rollback(&nothing).await;
                Ok::<_, StoreError>(())
            };
            let _ = block_on(undoing);
        }
    }

    /// Rows that are gone go with the next vacuum, as all others do.
    fn vacuum(&mut self) -> Result<(), RecallError> {
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<(), RecallError> {
        self.rollback();
        Ok(())
    }
}

/// Passages as columns.
#[derive(Default)]
struct PassageKeys {
    owners: Vec<String>,
    sessions: Vec<String>,
    seqs: Vec<i64>,
}

impl PassageKeys {
    fn of<'a>(keys: impl Iterator<Item = &'a (OwnedSession, Seq)>) -> Self {
        let mut all = Self::default();
        for ((owner, session), seq) in keys {
            all.owners.push(owner.as_str().to_owned());
            all.sessions.push(session.as_str().to_owned());
            all.seqs.push(rows::seq_to_i64(*seq));
        }
        all
    }
}

async fn write_batch(
    tx: &Tx,
    vectors: VectorStorage,
    batch: PendingWrites,
    (upto, anchors): (u64, String),
) -> Result<(), Fault> {
    let doing = "writing to the index";
    delete_passages(tx, &batch).await?;
    for (owner, block) in &batch.dropped_blocks {
        drop_block(tx, owner.as_str(), *block).await?;
    }
    for (owner, words) in &batch.purged_terms {
        purge_terms(tx, owner, words).await?;
    }
    let removes = !batch.purged_terms.is_empty();
    insert_passages(tx, vectors, batch.new).await?;
    tx.execute(
        doing,
        "UPDATE throughline.watermark SET upto = $1, anchors = $3,
             removals = removals + CASE WHEN $2 THEN 1 ELSE 0 END",
        params![rows::u64_to_i64(upto), removes, anchors],
    )
    .await?;
    Ok(())
}

/// Takes out what is removed, and what is written anew.
async fn delete_passages(tx: &Tx, batch: &PendingWrites) -> Result<(), Fault> {
    let doing = "taking passages out of the index";
    let PassageKeys {
        owners,
        sessions,
        seqs,
    } = PassageKeys::of(batch.removed.iter().chain(batch.new.keys()));
    let mut gone: Vec<Row> = Vec::new();
    if !seqs.is_empty() {
        let keys = params![owners, sessions, seqs];
        let these = "USING unnest($1::text[], $2::text[], $3::bigint[]) AS k (owner, session, seq)
            WHERE t.owner = k.owner AND t.session = k.session AND t.seq = k.seq";
        for table in ["passage_text", "passage_beyond"] {
            let sql = format!("DELETE FROM throughline.{table} t {these}");
            tx.execute(doing, &sql, keys).await?;
        }
        let sql = format!("DELETE FROM throughline.passage t {these} RETURNING t.owner, t.number");
        gone.extend(tx.query(doing, &sql, keys).await?);
    }
    for (owner, session) in &batch.removed_sessions {
        let keys = params![owner.as_str(), session.as_str()];
        let these = "WHERE owner = $1 AND session = $2";
        for table in ["passage_text", "passage_beyond"] {
            let sql = format!("DELETE FROM throughline.{table} {these}");
            tx.execute(doing, &sql, keys).await?;
        }
        let sql = format!("DELETE FROM throughline.passage {these} RETURNING owner, number");
        gone.extend(tx.query(doing, &sql, keys).await?);
    }
    let mut blocks: BTreeMap<(String, i64), Vec<usize>> = BTreeMap::new();
    for row in &gone {
        let (owner, number): (String, i64) = (rows::get(row, 0)?, rows::get(row, 1)?);
        if number >= 0 {
            let place = usize::try_from(number % BLOCK_SPAN).unwrap_or(0);
            let block = number / BLOCK_SPAN;
            blocks.entry((owner, block)).or_default().push(place);
        }
    }
    for ((owner, block), places) in blocks {
        clear_slots(tx, &owner, block, &places).await?;
    }
    Ok(())
}

/// Notes that places of a block are empty; drops a block that has no others.
async fn clear_slots(tx: &Tx, owner: &str, block: i64, places: &[usize]) -> Result<(), Fault> {
    let doing = "emptying places of a block";
    let read = "SELECT lengths FROM throughline.block WHERE owner = $1 AND block = $2::bigint::int";
    let Some(row) = tx.query_opt(doing, read, params![owner, block]).await? else {
        return Ok(());
    };
    let mut lengths = decode_lengths(rows::get(&row, 0)?)?;
    for place in places {
        if let Some(length) = lengths.get_mut(*place) {
            *length = PassageLength::default();
        }
    }
    if lengths.iter().all(|length| length.is_empty()) {
        return drop_block(tx, owner, block).await;
    }
    tx.execute(
        doing,
        "UPDATE throughline.block SET lengths = $3 WHERE owner = $1 AND block = $2::bigint::int",
        params![owner, block, encode_lengths(&lengths)],
    )
    .await?;
    Ok(())
}

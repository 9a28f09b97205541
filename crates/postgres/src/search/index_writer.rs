//! Implements the index writer: one transaction per batch of passages.

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

/// The terms of a passage occur in the documents of passages at most this far away.
const CONTEXT_REACH: i64 = 2;

/// The index, open for writing.
pub(super) struct PostgresIndexWriter {
    store: PostgresStore,
    vectors: VectorStorage,
    /// The transaction of the current batch, which holds the lock on the watermark.
    tx: Option<Tx>,
    batch: PendingWrites,
}

/// The changes of one batch.
#[derive(Default)]
pub(super) struct PendingWrites {
    removed: BTreeSet<(OwnedSession, Seq)>,
    removed_sessions: BTreeSet<OwnedSession>,
    pub(super) new: BTreeMap<(OwnedSession, Seq), Document>,
    /// Blocks that contain terms of removed passages.
    dropped_blocks: BTreeSet<(Owner, i64)>,
    /// Terms of passages that are erased, by owner.
    purged_terms: BTreeMap<Owner, BTreeSet<String>>,
}

impl PostgresIndexWriter {
    /// Opens the index for writing, or returns `None` while another process writes to it.
    pub(super) fn try_new(store: &PostgresStore) -> Result<Option<Self>, RecallError> {
        let (tx, vectors, row) = block_on(async {
            let mut tx = store.begin_system(TxMode::Write).await?;
            if tx
                .query_opt(READING_WATERMARK, SELECT_WATERMARK, &[])
                .await?
                .is_none()
            {
                // In a transaction of its own, so that a concurrent insert waits only for
                // this.
                let made = insert_watermark(&tx).await;
                tx.finish(made).await?;
                tx = store.begin_system(TxMode::Write).await?;
            }
            let vectors = VectorStorage::detect(&tx).await?;
            let lock = format!("{SELECT_WATERMARK} FOR UPDATE SKIP LOCKED");
            let row = tx.query_opt(READING_WATERMARK, &lock, &[]).await?;
            Ok::<_, Fault>((tx, vectors, row))
        })?;
        let mut writer = Self {
            store: store.clone(),
            vectors,
            tx: Some(tx),
            batch: PendingWrites::default(),
        };
        let Some(row) = row else {
            writer.rollback();
            return Ok(None);
        };
        match decode_watermark(&row) {
            Ok(_) => Ok(Some(writer)),
            Err(error) => {
                writer.rollback();
                Err(error)
            }
        }
    }

    fn tx(&self) -> Result<&Tx, RecallError> {
        self.tx
            .as_ref()
            .ok_or_else(|| to_recall_error(StoreError::Closed))
    }

    /// Collects the terms to purge of a passage, or of all passages of a session.
    fn collect_purged_terms(
        &mut self,
        of: &OwnedSession,
        seq: Option<Seq>,
    ) -> Result<(), RecallError> {
        let (owner, session) = (of.0.as_str(), of.1.as_str());
        let found = block_on(self.tx()?.query(
            "reading passages to remove",
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
        let gone = self.batch.purged_terms.entry(of.0.clone()).or_default();
        gone.extend(words);
        Ok(())
    }

    /// Runs a query that returns passages and their numbers.
    fn select_numbered(
        &self,
        of: &OwnedSession,
        sql: &str,
        seq: Option<Seq>,
    ) -> Result<Vec<NumberedPassage>, RecallError> {
        let tx = self.tx()?;
        let (owner, session) = (of.0.as_str(), of.1.as_str());
        let seq = seq.map(rows::seq_to_i64);
        let found = block_on(tx.query(
            "finding neighboring passages",
            sql,
            params![owner, session, seq, CONTEXT_REACH],
        ))?;
        let read = found.iter().map(|row| decode_numbered(&of.0, row));
        read.collect::<Result<_, _>>().map_err(to_recall_error)
    }
}

/// Decodes the passage in the first column of a row.
fn decode_passage(row: &Row) -> Result<Passage, RecallError> {
    let stored: &str = rows::get(row, 0).map_err(to_recall_error)?;
    Ok(serde_json::from_str::<StoredPassage>(stored)?.passage)
}

/// A passage and its number.
type NumberedPassage = ((OwnedSession, Seq), i64);

fn decode_numbered(owner: &Owner, row: &Row) -> Result<NumberedPassage, StoreError> {
    let session = (owner.clone(), rows::parse_column(row, 0)?);
    let seq = rows::seq_from_i64(rows::get(row, 1)?);
    Ok(((session, seq), rows::get(row, 2)?))
}

/// Selects a passage and its neighbors, or all passages if a whole session is given.
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

    /// Includes all passages that share a block with any of them: the whole block is
    /// dropped.
    fn find_neighbors(
        &mut self,
        session: &OwnedSession,
        seq: Option<Seq>,
    ) -> Result<Vec<(OwnedSession, Seq)>, RecallError> {
        let near = self.select_numbered(session, SELECT_NEIGHBORS, seq)?;
        self.collect_purged_terms(session, seq)?;
        let mut touched: BTreeSet<(OwnedSession, Seq)> = BTreeSet::new();
        let mut blocks = BTreeSet::new();
        for (one, number) in near {
            if number >= 0 {
                blocks.insert(number / BLOCK_SPAN);
            }
            touched.insert(one);
        }
        for block in blocks {
            if !self.batch.dropped_blocks.insert((session.0.clone(), block)) {
                continue;
            }
            let first = block * BLOCK_SPAN;
            let range = params![session.0.as_str(), first, first + BLOCK_SPAN];
            let mates = block_on(self.tx()?.query(
                "reading a block",
                "SELECT session, seq, number FROM throughline.passage
                 WHERE owner = $1 AND number >= $2 AND number < $3",
                range,
            ))?;
            for row in &mates {
                touched.insert(decode_numbered(&session.0, row).map_err(to_recall_error)?.0);
            }
        }
        // Leave out the passages that are being removed.
        touched.retain(|(other, at)| other != session || seq.is_some_and(|seq| seq != *at));
        Ok(touched.into_iter().collect())
    }

    fn passages(
        &self,
        of: &OwnedSession,
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
        let (owner, session) = (of.0.as_str(), of.1.as_str());
        let (start, end) = (rows::seq_to_i64(range.start), rows::seq_to_i64(range.end));
        let most = rows::u64_to_i64(count as u64);
        let within = params![owner, session, start, end, most];
        let found = block_on(self.tx()?.query("reading indexed passages", &sql, within))?;
        let read = found.iter().map(decode_passage);
        let mut passages = read.collect::<Result<Vec<_>, RecallError>>()?;
        if last {
            passages.reverse();
        }
        Ok(passages)
    }

    fn remove(&mut self, session: &OwnedSession, seq: Option<Seq>) -> Result<(), RecallError> {
        match seq {
            Some(seq) => {
                self.batch.removed.insert((session.clone(), seq));
            }
            None => {
                self.batch.removed_sessions.insert(session.clone());
            }
        }
        Ok(())
    }

    fn put(&mut self, document: Document, _is_known: bool) -> Result<(), RecallError> {
        let passage = &document.stored.passage;
        let session = (passage.owner.clone(), passage.session.clone());
        self.batch.new.insert((session, passage.seq), document);
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
            // The result does not matter: a lost connection rolls back as well.
            let nothing = Fault::Store(StoreError::Closed);
            let undoing = async {
                tx.rollback(&nothing).await;
                Ok::<_, StoreError>(())
            };
            let _ = block_on(undoing);
        }
    }

    /// Does nothing: PostgreSQL's autovacuum removes deleted rows.
    fn vacuum(&mut self) -> Result<(), RecallError> {
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<(), RecallError> {
        self.rollback();
        Ok(())
    }
}

/// Passage keys as columns.
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

/// Deletes the passages that the batch removes or replaces.
async fn delete_passages(tx: &Tx, batch: &PendingWrites) -> Result<(), Fault> {
    let doing = "removing passages from the index";
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
            let slot = usize::try_from(number % BLOCK_SPAN).unwrap_or(0);
            let block = number / BLOCK_SPAN;
            blocks.entry((owner, block)).or_default().push(slot);
        }
    }
    for ((owner, block), slots) in blocks {
        clear_slots(tx, &owner, block, &slots).await?;
    }
    Ok(())
}

/// Marks slots of a block as empty; drops the block if no passage is left.
async fn clear_slots(tx: &Tx, owner: &str, block: i64, slots: &[usize]) -> Result<(), Fault> {
    let doing = "clearing slots of a block";
    let read = "SELECT lengths FROM throughline.block WHERE owner = $1 AND block = $2::bigint::int";
    let Some(row) = tx.query_opt(doing, read, params![owner, block]).await? else {
        return Ok(());
    };
    let mut lengths = decode_lengths(rows::get(&row, 0)?)?;
    for slot in slots {
        if let Some(length) = lengths.get_mut(*slot) {
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

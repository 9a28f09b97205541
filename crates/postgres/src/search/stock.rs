//! What a feeder writes to: the tables of the index, a transaction a batch.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use throughline_model::{Owner, Seq};
use throughline_recall::{Document, IndexState, Kept, Passage, Place, RecallError, Stock, terms};
use throughline_store::StoreError;
use tokio_postgres::Row;

use super::blocks::drop_block;
use super::fold::fold;
use super::postings::{Length, SPAN, read_lengths, write_lengths};
use super::scour::scour;
use super::vectors::Vectors;
use super::{MARK, MARK_DOING, make_mark, read_mark, refused, waiting};
use crate::PostgresStore;
use crate::error::Fault;
use crate::rows;
use crate::tx::{Purpose, Tx};

/// A passage's words are in documents that are so many passages away, at most.
const REACH: i64 = 2;

/// The index, open for writing.
pub(super) struct PostgresStock {
    store: PostgresStore,
    vectors: Vectors,
    /// The transaction of a batch, which holds the watermark.
    tx: Option<Tx>,
    batch: Batch,
}

/// What a batch changes.
#[derive(Default)]
pub(super) struct Batch {
    removed: BTreeSet<(Place, Seq)>,
    removed_whole: BTreeSet<Place>,
    pub(super) new: BTreeMap<(Place, Seq), Document>,
    /// Blocks that hold words of what is removed.
    dissolved: BTreeSet<(Owner, i64)>,
    /// The words of what is to be gone for good.
    gone: BTreeMap<Owner, BTreeSet<String>>,
}

impl PostgresStock {
    /// The index, or `None` while another feeds it.
    pub(super) fn try_new(store: &PostgresStore) -> Result<Option<Self>, RecallError> {
        let (tx, vectors, row) = waiting(async {
            let mut tx = store.serve(Purpose::Write).await?;
            if tx.optional(MARK_DOING, MARK, &[]).await?.is_none() {
                // By itself: whoever makes it at the same time waits for that only.
                let made = make_mark(&tx).await;
                tx.finish(made).await?;
                tx = store.serve(Purpose::Write).await?;
            }
            let vectors = Vectors::of(&tx).await?;
            let lock = format!("{MARK} FOR UPDATE SKIP LOCKED");
            let row = tx.optional(MARK_DOING, &lock, &[]).await?;
            Ok::<_, Fault>((tx, vectors, row))
        })?;
        let mut stock = Self {
            store: store.clone(),
            vectors,
            tx: Some(tx),
            batch: Batch::default(),
        };
        let Some(row) = row else {
            stock.undo();
            return Ok(None);
        };
        match read_mark(&row) {
            Ok(_) => Ok(Some(stock)),
            Err(error) => {
                stock.undo();
                Err(error)
            }
        }
    }

    fn tx(&self) -> Result<&Tx, RecallError> {
        self.tx.as_ref().ok_or_else(|| refused(StoreError::Closed))
    }

    /// Notes the words of a passage that is to be gone, or of all of a session's.
    fn note_words(&mut self, place: &Place, seq: Option<Seq>) -> Result<(), RecallError> {
        let (owner, session) = (place.0.as_str(), place.1.as_str());
        let found = waiting(self.tx()?.query(
            "reading what is to be gone",
            "SELECT kept FROM throughline.passage_text
             WHERE owner = $1 AND session = $2 AND ($3::bigint IS NULL OR seq = $3)",
            params![owner, session, seq.map(rows::seq)],
        ))?;
        let mut words = BTreeSet::new();
        for row in &found {
            let passage = read_kept(row)?;
            words.extend(terms(&passage.text));
            words.extend(terms(passage.author.as_deref().unwrap_or("")));
        }
        let gone = self.batch.gone.entry(place.0.clone()).or_default();
        gone.extend(words);
        Ok(())
    }

    /// The places that a statement gives.
    fn places(
        &self,
        place: &Place,
        sql: &str,
        seq: Option<Seq>,
    ) -> Result<Vec<Numbered>, RecallError> {
        let tx = self.tx()?;
        let (owner, session) = (place.0.as_str(), place.1.as_str());
        let seq = seq.map(rows::seq);
        let found = waiting(tx.query(
            "finding what is around a passage",
            sql,
            params![owner, session, seq, REACH],
        ))?;
        let read = found.iter().map(|row| numbered(&place.0, row));
        read.collect::<Result<_, _>>().map_err(refused)
    }
}

/// The passage in the first column of a row.
fn read_kept(row: &Row) -> Result<Passage, RecallError> {
    let kept: &str = rows::get(row, 0).map_err(refused)?;
    Ok(serde_json::from_str::<Kept>(kept)?.passage)
}

/// A passage with its number.
type Numbered = ((Place, Seq), i64);

fn numbered(owner: &Owner, row: &Row) -> Result<Numbered, StoreError> {
    let place = (owner.clone(), rows::parsed(row, 0)?);
    let seq = rows::to_seq(rows::get(row, 1)?);
    Ok(((place, seq), rows::get(row, 2)?))
}

/// A passage and those around it; of a whole session, all of its.
const NEAR: &str = "
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

impl Stock for PostgresStock {
    fn begin(&mut self) -> Result<IndexState, RecallError> {
        let lock = format!("{MARK} FOR UPDATE");
        let lock = if self.tx.is_some() { MARK } else { &lock };
        if self.tx.is_none() {
            self.tx = Some(waiting(self.store.serve(Purpose::Write))?);
        }
        let row = waiting(self.tx()?.optional(MARK_DOING, lock, &[]))?;
        let row = row.ok_or_else(|| refused(StoreError::Closed))?;
        Ok(read_mark(&row)?.state)
    }

    /// Also all that share a block with any of them: their words go with the block.
    fn around(
        &mut self,
        place: &Place,
        seq: Option<Seq>,
    ) -> Result<Vec<(Place, Seq)>, RecallError> {
        let near = self.places(place, NEAR, seq)?;
        self.note_words(place, seq)?;
        let mut touched: BTreeSet<(Place, Seq)> = BTreeSet::new();
        let mut blocks = BTreeSet::new();
        for (one, number) in near {
            if number >= 0 {
                blocks.insert(number / SPAN);
            }
            touched.insert(one);
        }
        for block in blocks {
            if !self.batch.dissolved.insert((place.0.clone(), block)) {
                continue;
            }
            let first = block * SPAN;
            let range = params![place.0.as_str(), first, first + SPAN];
            let mates = waiting(self.tx()?.query(
                "reading a block",
                "SELECT session, seq, number FROM throughline.passage
                 WHERE owner = $1 AND number >= $2 AND number < $3",
                range,
            ))?;
            for row in &mates {
                touched.insert(numbered(&place.0, row).map_err(refused)?.0);
            }
        }
        // What is asked about goes.
        touched.retain(|(other, at)| other != place || seq.is_some_and(|seq| seq != *at));
        Ok(touched.into_iter().collect())
    }

    fn passages(
        &self,
        place: &Place,
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
        let (start, end) = (rows::seq(range.start), rows::seq(range.end));
        let most = rows::number(count as u64);
        let within = params![owner, session, start, end, most];
        let found = waiting(self.tx()?.query("reading what was fed", &sql, within))?;
        let read = found.iter().map(read_kept);
        let mut passages = read.collect::<Result<Vec<_>, RecallError>>()?;
        if last {
            passages.reverse();
        }
        Ok(passages)
    }

    fn remove(&mut self, place: &Place, seq: Option<Seq>) -> Result<(), RecallError> {
        match seq {
            Some(seq) => {
                self.batch.removed.insert((place.clone(), seq));
            }
            None => {
                self.batch.removed_whole.insert(place.clone());
            }
        }
        Ok(())
    }

    fn put(&mut self, document: Document, _is_known: bool) -> Result<(), RecallError> {
        let passage = &document.kept.passage;
        let place = (passage.owner.clone(), passage.session.clone());
        self.batch.new.insert((place, passage.seq), document);
        Ok(())
    }

    fn commit(&mut self, state: &IndexState) -> Result<(), RecallError> {
        let anchors = serde_json::to_string(&state.anchors)?;
        let batch = std::mem::take(&mut self.batch);
        let vectors = self.vectors;
        let Some(tx) = self.tx.take() else {
            return Err(refused(StoreError::Closed));
        };
        waiting(async {
            let done = write(&tx, vectors, batch, (state.upto, anchors)).await;
            tx.finish(done).await
        })
    }

    fn undo(&mut self) {
        self.batch = Batch::default();
        if let Some(tx) = self.tx.take() {
            // Nothing hangs on it: a connection that is lost undoes it as well.
            let nothing = Fault::Store(StoreError::Closed);
            let undoing = async {
                tx.undo(&nothing).await;
                Ok::<_, StoreError>(())
            };
            let _ = waiting(undoing);
        }
    }

    /// Rows that are gone go with the next vacuum, as all others do.
    fn scrub(&mut self) -> Result<(), RecallError> {
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<(), RecallError> {
        self.undo();
        Ok(())
    }
}

/// Passages as columns.
#[derive(Default)]
struct Keys {
    owners: Vec<String>,
    sessions: Vec<String>,
    seqs: Vec<i64>,
}

impl Keys {
    fn of<'a>(keys: impl Iterator<Item = &'a (Place, Seq)>) -> Self {
        let mut all = Self::default();
        for ((owner, session), seq) in keys {
            all.owners.push(owner.as_str().to_owned());
            all.sessions.push(session.as_str().to_owned());
            all.seqs.push(rows::seq(*seq));
        }
        all
    }
}

async fn write(
    tx: &Tx,
    vectors: Vectors,
    batch: Batch,
    (upto, anchors): (u64, String),
) -> Result<(), Fault> {
    let doing = "writing to the index";
    take_out(tx, &batch).await?;
    for (owner, block) in &batch.dissolved {
        drop_block(tx, owner.as_str(), *block).await?;
    }
    for (owner, words) in &batch.gone {
        scour(tx, owner, words).await?;
    }
    let removes = !batch.gone.is_empty();
    fold(tx, vectors, batch.new).await?;
    tx.execute(
        doing,
        "UPDATE throughline.watermark SET upto = $1, anchors = $3,
             removals = removals + CASE WHEN $2 THEN 1 ELSE 0 END",
        params![rows::number(upto), removes, anchors],
    )
    .await?;
    Ok(())
}

/// Takes out what is removed, and what is written anew.
async fn take_out(tx: &Tx, batch: &Batch) -> Result<(), Fault> {
    let doing = "taking passages out of the index";
    let Keys {
        owners,
        sessions,
        seqs,
    } = Keys::of(batch.removed.iter().chain(batch.new.keys()));
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
    for (owner, session) in &batch.removed_whole {
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
            let place = usize::try_from(number % SPAN).unwrap_or(0);
            let block = number / SPAN;
            blocks.entry((owner, block)).or_default().push(place);
        }
    }
    for ((owner, block), places) in blocks {
        empty_places(tx, &owner, block, &places).await?;
    }
    Ok(())
}

/// Notes that places of a block are empty; drops a block that has no others.
async fn empty_places(tx: &Tx, owner: &str, block: i64, places: &[usize]) -> Result<(), Fault> {
    let doing = "emptying places of a block";
    let read = "SELECT lengths FROM throughline.block WHERE owner = $1 AND block = $2::bigint::int";
    let Some(row) = tx.optional(doing, read, params![owner, block]).await? else {
        return Ok(());
    };
    let mut lengths = read_lengths(rows::get(&row, 0)?)?;
    for place in places {
        if let Some(length) = lengths.get_mut(*place) {
            *length = Length::default();
        }
    }
    if lengths.iter().all(|length| length.is_none()) {
        return drop_block(tx, owner, block).await;
    }
    tx.execute(
        doing,
        "UPDATE throughline.block SET lengths = $3 WHERE owner = $1 AND block = $2::bigint::int",
        params![owner, block, write_lengths(&lengths)],
    )
    .await?;
    Ok(())
}

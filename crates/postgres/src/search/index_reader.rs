//! Implements the index reader: one snapshot of the tables, limited to one owner's scope.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::rc::Rc;

use futures_util::FutureExt as _;
use throughline_recall::{
    DocFrequencies, FuzzyTerm, IndexReader, PassageId, RecallError, Scope, StoredPassage,
    TermCounts, TopK, phrase_terms,
};
use throughline_store::StoreError;
use tokio_postgres::Row;

use super::blocks;
use super::filter::{PassageFilter, load_filter};
use super::postings::{BLOCK_SPAN, PassageLength, Posting, decode_postings, decode_terms};
use super::vectors::VectorStorage;
use super::{
    PASSAGE_JOIN, READING_WATERMARK, SELECT_WATERMARK, Watermark, block_on, decode_watermark,
    to_recall_error,
};
use crate::PostgresStore;
use crate::error::{Fault, damaged};
use crate::retry::retry;
use crate::rows;
use crate::tx::Tx;

/// The usual BM25 parameters: term frequency saturation and length normalization.
const K1: f32 = 1.2;
const B: f32 = 0.75;
/// This many passages in scope are enough to treat a term as frequent.
const MAX_COUNTED: usize = 1000;
/// How many passages are checked for a phrase per query.
const PHRASE_BATCH: usize = 500;

/// A snapshot of the index, limited to a scope.
pub(super) struct PostgresIndexReader {
    tx: Option<Tx>,
    owner: String,
    vectors: VectorStorage,
    watermark: Watermark,
    /// The passage lengths of each block.
    blocks: BTreeMap<i32, Vec<PassageLength>>,
    /// Passages that are not in a block yet.
    loose: Vec<(i64, TermCounts)>,
    filter: PassageFilter,
    /// The postings of each term looked up so far.
    postings_cache: RefCell<HashMap<String, Rc<[Posting]>>>,
    score_cache: RefCell<Option<ScoreCache>>,
}

/// The BM25 scores of all passages for a list of terms.
type ScoreCache = (Vec<String>, Rc<HashMap<i64, f32>>);

impl PostgresIndexReader {
    pub(super) fn new(
        store: &PostgresStore,
        scope: &Scope,
        phrases: &[String],
    ) -> Result<Self, RecallError> {
        let (tx, looked) = block_on(retry(store.inner.time_limit, |_| {
            Box::pin(async move {
                let tx = store.begin_read(&scope.owner).await?;
                match load_snapshot(&tx, scope).await {
                    Ok(looked) => Ok((tx, looked)),
                    Err(fault) => {
                        tx.rollback(&fault).await;
                        Err(fault)
                    }
                }
            })
        }))?;
        let mut sight = Self {
            tx: Some(tx),
            owner: scope.owner.as_str().to_owned(),
            vectors: looked.vectors,
            watermark: Watermark::default(),
            blocks: looked.blocks,
            loose: looked.loose,
            filter: looked.filter,
            postings_cache: RefCell::default(),
            score_cache: RefCell::default(),
        };
        if let Some(row) = &looked.watermark {
            sight.watermark = decode_watermark(row)?;
        }
        for phrase in phrases {
            sight.narrow_to_phrase(&phrase_terms(phrase))?;
        }
        Ok(sight)
    }

    fn tx(&self) -> Result<&Tx, RecallError> {
        self.tx
            .as_ref()
            .ok_or_else(|| to_recall_error(StoreError::Closed))
    }

    /// The postings of each term.
    fn postings(&self, terms: &[&str]) -> Result<Vec<Rc<[Posting]>>, RecallError> {
        let mut words = self.postings_cache.borrow_mut();
        let missing: BTreeSet<&str> = terms
            .iter()
            .copied()
            .filter(|term| !words.contains_key(*term))
            .collect();
        if !missing.is_empty() {
            let mut found = self.read_block_postings(&missing)?;
            for term in missing {
                let mut postings = found.remove(term).unwrap_or_default();
                postings.extend(self.loose.iter().filter_map(|(number, tally)| {
                    let (own, context) = tally.terms.get(term)?;
                    let byte = |count: u32| u8::try_from(count).unwrap_or(u8::MAX);
                    Some(Posting {
                        number: *number,
                        own: byte(*own),
                        context: byte(*context),
                    })
                }));
                words.insert(term.to_owned(), postings.into());
            }
        }
        let found = terms.iter().map(|term| Rc::clone(&words[*term]));
        Ok(found.collect())
    }

    /// The postings of each term within blocks.
    fn read_block_postings(
        &self,
        terms: &BTreeSet<&str>,
    ) -> Result<HashMap<String, Vec<Posting>>, RecallError> {
        let mut all: HashMap<String, Vec<Posting>> = HashMap::new();
        if self.blocks.is_empty() {
            return Ok(all);
        }
        let terms: Vec<&str> = terms.iter().copied().collect();
        let blocks: Vec<i32> = self.blocks.keys().copied().collect();
        let found = block_on(blocks::select_postings(
            self.tx()?,
            &self.owner,
            &blocks,
            &terms,
        ))?;
        let mut read = |row: &Row| -> Result<(), StoreError> {
            let block: i32 = rows::get(row, 0)?;
            let lengths = self.blocks.get(&block).map_or(&[][..], Vec::as_slice);
            let postings = all.entry(rows::get(row, 1)?).or_default();
            postings.extend(decode_postings(block, rows::get(row, 2)?, lengths)?);
            Ok(())
        };
        for row in &found {
            read(row).map_err(to_recall_error)?;
        }
        Ok(all)
    }

    /// The length of a passage in a block.
    fn block_length(&self, number: i64) -> PassageLength {
        let block = i32::try_from(number / BLOCK_SPAN).unwrap_or(-1);
        let place = usize::try_from(number % BLOCK_SPAN).unwrap_or(usize::MAX);
        let lengths = self.blocks.get(&block);
        lengths
            .and_then(|lengths| lengths.get(place))
            .copied()
            .unwrap_or_default()
    }

    /// The lengths of all passages.
    fn all_lengths(&self) -> impl Iterator<Item = PassageLength> {
        let blocks = self.blocks.values().flatten().copied();
        let loose = self.loose.iter().map(|(_, tally)| PassageLength::of(tally));
        blocks.filter(|length| !length.is_empty()).chain(loose)
    }

    /// Scores all passages that have any of the terms by BM25.
    ///
    /// Stop words have own counts but no context counts: they are used only if the query
    /// has no other terms.
    #[expect(clippy::cast_precision_loss, reason = "counts used in a formula")]
    fn bm25_scores(&self, terms: &[&str]) -> Result<Rc<HashMap<i64, f32>>, RecallError> {
        if let Some((of, scored)) = &*self.score_cache.borrow()
            && *of == terms
        {
            return Ok(Rc::clone(scored));
        }
        let with = self.postings(terms)?;
        let counts = with.iter().any(|one| one.iter().any(|one| one.context > 0));
        let times = |one: &Posting| if counts { one.context } else { one.own };
        let long = |length: PassageLength| if counts { length.context } else { length.own };
        let (mut all, mut sum) = (0_u64, 0_u64);
        for length in self.all_lengths() {
            all += 1;
            sum += u64::from(long(length));
        }
        let mean = (sum as f32 / all.max(1) as f32).max(1.0);
        let mut scores: HashMap<i64, f32> = HashMap::new();
        let loose = self.loose.iter();
        let loose: HashMap<i64, PassageLength> = loose
            .map(|(number, tally)| (*number, PassageLength::of(tally)))
            .collect();
        for postings in with {
            let n = postings.iter().filter(|one| times(one) > 0).count() as f32;
            let rarity = (1.0 + (all as f32 - n + 0.5) / (n + 0.5)).ln();
            for one in postings.iter().filter(|one| times(one) > 0) {
                let length = match loose.get(&one.number) {
                    Some(length) => *length,
                    None => self.block_length(one.number),
                };
                let norm = K1 * (1.0 - B + B * f32::from(long(length)) / mean);
                let times = f32::from(times(one));
                let score = rarity * (K1 + 1.0) * times / (times + norm);
                *scores.entry(one.number).or_default() += score;
            }
        }
        let scores = Rc::new(scores);
        let terms = terms.iter().map(|term| (*term).to_owned()).collect();
        *self.score_cache.borrow_mut() = Some((terms, Rc::clone(&scores)));
        Ok(scores)
    }

    /// Limits the reader to passages that contain these terms in sequence.
    fn narrow_to_phrase(&mut self, phrase: &[String]) -> Result<(), RecallError> {
        if phrase.is_empty() {
            return Ok(());
        }
        let terms: Vec<&str> = phrase.iter().map(String::as_str).collect();
        let mut with: Option<HashSet<i64>> = None;
        for postings in self.postings(&terms)? {
            let own = postings.iter().filter(|one| one.own > 0);
            let own: HashSet<i64> = own.map(|one| one.number).collect();
            with = Some(match with {
                None => own,
                Some(with) => with.intersection(&own).copied().collect(),
            });
        }
        let mut with: Vec<i64> = with.unwrap_or_default().into_iter().collect();
        with.retain(|number| self.filter.contains(*number));
        if phrase.len() > 1 {
            let mut matching = Vec::new();
            for some in with.chunks(PHRASE_BATCH) {
                for (number, (kept, _)) in some.iter().zip(self.read_passages(some, &[])?) {
                    let words = phrase_terms(&kept.passage.text);
                    if words.windows(phrase.len()).any(|some| some == phrase) {
                        matching.push(*number);
                    }
                }
            }
            with = matching;
        }
        self.filter = PassageFilter::Only(with.into_iter().collect());
        Ok(())
    }

    /// Reads stored passages and their similarity to a vector, in the order of `numbers`.
    fn read_passages(
        &self,
        numbers: &[i64],
        vector: &[f32],
    ) -> Result<Vec<(StoredPassage, f32)>, RecallError> {
        let similarity = if vector.is_empty() {
            "0::real, $3::text"
        } else {
            self.vectors.similarity_sql()
        };
        let sql = format!(
            "SELECT p.number, t.kept, {similarity} FROM {PASSAGE_JOIN}
             WHERE p.owner = $1 AND p.number = ANY ($2)"
        );
        let vector_param = self.vectors.similarity_param(vector);
        let params = params![self.owner, numbers, vector_param];
        let found = block_on(self.tx()?.query("reading passages", &sql, params))?;
        let mut read: HashMap<i64, (StoredPassage, f32)> = HashMap::new();
        for row in &found {
            let similarity = if vector.is_empty() {
                Ok(0.0)
            } else {
                self.vectors.decode_similarity(row, 2, vector)
            };
            let number = rows::get(row, 0).map_err(to_recall_error)?;
            let stored: &str = rows::get(row, 1).map_err(to_recall_error)?;
            let stored = serde_json::from_str(stored)?;
            read.insert(number, (stored, similarity.map_err(to_recall_error)?));
        }
        let one = |number: &i64| {
            read.remove(number)
                .ok_or_else(|| to_recall_error(damaged("the index", "a term has no passage")))
        };
        numbers.iter().map(one).collect()
    }

    /// The terms within the edit distance of a misspelled term; the query filters by length
    /// only.
    fn find_similar_terms(
        &self,
        term: &str,
        spelling: &FuzzyTerm,
    ) -> Result<BTreeSet<String>, RecallError> {
        let letters = i64::try_from(term.chars().count()).unwrap_or(i64::MAX);
        let most = i64::from(spelling.max_distance());
        let blocks: Vec<i32> = self.blocks.keys().copied().collect();
        let found = block_on(self.tx()?.query(
            "finding similar terms",
            "SELECT DISTINCT term FROM throughline.word
             WHERE owner = $1 AND block = ANY ($2::int[]) AND own > 0
                 AND char_length(term) BETWEEN $3::bigint AND $4::bigint",
            params![self.owner, blocks, letters - most, letters + most],
        ))?;
        let mut terms = BTreeSet::new();
        for row in &found {
            terms.insert(rows::get::<String>(row, 0).map_err(to_recall_error)?);
        }
        for (_, tally) in &self.loose {
            let own_terms = tally.terms.iter().filter(|(_, (own, _))| *own > 0);
            terms.extend(own_terms.map(|(term, _)| term.clone()));
        }
        terms.retain(|other| spelling.distance(other).is_some());
        Ok(terms)
    }
}

/// What every search loads first: the watermark, the passage lengths, the passages in no
/// block, and the filter.
struct ReaderSnapshot {
    watermark: Option<Row>,
    vectors: VectorStorage,
    blocks: BTreeMap<i32, Vec<PassageLength>>,
    loose: Vec<(i64, TermCounts)>,
    filter: PassageFilter,
}

async fn load_snapshot(tx: &Tx, scope: &Scope) -> Result<ReaderSnapshot, Fault> {
    let owner = scope.owner.as_str();
    let mark = tx
        .query_opt(READING_WATERMARK, SELECT_WATERMARK, &[])
        .await?;
    let found = tx
        .query(
            "reading passages that are in no block",
            &format!(
                "SELECT p.number, coalesce(t.terms, '') FROM {PASSAGE_JOIN}
                 WHERE p.owner = $1 AND p.number < 0"
            ),
            params![owner],
        )
        .await?;
    let mut loose = Vec::with_capacity(found.len());
    for row in &found {
        loose.push((rows::get(row, 0)?, decode_terms(rows::get(row, 1)?)?));
    }
    Ok(ReaderSnapshot {
        watermark: mark,
        vectors: VectorStorage::detect(tx).await?,
        blocks: blocks::load_lengths(tx, owner).await?,
        loose,
        filter: load_filter(tx, scope).await?,
    })
}

impl IndexReader for PostgresIndexReader {
    fn watermark(&self) -> u64 {
        self.watermark.state.upto
    }

    fn doc_frequencies(&self, terms: &[&str]) -> Result<DocFrequencies, RecallError> {
        let with = self.postings(terms)?;
        let said = |postings: &Rc<[Posting]>| {
            let said = postings.iter().filter(|one| one.own > 0);
            said.count() as u64
        };
        Ok(DocFrequencies {
            counts: with.iter().map(said).collect(),
            total: self.all_lengths().count() as u64,
        })
    }

    fn complete_prefix(&self, prefix: &str, count: usize) -> Result<Vec<String>, RecallError> {
        let blocks: Vec<i32> = self.blocks.keys().copied().collect();
        // No term contains a character beyond this one.
        let end = format!("{prefix}\u{10ffff}");
        let found = block_on(self.tx()?.query(
            "completing a term",
            "SELECT term, sum(own) FROM throughline.word
             WHERE owner = $1 AND block = ANY ($2::int[]) AND term >= $3 AND term < $4
                 AND own > 0
             GROUP BY term",
            params![self.owner, blocks, prefix, end],
        ))?;
        let mut terms: HashMap<String, i64> = HashMap::new();
        for row in &found {
            let term = rows::get(row, 0).map_err(to_recall_error)?;
            terms.insert(term, rows::get(row, 1).map_err(to_recall_error)?);
        }
        for (_, tally) in &self.loose {
            for (term, (own, _)) in tally.terms.range(prefix.to_owned()..end.clone()) {
                *terms.entry(term.clone()).or_default() += i64::from(*own > 0);
            }
        }
        let mut terms: Vec<_> = terms.into_iter().filter(|(_, times)| *times > 0).collect();
        terms.sort_by(|(a, many), (b, more)| more.cmp(many).then_with(|| a.cmp(b)));
        Ok(terms
            .into_iter()
            .take(count)
            .map(|(term, _)| term)
            .collect())
    }

    fn correct_spelling(&self, term: &str) -> Result<Option<String>, RecallError> {
        let Some(spelling) = FuzzyTerm::new(term) else {
            return Ok(None);
        };
        let like = self.find_similar_terms(term, &spelling)?;
        let terms: Vec<&str> = like.iter().map(String::as_str).collect();
        let mut best: Option<(u8, usize, &str)> = None;
        for (other, postings) in terms.iter().zip(self.postings(&terms)?) {
            let Some(away) = spelling.distance(other) else {
                continue;
            };
            let said = postings
                .iter()
                .filter(|one| one.own > 0 && self.filter.contains(one.number));
            let said = said.take(MAX_COUNTED).count();
            let better =
                best.is_none_or(|(least, most, _)| away < least || (away == least && said > most));
            if said > 0 && better {
                best = Some((away, said, other));
            }
        }
        Ok(best.map(|(_, _, term)| term.to_owned()))
    }

    fn search_text(
        &self,
        terms: &[&str],
        count: usize,
    ) -> Result<Vec<(f32, PassageId)>, RecallError> {
        let mut best = TopK::new(count);
        let scored = self.bm25_scores(terms)?;
        // Sorted, so that ties are always broken the same way.
        let mut scored: Vec<_> = scored.iter().collect();
        scored.sort_unstable_by_key(|(number, _)| from_passage_number(**number));
        for (number, score) in scored {
            if self.filter.contains(*number) {
                best.offer(*score, from_passage_number(*number));
            }
        }
        Ok(best.into_sorted())
    }

    fn text_scores(&self, terms: &[&str], at: &[PassageId]) -> Result<Vec<f32>, RecallError> {
        let scored = self.bm25_scores(terms)?;
        let score = |at: &PassageId| scored.get(&to_passage_number(*at)).copied().unwrap_or(0.0);
        Ok(at.iter().map(score).collect())
    }

    fn nearest_vectors(
        &self,
        vector: &[f32],
        count: usize,
    ) -> Result<Vec<(f32, PassageId)>, RecallError> {
        let tx = self.tx()?;
        let nearest = self
            .vectors
            .nearest_vectors(tx, &self.owner, &self.filter, vector, count);
        block_on(nearest)
    }

    fn read_passages(
        &self,
        at: &[PassageId],
        vector: &[f32],
    ) -> Result<Vec<(StoredPassage, f32)>, RecallError> {
        let numbers: Vec<i64> = at.iter().map(|at| to_passage_number(*at)).collect();
        self.read_passages(&numbers, vector)
    }
}

impl Drop for PostgresIndexReader {
    fn drop(&mut self) {
        if let Some(tx) = self.tx.take() {
            // A read-only transaction ends without waiting for the result.
            let _ = tx.finish(Ok(())).now_or_never();
        }
    }
}

/// Converts a passage number to a passage id.
pub(super) fn from_passage_number(number: i64) -> PassageId {
    PassageId(number.cast_unsigned())
}

fn to_passage_number(PassageId(at): PassageId) -> i64 {
    at.cast_signed()
}

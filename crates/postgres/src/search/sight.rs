//! What a search sees of the tables: one state of them, on behalf of one owner.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::rc::Rc;

use futures_util::FutureExt as _;
use throughline_recall::{
    At, Best, Kept, RecallError, Scope, Sight, Spelling, Spread, Tally, in_order,
};
use throughline_store::StoreError;
use tokio_postgres::Row;

use super::blocks;
use super::filter::{Allowed, allowed};
use super::postings::{Length, Posting, SPAN, read_postings, read_tally};
use super::vectors::Vectors;
use super::{MARK, MARK_DOING, Mark, PASSAGES, read_mark, refused, waiting};
use crate::PostgresStore;
use crate::error::{Fault, damaged};
use crate::patience::patiently;
use crate::rows;
use crate::tx::Tx;

/// How much saying a word again adds, and how much length takes: as is usual.
const K1: f32 = 1.2;
const B: f32 = 0.75;
/// So many passages in scope are enough to know that a word is frequent there.
const FREQUENT: usize = 1000;
/// So many passages are looked through for phrases at once.
const AT_ONCE: usize = 500;

/// One state of the index, narrowed.
pub(super) struct PostgresSight {
    tx: Option<Tx>,
    owner: String,
    vectors: Vectors,
    mark: Mark,
    /// The lengths of each block's passages.
    blocks: BTreeMap<i32, Vec<Length>>,
    /// Passages that are in no block.
    loose: Vec<(i64, Tally)>,
    allowed: Allowed,
    /// The passages with each word that was asked for.
    words: RefCell<HashMap<String, Rc<[Posting]>>>,
    scored: RefCell<Option<Scored>>,
}

/// The scores of all passages for some terms.
type Scored = (Vec<String>, Rc<HashMap<i64, f32>>);

impl PostgresSight {
    pub(super) fn new(
        store: &PostgresStore,
        scope: &Scope,
        phrases: &[String],
    ) -> Result<Self, RecallError> {
        let (tx, looked) = waiting(patiently(store.shared.patience, |_| {
            Box::pin(async move {
                let tx = store.read(&scope.owner).await?;
                match look(&tx, scope).await {
                    Ok(looked) => Ok((tx, looked)),
                    Err(fault) => {
                        tx.undo(&fault).await;
                        Err(fault)
                    }
                }
            })
        }))?;
        let mut sight = Self {
            tx: Some(tx),
            owner: scope.owner.as_str().to_owned(),
            vectors: looked.vectors,
            mark: Mark::default(),
            blocks: looked.blocks,
            loose: looked.loose,
            allowed: looked.allowed,
            words: RefCell::default(),
            scored: RefCell::default(),
        };
        if let Some(row) = &looked.mark {
            sight.mark = read_mark(row)?;
        }
        for phrase in phrases {
            sight.narrow_to(&in_order(phrase))?;
        }
        Ok(sight)
    }

    fn tx(&self) -> Result<&Tx, RecallError> {
        self.tx.as_ref().ok_or_else(|| refused(StoreError::Closed))
    }

    /// The passages with each of some terms.
    fn with(&self, terms: &[&str]) -> Result<Vec<Rc<[Posting]>>, RecallError> {
        let mut words = self.words.borrow_mut();
        let missing: BTreeSet<&str> = terms
            .iter()
            .copied()
            .filter(|term| !words.contains_key(*term))
            .collect();
        if !missing.is_empty() {
            let mut found = self.read_words(&missing)?;
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

    /// The passages in blocks that have each of some terms.
    fn read_words(
        &self,
        terms: &BTreeSet<&str>,
    ) -> Result<HashMap<String, Vec<Posting>>, RecallError> {
        let mut all: HashMap<String, Vec<Posting>> = HashMap::new();
        if self.blocks.is_empty() {
            return Ok(all);
        }
        let terms: Vec<&str> = terms.iter().copied().collect();
        let blocks: Vec<i32> = self.blocks.keys().copied().collect();
        let found = waiting(blocks::words(self.tx()?, &self.owner, &blocks, &terms))?;
        let mut read = |row: &Row| -> Result<(), StoreError> {
            let block: i32 = rows::get(row, 0)?;
            let lengths = self.blocks.get(&block).map_or(&[][..], Vec::as_slice);
            let postings = all.entry(rows::get(row, 1)?).or_default();
            postings.extend(read_postings(block, rows::get(row, 2)?, lengths)?);
            Ok(())
        };
        for row in &found {
            read(row).map_err(refused)?;
        }
        Ok(all)
    }

    /// How long a passage in a block is.
    fn length(&self, number: i64) -> Length {
        let block = i32::try_from(number / SPAN).unwrap_or(-1);
        let place = usize::try_from(number % SPAN).unwrap_or(usize::MAX);
        let lengths = self.blocks.get(&block);
        lengths
            .and_then(|lengths| lengths.get(place))
            .copied()
            .unwrap_or_default()
    }

    /// All lengths of passages that are there.
    fn lengths(&self) -> impl Iterator<Item = Length> {
        let blocks = self.blocks.values().flatten().copied();
        let loose = self.loose.iter().map(|(_, tally)| Length::of(tally));
        blocks.filter(|length| !length.is_none()).chain(loose)
    }

    /// The scores of all passages with some of the terms, by BM25.
    ///
    /// Stop words are said and do not count: they serve a query that has no others.
    #[expect(
        clippy::cast_precision_loss,
        reason = "counts of passages and words, to be put in a formula"
    )]
    fn scored(&self, terms: &[&str]) -> Result<Rc<HashMap<i64, f32>>, RecallError> {
        if let Some((of, scored)) = &*self.scored.borrow()
            && *of == terms
        {
            return Ok(Rc::clone(scored));
        }
        let with = self.with(terms)?;
        let counts = with.iter().any(|one| one.iter().any(|one| one.context > 0));
        let times = |one: &Posting| if counts { one.context } else { one.own };
        let long = |length: Length| if counts { length.context } else { length.own };
        let (mut all, mut sum) = (0_u64, 0_u64);
        for length in self.lengths() {
            all += 1;
            sum += u64::from(long(length));
        }
        let mean = (sum as f32 / all.max(1) as f32).max(1.0);
        let mut scores: HashMap<i64, f32> = HashMap::new();
        let loose = self.loose.iter();
        let loose: HashMap<i64, Length> = loose
            .map(|(number, tally)| (*number, Length::of(tally)))
            .collect();
        for postings in with {
            let n = postings.iter().filter(|one| times(one) > 0).count() as f32;
            let rarity = (1.0 + (all as f32 - n + 0.5) / (n + 0.5)).ln();
            for one in postings.iter().filter(|one| times(one) > 0) {
                let length = match loose.get(&one.number) {
                    Some(length) => *length,
                    None => self.length(one.number),
                };
                let norm = K1 * (1.0 - B + B * f32::from(long(length)) / mean);
                let times = f32::from(times(one));
                let score = rarity * (K1 + 1.0) * times / (times + norm);
                *scores.entry(one.number).or_default() += score;
            }
        }
        let scores = Rc::new(scores);
        let terms = terms.iter().map(|term| (*term).to_owned()).collect();
        *self.scored.borrow_mut() = Some((terms, Rc::clone(&scores)));
        Ok(scores)
    }

    /// Leaves in sight what says these terms one after the other.
    fn narrow_to(&mut self, phrase: &[String]) -> Result<(), RecallError> {
        if phrase.is_empty() {
            return Ok(());
        }
        let terms: Vec<&str> = phrase.iter().map(String::as_str).collect();
        let mut with: Option<HashSet<i64>> = None;
        for postings in self.with(&terms)? {
            let said = postings.iter().filter(|one| one.own > 0);
            let said: HashSet<i64> = said.map(|one| one.number).collect();
            with = Some(match with {
                None => said,
                Some(with) => with.intersection(&said).copied().collect(),
            });
        }
        let mut with: Vec<i64> = with.unwrap_or_default().into_iter().collect();
        with.retain(|number| self.allowed.contains(*number));
        if phrase.len() > 1 {
            let mut say_it = Vec::new();
            for some in with.chunks(AT_ONCE) {
                for (number, (kept, _)) in some.iter().zip(self.read_numbers(some, &[])?) {
                    let said = in_order(&kept.passage.text);
                    if said.windows(phrase.len()).any(|some| some == phrase) {
                        say_it.push(*number);
                    }
                }
            }
            with = say_it;
        }
        self.allowed = Allowed::Only(with.into_iter().collect());
        Ok(())
    }

    /// What is kept of passages, and how like a vector they are, in the order asked for.
    fn read_numbers(
        &self,
        numbers: &[i64],
        vector: &[f32],
    ) -> Result<Vec<(Kept, f32)>, RecallError> {
        let likeness = if vector.is_empty() {
            "0::real, $3::text"
        } else {
            self.vectors.likeness()
        };
        let sql = format!(
            "SELECT p.number, t.kept, {likeness} FROM {PASSAGES}
             WHERE p.owner = $1 AND p.number = ANY ($2)"
        );
        let asked = self.vectors.asked(vector);
        let given = params![self.owner, numbers, asked];
        let found = waiting(self.tx()?.query("reading passages", &sql, given))?;
        let mut read: HashMap<i64, (Kept, f32)> = HashMap::new();
        for row in &found {
            let likeness = if vector.is_empty() {
                Ok(0.0)
            } else {
                self.vectors.read_likeness(row, 2, vector)
            };
            let number = rows::get(row, 0).map_err(refused)?;
            let kept: &str = rows::get(row, 1).map_err(refused)?;
            let kept = serde_json::from_str(kept)?;
            read.insert(number, (kept, likeness.map_err(refused)?));
        }
        let one = |number: &i64| {
            read.remove(number)
                .ok_or_else(|| refused(damaged("the index", "it has words of no passage")))
        };
        numbers.iter().map(one).collect()
    }

    /// The terms in blocks that could be spelled so, as far as lengths tell.
    fn terms_like(&self, term: &str, spelling: &Spelling) -> Result<BTreeSet<String>, RecallError> {
        let letters = i64::try_from(term.chars().count()).unwrap_or(i64::MAX);
        let most = i64::from(spelling.most());
        let blocks: Vec<i32> = self.blocks.keys().copied().collect();
        let found = waiting(self.tx()?.query(
            "finding how a word is spelled",
            "SELECT DISTINCT term FROM throughline.word
             WHERE owner = $1 AND block = ANY ($2::int[]) AND own > 0
                 AND char_length(term) BETWEEN $3::bigint AND $4::bigint",
            params![self.owner, blocks, letters - most, letters + most],
        ))?;
        let mut terms = BTreeSet::new();
        for row in &found {
            terms.insert(rows::get::<String>(row, 0).map_err(refused)?);
        }
        for (_, tally) in &self.loose {
            let said = tally.terms.iter().filter(|(_, (own, _))| *own > 0);
            terms.extend(said.map(|(term, _)| term.clone()));
        }
        terms.retain(|other| spelling.away(other).is_some());
        Ok(terms)
    }
}

/// What every search needs: how far the index goes, how long the owner's passages are, those
/// in no block, and what of them all is in scope.
struct Looked {
    mark: Option<Row>,
    vectors: Vectors,
    blocks: BTreeMap<i32, Vec<Length>>,
    loose: Vec<(i64, Tally)>,
    allowed: Allowed,
}

async fn look(tx: &Tx, scope: &Scope) -> Result<Looked, Fault> {
    let owner = scope.owner.as_str();
    let mark = tx.optional(MARK_DOING, MARK, &[]).await?;
    let found = tx
        .query(
            "reading passages that are in no block",
            &format!(
                "SELECT p.number, coalesce(t.terms, '') FROM {PASSAGES}
                 WHERE p.owner = $1 AND p.number < 0"
            ),
            params![owner],
        )
        .await?;
    let mut loose = Vec::with_capacity(found.len());
    for row in &found {
        loose.push((rows::get(row, 0)?, read_tally(rows::get(row, 1)?)?));
    }
    Ok(Looked {
        mark,
        vectors: Vectors::of(tx).await?,
        blocks: blocks::lengths(tx, owner).await?,
        loose,
        allowed: allowed(tx, scope).await?,
    })
}

impl Sight for PostgresSight {
    fn watermark(&self) -> u64 {
        self.mark.state.upto
    }

    fn spread(&self, terms: &[&str]) -> Result<Spread, RecallError> {
        let with = self.with(terms)?;
        let said = |postings: &Rc<[Posting]>| {
            let said = postings.iter().filter(|one| one.own > 0);
            said.count() as u64
        };
        Ok(Spread {
            with: with.iter().map(said).collect(),
            all: self.lengths().count() as u64,
        })
    }

    fn endings(&self, prefix: &str, count: usize) -> Result<Vec<String>, RecallError> {
        let blocks: Vec<i32> = self.blocks.keys().copied().collect();
        // No term holds a letter past this one.
        let end = format!("{prefix}\u{10ffff}");
        let found = waiting(self.tx()?.query(
            "finding how a word may end",
            "SELECT term, sum(own) FROM throughline.word
             WHERE owner = $1 AND block = ANY ($2::int[]) AND term >= $3 AND term < $4
                 AND own > 0
             GROUP BY term",
            params![self.owner, blocks, prefix, end],
        ))?;
        let mut terms: HashMap<String, i64> = HashMap::new();
        for row in &found {
            let term = rows::get(row, 0).map_err(refused)?;
            terms.insert(term, rows::get(row, 1).map_err(refused)?);
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

    fn nearest(&self, term: &str) -> Result<Option<String>, RecallError> {
        let Some(spelling) = Spelling::of(term) else {
            return Ok(None);
        };
        let like = self.terms_like(term, &spelling)?;
        let terms: Vec<&str> = like.iter().map(String::as_str).collect();
        let mut best: Option<(u8, usize, &str)> = None;
        for (other, postings) in terms.iter().zip(self.with(&terms)?) {
            let Some(away) = spelling.away(other) else {
                continue;
            };
            let said = postings
                .iter()
                .filter(|one| one.own > 0 && self.allowed.contains(one.number));
            let said = said.take(FREQUENT).count();
            let better =
                best.is_none_or(|(least, most, _)| away < least || (away == least && said > most));
            if said > 0 && better {
                best = Some((away, said, other));
            }
        }
        Ok(best.map(|(_, _, term)| term.to_owned()))
    }

    fn by_words(&self, terms: &[&str], count: usize) -> Result<Vec<(f32, At)>, RecallError> {
        let mut best = Best::new(count);
        let scored = self.scored(terms)?;
        // In order, so that of equals always the same are taken.
        let mut scored: Vec<_> = scored.iter().collect();
        scored.sort_unstable_by_key(|(number, _)| to_at(**number));
        for (number, score) in scored {
            if self.allowed.contains(*number) {
                best.offer(*score, to_at(*number));
            }
        }
        Ok(best.into_sorted())
    }

    fn scores(&self, terms: &[&str], at: &[At]) -> Result<Vec<f32>, RecallError> {
        let scored = self.scored(terms)?;
        let score = |at: &At| scored.get(&to_number(*at)).copied().unwrap_or(0.0);
        Ok(at.iter().map(score).collect())
    }

    fn by_likeness(&self, vector: &[f32], count: usize) -> Result<Vec<(f32, At)>, RecallError> {
        let tx = self.tx()?;
        let nearest = self
            .vectors
            .nearest(tx, &self.owner, &self.allowed, vector, count);
        waiting(nearest)
    }

    fn read(&self, at: &[At], vector: &[f32]) -> Result<Vec<(Kept, f32)>, RecallError> {
        let numbers: Vec<i64> = at.iter().map(|at| to_number(*at)).collect();
        self.read_numbers(&numbers, vector)
    }
}

impl Drop for PostgresSight {
    fn drop(&mut self) {
        if let Some(tx) = self.tx.take() {
            // A transaction that only reads ends without an answer.
            let _ = tx.finish(Ok(())).now_or_never();
        }
    }
}

/// Where a passage is, by its number.
pub(super) fn to_at(number: i64) -> At {
    At(number.cast_unsigned())
}

fn to_number(At(at): At) -> i64 {
    at.cast_signed()
}

//! Inserts passages into the index.
//!
//! New passages are stored with their own term list; once an owner has enough of them, they
//! are packed into blocks.

use std::collections::BTreeMap;

use throughline_model::Seq;
use throughline_recall::{Document, OwnedSession, TermCounts};

use super::PASSAGE_JOIN;
use super::postings::{BLOCK_SIZE, BLOCK_SPAN, Block, decode_terms, encode_lengths, encode_terms};
use super::vectors::VectorStorage;
use crate::error::{Fault, damaged};
use crate::rows;
use crate::tx::Tx;

/// The fewest passages of an owner that make a block; fewer are scanned one by one.
const MIN_BLOCK_SIZE: usize = 128;

/// Separates names in a list.
pub(super) const SEPARATOR: char = '\u{1f}';

/// Inserts passages that are not in the index.
pub(super) async fn insert_passages(
    tx: &Tx,
    vectors: VectorStorage,
    new: BTreeMap<(OwnedSession, Seq), Document>,
) -> Result<(), Fault> {
    let mut owners: BTreeMap<String, Vec<Document>> = BTreeMap::new();
    for (((owner, _), _), document) in new {
        let of_owner = owners.entry(owner.as_str().to_owned()).or_default();
        of_owner.push(document);
    }
    let names: Vec<&String> = owners.keys().collect();
    let loose = tx
        .query(
            "counting passages that are in no block",
            "SELECT owner, count(*) FROM throughline.passage
             WHERE owner = ANY ($1) AND number < 0 GROUP BY owner",
            params![names],
        )
        .await?;
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for row in &loose {
        let count: i64 = rows::get(row, 1)?;
        counts.insert(rows::get(row, 0)?, usize::try_from(count).unwrap_or(0));
    }
    let mut columns = PassageRows::default();
    for (owner, documents) in owners {
        let before = counts.get(&owner).copied().unwrap_or(0);
        let new: Vec<(Document, TermCounts)> = documents
            .into_iter()
            .map(|document| {
                let tally = document.count_terms();
                (document, tally)
            })
            .collect();
        let numbers = if before + new.len() >= MIN_BLOCK_SIZE {
            build_blocks(tx, &owner, &new).await?
        } else {
            vec![None; new.len()]
        };
        for ((document, tally), number) in new.iter().zip(numbers) {
            columns.add(vectors, document, tally, number)?;
        }
    }
    columns.insert(tx, vectors).await
}

/// Packs all passages that are in no block into blocks; returns the numbers of the new
/// ones.
async fn build_blocks(
    tx: &Tx,
    owner: &str,
    new: &[(Document, TermCounts)],
) -> Result<Vec<Option<i64>>, Fault> {
    let doing = "building blocks";
    let loose = tx
        .query(
            doing,
            &format!(
                "SELECT p.session, p.seq, t.terms FROM {PASSAGE_JOIN}
                 WHERE p.owner = $1 AND p.number < 0 ORDER BY p.number DESC"
            ),
            params![owner],
        )
        .await?;
    let last = "SELECT coalesce(max(block), -1)::bigint FROM throughline.block WHERE owner = $1";
    let last = tx.query(doing, last, params![owner]).await?;
    let mut block: i64 = match last.first() {
        Some(row) => rows::get::<i64>(row, 0)? + 1,
        None => 0,
    };
    let mut old: Vec<TermCounts> = Vec::new();
    for row in &loose {
        let terms: Option<&str> = rows::get(row, 2)?;
        let terms = terms.ok_or_else(|| damaged("a passage in no block", "it has no terms"))?;
        old.push(decode_terms(terms)?);
    }
    let all: Vec<&TermCounts> = old
        .iter()
        .chain(new.iter().map(|(_, tally)| tally))
        .collect();
    let mut numbers: Vec<Option<i64>> = Vec::with_capacity(all.len());
    for some in all.chunks(BLOCK_SIZE) {
        if some.len() < MIN_BLOCK_SIZE {
            numbers.extend(some.iter().map(|_| None));
            continue;
        }
        write_block(tx, owner, block, &Block::of(some.iter().copied())).await?;
        let first = block * BLOCK_SPAN;
        numbers.extend((first..).zip(some).map(|(number, _)| Some(number)));
        block += 1;
    }
    let mut folded = (Vec::new(), Vec::new(), Vec::new());
    for (row, number) in loose.iter().zip(&numbers) {
        if let Some(number) = number {
            folded.0.push(rows::get::<String>(row, 0)?);
            folded.1.push(rows::get::<i64>(row, 1)?);
            folded.2.push(*number);
        }
    }
    if !folded.0.is_empty() {
        let keys = "FROM unnest($2::text[], $3::bigint[], $4::bigint[]) AS k (session, seq, number)
            WHERE t.owner = $1 AND t.session = k.session AND t.seq = k.seq";
        let number = format!("UPDATE throughline.passage t SET number = k.number {keys}");
        let which = params![owner, folded.0, folded.1, folded.2];
        tx.execute(doing, &number, which).await?;
        let terms = "UPDATE throughline.passage_text t SET terms = NULL
            FROM unnest($2::text[], $3::bigint[]) AS k (session, seq)
            WHERE t.owner = $1 AND t.session = k.session AND t.seq = k.seq";
        tx.execute(doing, terms, &which[..3]).await?;
    }
    Ok(numbers.split_off(old.len()))
}

async fn write_block(tx: &Tx, owner: &str, block: i64, made: &Block<'_>) -> Result<(), Fault> {
    let doing = "writing a block";
    tx.execute(
        doing,
        "INSERT INTO throughline.block (owner, block, lengths) VALUES ($1, $2::bigint::int, $3)",
        params![owner, block, encode_lengths(&made.lengths)],
    )
    .await?;
    let (mut terms, mut owns, mut postings) = (Vec::new(), Vec::new(), Vec::new());
    for (term, (own, bytes)) in &made.terms {
        terms.push(*term);
        owns.push(*own);
        postings.push(bytes.as_slice());
    }
    tx.execute(
        doing,
        "INSERT INTO throughline.word (owner, block, term, own, postings)
         SELECT $1, $2::bigint::int, * FROM unnest($3::text[], $4::smallint[], $5::bytea[])",
        params![owner, block, terms, owns, postings],
    )
    .await?;
    Ok(())
}

/// New passage rows, column by column.
#[derive(Default)]
struct PassageRows {
    owners: Vec<String>,
    sessions: Vec<String>,
    seqs: Vec<i64>,
    numbers: Vec<Option<i64>>,
    roles: Vec<&'static str>,
    ats: Vec<i64>,
    authors: Vec<String>,
    files: Vec<String>,
    vectors: super::vectors::VectorColumn,
    stored: Vec<String>,
    terms: Vec<Option<String>>,
    origin_links: (Vec<String>, Vec<String>, Vec<String>, Vec<i64>),
}

impl PassageRows {
    fn add(
        &mut self,
        vectors: VectorStorage,
        document: &Document,
        tally: &TermCounts,
        number: Option<i64>,
    ) -> Result<(), Fault> {
        let passage = &document.stored.passage;
        let (owner, session) = (passage.owner.as_str(), passage.session.as_str());
        let seq = rows::seq_to_i64(passage.seq);
        let mut origins: Vec<&str> = document
            .neighbors
            .iter()
            .map(|(other, _)| other.as_str())
            .filter(|other| *other != session)
            .collect();
        origins.dedup();
        for origin in origins {
            self.origin_links.0.push(owner.to_owned());
            self.origin_links.1.push(origin.to_owned());
            self.origin_links.2.push(session.to_owned());
            self.origin_links.3.push(seq);
        }
        self.owners.push(owner.to_owned());
        self.sessions.push(session.to_owned());
        self.seqs.push(seq);
        self.numbers.push(number);
        self.roles.push(passage.role.as_str());
        self.ats.push(passage.at.as_microsecond());
        self.authors.push(join_names(&document.authors));
        self.files.push(join_names(&document.files));
        self.vectors.push(vectors, &document.vector);
        self.stored.push(rows::to_json(&document.stored)?);
        self.terms.push(match number {
            Some(_) => None,
            None => Some(encode_terms(tally)),
        });
        Ok(())
    }

    async fn insert(self, tx: &Tx, vectors: VectorStorage) -> Result<(), Fault> {
        let doing = "writing passages";
        if self.seqs.is_empty() {
            return Ok(());
        }
        let (vector, cast) = vectors.sql_types();
        let sql = format!(
            "INSERT INTO throughline.passage
                 (owner, session, seq, number, role, at, authors, files, vector)
             SELECT owner, session, seq,
                 coalesce(number, -nextval('throughline.loose_number')),
                 role, at, authors, files, vector{cast}
             FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[], $5::text[],
                 $6::bigint[], $7::text[], $8::text[], $9::{vector}[])
             AS t (owner, session, seq, number, role, at, authors, files, vector)"
        );
        let vectors: &(dyn tokio_postgres::types::ToSql + Sync) = self.vectors.values();
        let values: crate::tx::Params<'_> = &[
            &self.owners,
            &self.sessions,
            &self.seqs,
            &self.numbers,
            &self.roles,
            &self.ats,
            &self.authors,
            &self.files,
            vectors,
        ];
        tx.execute(doing, &sql, values).await?;
        tx.execute(
            doing,
            "INSERT INTO throughline.passage_text (owner, session, seq, kept, terms)
             SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[], $4::text[], $5::text[])",
            params![
                self.owners,
                self.sessions,
                self.seqs,
                self.stored,
                self.terms
            ],
        )
        .await?;
        let (owners, origins, sessions, seqs) = self.origin_links;
        if !seqs.is_empty() {
            tx.execute(
                doing,
                "INSERT INTO throughline.passage_beyond (owner, origin, session, seq)
                 SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[])",
                params![owners, origins, sessions, seqs],
            )
            .await?;
        }
        Ok(())
    }
}

/// Joins names into one text, with separators around each.
fn join_names(names: &[String]) -> String {
    let mut all = String::from(SEPARATOR);
    for name in names {
        all.push_str(&rows::escape_nul(name));
        all.push(SEPARATOR);
    }
    all
}

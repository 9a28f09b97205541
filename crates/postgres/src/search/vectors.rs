//! Stores and compares passage vectors, with pgvector if the database has it.

use futures_util::TryStreamExt as _;
use throughline_recall::{PassageId, TopK, Vector};
use throughline_store::StoreError;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::filter::PassageFilter;
use super::index_reader::from_passage_number;
use crate::error::{Fault, damaged, during};
use crate::rows;
use crate::tx::Tx;

/// How vectors are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum VectorStorage {
    /// As pgvector's `halfvec`: the database compares them.
    HalfVec,
    /// As bytes: they are read and compared in this process.
    Bytes,
}

/// Vectors to insert.
#[derive(Default)]
pub(super) struct VectorColumn {
    halves: Vec<String>,
    bytes: Vec<Vec<u8>>,
    is_halfvec: bool,
}

impl VectorColumn {
    pub(super) fn push(&mut self, kind: VectorStorage, vector: &Vector) {
        match kind {
            VectorStorage::HalfVec => {
                self.is_halfvec = true;
                self.halves.push(format_vector(vector.values()));
            }
            VectorStorage::Bytes => self.bytes.push(vector.as_bytes().to_owned()),
        }
    }

    pub(super) fn values(&self) -> &(dyn ToSql + Sync) {
        if self.is_halfvec {
            &self.halves
        } else {
            &self.bytes
        }
    }
}

/// Formats a vector in pgvector's text form.
fn format_vector(numbers: impl Iterator<Item = f32>) -> String {
    let numbers: Vec<String> = numbers.map(|number| number.to_string()).collect();
    format!("[{}]", numbers.join(","))
}

impl VectorStorage {
    /// Detects how this database stores vectors.
    pub(super) async fn detect(tx: &Tx) -> Result<Self, Fault> {
        let row = tx
            .query_opt(
                "detecting how vectors are stored",
                "SELECT atttypid = 'bytea'::regtype FROM pg_attribute
                 WHERE attrelid = 'throughline.passage'::regclass AND attname = 'vector'",
                &[],
            )
            .await?;
        let row = row.ok_or_else(|| damaged("the index", "it has no vectors"))?;
        Ok(if rows::get(&row, 0)? {
            Self::Bytes
        } else {
            Self::HalfVec
        })
    }

    /// The SQL type that values are sent as, and the cast to the column's type.
    pub(super) fn sql_types(self) -> (&'static str, &'static str) {
        match self {
            Self::HalfVec => ("text", "::halfvec"),
            Self::Bytes => ("bytea", ""),
        }
    }

    /// The passages nearest to a vector, best first.
    pub(super) async fn nearest_vectors(
        self,
        tx: &Tx,
        owner: &str,
        allowed: &PassageFilter,
        vector: &[f32],
        count: usize,
    ) -> Result<Vec<(f32, PassageId)>, Fault> {
        let doing = "comparing passages";
        let (narrow, numbers) = allowed.condition();
        match self {
            Self::HalfVec => {
                let sql = format!(
                    "SELECT number, (-(vector <#> $3::text::halfvec))::real
                     FROM throughline.passage WHERE owner = $1 AND {narrow}
                     ORDER BY vector <#> $3::text::halfvec LIMIT $4"
                );
                let asked = format_vector(vector.iter().copied());
                let most = rows::u64_to_i64(count as u64);
                let found = tx
                    .query(doing, &sql, params![owner, numbers, asked, most])
                    .await?;
                let mut best = Vec::with_capacity(found.len());
                for row in &found {
                    best.push((rows::get(row, 1)?, from_passage_number(rows::get(row, 0)?)));
                }
                Ok(best)
            }
            Self::Bytes => {
                let sql = format!(
                    "SELECT number, vector FROM throughline.passage
                     WHERE owner = $1 AND {narrow}"
                );
                let failed = during(doing);
                let client = tx.client()?;
                let statement = client.prepare_cached(&sql).await.map_err(failed)?;
                tx.wait_until_open().await?;
                let given: [&(dyn ToSql + Sync); 2] = [&owner, &numbers];
                let rows = client.query_raw(&statement, given).await.map_err(failed)?;
                let mut rows = std::pin::pin!(rows);
                let mut best = TopK::new(count);
                while let Some(row) = rows.try_next().await.map_err(failed)? {
                    let number = rows::get(&row, 0)?;
                    best.offer(
                        decode_vector(&row, 1)?.similarity(vector),
                        from_passage_number(number),
                    );
                }
                Ok(best.into_sorted())
            }
        }
    }

    /// The SQL expression for the similarity of a passage `p` to `$3`.
    pub(super) fn similarity_sql(self) -> &'static str {
        match self {
            Self::HalfVec => "(-(p.vector <#> $3::text::halfvec))::real",
            Self::Bytes => "p.vector, $3::text",
        }
    }

    /// The vector as the parameter of that expression.
    pub(super) fn similarity_param(self, vector: &[f32]) -> String {
        match self {
            Self::HalfVec => format_vector(vector.iter().copied()),
            Self::Bytes => String::new(),
        }
    }

    /// Reads the similarity of a passage to a vector from a row.
    pub(super) fn decode_similarity(
        self,
        row: &Row,
        column: usize,
        vector: &[f32],
    ) -> Result<f32, StoreError> {
        match self {
            Self::HalfVec => rows::get(row, column),
            Self::Bytes => Ok(decode_vector(row, column)?.similarity(vector)),
        }
    }
}

fn decode_vector(row: &Row, column: usize) -> Result<Vector, StoreError> {
    let bytes: &[u8] = rows::get(row, column)?;
    let vector = Vector::from_bytes(bytes);
    vector.ok_or_else(|| damaged("a vector", format!("it has {} bytes", bytes.len())))
}

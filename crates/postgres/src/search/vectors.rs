//! What passages mean: kept, and compared, in the database's way or in ours.

use futures_util::TryStreamExt as _;
use throughline_recall::{At, Best, Vector};
use throughline_store::StoreError;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::filter::Allowed;
use super::sight::to_at;
use crate::error::{Fault, damaged, during};
use crate::rows;
use crate::tx::Tx;

/// How vectors are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Vectors {
    /// As pgvector's halves: the database compares them.
    Halves,
    /// As bytes: they are read and compared here.
    Bytes,
}

/// Vectors to be written.
#[derive(Default)]
pub(super) struct Column {
    halves: Vec<String>,
    bytes: Vec<Vec<u8>>,
    are_halves: bool,
}

impl Column {
    pub(super) fn push(&mut self, kind: Vectors, vector: &Vector) {
        match kind {
            Vectors::Halves => {
                self.are_halves = true;
                self.halves.push(written(vector.numbers()));
            }
            Vectors::Bytes => self.bytes.push(vector.as_bytes().to_owned()),
        }
    }

    pub(super) fn values(&self) -> &(dyn ToSql + Sync) {
        if self.are_halves {
            &self.halves
        } else {
            &self.bytes
        }
    }
}

/// A vector as pgvector reads it.
fn written(numbers: impl Iterator<Item = f32>) -> String {
    let numbers: Vec<String> = numbers.map(|number| number.to_string()).collect();
    format!("[{}]", numbers.join(","))
}

impl Vectors {
    /// How they are kept in this database.
    pub(super) async fn of(tx: &Tx) -> Result<Self, Fault> {
        let row = tx
            .optional(
                "finding how vectors are kept",
                "SELECT atttypid = 'bytea'::regtype FROM pg_attribute
                 WHERE attrelid = 'throughline.passage'::regclass AND attname = 'vector'",
                &[],
            )
            .await?;
        let row = row.ok_or_else(|| damaged("the index", "it has no vectors"))?;
        Ok(if rows::get(&row, 0)? {
            Self::Bytes
        } else {
            Self::Halves
        })
    }

    /// The type in which values are sent, and what makes the column's of it.
    pub(super) fn column(self) -> (&'static str, &'static str) {
        match self {
            Self::Halves => ("text", "::halfvec"),
            Self::Bytes => ("bytea", ""),
        }
    }

    /// The passages most like a vector, the best first.
    pub(super) async fn nearest(
        self,
        tx: &Tx,
        owner: &str,
        allowed: &Allowed,
        vector: &[f32],
        count: usize,
    ) -> Result<Vec<(f32, At)>, Fault> {
        let doing = "comparing passages";
        let (narrow, numbers) = allowed.condition();
        match self {
            Self::Halves => {
                let sql = format!(
                    "SELECT number, (-(vector <#> $3::text::halfvec))::real
                     FROM throughline.passage WHERE owner = $1 AND {narrow}
                     ORDER BY vector <#> $3::text::halfvec LIMIT $4"
                );
                let asked = written(vector.iter().copied());
                let most = rows::number(count as u64);
                let found = tx
                    .query(doing, &sql, params![owner, numbers, asked, most])
                    .await?;
                let mut best = Vec::with_capacity(found.len());
                for row in &found {
                    best.push((rows::get(row, 1)?, to_at(rows::get(row, 0)?)));
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
                tx.opened().await?;
                let given: [&(dyn ToSql + Sync); 2] = [&owner, &numbers];
                let rows = client.query_raw(&statement, given).await.map_err(failed)?;
                let mut rows = std::pin::pin!(rows);
                let mut best = Best::new(count);
                while let Some(row) = rows.try_next().await.map_err(failed)? {
                    let number = rows::get(&row, 0)?;
                    best.offer(read(&row, 1)?.likeness(vector), to_at(number));
                }
                Ok(best.into_sorted())
            }
        }
    }

    /// What gives the likeness to `$3` of a passage `p`.
    pub(super) fn likeness(self) -> &'static str {
        match self {
            Self::Halves => "(-(p.vector <#> $3::text::halfvec))::real",
            Self::Bytes => "p.vector, $3::text",
        }
    }

    /// The vector as that is asked with.
    pub(super) fn asked(self, vector: &[f32]) -> String {
        match self {
            Self::Halves => written(vector.iter().copied()),
            Self::Bytes => String::new(),
        }
    }

    /// How like a vector a passage is, from a row with its likeness.
    pub(super) fn read_likeness(
        self,
        row: &Row,
        column: usize,
        vector: &[f32],
    ) -> Result<f32, StoreError> {
        match self {
            Self::Halves => rows::get(row, column),
            Self::Bytes => Ok(read(row, column)?.likeness(vector)),
        }
    }
}

fn read(row: &Row, column: usize) -> Result<Vector, StoreError> {
    let bytes: &[u8] = rows::get(row, column)?;
    let vector = Vector::from_bytes(bytes);
    vector.ok_or_else(|| damaged("a vector", format!("it has {} bytes", bytes.len())))
}

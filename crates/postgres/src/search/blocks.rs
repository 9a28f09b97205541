//! Reads and deletes the rows of index blocks and their terms.

use std::collections::BTreeMap;

use tokio_postgres::Row;

use super::postings::{PassageLength, decode_lengths};
use crate::error::Fault;
use crate::rows;
use crate::tx::Tx;

/// Loads the passage lengths of each of an owner's blocks.
pub(super) async fn load_lengths(
    tx: &Tx,
    owner: &str,
) -> Result<BTreeMap<i32, Vec<PassageLength>>, Fault> {
    let found = tx
        .query(
            "reading passage lengths",
            "SELECT block, lengths FROM throughline.block WHERE owner = $1",
            params![owner],
        )
        .await?;
    let mut blocks = BTreeMap::new();
    for row in &found {
        blocks.insert(rows::get(row, 0)?, decode_lengths(rows::get(row, 1)?)?);
    }
    Ok(blocks)
}

/// Selects the block, term and postings of the given terms in the given blocks.
pub(super) async fn select_postings(
    tx: &Tx,
    owner: &str,
    blocks: &[i32],
    terms: &[&str],
) -> Result<Vec<Row>, Fault> {
    tx.query(
        "looking up terms",
        "SELECT block, term, postings FROM throughline.word
         WHERE owner = $1 AND block = ANY ($2::int[]) AND term = ANY ($3::text[])",
        params![owner, blocks, terms],
    )
    .await
}

/// Deletes a block and its terms.
pub(super) async fn drop_block(tx: &Tx, owner: &str, block: i64) -> Result<(), Fault> {
    for table in ["word", "block"] {
        let sql =
            format!("DELETE FROM throughline.{table} WHERE owner = $1 AND block = $2::bigint::int");
        let which = params![owner, block];
        tx.execute("dropping a block", &sql, which).await?;
    }
    Ok(())
}

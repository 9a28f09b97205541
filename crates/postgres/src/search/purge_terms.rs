//! Purges the terms of erased passages from empty slots of blocks.
//!
//! A passage that leaves its block leaves its terms there, in an empty slot. Searches
//! ignore them, but erased content must not remain, so its terms are looked up in all of
//! the owner's blocks and removed from every empty slot.

use std::collections::BTreeSet;

use throughline_model::Owner;

use super::blocks::{load_lengths, select_postings};
use super::postings::retain_occupied;
use crate::error::Fault;
use crate::rows;
use crate::tx::Tx;

/// How many terms are looked up per query.
const TERMS_PER_QUERY: usize = 2_000;

/// Removes the given terms of an owner from empty slots.
pub(super) async fn purge_terms(
    tx: &Tx,
    owner: &Owner,
    terms: &BTreeSet<String>,
) -> Result<(), Fault> {
    let doing = "purging terms from the index";
    let owner = owner.as_str();
    let blocks = load_lengths(tx, owner).await?;
    let all: Vec<i32> = blocks.keys().copied().collect();
    let terms: Vec<&str> = terms.iter().map(String::as_str).collect();
    for some in terms.chunks(TERMS_PER_QUERY) {
        let found = select_postings(tx, owner, &all, some).await?;
        for row in &found {
            let (block, term): (i32, &str) = (rows::get(row, 0)?, rows::get(row, 1)?);
            let postings: &[u8] = rows::get(row, 2)?;
            let lengths = blocks.get(&block).map_or(&[][..], Vec::as_slice);
            let (own, kept) = retain_occupied(postings, lengths)?;
            if kept.len() == postings.len() {
                continue;
            }
            if kept.is_empty() {
                let delete = "DELETE FROM throughline.word
                    WHERE owner = $1 AND block = $2 AND term = $3";
                tx.execute(doing, delete, params![owner, block, term])
                    .await?;
                continue;
            }
            let update = "UPDATE throughline.word SET own = $4, postings = $5
                WHERE owner = $1 AND block = $2 AND term = $3";
            let given = params![owner, block, term, own, kept];
            tx.execute(doing, update, given).await?;
        }
    }
    Ok(())
}

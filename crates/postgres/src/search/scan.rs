//! Reads every passage of the index, page by page in one snapshot.

use throughline_recall::{IndexState, Passage, RecallError, StoredPassage};
use throughline_store::StoreError;

use super::{PASSAGE_JOIN, READING_WATERMARK, SELECT_WATERMARK, block_on, decode_watermark};
use crate::PostgresStore;
use crate::error::Fault;
use crate::rows;
use crate::tx::{Tx, TxMode};

const PAGE_SIZE: i64 = 500;
const DOING: &str = "reading every passage";

/// Calls `each` with every passage; returns how far the feed is indexed.
pub(super) fn scan(
    store: &PostgresStore,
    each: &mut dyn FnMut(Passage),
) -> Result<IndexState, RecallError> {
    let (tx, row) = block_on(async {
        let tx = store.begin_system(TxMode::Read).await?;
        let row = tx
            .query_opt(READING_WATERMARK, SELECT_WATERMARK, &[])
            .await?;
        Ok::<_, Fault>((tx, row))
    })?;
    let state = match row {
        Some(row) => decode_watermark(&row)?.state,
        None => IndexState::default(),
    };
    let mut after = (String::new(), String::new(), 0);
    loop {
        let page = block_on(read_page(&tx, &after))?;
        let Some((last, _)) = page.last() else {
            block_on(tx.finish(Ok(())))?;
            return Ok(state);
        };
        after.clone_from(last);
        for (_, kept) in page {
            each(serde_json::from_str::<StoredPassage>(&kept)?.passage);
        }
    }
}

/// The key of a passage: owner, session and entry number.
type PassageKey = (String, String, i64);

async fn read_page(tx: &Tx, after: &PassageKey) -> Result<Vec<(PassageKey, String)>, Fault> {
    let sql = format!(
        "SELECT p.owner, p.session, p.seq, t.kept FROM {PASSAGE_JOIN}
         WHERE (p.owner, p.session, p.seq) > ($1, $2, $3)
         ORDER BY p.owner, p.session, p.seq LIMIT $4"
    );
    let (owner, session, seq) = after;
    let found = tx
        .query(DOING, &sql, params![owner, session, seq, PAGE_SIZE])
        .await?;
    let read = |row: &tokio_postgres::Row| -> Result<(PassageKey, String), StoreError> {
        let key = (rows::get(row, 0)?, rows::get(row, 1)?, rows::get(row, 2)?);
        Ok((key, rows::get(row, 3)?))
    };
    Ok(found.iter().map(read).collect::<Result<_, _>>()?)
}

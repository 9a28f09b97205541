//! Reads every passage of the index, page by page in one snapshot.

use throughline_recall::{IndexState, Kept, Passage, RecallError};
use throughline_store::StoreError;

use super::{MARK, MARK_DOING, PASSAGES, read_mark, waiting};
use crate::PostgresStore;
use crate::error::Fault;
use crate::rows;
use crate::tx::{Purpose, Tx};

const PAGE: i64 = 500;
const DOING: &str = "reading every passage";

/// Calls `each` with every passage; tells how far the index goes.
pub(super) fn scan(
    store: &PostgresStore,
    each: &mut dyn FnMut(Passage),
) -> Result<IndexState, RecallError> {
    let (tx, row) = waiting(async {
        let tx = store.serve(Purpose::Read).await?;
        let row = tx.optional(MARK_DOING, MARK, &[]).await?;
        Ok::<_, Fault>((tx, row))
    })?;
    let state = match row {
        Some(row) => read_mark(&row)?.state,
        None => IndexState::default(),
    };
    let mut after = (String::new(), String::new(), 0);
    loop {
        let page = waiting(read_page(&tx, &after))?;
        let Some((last, _)) = page.last() else {
            waiting(tx.finish(Ok(())))?;
            return Ok(state);
        };
        after.clone_from(last);
        for (_, kept) in page {
            each(serde_json::from_str::<Kept>(&kept)?.passage);
        }
    }
}

/// Where a passage is: owner, session and number.
type Key = (String, String, i64);

async fn read_page(tx: &Tx, after: &Key) -> Result<Vec<(Key, String)>, Fault> {
    let sql = format!(
        "SELECT p.owner, p.session, p.seq, t.kept FROM {PASSAGES}
         WHERE (p.owner, p.session, p.seq) > ($1, $2, $3)
         ORDER BY p.owner, p.session, p.seq LIMIT $4"
    );
    let (owner, session, seq) = after;
    let found = tx
        .query(DOING, &sql, params![owner, session, seq, PAGE])
        .await?;
    let read = |row: &tokio_postgres::Row| -> Result<(Key, String), StoreError> {
        let key = (rows::get(row, 0)?, rows::get(row, 1)?, rows::get(row, 2)?);
        Ok((key, rows::get(row, 3)?))
    };
    Ok(found.iter().map(read).collect::<Result<_, _>>()?)
}

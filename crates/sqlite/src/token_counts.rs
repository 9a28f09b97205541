//! Caches token counts, keyed by entry.

use async_trait::async_trait;
use rusqlite::{OptionalExtension, params};
use throughline_model::{Seq, SessionRef};
use throughline_store::{StoreError, TokenCounts};

use crate::error::during;
use crate::open::SqliteStore;
use crate::{rows, skip_list};

#[async_trait]
impl TokenCounts for SqliteStore {
    async fn token_counts(
        &self,
        of: &SessionRef,
        encoding: &str,
        from: Seq,
        to: Seq,
    ) -> Result<Vec<(Seq, u64)>, StoreError> {
        let (of, encoding) = (of.clone(), encoding.to_owned());
        self.reader_pool
            .read(move |connection| {
                let failed = during("reading token counts");
                let end = rows::find_live_session(connection, &of)?.end;
                let mut query = connection
                    .prepare_cached(
                        "SELECT tokens FROM token_count WHERE encoding = ?1 AND entry = ?2",
                    )
                    .map_err(failed)?;
                let mut counts = Vec::new();
                for link in skip_list::load_range(connection, end, from, to)? {
                    let tokens: Option<i64> = query
                        .query_row(params![encoding, link.pk], |row| row.get(0))
                        .optional()
                        .map_err(failed)?;
                    counts.extend(tokens.map(|n| (link.seq, u64::try_from(n).unwrap_or(0))));
                }
                Ok(counts)
            })
            .await
    }

    async fn put_token_counts(
        &self,
        of: &SessionRef,
        encoding: &str,
        counts: &[(Seq, u64)],
    ) -> Result<(), StoreError> {
        let (of, encoding, counts) = (of.clone(), encoding.to_owned(), counts.to_vec());
        let (Some(from), Some(to)) = (
            counts.iter().map(|(seq, _)| *seq).min(),
            counts.iter().map(|(seq, _)| *seq).max(),
        ) else {
            return Ok(());
        };
        self.writer
            .write(move |tx| {
                let failed = during("storing token counts");
                let end = tx.load_session(&of)?.anchors.end();
                let links = skip_list::load_range(tx.connection, end, from, to)?;
                for (seq, tokens) in &counts {
                    let Ok(index) = links.binary_search_by_key(seq, |link| link.seq) else {
                        continue;
                    };
                    let tokens = i64::try_from(*tokens).unwrap_or(i64::MAX);
                    tx.prepare_write(
                        "INSERT OR IGNORE INTO token_count (encoding, entry, tokens)
                         VALUES (?1, ?2, ?3)",
                    )
                    .and_then(|mut insert| {
                        insert.execute(params![encoding, links[index].pk, tokens])
                    })
                    .map_err(failed)?;
                }
                Ok(())
            })
            .await
    }
}

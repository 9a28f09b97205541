//! Caches token counts per entry.

use async_trait::async_trait;
use throughline_model::{Seq, SessionRef};
use throughline_store::{StoreError, TokenCounts};

use crate::log::in_read_transaction;
use crate::open::PostgresStore;
use crate::retry::retry;
use crate::rows;

#[async_trait]
impl TokenCounts for PostgresStore {
    async fn token_counts(
        &self,
        of: &SessionRef,
        encoding: &str,
        from: Seq,
        to: Seq,
    ) -> Result<Vec<(Seq, u64)>, StoreError> {
        in_read_transaction!(self, &of.owner, |tx| {
            let found = rows::find_live_session(tx, of).await?;
            let stretches = found.log_ranges(from, to.min(found.head));
            let logs: Vec<i64> = stretches.iter().map(|(log, ..)| *log).collect();
            let firsts: Vec<i64> = stretches
                .iter()
                .map(|(_, f, _)| rows::seq_to_i64(*f))
                .collect();
            let lasts: Vec<i64> = stretches
                .iter()
                .map(|(.., l)| rows::seq_to_i64(*l))
                .collect();
            let rows = tx
                .query(
                    "reading token counts",
                    "SELECT c.seq, c.tokens
                     FROM unnest($3::bigint[], $4::bigint[], $5::bigint[])
                         AS part (log, first, last)
                     JOIN throughline.token_count c ON c.owner = $1 AND c.log = part.log
                         AND c.seq BETWEEN part.first AND part.last AND c.encoding = $2
                     ORDER BY c.seq",
                    params![
                        of.owner.as_str(),
                        rows::escape_nul(encoding).as_ref(),
                        logs,
                        firsts,
                        lasts
                    ],
                )
                .await?;
            let counts = rows.iter().map(|row| {
                let tokens: i64 = rows::get(row, 1)?;
                Ok((
                    rows::seq_from_i64(rows::get(row, 0)?),
                    u64::try_from(tokens).unwrap_or(0),
                ))
            });
            Ok(counts.collect::<Result<_, StoreError>>()?)
        })
    }

    async fn put_token_counts(
        &self,
        of: &SessionRef,
        encoding: &str,
        counts: &[(Seq, u64)],
    ) -> Result<(), StoreError> {
        if counts.is_empty() {
            return Ok(());
        }
        retry(self.inner.time_limit, |_| {
            Box::pin(async move {
                let tx = self.begin_write(&of.owner).await?;
                let putting = async {
                    let found = rows::find_live_session(&tx, of).await?;
                    let existing = counts
                        .iter()
                        .filter(|(seq, _)| *seq > Seq::ZERO && *seq <= found.head);
                    let (mut logs, mut seqs, mut tokens) = (Vec::new(), Vec::new(), Vec::new());
                    for (seq, count) in existing {
                        logs.push(found.log_holding(*seq));
                        seqs.push(rows::seq_to_i64(*seq));
                        tokens.push(rows::u64_to_i64(*count));
                    }
                    tx.execute(
                        "storing token counts",
                        "INSERT INTO throughline.token_count (owner, encoding, log, seq, tokens)
                         SELECT $1, $2, log, seq, tokens
                         FROM unnest($3::bigint[], $4::bigint[], $5::bigint[])
                             AS a (log, seq, tokens)
                         ON CONFLICT DO NOTHING",
                        params![
                            of.owner.as_str(),
                            rows::escape_nul(encoding).as_ref(),
                            logs,
                            seqs,
                            tokens
                        ],
                    )
                    .await
                };
                let done = putting.await;
                tx.finish(done).await?;
                Ok(())
            })
        })
        .await
    }
}

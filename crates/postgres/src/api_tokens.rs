//! Stores the API tokens that authenticate callers of a server on this database.

use async_trait::async_trait;
use throughline_model::{ApiToken, Digest, Timestamp, TokenId};
use throughline_store::{ApiTokens, StoreError};
use tokio_postgres::Row;

use crate::error::{Fault, damaged};
use crate::log::in_transaction;
use crate::open::PostgresStore;
use crate::retry::retry;
use crate::rows;
use crate::tx::{Params, Tx, TxMode};

const TOKEN_COLUMNS: &str = "id, hash, owner, role, label, created_at, expires_at, revoked_at";

#[async_trait]
impl ApiTokens for PostgresStore {
    async fn insert_token(&self, token: &ApiToken) -> Result<(), StoreError> {
        retry(self.inner.time_limit, |attempt| {
            Box::pin(async move {
                let tx = self.begin_system(TxMode::Write).await?;
                let done = insert_token(&tx, token, attempt.may_be_committed).await;
                tx.finish(done).await
            })
        })
        .await
    }

    async fn token_by_hash(&self, hash: &Digest) -> Result<Option<ApiToken>, StoreError> {
        let found = self
            .tokens_where("WHERE hash = $1", params![hash.as_bytes().as_slice()])
            .await?;
        Ok(found.into_iter().next())
    }

    async fn tokens_by_hash(&self, hashes: &[Digest]) -> Result<Vec<ApiToken>, StoreError> {
        if hashes.is_empty() {
            return Ok(Vec::new());
        }
        let hashes: Vec<&[u8]> = hashes.iter().map(|hash| &hash.as_bytes()[..]).collect();
        self.tokens_where("WHERE hash = ANY($1)", params![hashes])
            .await
    }

    async fn list_tokens(&self) -> Result<Vec<ApiToken>, StoreError> {
        self.tokens_where("ORDER BY created_at, id", &[]).await
    }

    async fn revoke_token(&self, id: &TokenId, at: Timestamp) -> Result<ApiToken, StoreError> {
        in_transaction!(self, self.begin_system(TxMode::Write), |tx| mark_revoked(
            tx, id, at
        )
        .await)
    }
}

impl PostgresStore {
    async fn tokens_where(
        &self,
        rest: &str,
        with: Params<'_>,
    ) -> Result<Vec<ApiToken>, StoreError> {
        in_transaction!(self, self.begin_system(TxMode::Read), |tx| select_tokens(
            tx, rest, with
        )
        .await)
    }
}

async fn insert_token(tx: &Tx, token: &ApiToken, may_be_done: bool) -> Result<(), Fault> {
    let (id, hash) = (token.id.as_str(), token.hash.as_bytes().as_slice());
    let there = select_tokens(tx, "WHERE id = $1 OR hash = $2", params![id, hash]).await?;
    if may_be_done && there == [token.clone()] {
        tx.sync_on_commit().await?;
        return Ok(());
    }
    if !there.is_empty() {
        return Err(StoreError::TokenExists(token.id.clone()).into());
    }
    let label = token.label.as_ref().map(rows::to_json).transpose()?;
    tx.execute(
        "storing a token",
        "INSERT INTO throughline.token (id, hash, owner, role, label, created_at, expires_at,
             revoked_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
        params![
            id,
            hash,
            token.owner.as_str(),
            token.role.as_str(),
            label,
            token.created_at.as_microsecond(),
            token.expires_at.map(Timestamp::as_microsecond),
            token.revoked_at.map(Timestamp::as_microsecond)
        ],
    )
    .await?;
    Ok(())
}

async fn mark_revoked(tx: &Tx, id: &TokenId, at: Timestamp) -> Result<ApiToken, Fault> {
    let revoked = tx
        .execute(
            "revoking a token",
            "UPDATE throughline.token SET revoked_at = $2 WHERE id = $1 AND revoked_at IS NULL",
            params![id.as_str(), at.as_microsecond()],
        )
        .await?;
    if revoked == 0 {
        tx.sync_on_commit().await?;
    }
    let found = select_tokens(tx, "WHERE id = $1", params![id.as_str()]).await?;
    let found = found.into_iter().next();
    found.ok_or_else(|| StoreError::NoSuchToken(id.clone()).into())
}

async fn select_tokens(tx: &Tx, rest: &str, with: Params<'_>) -> Result<Vec<ApiToken>, Fault> {
    let sql = format!("SELECT {TOKEN_COLUMNS} FROM throughline.token {rest}");
    let rows = tx.query("reading tokens", &sql, with).await?;
    let tokens = rows.iter().map(token_from_row);
    Ok(tokens.collect::<Result<_, _>>()?)
}

fn token_from_row(row: &Row) -> Result<ApiToken, StoreError> {
    let time = |column| -> Result<Option<Timestamp>, StoreError> {
        let micros: Option<i64> = rows::get(row, column)?;
        micros.map(rows::decode_time).transpose()
    };
    let label: Option<&str> = rows::get(row, 4)?;
    Ok(ApiToken {
        id: rows::parse_column(row, 0)?,
        hash: rows::decode_digest(rows::get(row, 1)?)?,
        owner: rows::parse_column(row, 2)?,
        role: rows::parse_column(row, 3)?,
        label: label
            .map(serde_json::from_str)
            .transpose()
            .map_err(|error| damaged("a token's label", error))?,
        created_at: rows::decode_time(rows::get(row, 5)?)?,
        expires_at: time(6)?,
        revoked_at: time(7)?,
    })
}

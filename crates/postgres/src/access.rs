//! Tokens: who may call a server that serves this store.

use async_trait::async_trait;
use throughline_model::{Digest, Timestamp, Token, TokenId};
use throughline_store::{Access, StoreError};
use tokio_postgres::Row;

use crate::error::{Fault, damaged};
use crate::log::in_transaction;
use crate::open::PostgresStore;
use crate::patience::patiently;
use crate::rows;
use crate::tx::{Params, Purpose, Tx};

const COLUMNS: &str = "id, hash, owner, role, label, created_at, expires_at, revoked_at";

#[async_trait]
impl Access for PostgresStore {
    async fn put_token(&self, token: &Token) -> Result<(), StoreError> {
        patiently(self.shared.patience, |attempt| {
            Box::pin(async move {
                let tx = self.serve(Purpose::Write).await?;
                let done = put(&tx, token, attempt.may_be_done).await;
                tx.finish(done).await
            })
        })
        .await
    }

    async fn token(&self, hash: &Digest) -> Result<Option<Token>, StoreError> {
        let found = self
            .tokens_where("WHERE hash = $1", params![hash.as_bytes().as_slice()])
            .await?;
        Ok(found.into_iter().next())
    }

    async fn tokens_with(&self, hashes: &[Digest]) -> Result<Vec<Token>, StoreError> {
        if hashes.is_empty() {
            return Ok(Vec::new());
        }
        let hashes: Vec<&[u8]> = hashes.iter().map(|hash| &hash.as_bytes()[..]).collect();
        self.tokens_where("WHERE hash = ANY($1)", params![hashes])
            .await
    }

    async fn tokens(&self) -> Result<Vec<Token>, StoreError> {
        self.tokens_where("ORDER BY created_at, id", &[]).await
    }

    async fn revoke_token(&self, id: &TokenId, at: Timestamp) -> Result<Token, StoreError> {
        in_transaction!(self, self.serve(Purpose::Write), |tx| revoke(tx, id, at)
            .await)
    }
}

impl PostgresStore {
    async fn tokens_where(&self, rest: &str, with: Params<'_>) -> Result<Vec<Token>, StoreError> {
        in_transaction!(self, self.serve(Purpose::Read), |tx| select(tx, rest, with)
            .await)
    }
}

async fn put(tx: &Tx, token: &Token, may_be_done: bool) -> Result<(), Fault> {
    let (id, hash) = (token.id.as_str(), token.hash.as_bytes().as_slice());
    let there = select(tx, "WHERE id = $1 OR hash = $2", params![id, hash]).await?;
    if may_be_done && there == [token.clone()] {
        tx.sync_what_was_read().await?;
        return Ok(());
    }
    if !there.is_empty() {
        return Err(StoreError::TokenExists(token.id.clone()).into());
    }
    let label = token.label.as_ref().map(rows::json).transpose()?;
    tx.execute(
        "keeping a token",
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

async fn revoke(tx: &Tx, id: &TokenId, at: Timestamp) -> Result<Token, Fault> {
    let revoked = tx
        .execute(
            "taking a token back",
            "UPDATE throughline.token SET revoked_at = $2 WHERE id = $1 AND revoked_at IS NULL",
            params![id.as_str(), at.as_microsecond()],
        )
        .await?;
    if revoked == 0 {
        tx.sync_what_was_read().await?;
    }
    let found = select(tx, "WHERE id = $1", params![id.as_str()]).await?;
    let found = found.into_iter().next();
    found.ok_or_else(|| StoreError::NoSuchToken(id.clone()).into())
}

async fn select(tx: &Tx, rest: &str, with: Params<'_>) -> Result<Vec<Token>, Fault> {
    let sql = format!("SELECT {COLUMNS} FROM throughline.token {rest}");
    let rows = tx.query("reading tokens", &sql, with).await?;
    let tokens = rows.iter().map(token);
    Ok(tokens.collect::<Result<_, _>>()?)
}

fn token(row: &Row) -> Result<Token, StoreError> {
    let time = |column| -> Result<Option<Timestamp>, StoreError> {
        let micros: Option<i64> = rows::get(row, column)?;
        micros.map(rows::time).transpose()
    };
    let label: Option<&str> = rows::get(row, 4)?;
    Ok(Token {
        id: rows::parsed(row, 0)?,
        hash: rows::digest(rows::get(row, 1)?)?,
        owner: rows::parsed(row, 2)?,
        role: rows::parsed(row, 3)?,
        label: label
            .map(serde_json::from_str)
            .transpose()
            .map_err(|error| damaged("a token's label", error))?,
        created_at: rows::time(rows::get(row, 5)?)?,
        expires_at: time(6)?,
        revoked_at: time(7)?,
    })
}

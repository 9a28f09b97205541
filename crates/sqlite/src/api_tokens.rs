//! Stores the API tokens that authenticate callers of a server.

use async_trait::async_trait;
use rusqlite::{Connection, OptionalExtension, Row, params};
use throughline_model::{ApiToken, Digest, Timestamp, TokenId};
use throughline_store::{ApiTokens, StoreError};

use crate::error::{damaged, during};
use crate::open::SqliteStore;

const TOKEN_COLUMNS: &str = "id, hash, owner, role, label, created_at, expires_at, revoked_at";

#[async_trait]
impl ApiTokens for SqliteStore {
    async fn insert_token(&self, token: &ApiToken) -> Result<(), StoreError> {
        let token = token.clone();
        self.writer
            .write(move |tx| {
                let failed = during("storing a token");
                let existing = tx
                    .connection
                    .query_row(
                        "SELECT 1 FROM token WHERE id = ?1 OR hash = ?2",
                        params![token.id.as_str(), token.hash.as_bytes()],
                        |_| Ok(()),
                    )
                    .optional()
                    .map_err(failed)?;
                if existing.is_some() {
                    return Err(StoreError::TokenExists(token.id.clone()));
                }
                tx.prepare_write(
                    "INSERT INTO token (id, hash, owner, role, label, created_at, expires_at,
                                        revoked_at)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
                )
                .and_then(|mut insert| {
                    insert.execute(params![
                        token.id.as_str(),
                        token.hash.as_bytes(),
                        token.owner.as_str(),
                        token.role.as_str(),
                        token.label,
                        token.created_at.as_microsecond(),
                        token.expires_at.map(Timestamp::as_microsecond),
                        token.revoked_at.map(Timestamp::as_microsecond),
                    ])
                })
                .map_err(failed)?;
                Ok(())
            })
            .await
    }

    async fn token_by_hash(&self, hash: &Digest) -> Result<Option<ApiToken>, StoreError> {
        let hash = *hash;
        self.reader_pool
            .read(move |connection| {
                let found = select_tokens(connection, "WHERE hash = ?1", params![hash.as_bytes()])?;
                Ok(found.into_iter().next())
            })
            .await
    }

    async fn tokens_by_hash(&self, hashes: &[Digest]) -> Result<Vec<ApiToken>, StoreError> {
        let hashes = hashes.to_vec();
        self.reader_pool
            .read(move |connection| {
                let mut found = Vec::with_capacity(hashes.len());
                for hash in &hashes {
                    found.extend(select_tokens(
                        connection,
                        "WHERE hash = ?1",
                        params![hash.as_bytes()],
                    )?);
                }
                Ok(found)
            })
            .await
    }

    async fn list_tokens(&self) -> Result<Vec<ApiToken>, StoreError> {
        self.reader_pool
            .read(|connection| select_tokens(connection, "ORDER BY created_at, id", params![]))
            .await
    }

    async fn revoke_token(&self, id: &TokenId, at: Timestamp) -> Result<ApiToken, StoreError> {
        let id = id.clone();
        self.writer
            .write(move |tx| {
                tx.prepare_write(
                    "UPDATE token SET revoked_at = ?2 WHERE id = ?1 AND revoked_at IS NULL",
                )
                .and_then(|mut update| update.execute(params![id.as_str(), at.as_microsecond()]))
                .map_err(during("revoking a token"))?;
                let found = select_tokens(tx.connection, "WHERE id = ?1", params![id.as_str()])?;
                found
                    .into_iter()
                    .next()
                    .ok_or_else(|| StoreError::NoSuchToken(id.clone()))
            })
            .await
    }
}

fn select_tokens(
    connection: &Connection,
    rest: &str,
    with: impl rusqlite::Params,
) -> Result<Vec<ApiToken>, StoreError> {
    let failed = during("reading tokens");
    let mut query = connection
        .prepare_cached(&format!("SELECT {TOKEN_COLUMNS} FROM token {rest}"))
        .map_err(failed)?;
    let mut rows = query.query(with).map_err(failed)?;
    let mut tokens = Vec::new();
    while let Some(row) = rows.next().map_err(failed)? {
        tokens.push(token_from_row(row)?);
    }
    Ok(tokens)
}

fn token_from_row(row: &Row<'_>) -> Result<ApiToken, StoreError> {
    let failed = during("reading a token");
    let text = |column| -> Result<String, StoreError> { row.get(column).map_err(failed) };
    let time = |column| -> Result<Option<Timestamp>, StoreError> {
        let micros: Option<i64> = row.get(column).map_err(failed)?;
        let time = micros.map(Timestamp::from_microsecond).transpose();
        time.map_err(|error| damaged("a token's time", error))
    };
    let hash: [u8; 32] = row.get(1).map_err(failed)?;
    let role = text(3)?.parse();
    Ok(ApiToken {
        id: text(0)?
            .parse()
            .map_err(|error| damaged("a token's id", error))?,
        hash: Digest::from_bytes(hash),
        owner: text(2)?
            .parse()
            .map_err(|error| damaged("a token's owner", error))?,
        role: role.map_err(|error: String| damaged("a token's role", error))?,
        label: row.get(4).map_err(failed)?,
        created_at: time(5)?.unwrap_or(Timestamp::UNIX_EPOCH),
        expires_at: time(6)?,
        revoked_at: time(7)?,
    })
}

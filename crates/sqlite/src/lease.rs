//! Leases: exclusive, expiring claims on work that one process at a time does on this file.

use std::time::Duration;

use async_trait::async_trait;
use rusqlite::{Connection, OptionalExtension, params};
use throughline_model::{Owner, Timestamp};
use throughline_store::{Fence, Lease, LeaseStore, MAX_CLOCK_CORRECTION, StoreError};

use crate::error::{damaged, during};
use crate::open::SqliteStore;
use crate::tx::Tx;

/// The current time in microseconds, by the clock of the machine the file is on.
const NOW_SQL: &str = "CAST(unixepoch('subsec') * 1000000 AS INTEGER)";

/// Whether the lease behind this fencing token is still held.
pub(crate) fn holds_lease(
    tx: &Tx<'_>,
    owner: &Owner,
    fence: Option<&Fence>,
) -> Result<bool, StoreError> {
    let Some(fence) = fence else {
        return Ok(true);
    };
    for fence in fence.iter() {
        let number = i64::try_from(fence.fencing_token).unwrap_or(i64::MAX);
        let held = tx
            .prepare_read("SELECT 1 FROM lease WHERE owner = ?1 AND name = ?2 AND number = ?3")
            .and_then(|mut query| query.exists(params![owner.as_str(), fence.name, number]))
            .map_err(during("looking up a lease"))?;
        if !held {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The SQL equivalent of [`throughline_store::is_in_effect`].
fn in_effect_sql() -> String {
    let correction = duration_micros(MAX_CLOCK_CORRECTION);
    format!("granted_at <= {NOW_SQL} + {correction} AND expires_at > {NOW_SQL}")
}

/// Refuses a write under a lease that another process holds now.
pub(crate) fn refuse_lost_lease(
    tx: &Tx<'_>,
    owner: &Owner,
    fence: Option<&Fence>,
) -> Result<(), StoreError> {
    match fence {
        Some(fence) if !holds_lease(tx, owner, Some(fence))? => Err(fence.lost_error()),
        _ => Ok(()),
    }
}

fn parse_time(micros: i64) -> Result<Timestamp, StoreError> {
    Timestamp::from_microsecond(micros)
        .map_err(|error| damaged("a lease's time cannot be decoded", error))
}

fn duration_micros(term: Duration) -> i64 {
    i64::try_from(term.as_micros()).unwrap_or(i64::MAX / 2)
}

fn acquire(
    tx: &mut Tx<'_>,
    owner: &Owner,
    name: &str,
    holder: &str,
    term: Duration,
) -> Result<Lease, StoreError> {
    let failed = during("acquiring a lease");
    let held: Option<(String, i64)> = tx
        .prepare_read(&format!(
            "SELECT holder, expires_at FROM lease
             WHERE owner = ?1 AND name = ?2 AND holder <> ?3 AND {}",
            in_effect_sql()
        ))
        .and_then(|mut query| {
            let key = params![owner.as_str(), name, holder];
            query
                .query_row(key, |row| Ok((row.get(0)?, row.get(1)?)))
                .optional()
        })
        .map_err(failed)?;
    if let Some((holder, until)) = held {
        return Err(StoreError::LeaseHeld {
            name: name.to_owned(),
            holder,
            until: parse_time(until)?,
        });
    }
    let (number, expires_at): (i64, i64) = tx
        .prepare_write(&format!(
            "INSERT OR REPLACE INTO lease (owner, name, holder, granted_at, expires_at)
             VALUES (?1, ?2, ?3, {NOW_SQL}, {NOW_SQL} + ?4) RETURNING number, expires_at"
        ))
        .and_then(|mut insert| {
            let row = params![owner.as_str(), name, holder, duration_micros(term)];
            insert.query_row(row, |row| Ok((row.get(0)?, row.get(1)?)))
        })
        .map_err(failed)?;
    Ok(Lease {
        owner: owner.clone(),
        name: name.to_owned(),
        holder: holder.to_owned(),
        fencing_token: u64::try_from(number).map_err(|error| damaged("a lease's number", error))?,
        expires_at: parse_time(expires_at)?,
    })
}

fn peek(connection: &Connection, owner: &Owner, name: &str) -> Result<Option<Lease>, StoreError> {
    let found: Option<(String, i64, i64)> = connection
        .prepare_cached(&format!(
            "SELECT holder, number, expires_at FROM lease
             WHERE owner = ?1 AND name = ?2 AND {}",
            in_effect_sql()
        ))
        .and_then(|mut query| {
            query
                .query_row(params![owner.as_str(), name], |row| {
                    Ok((row.get(0)?, row.get(1)?, row.get(2)?))
                })
                .optional()
        })
        .map_err(during("looking up a lease"))?;
    let lease = |(holder, number, expires_at): (String, i64, i64)| {
        Ok(Lease {
            owner: owner.clone(),
            name: name.to_owned(),
            holder,
            fencing_token: u64::try_from(number)
                .map_err(|error| damaged("a lease's number", error))?,
            expires_at: parse_time(expires_at)?,
        })
    };
    found.map(lease).transpose()
}

/// Lists all leases.
pub(crate) fn list_leases(connection: &Connection) -> Result<Vec<Lease>, StoreError> {
    let failed = during("listing the leases");
    let mut query = connection
        .prepare("SELECT owner, name, holder, number, expires_at FROM lease ORDER BY owner, name")
        .map_err(failed)?;
    let mut found = query.query([]).map_err(failed)?;
    let mut leases = Vec::new();
    while let Some(row) = found.next().map_err(failed)? {
        let owner: String = row.get(0).map_err(failed)?;
        let number: i64 = row.get(3).map_err(failed)?;
        leases.push(Lease {
            owner: owner
                .parse()
                .map_err(|error| damaged("an owner cannot be decoded", error))?,
            name: row.get(1).map_err(failed)?,
            holder: row.get(2).map_err(failed)?,
            fencing_token: u64::try_from(number)
                .map_err(|error| damaged("a lease's number", error))?,
            expires_at: parse_time(row.get(4).map_err(failed)?)?,
        });
    }
    Ok(leases)
}

#[async_trait]
impl LeaseStore for SqliteStore {
    async fn acquire_lease(
        &self,
        owner: &Owner,
        name: &str,
        holder: &str,
        term: Duration,
    ) -> Result<Lease, StoreError> {
        let (owner, name, holder) = (owner.clone(), name.to_owned(), holder.to_owned());
        self.writer
            .write(move |tx| acquire(tx, &owner, &name, &holder, term))
            .await
    }

    async fn renew_lease(&self, lease: &Lease, term: Duration) -> Result<Lease, StoreError> {
        let lease = lease.clone();
        self.writer
            .write(move |tx| {
                refuse_lost_lease(tx, &lease.owner, Some(&lease.fence()))?;
                let expires_at = tx
                    .prepare_write(&format!(
                        "UPDATE lease SET granted_at = {NOW_SQL}, expires_at = {NOW_SQL} + ?3
                         WHERE owner = ?1 AND name = ?2 RETURNING expires_at"
                    ))
                    .and_then(|mut update| {
                        let key = params![lease.owner.as_str(), lease.name, duration_micros(term)];
                        update.query_row(key, |row| row.get(0))
                    })
                    .map_err(during("renewing a lease"))?;
                Ok(Lease {
                    expires_at: parse_time(expires_at)?,
                    ..lease.clone()
                })
            })
            .await
    }

    async fn release_lease(&self, lease: &Lease) -> Result<(), StoreError> {
        let lease = lease.clone();
        self.writer
            .write(move |tx| {
                if holds_lease(tx, &lease.owner, Some(&lease.fence()))? {
                    tx.prepare_write("DELETE FROM lease WHERE owner = ?1 AND name = ?2")
                        .and_then(|mut delete| {
                            delete.execute(params![lease.owner.as_str(), lease.name])
                        })
                        .map_err(during("releasing a lease"))?;
                }
                Ok(())
            })
            .await
    }

    async fn peek_lease(&self, owner: &Owner, name: &str) -> Result<Option<Lease>, StoreError> {
        let (owner, name) = (owner.clone(), name.to_owned());
        self.reader_pool
            .read(move |connection| peek(connection, &owner, &name))
            .await
    }
}

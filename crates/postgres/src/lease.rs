//! Leases: named locks with an expiry, for work that one process at a time does.

use std::time::Duration;

use async_trait::async_trait;
use throughline_model::Owner;
use throughline_store::{Fence, Lease, LeaseStore, MAX_CLOCK_CORRECTION, StoreError};

use crate::error::{Fault, damaged};
use crate::log::{in_read_transaction, in_write_transaction};
use crate::open::PostgresStore;
use crate::rows;
use crate::tx::Tx;

/// The database's current time in microseconds: now, not when the transaction began.
const NOW_SQL: &str = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint";

/// Whether the fencing tokens are still current. The answer holds until the transaction
/// ends, since acquiring the lease waits for the row lock taken here.
pub(crate) async fn holds_lease(
    tx: &Tx,
    owner: &Owner,
    fence: Option<&Fence>,
) -> Result<bool, Fault> {
    let Some(fence) = fence else {
        return Ok(true);
    };
    for fence in fence.iter() {
        let row = tx
            .query_opt(
                "looking up a lease",
                "SELECT 1 FROM throughline.lease
                 WHERE owner = $1 AND name = $2 AND number = $3 FOR SHARE",
                params![
                    owner.as_str(),
                    rows::escape_nul(&fence.name).as_ref(),
                    rows::u64_to_i64(fence.fencing_token)
                ],
            )
            .await?;
        if row.is_none() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The SQL of [`throughline_store::is_in_effect`], for a row named `held`.
fn in_effect_sql() -> String {
    let correction = duration_micros(MAX_CLOCK_CORRECTION);
    format!("held.granted_at <= {NOW_SQL} + {correction} AND held.expires_at > {NOW_SQL}")
}

/// Refuses a write under a lease that has been lost.
pub(crate) async fn refuse_lost_lease(
    tx: &Tx,
    owner: &Owner,
    fence: Option<&Fence>,
) -> Result<(), Fault> {
    match fence {
        Some(fence) if !holds_lease(tx, owner, Some(fence)).await? => {
            Err(fence.lost_error().into())
        }
        _ => Ok(()),
    }
}

fn duration_micros(term: Duration) -> i64 {
    i64::try_from(term.as_micros()).unwrap_or(i64::MAX / 2)
}

/// Acquires a lease that is free, expired, or already the holder's own.
async fn acquire(
    tx: &Tx,
    owner: &Owner,
    name: &str,
    holder: &str,
    term: Duration,
) -> Result<Lease, Fault> {
    let doing = "acquiring a lease";
    let (key, who) = (rows::escape_nul(name), rows::escape_nul(holder));
    let sql = format!(
        "INSERT INTO throughline.lease AS held
             (owner, name, holder, number, granted_at, expires_at)
         VALUES ($1, $2, $3, nextval('throughline.lease_number'), {NOW_SQL}, {NOW_SQL} + $4)
         ON CONFLICT (owner, name) DO UPDATE
         SET holder = excluded.holder, number = excluded.number,
             granted_at = excluded.granted_at, expires_at = excluded.expires_at
         WHERE held.holder = excluded.holder OR NOT ({})
         RETURNING number, expires_at",
        in_effect_sql()
    );
    let taken = tx
        .query_opt(
            doing,
            &sql,
            params![
                owner.as_str(),
                key.as_ref(),
                who.as_ref(),
                duration_micros(term)
            ],
        )
        .await?;
    let Some(row) = taken else {
        // The attempt above locked the row, so it still exists.
        let held = tx
            .query_opt(
                doing,
                "SELECT holder, expires_at FROM throughline.lease WHERE owner = $1 AND name = $2",
                params![owner.as_str(), key.as_ref()],
            )
            .await?
            .ok_or(StoreError::Closed)?;
        return Err(Fault::Store(StoreError::LeaseHeld {
            name: name.to_owned(),
            holder: rows::get(&held, 0)?,
            until: rows::decode_time(rows::get(&held, 1)?)?,
        }));
    };
    let number: i64 = rows::get(&row, 0)?;
    Ok(Lease {
        owner: owner.clone(),
        name: name.to_owned(),
        holder: holder.to_owned(),
        fencing_token: u64::try_from(number).map_err(|error| damaged("a lease's number", error))?,
        expires_at: rows::decode_time(rows::get(&row, 1)?)?,
    })
}

async fn renew(tx: &Tx, lease: &Lease, term: Duration) -> Result<Lease, Fault> {
    let sql = format!(
        "UPDATE throughline.lease SET granted_at = {NOW_SQL}, expires_at = {NOW_SQL} + $4
         WHERE owner = $1 AND name = $2 AND number = $3 RETURNING expires_at"
    );
    let renewed = tx
        .query_opt(
            "renewing a lease",
            &sql,
            params![
                lease.owner.as_str(),
                rows::escape_nul(&lease.name).as_ref(),
                rows::u64_to_i64(lease.fencing_token),
                duration_micros(term)
            ],
        )
        .await?;
    let row = renewed.ok_or_else(|| lease.fence().lost_error())?;
    Ok(Lease {
        expires_at: rows::decode_time(rows::get(&row, 0)?)?,
        ..lease.clone()
    })
}

async fn release(tx: &Tx, lease: &Lease) -> Result<(), Fault> {
    tx.execute(
        "releasing a lease",
        "DELETE FROM throughline.lease WHERE owner = $1 AND name = $2 AND number = $3",
        params![
            lease.owner.as_str(),
            rows::escape_nul(&lease.name).as_ref(),
            rows::u64_to_i64(lease.fencing_token)
        ],
    )
    .await?;
    Ok(())
}

async fn peek(tx: &Tx, owner: &Owner, name: &str) -> Result<Option<Lease>, Fault> {
    let sql = format!(
        "SELECT holder, number, expires_at FROM throughline.lease AS held
         WHERE owner = $1 AND name = $2 AND {}",
        in_effect_sql()
    );
    let found = tx
        .query_opt(
            "looking up a lease",
            &sql,
            params![owner.as_str(), rows::escape_nul(name).as_ref()],
        )
        .await?;
    let Some(row) = found else {
        return Ok(None);
    };
    let number: i64 = rows::get(&row, 1)?;
    Ok(Some(Lease {
        owner: owner.clone(),
        name: name.to_owned(),
        holder: rows::get(&row, 0)?,
        fencing_token: u64::try_from(number).map_err(|error| damaged("a lease's number", error))?,
        expires_at: rows::decode_time(rows::get(&row, 2)?)?,
    }))
}

/// Lists all leases, including expired ones.
pub(crate) async fn list_leases(tx: &Tx) -> Result<Vec<Lease>, Fault> {
    let found = tx
        .query(
            "listing the leases",
            "SELECT owner, name, holder, number, expires_at FROM throughline.lease
             ORDER BY owner, name",
            &[],
        )
        .await?;
    let read = |row: &tokio_postgres::Row| -> Result<Lease, StoreError> {
        let number: i64 = rows::get(row, 3)?;
        Ok(Lease {
            owner: rows::parse_column(row, 0)?,
            name: rows::get(row, 1)?,
            holder: rows::get(row, 2)?,
            fencing_token: u64::try_from(number)
                .map_err(|error| damaged("a lease's number", error))?,
            expires_at: rows::decode_time(rows::get(row, 4)?)?,
        })
    };
    Ok(found.iter().map(read).collect::<Result<_, _>>()?)
}

#[async_trait]
impl LeaseStore for PostgresStore {
    async fn acquire_lease(
        &self,
        owner: &Owner,
        name: &str,
        holder: &str,
        term: Duration,
    ) -> Result<Lease, StoreError> {
        in_write_transaction!(self, owner, |tx| acquire(tx, owner, name, holder, term)
            .await)
    }

    async fn renew_lease(&self, lease: &Lease, term: Duration) -> Result<Lease, StoreError> {
        in_write_transaction!(self, &lease.owner, |tx| renew(tx, lease, term).await)
    }

    async fn release_lease(&self, lease: &Lease) -> Result<(), StoreError> {
        in_write_transaction!(self, &lease.owner, |tx| release(tx, lease).await)
    }

    async fn peek_lease(&self, owner: &Owner, name: &str) -> Result<Option<Lease>, StoreError> {
        in_read_transaction!(self, owner, |tx| peek(tx, owner, name).await)
    }
}

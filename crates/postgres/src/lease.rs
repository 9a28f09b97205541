//! Leases: work that one process at a time does on this database.

use std::time::Duration;

use async_trait::async_trait;
use throughline_model::Owner;
use throughline_store::{Fence, Lease, Leases, MAX_CLOCK_CORRECTION, StoreError};

use crate::error::{Fault, damaged};
use crate::log::{reading, writing};
use crate::open::PostgresStore;
use crate::rows;
use crate::tx::Tx;

/// The time in microseconds, by the database's clock: as it is now, not when the
/// transaction began.
const NOW: &str = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint";

/// Whether what is written under this may still be. It stays so until the transaction ends:
/// whoever takes the lease waits for that.
pub(crate) async fn holds(tx: &Tx, owner: &Owner, fence: Option<&Fence>) -> Result<bool, Fault> {
    let Some(fence) = fence else {
        return Ok(true);
    };
    for fence in fence.each() {
        let row = tx
            .optional(
                "looking up a lease",
                "SELECT 1 FROM throughline.lease
                 WHERE owner = $1 AND name = $2 AND number = $3 FOR SHARE",
                params![
                    owner.as_str(),
                    rows::plain(&fence.name).as_ref(),
                    rows::number(fence.number)
                ],
            )
            .await?;
        if row.is_none() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The SQL of [`throughline_store::is_in_effect`], of a row called `held`.
fn in_effect() -> String {
    let correction = micros(MAX_CLOCK_CORRECTION);
    format!("held.granted_at <= {NOW} + {correction} AND held.expires_at > {NOW}")
}

/// Refuses what is written under a lease that is another's.
pub(crate) async fn refuse_lost(
    tx: &Tx,
    owner: &Owner,
    fence: Option<&Fence>,
) -> Result<(), Fault> {
    match fence {
        Some(fence) if !holds(tx, owner, Some(fence)).await? => Err(fence.lost().into()),
        _ => Ok(()),
    }
}

fn micros(term: Duration) -> i64 {
    i64::try_from(term.as_micros()).unwrap_or(i64::MAX / 2)
}

/// Takes a lease that nobody has, or that has run out, or that is the holder's own.
async fn take(
    tx: &Tx,
    owner: &Owner,
    name: &str,
    holder: &str,
    term: Duration,
) -> Result<Lease, Fault> {
    let doing = "taking a lease";
    let (key, who) = (rows::plain(name), rows::plain(holder));
    let sql = format!(
        "INSERT INTO throughline.lease AS held
             (owner, name, holder, number, granted_at, expires_at)
         VALUES ($1, $2, $3, nextval('throughline.lease_number'), {NOW}, {NOW} + $4)
         ON CONFLICT (owner, name) DO UPDATE
         SET holder = excluded.holder, number = excluded.number,
             granted_at = excluded.granted_at, expires_at = excluded.expires_at
         WHERE held.holder = excluded.holder OR NOT ({})
         RETURNING number, expires_at",
        in_effect()
    );
    let taken = tx
        .optional(
            doing,
            &sql,
            params![owner.as_str(), key.as_ref(), who.as_ref(), micros(term)],
        )
        .await?;
    let Some(row) = taken else {
        // The row is locked by what was just tried, and so still there.
        let held = tx
            .optional(
                doing,
                "SELECT holder, expires_at FROM throughline.lease WHERE owner = $1 AND name = $2",
                params![owner.as_str(), key.as_ref()],
            )
            .await?
            .ok_or(StoreError::Closed)?;
        return Err(Fault::Store(StoreError::LeaseHeld {
            name: name.to_owned(),
            holder: rows::get(&held, 0)?,
            until: rows::time(rows::get(&held, 1)?)?,
        }));
    };
    let number: i64 = rows::get(&row, 0)?;
    Ok(Lease {
        owner: owner.clone(),
        name: name.to_owned(),
        holder: holder.to_owned(),
        number: u64::try_from(number).map_err(|error| damaged("a lease's number", error))?,
        expires_at: rows::time(rows::get(&row, 1)?)?,
    })
}

async fn renew(tx: &Tx, lease: &Lease, term: Duration) -> Result<Lease, Fault> {
    let sql = format!(
        "UPDATE throughline.lease SET granted_at = {NOW}, expires_at = {NOW} + $4
         WHERE owner = $1 AND name = $2 AND number = $3 RETURNING expires_at"
    );
    let renewed = tx
        .optional(
            "renewing a lease",
            &sql,
            params![
                lease.owner.as_str(),
                rows::plain(&lease.name).as_ref(),
                rows::number(lease.number),
                micros(term)
            ],
        )
        .await?;
    let row = renewed.ok_or_else(|| lease.fence().lost())?;
    Ok(Lease {
        expires_at: rows::time(rows::get(&row, 0)?)?,
        ..lease.clone()
    })
}

async fn release(tx: &Tx, lease: &Lease) -> Result<(), Fault> {
    tx.execute(
        "giving a lease back",
        "DELETE FROM throughline.lease WHERE owner = $1 AND name = $2 AND number = $3",
        params![
            lease.owner.as_str(),
            rows::plain(&lease.name).as_ref(),
            rows::number(lease.number)
        ],
    )
    .await?;
    Ok(())
}

async fn peek(tx: &Tx, owner: &Owner, name: &str) -> Result<Option<Lease>, Fault> {
    let sql = format!(
        "SELECT holder, number, expires_at FROM throughline.lease AS held
         WHERE owner = $1 AND name = $2 AND {}",
        in_effect()
    );
    let found = tx
        .optional(
            "looking up a lease",
            &sql,
            params![owner.as_str(), rows::plain(name).as_ref()],
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
        number: u64::try_from(number).map_err(|error| damaged("a lease's number", error))?,
        expires_at: rows::time(rows::get(&row, 2)?)?,
    }))
}

/// Every lease there is.
pub(crate) async fn list(tx: &Tx) -> Result<Vec<Lease>, Fault> {
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
            owner: rows::parsed(row, 0)?,
            name: rows::get(row, 1)?,
            holder: rows::get(row, 2)?,
            number: u64::try_from(number).map_err(|error| damaged("a lease's number", error))?,
            expires_at: rows::time(rows::get(row, 4)?)?,
        })
    };
    Ok(found.iter().map(read).collect::<Result<_, _>>()?)
}

#[async_trait]
impl Leases for PostgresStore {
    async fn take_lease(
        &self,
        owner: &Owner,
        name: &str,
        holder: &str,
        term: Duration,
    ) -> Result<Lease, StoreError> {
        writing!(self, owner, |tx| take(tx, owner, name, holder, term).await)
    }

    async fn renew_lease(&self, lease: &Lease, term: Duration) -> Result<Lease, StoreError> {
        writing!(self, &lease.owner, |tx| renew(tx, lease, term).await)
    }

    async fn release_lease(&self, lease: &Lease) -> Result<(), StoreError> {
        writing!(self, &lease.owner, |tx| release(tx, lease).await)
    }

    async fn peek_lease(&self, owner: &Owner, name: &str) -> Result<Option<Lease>, StoreError> {
        reading!(self, owner, |tx| peek(tx, owner, name).await)
    }
}

//! Migrates a database to this version's schema.
//!
//! Migrations are named by timestamp and applied in order, all in one transaction under an
//! advisory lock, so that only one of several processes does it. The names of applied
//! migrations are stored; the embedded store's migrations have the same names.

use deadpool_postgres::{GenericClient, Object, Transaction};
use throughline_store::StoreError;

use crate::error::{Fault, during};

/// All migrations, oldest first.
pub(crate) const MIGRATIONS: &[(&str, &str)] = throughline_store::migrations!();

/// The advisory lock held while migrating: "TLine".
const MIGRATION_LOCK: i64 = 0x54_4c69_6e65;

/// Creates the role that may use the schema and nothing else. Row-level security applies to
/// it.
const CREATE_ROLE: &str = "
    DO $$ BEGIN
        IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'throughline') THEN
            CREATE ROLE throughline NOLOGIN;
        END IF;
    EXCEPTION WHEN duplicate_object OR unique_violation THEN
        -- A store in another database created it at the same time.
        NULL;
    END $$;
    GRANT USAGE ON SCHEMA throughline TO throughline;
    GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA throughline TO throughline;
    GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA throughline TO throughline;
    REVOKE INSERT, UPDATE, DELETE ON throughline.migration FROM throughline;
";

/// Applies the migrations that have not been applied yet.
pub(crate) async fn migrate(client: &mut Object, with_role: bool) -> Result<(), StoreError> {
    let applied = read_applied(client).await?;
    let ready = applied.len() == MIGRATIONS.len();
    if ready && (!with_role || has_role(client).await?) {
        return Ok(());
    }
    let failed = during("migrating the schema");
    let lost = |error| StoreError::from(failed(error));
    let transaction = client.transaction().await.map_err(lost)?;
    transaction
        .execute("SELECT pg_advisory_xact_lock($1)", &[&MIGRATION_LOCK])
        .await
        .map_err(lost)?;
    apply_missing(&transaction).await?;
    if with_role {
        transaction.batch_execute(CREATE_ROLE).await.map_err(lost)?;
    }
    transaction.commit().await.map_err(lost)
}

async fn apply_missing(transaction: &Transaction<'_>) -> Result<(), Fault> {
    let failed = during("migrating the schema");
    // Another process may have migrated while this one waited for the lock.
    let applied = read_applied(transaction).await?;
    if applied.is_empty() {
        let make = "CREATE SCHEMA throughline;
            CREATE TABLE throughline.migration (
                name text PRIMARY KEY,
                applied_at timestamptz NOT NULL DEFAULT now()
            )";
        transaction.batch_execute(make).await.map_err(failed)?;
    }
    for (name, sql) in &MIGRATIONS[applied.len()..] {
        transaction.batch_execute(sql).await.map_err(failed)?;
        transaction
            .execute(
                "INSERT INTO throughline.migration (name) VALUES ($1)",
                &[name],
            )
            .await
            .map_err(failed)?;
    }
    Ok(())
}

async fn has_role(client: &Object) -> Result<bool, StoreError> {
    let row = client
        .query_one(
            "SELECT EXISTS (
                 SELECT FROM pg_roles WHERE rolname = 'throughline'
                 AND has_table_privilege(oid, 'throughline.entry', 'INSERT')
             )",
            &[],
        )
        .await
        .map_err(during("looking for the role"))
        .map_err(StoreError::from)?;
    Ok(row.get(0))
}

/// Reads the names of applied migrations; fails if any is unknown to this program.
async fn read_applied(client: &impl GenericClient) -> Result<Vec<String>, StoreError> {
    let failed = |error| StoreError::from(during("reading the schema's version")(error));
    let row = client
        .query_one(
            // From the system tables directly: lookups by name may be answered from this
            // connection's cache, from before another connection created the schema.
            "SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = 'throughline'),
                 EXISTS (SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
                     WHERE n.nspname = 'throughline' AND c.relname = 'migration')",
            &[],
        )
        .await
        .map_err(failed)?;
    match (row.get(0), row.get(1)) {
        (false, _) => return Ok(Vec::new()),
        (true, false) => {
            return Err(StoreError::DamagedStore {
                what: "the schema `throughline` belongs to another program".to_owned(),
                source: None,
            });
        }
        (true, true) => {}
    }
    let rows = client
        .query("SELECT name FROM throughline.migration ORDER BY name", &[])
        .await
        .map_err(failed)?;
    let applied: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
    let known = MIGRATIONS.iter().map(|(name, _)| *name);
    let ours = applied.len() <= MIGRATIONS.len() && applied.iter().zip(known).all(|(a, k)| a == k);
    if !ours {
        return Err(StoreError::SchemaTooNew {
            found: applied.last().cloned().unwrap_or_default(),
            known: MIGRATIONS
                .last()
                .map_or("none", |(name, _)| name)
                .to_owned(),
        });
    }
    Ok(applied)
}

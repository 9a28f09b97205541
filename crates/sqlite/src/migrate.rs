//! Migrates a file to this version's schema.
//!
//! Migrations are named by timestamp and applied in order, each in the transaction that records
//! it. `user_version` holds how many have been applied, so that an up-to-date file costs one
//! pragma.

use rusqlite::Connection;
use throughline_store::StoreError;

use crate::error::during;

/// SQLite application id that marks a file as a store: "TLine" cut to four bytes.
const APPLICATION_ID: i32 = 0x544c_696e;

/// All migrations, oldest first.
pub(crate) const MIGRATIONS: &[(&str, &str)] = throughline_store::migrations!();

/// Returns how many migrations this version knows.
fn known_migrations() -> i64 {
    i64::try_from(MIGRATIONS.len()).unwrap_or(i64::MAX)
}

/// Whether a file's schema is up to date.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum SchemaState {
    /// Up to date.
    Current,
    /// Migrations are missing.
    Outdated,
}

/// Inspects a file without changing it, in the caller's transaction: another process may be
/// creating the store at the same time.
pub(crate) fn schema_state(connection: &Connection) -> Result<SchemaState, StoreError> {
    let pragma = |name| -> Result<i64, StoreError> {
        connection
            .pragma_query_value(None, name, |row| row.get(0))
            .map_err(during("reading the schema's version"))
    };
    let applied = pragma("user_version")?;
    let known = known_migrations();
    if applied > 0 && pragma("application_id")? != i64::from(APPLICATION_ID) {
        return Err(StoreError::DamagedStore {
            what: "the file is a database of another program".to_owned(),
            source: None,
        });
    }
    if applied == 0 {
        refuse_foreign_database(connection)?;
    }
    match applied {
        newer if newer > known => Err(StoreError::SchemaTooNew {
            found: newer.to_string(),
            known: known.to_string(),
        }),
        current if current == known => Ok(SchemaState::Current),
        _ => Ok(SchemaState::Outdated),
    }
}

/// Refuses a file that a later version has migrated since it was opened.
pub(crate) fn refuse_newer_schema(connection: &Connection) -> Result<(), StoreError> {
    let applied: i64 = connection
        .prepare_cached("PRAGMA user_version")
        .and_then(|mut pragma| pragma.query_row([], |row| row.get(0)))
        .map_err(during("reading the schema's version"))?;
    let known = known_migrations();
    if applied > known {
        return Err(StoreError::SchemaTooNew {
            found: applied.to_string(),
            known: known.to_string(),
        });
    }
    Ok(())
}

/// Applies the missing migrations. Several processes may try at once; one of them does it.
pub(crate) fn migrate(connection: &mut Connection) -> Result<(), StoreError> {
    let failed = during("migrating the schema");
    let transaction = connection
        .transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)
        .map_err(failed)?;
    if schema_state(&transaction)? == SchemaState::Outdated {
        let applied: u32 = transaction
            .pragma_query_value(None, "user_version", |row| row.get(0))
            .map_err(failed)?;
        for (_, sql) in &MIGRATIONS[applied as usize..] {
            transaction.execute_batch(sql).map_err(failed)?;
        }
        transaction
            .pragma_update(None, "application_id", APPLICATION_ID)
            .map_err(failed)?;
        transaction
            .pragma_update(None, "user_version", known_migrations())
            .map_err(failed)?;
    }
    transaction.commit().map_err(failed)
}

/// Refuses to migrate a file that contains another program's tables.
fn refuse_foreign_database(connection: &Connection) -> Result<(), StoreError> {
    let tables: i64 = connection
        .query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))
        .map_err(during("reading the schema"))?;
    if tables > 0 {
        return Err(StoreError::DamagedStore {
            what: "the file is a database of another program".to_owned(),
            source: None,
        });
    }
    Ok(())
}

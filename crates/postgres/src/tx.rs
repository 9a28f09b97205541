//! A transaction on one pooled connection, limited to one owner or a set of owners.
//!
//! The owner is set per transaction and reset with it, so that isolation also holds behind
//! a proxy that shares connections between transactions.
//!
//! `BEGIN` is sent together with the first statement, to save a round trip. Its result is
//! checked before that statement's rows are used, and before anything is written: without a
//! transaction every statement would commit by itself.

use std::sync::Arc;

use deadpool_postgres::{Object, Pool};
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, join};
use throughline_model::Owner;
use tokio::sync::Mutex;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use crate::error::{Fault, commit_failure, during};

/// The parameters of a statement.
pub(crate) type Params<'a> = &'a [&'a (dyn ToSql + Sync)];

/// What a transaction is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TxMode {
    /// Reads one snapshot, unaffected by concurrent writes.
    Read,
    /// Reads what others commit meanwhile: each statement sees what is committed when it
    /// starts.
    ReadCommitted,
    /// Writes: each statement sees what is committed when it starts.
    Write,
}

/// The owners whose rows a transaction may see.
#[derive(Clone, Copy, Debug)]
pub(crate) enum OwnerScope<'a> {
    /// One owner.
    Owner(&'a Owner),
    /// The owners of a batch.
    Owners(&'a [String]),
    /// All owners, for the store's own work: change feed, maintenance, tokens, index.
    SystemRole,
}

/// Session settings applied to every transaction.
#[derive(Clone, Debug)]
pub(crate) struct TxSettings {
    /// The role to switch to, or `none` to keep the login role.
    pub(crate) role: &'static str,
    /// The value of `synchronous_commit`, or empty for the server's setting.
    pub(crate) synchronous_commit: &'static str,
    /// How long a statement that writes waits for one lock, as PostgreSQL writes a
    /// duration.
    pub(crate) lock_timeout: &'static str,
}

/// How long a statement that writes waits for one lock. After that it releases its
/// connection and retries later, so that one locked row does not hold up everything else.
/// The append functions in the schema have the same limit.
pub(crate) const LOCK_TIMEOUT: &str = "250ms";

/// Applies the settings. `$1` role, `$2` owners, `$3` whether all owners, `$4`
/// `synchronous_commit` or empty, `$5` lock timeout. Also limits how long a stalled process
/// can hold a transaction open.
const APPLY_SETTINGS: &str = "SELECT set_config('role', $1, true),
    set_config('throughline.owners', ($2::text[])::text, true),
    set_config('throughline.servant', $3, true),
    set_config('idle_in_transaction_session_timeout', '60s', true),
    set_config('lock_timeout', $5, true),
    CASE WHEN $4 <> '' THEN set_config('synchronous_commit', $4, true) END";

/// How to plan the statements of a transaction, regardless of table statistics.
#[derive(Clone, Copy, Debug)]
pub(crate) enum PlannerHints {
    /// Few rows are looked up by key, however large the tables are. The database caches
    /// plans of such statements, and a plan made while the tables were small would keep
    /// reading whole tables after they have grown.
    KeyLookups,
    /// Rows are read in index order, however few there seem to be to sort.
    IndexOrder,
}

impl PlannerHints {
    fn sql(self) -> &'static str {
        match self {
            Self::KeyLookups => {
                "SELECT set_config('plan_cache_mode', 'force_generic_plan', true),
                     set_config('jit', 'off', true),
                     set_config('enable_seqscan', 'off', true),
                     set_config('enable_hashjoin', 'off', true),
                     set_config('enable_mergejoin', 'off', true)"
            }
            Self::IndexOrder => {
                "SELECT set_config('enable_sort', 'off', true),
                     set_config('enable_bitmapscan', 'off', true),
                     set_config('jit', 'off', true)"
            }
        }
    }
}

/// Gets a connection from the pool.
pub(crate) async fn connect(pool: &Pool) -> Result<Object, Fault> {
    let connected = pool.get().await;
    connected.map_err(|error| Fault::from_pool_error("connecting to the database", error))
}

/// The operation reported while a transaction is being opened.
const STARTING: &str = "starting a transaction";

/// Whether the database has opened the transaction.
enum BeginState {
    /// `BEGIN` and the settings are sent; this waits for their results.
    Sent(BoxFuture<'static, Result<(), tokio_postgres::Error>>),
    Open,
    Failed,
}

/// An open transaction. Dropping it before it is finished closes its connection.
pub(crate) struct Tx {
    client: Option<Arc<Object>>,
    begin_state: Mutex<BeginState>,
    mode: TxMode,
}

impl Tx {
    pub(crate) async fn begin(
        pool: &Pool,
        settings: &TxSettings,
        purpose: TxMode,
        scope: OwnerScope<'_>,
    ) -> Result<Self, Fault> {
        let failed = during(STARTING);
        let client = connect(pool).await?;
        let apply = client
            .prepare_cached(APPLY_SETTINGS)
            .await
            .map_err(failed)?;
        let owners = match scope {
            OwnerScope::Owner(owner) => vec![owner.as_str()],
            OwnerScope::Owners(owners) => owners.iter().map(String::as_str).collect(),
            OwnerScope::SystemRole => Vec::new(),
        };
        let all_owners = match scope {
            OwnerScope::SystemRole => "on",
            OwnerScope::Owner(_) | OwnerScope::Owners(_) => "off",
        };
        let begin = match purpose {
            TxMode::Read => "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
            TxMode::ReadCommitted => "BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY",
            TxMode::Write => "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE",
        };
        // Reads take no row locks. The store's own work, such as indexing, waits without
        // limit.
        let lock_timeout = match (purpose, scope) {
            (TxMode::Write, OwnerScope::Owner(_) | OwnerScope::Owners(_)) => settings.lock_timeout,
            (TxMode::Write, OwnerScope::SystemRole) | (TxMode::Read | TxMode::ReadCommitted, _) => {
                "0"
            }
        };
        let client = Arc::new(client);
        let (role, synchronous) = (settings.role, settings.synchronous_commit);
        let owners: Vec<String> = owners.into_iter().map(ToOwned::to_owned).collect();
        let sending = Arc::clone(&client);
        let mut opening = Box::pin(async move {
            let params: Params<'_> = &[&role, &owners, &all_owners, &synchronous, &lock_timeout];
            let (begun, applied) =
                join(sending.batch_execute(begin), sending.query(&apply, params)).await;
            begun?;
            applied?;
            Ok(())
        });
        // The first poll sends both, so that they travel with the next statement.
        let opening = match (&mut opening).now_or_never() {
            None => BeginState::Sent(opening),
            Some(opened) => {
                opened.map_err(failed)?;
                BeginState::Open
            }
        };
        Ok(Self {
            client: Some(client),
            begin_state: Mutex::new(opening),
            mode: purpose,
        })
    }

    /// Waits until the database has confirmed that the transaction is open.
    ///
    /// [`Tx::query`] and [`Tx::execute`] do so by themselves.
    pub(crate) async fn wait_until_open(&self) -> Result<(), Fault> {
        let mut opening = self.begin_state.lock().await;
        match &mut *opening {
            BeginState::Open => Ok(()),
            BeginState::Failed => Err(Fault::Store(throughline_store::StoreError::Closed)),
            BeginState::Sent(results) => {
                let results = results.await;
                *opening = match results {
                    Ok(()) => BeginState::Open,
                    Err(_) => BeginState::Failed,
                };
                results.map_err(during(STARTING))
            }
        }
    }

    /// Sends statements while the transaction is being opened; their results count only if
    /// it was. The future that waits for `BEGIN` must be polled meanwhile: a connection
    /// stops reading for everyone while one result is not consumed.
    pub(crate) async fn run_while_opening<T>(
        &self,
        work: impl Future<Output = Result<T, Fault>>,
    ) -> Result<T, Fault> {
        let (opened, done) = join(self.wait_until_open(), work).await;
        opened?;
        done
    }

    pub(crate) fn client(&self) -> Result<&Object, Fault> {
        self.client
            .as_deref()
            .ok_or(Fault::Store(throughline_store::StoreError::Closed))
    }

    /// Sets the planner hints for the following statements.
    pub(crate) async fn set_planner_hints(&self, plan: PlannerHints) -> Result<(), Fault> {
        let client = self.client()?;
        let planning = async {
            let statement = client.prepare_cached(plan.sql()).await;
            let statement = statement.map_err(during(STARTING))?;
            // Sent with the next statement, which fails if this does.
            let _ = client.query(&statement, &[]).now_or_never();
            Ok(())
        };
        let mut planning = std::pin::pin!(planning);
        tokio::select! {
            biased;
            done = &mut planning => done,
            opened = self.wait_until_open() => {
                opened?;
                planning.await
            }
        }
    }

    /// Runs a query and returns its rows.
    pub(crate) async fn query(
        &self,
        doing: &'static str,
        sql: &str,
        params: Params<'_>,
    ) -> Result<Vec<Row>, Fault> {
        let failed = during(doing);
        let client = self.client()?;
        let querying = async {
            let statement = client.prepare_cached(sql).await.map_err(failed)?;
            self.wait_until_open_if_writing(sql).await?;
            client.query(&statement, params).await.map_err(failed)
        };
        self.run_while_opening(querying).await
    }

    /// Runs a query and returns its only row, if any.
    pub(crate) async fn query_opt(
        &self,
        doing: &'static str,
        sql: &str,
        params: Params<'_>,
    ) -> Result<Option<Row>, Fault> {
        Ok(self.query(doing, sql, params).await?.into_iter().next())
    }

    /// Runs a statement; returns the number of rows affected.
    pub(crate) async fn execute(
        &self,
        doing: &'static str,
        sql: &str,
        params: Params<'_>,
    ) -> Result<u64, Fault> {
        let failed = during(doing);
        let client = self.client()?;
        let executing = async {
            let statement = client.prepare_cached(sql).await.map_err(failed)?;
            self.wait_until_open_if_writing(sql).await?;
            client.execute(&statement, params).await.map_err(failed)
        };
        self.run_while_opening(executing).await
    }

    /// Makes the commit wait until everything read in this transaction is durable.
    ///
    /// The database does not sync for a transaction that has written nothing. What such a
    /// transaction has read may have been committed by a server that does not wait for the
    /// disk, or by one that was interrupted while it waited for a replica, so a reply based
    /// on it needs a sync of its own. This writes an empty WAL record, and the commit syncs
    /// it with everything before it.
    pub(crate) async fn sync_on_commit(&self) -> Result<(), Fault> {
        let sql = "SELECT pg_logical_emit_message(true, 'throughline', '')";
        self.query("syncing", sql, &[]).await?;
        Ok(())
    }

    /// Waits for the transaction to be open before a statement that writes is sent. One
    /// that only reads is sent at once: without a transaction it changes nothing.
    async fn wait_until_open_if_writing(&self, sql: &str) -> Result<(), Fault> {
        if self.mode != TxMode::Write || sql.starts_with("SELECT") {
            return Ok(());
        }
        self.wait_until_open().await
    }

    /// Ends the transaction: commits on success, rolls back on failure.
    pub(crate) async fn finish<T>(self, done: Result<T, Fault>) -> Result<T, Fault> {
        match done {
            Ok(done) => {
                self.commit().await?;
                Ok(done)
            }
            Err(fault) => {
                self.rollback(&fault).await;
                Err(fault)
            }
        }
    }

    async fn commit(mut self) -> Result<(), Fault> {
        if self.mode != TxMode::Write {
            // Nothing depends on the result, so do not wait for it.
            if let Some(client) = self.take_client() {
                let _ = client.batch_execute("COMMIT").now_or_never();
            }
            return Ok(());
        }
        self.wait_until_open().await?;
        self.client()?
            .batch_execute("COMMIT")
            .await
            .map_err(commit_failure)?;
        self.return_connection();
        Ok(())
    }

    /// Rolls back, if the connection still works.
    pub(crate) async fn rollback(mut self, why: &Fault) {
        if why.is_connection_lost() || why.is_stale_statement() {
            return;
        }
        let rolled_back = match self.client() {
            Ok(client) => client.batch_execute("ROLLBACK").await.is_ok(),
            Err(_) => false,
        };
        if rolled_back {
            self.return_connection();
        }
    }

    /// Returns the connection to the pool; the transaction is over.
    pub(crate) fn return_connection(&mut self) {
        self.take_client();
    }

    /// Takes the connection out. The future that waits for `BEGIN` shares it, and is
    /// dropped first.
    fn take_client(&mut self) -> Option<Object> {
        *self.begin_state.get_mut() = BeginState::Failed;
        self.client.take().and_then(Arc::into_inner)
    }
}

impl Drop for Tx {
    fn drop(&mut self) {
        // The next user of the connection must not inherit an unfinished transaction.
        if let Some(client) = self.take_client() {
            drop(Object::take(client));
        }
    }
}

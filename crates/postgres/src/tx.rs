//! One transaction on one connection, on behalf of somebody.
//!
//! On whose behalf is told to the database for each transaction and forgotten with it,
//! so that it holds through a proxy that shares connections between transactions.
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

use crate::error::{Fault, committing, during};

/// What a statement is given.
pub(crate) type Params<'a> = &'a [&'a (dyn ToSql + Sync)];

/// What a transaction is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Reading one state of things, whatever is written meanwhile.
    Read,
    /// Reading what others commit meanwhile: each statement sees what is committed when it
    /// starts.
    Follow,
    /// Writing: each statement sees what is committed when it starts.
    Write,
}

/// On whose behalf.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Behalf<'a> {
    /// One owner's.
    Owner(&'a Owner),
    /// Those owners' that a batch is for, as the database writes a list.
    Owners(&'a [String]),
    /// The store's own: feed, upkeep, leases.
    Servant,
}

/// How the database is told things.
#[derive(Clone, Debug)]
pub(crate) struct Manner {
    /// The role to act in: `none` for that of the login.
    pub(crate) role: &'static str,
    /// How sure a commit is: empty for what the database is set to.
    pub(crate) synchronous: &'static str,
    /// How long a statement that writes waits for one lock, as PostgreSQL writes a duration.
    pub(crate) lock_timeout: &'static str,
}

/// How long a statement that writes waits for one lock. After that it gives its connection
/// back and tries again later, so that one locked row does not hold up everybody else. The
/// functions that append have the same limit in the schema.
pub(crate) const LOCK_TIMEOUT: &str = "250ms";

/// Says on whose behalf: `$1` role, `$2` owners, `$3` servant or not, `$4` how sure commits
/// are, or nothing, `$5` how long to wait for a lock. A process that stands still in the middle
/// of a transaction must not hold up the others for long.
const TELL: &str = "SELECT set_config('role', $1, true),
    set_config('throughline.owners', ($2::text[])::text, true),
    set_config('throughline.servant', $3, true),
    set_config('idle_in_transaction_session_timeout', '60s', true),
    set_config('lock_timeout', $5, true),
    CASE WHEN $4 <> '' THEN set_config('synchronous_commit', $4, true) END";

/// How what is asked in a transaction is to be planned, whatever the database believes of
/// its tables.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Plan {
    /// Few rows are looked up by their keys, however large the tables are. The database plans
    /// such statements once, and must not do so by how large the tables were then: it would
    /// go on reading whole tables after they have grown.
    ByKeys,
    /// Rows are read along an index and in its order, however few there seem to be to sort.
    AlongAnIndex,
}

impl Plan {
    fn sql(self) -> &'static str {
        match self {
            Self::ByKeys => {
                "SELECT set_config('plan_cache_mode', 'force_generic_plan', true),
                     set_config('jit', 'off', true),
                     set_config('enable_seqscan', 'off', true),
                     set_config('enable_hashjoin', 'off', true),
                     set_config('enable_mergejoin', 'off', true)"
            }
            Self::AlongAnIndex => {
                "SELECT set_config('enable_sort', 'off', true),
                     set_config('enable_bitmapscan', 'off', true),
                     set_config('jit', 'off', true)"
            }
        }
    }
}

/// A connection of the pool's.
pub(crate) async fn connect(pool: &Pool) -> Result<Object, Fault> {
    let connected = pool.get().await;
    connected.map_err(|error| Fault::no_connection("connecting to the database", error))
}

/// What is done while a transaction is opened.
const STARTING: &str = "starting a transaction";

/// Whether the database has opened the transaction.
enum Opening {
    /// `BEGIN` and the settings are sent; this waits for their results.
    Sent(BoxFuture<'static, Result<(), tokio_postgres::Error>>),
    Open,
    Failed,
}

/// A transaction under way. Dropped before its end, it takes its connection with it.
pub(crate) struct Tx {
    client: Option<Arc<Object>>,
    opening: Mutex<Opening>,
    purpose: Purpose,
}

impl Tx {
    pub(crate) async fn begin(
        pool: &Pool,
        manner: &Manner,
        purpose: Purpose,
        behalf: Behalf<'_>,
    ) -> Result<Self, Fault> {
        let failed = during(STARTING);
        let client = connect(pool).await?;
        let tell = client.prepare_cached(TELL).await.map_err(failed)?;
        let owners = match behalf {
            Behalf::Owner(owner) => vec![owner.as_str()],
            Behalf::Owners(owners) => owners.iter().map(String::as_str).collect(),
            Behalf::Servant => Vec::new(),
        };
        let servant = match behalf {
            Behalf::Servant => "on",
            Behalf::Owner(_) | Behalf::Owners(_) => "off",
        };
        let begin = match purpose {
            Purpose::Read => "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
            Purpose::Follow => "BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY",
            Purpose::Write => "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE",
        };
        // Reading takes no locks on rows. The store's own work, such as indexing, waits for as
        // long as it takes.
        let lock_timeout = match (purpose, behalf) {
            (Purpose::Write, Behalf::Owner(_) | Behalf::Owners(_)) => manner.lock_timeout,
            (Purpose::Write, Behalf::Servant) | (Purpose::Read | Purpose::Follow, _) => "0",
        };
        let client = Arc::new(client);
        let (role, synchronous) = (manner.role, manner.synchronous);
        let owners: Vec<String> = owners.into_iter().map(ToOwned::to_owned).collect();
        let sending = Arc::clone(&client);
        let mut opening = Box::pin(async move {
            let params: Params<'_> = &[&role, &owners, &servant, &synchronous, &lock_timeout];
            let (begun, told) =
                join(sending.batch_execute(begin), sending.query(&tell, params)).await;
            begun?;
            told?;
            Ok(())
        });
        // The first poll sends both, so that they travel with whatever comes next.
        let opening = match (&mut opening).now_or_never() {
            None => Opening::Sent(opening),
            Some(opened) => {
                opened.map_err(failed)?;
                Opening::Open
            }
        };
        Ok(Self {
            client: Some(client),
            opening: Mutex::new(opening),
            purpose,
        })
    }

    /// Waits until the database has said that the transaction is open.
    ///
    /// [`Tx::query`] and [`Tx::execute`] do so by themselves.
    pub(crate) async fn opened(&self) -> Result<(), Fault> {
        let mut opening = self.opening.lock().await;
        match &mut *opening {
            Opening::Open => Ok(()),
            Opening::Failed => Err(Fault::Store(throughline_store::StoreError::Closed)),
            Opening::Sent(results) => {
                let results = results.await;
                *opening = match results {
                    Ok(()) => Opening::Open,
                    Err(_) => Opening::Failed,
                };
                results.map_err(during(STARTING))
            }
        }
    }

    /// Sends statements while the transaction is being opened; their results count only if it
    /// was. What waits for `BEGIN` must be polled meanwhile: a connection stops reading for
    /// everybody as long as one result is not taken.
    pub(crate) async fn while_opening<T>(
        &self,
        work: impl Future<Output = Result<T, Fault>>,
    ) -> Result<T, Fault> {
        let (opened, done) = join(self.opened(), work).await;
        opened?;
        done
    }

    pub(crate) fn client(&self) -> Result<&Object, Fault> {
        self.client
            .as_deref()
            .ok_or(Fault::Store(throughline_store::StoreError::Closed))
    }

    /// What is asked from here on is planned like this.
    pub(crate) async fn plan(&self, plan: Plan) -> Result<(), Fault> {
        let client = self.client()?;
        let planning = async {
            let tell = client.prepare_cached(plan.sql()).await;
            let tell = tell.map_err(during(STARTING))?;
            // Sent with what comes next, and refused with it.
            let _ = client.query(&tell, &[]).now_or_never();
            Ok(())
        };
        let mut planning = std::pin::pin!(planning);
        tokio::select! {
            biased;
            done = &mut planning => done,
            opened = self.opened() => {
                opened?;
                planning.await
            }
        }
    }

    /// The rows that a statement gives.
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
            self.opened_if_writing(sql).await?;
            client.query(&statement, params).await.map_err(failed)
        };
        self.while_opening(querying).await
    }

    /// The one row that a statement gives, if any.
    pub(crate) async fn optional(
        &self,
        doing: &'static str,
        sql: &str,
        params: Params<'_>,
    ) -> Result<Option<Row>, Fault> {
        Ok(self.query(doing, sql, params).await?.into_iter().next())
    }

    /// Runs a statement; tells how many rows it was about.
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
            self.opened_if_writing(sql).await?;
            client.execute(&statement, params).await.map_err(failed)
        };
        self.while_opening(executing).await
    }

    /// Has the commit wait until all that was read here is durable.
    ///
    /// The database does not sync for a transaction that has written nothing. What such a
    /// transaction has found may have been committed by a server that does not wait for the
    /// disk, or by one that was cut off while it waited for a replica: an answer that rests on
    /// it needs a sync of its own. This writes an empty record, and the commit syncs it with all
    /// that came before it.
    pub(crate) async fn sync_what_was_read(&self) -> Result<(), Fault> {
        let sql = "SELECT pg_logical_emit_message(true, 'throughline', '')";
        self.query("syncing", sql, &[]).await?;
        Ok(())
    }

    /// Waits for the transaction to be open before a statement that writes is sent. One that
    /// only reads is sent at once: without a transaction it changes nothing.
    async fn opened_if_writing(&self, sql: &str) -> Result<(), Fault> {
        if self.purpose != Purpose::Write || sql.starts_with("SELECT") {
            return Ok(());
        }
        self.opened().await
    }

    /// Ends the transaction: commits what is done, undoes what has failed.
    pub(crate) async fn finish<T>(self, done: Result<T, Fault>) -> Result<T, Fault> {
        match done {
            Ok(done) => {
                self.commit().await?;
                Ok(done)
            }
            Err(fault) => {
                self.undo(&fault).await;
                Err(fault)
            }
        }
    }

    async fn commit(mut self) -> Result<(), Fault> {
        if self.purpose != Purpose::Write {
            // Nothing hangs on the answer, and nobody waits for it.
            if let Some(client) = self.take() {
                let _ = client.batch_execute("COMMIT").now_or_never();
            }
            return Ok(());
        }
        self.opened().await?;
        self.client()?
            .batch_execute("COMMIT")
            .await
            .map_err(committing)?;
        self.release();
        Ok(())
    }

    /// Undoes everything, as far as the connection can still be told.
    pub(crate) async fn undo(mut self, why: &Fault) {
        if why.is_cut() || why.is_stale() {
            return;
        }
        let rolled_back = match self.client() {
            Ok(client) => client.batch_execute("ROLLBACK").await.is_ok(),
            Err(_) => false,
        };
        if rolled_back {
            self.release();
        }
    }

    /// Gives the connection back: the transaction is over.
    pub(crate) fn release(&mut self) {
        self.take();
    }

    /// Takes the connection out. What waits for `BEGIN` shares it, and is dropped first.
    fn take(&mut self) -> Option<Object> {
        *self.opening.get_mut() = Opening::Failed;
        self.client.take().and_then(Arc::into_inner)
    }
}

impl Drop for Tx {
    fn drop(&mut self) {
        // Half a transaction must not reach whoever gets the connection next.
        if let Some(client) = self.take() {
            drop(Object::take(client));
        }
    }
}

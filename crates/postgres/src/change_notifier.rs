//! Telling other processes that something happened, and being told.
//!
//! The database passes the word on; the tables are the truth. A process that missed a word
//! finds what happened when it next looks, and looks every now and then in any case.
//!
//! The word is given after the commit and apart from it: transactions that notify are
//! committed one after another, whoever's they are, and appends must not be. However many
//! commits there were, one word is enough for all of them.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use deadpool_postgres::Pool;
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;
use tokio_postgres::AsyncMessage;

use crate::open::ConnectionConfig;

/// What the word is passed on by.
const CHANNEL: &str = "throughline";

/// How long it takes until a lost connection for listening is made again.
const RECONNECT_DELAY: Duration = Duration::from_millis(500);

/// How long it is quiet after a word: each costs the database a transaction.
const NOTIFY_INTERVAL: Duration = Duration::from_millis(10);

/// Tells and is told that something happened.
pub(crate) struct ChangeNotifier {
    pool: Pool,
    connection: ConnectionConfig,
    /// Something happened that others have not been told of.
    pending: AtomicBool,
    requested: Arc<Notify>,
    changes: watch::Sender<u64>,
    tasks: Mutex<Tasks>,
}

#[derive(Default)]
struct Tasks {
    sender: Option<JoinHandle<()>>,
    listener: Option<JoinHandle<()>>,
    closed: bool,
}

impl fmt::Debug for ChangeNotifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wake").finish_non_exhaustive()
    }
}

impl ChangeNotifier {
    pub(crate) fn new(pool: Pool, way: ConnectionConfig) -> Arc<Self> {
        Arc::new(Self {
            pool,
            connection: way,
            pending: AtomicBool::new(false),
            requested: Arc::default(),
            changes: watch::Sender::new(0),
            tasks: Mutex::default(),
        })
    }

    /// Something was committed: those who listen here know at once, others soon.
    pub(crate) fn announce(self: &Arc<Self>) {
        self.changes.send_modify(|count| *count += 1);
        self.pending.store(true, Ordering::SeqCst);
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        if tasks.sender.is_none() && !tasks.closed {
            let (wake, told) = (Arc::downgrade(self), Arc::clone(&self.requested));
            tasks.sender = Some(tokio::spawn(async move {
                while let Some(wake) = wake.upgrade() {
                    wake.notify_others().await;
                    drop(wake);
                    // The next word is for all that happens meanwhile.
                    tokio::time::sleep(NOTIFY_INTERVAL).await;
                    told.notified().await;
                }
            }));
        }
        drop(tasks);
        self.requested.notify_one();
    }

    /// Tells others, if there is anything they have not been told.
    async fn notify_others(&self) {
        if !self.pending.swap(false, Ordering::SeqCst) {
            return;
        }
        // If it cannot be told, others find out by looking.
        if let Ok(client) = self.pool.get().await {
            // A word need not outlive a crash, and must not hold the disk while appends wait for it.
            let sql = "SELECT set_config('synchronous_commit', 'off', true), pg_notify($1, '')";
            if let Ok(notify) = client.prepare_cached(sql).await {
                let _ = client.query(&notify, &[&CHANNEL]).await;
            }
        }
    }

    /// Counts up whenever something may have happened.
    pub(crate) fn subscribe(self: &Arc<Self>) -> watch::Receiver<u64> {
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        if tasks.listener.is_none() && !tasks.closed {
            let (way, heard) = (self.connection.clone(), self.changes.clone());
            tasks.listener = Some(tokio::spawn(run_listener(way, heard)));
        }
        self.changes.subscribe()
    }

    /// Tells what is untold, and ends.
    pub(crate) async fn close(&self) {
        let tasks = {
            let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
            let ended = std::mem::take(&mut *tasks);
            tasks.closed = true;
            ended
        };
        for task in [tasks.sender, tasks.listener].into_iter().flatten() {
            task.abort();
            // Cancelled, as it was asked to be.
            let _ = task.await;
        }
        self.notify_others().await;
    }
}

impl Drop for ChangeNotifier {
    fn drop(&mut self) {
        let tasks = self.tasks.get_mut();
        let tasks = tasks.unwrap_or_else(PoisonError::into_inner);
        for task in [&tasks.sender, &tasks.listener].into_iter().flatten() {
            task.abort();
        }
    }
}

/// Listens for as long as anybody may want to know.
async fn run_listener(way: ConnectionConfig, heard: watch::Sender<u64>) {
    loop {
        if let Ok((client, mut connection)) = way.config.connect(way.tls.clone()).await {
            let mut messages = futures_util::stream::poll_fn(move |cx| connection.poll_message(cx));
            let listening = async {
                let asked = client.batch_execute(&format!("LISTEN {CHANNEL}")).await;
                // Whatever was said before is looked for by whoever waits.
                heard.send_modify(|count| *count += 1);
                asked?;
                std::future::pending::<Result<(), tokio_postgres::Error>>().await
            };
            let hearing = async {
                use futures_util::StreamExt as _;
                while let Some(Ok(message)) = messages.next().await {
                    if let AsyncMessage::Notification(_) = message {
                        heard.send_modify(|count| *count += 1);
                    }
                }
            };
            tokio::select! {
                _ = listening => {}
                () = hearing => {}
            }
        }
        tokio::time::sleep(RECONNECT_DELAY).await;
    }
}

//! Notifies other processes of changes, and listens for their notifications.
//!
//! Uses PostgreSQL's `LISTEN`/`NOTIFY` as a hint only; the tables are authoritative. A
//! process that misses a notification finds the change when it next polls.
//!
//! Notifications are sent after the commit and in a transaction of their own: PostgreSQL
//! serializes the commits of transactions that notify, which appends must avoid. One
//! notification covers any number of commits.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use deadpool_postgres::Pool;
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;
use tokio_postgres::AsyncMessage;

use crate::open::ConnectionConfig;

/// The `NOTIFY` channel.
const CHANNEL: &str = "throughline";

/// Delay before a lost listening connection is opened again.
const RECONNECT_DELAY: Duration = Duration::from_millis(500);

/// Minimum time between two notifications, since each costs a transaction.
const NOTIFY_INTERVAL: Duration = Duration::from_millis(10);

/// Sends and receives change notifications.
pub(crate) struct ChangeNotifier {
    pool: Pool,
    connection: ConnectionConfig,
    /// Whether there is a change that other processes have not been notified of.
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
        f.debug_struct("ChangeNotifier").finish_non_exhaustive()
    }
}

impl ChangeNotifier {
    pub(crate) fn new(pool: Pool, connection: ConnectionConfig) -> Arc<Self> {
        Arc::new(Self {
            pool,
            connection,
            pending: AtomicBool::new(false),
            requested: Arc::default(),
            changes: watch::Sender::new(0),
            tasks: Mutex::default(),
        })
    }

    /// Reports a commit: wakes subscribers in this process now, and other processes soon.
    pub(crate) fn announce(self: &Arc<Self>) {
        self.changes.send_modify(|count| *count += 1);
        self.pending.store(true, Ordering::SeqCst);
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        if tasks.sender.is_none() && !tasks.closed {
            let (wake, requested) = (Arc::downgrade(self), Arc::clone(&self.requested));
            tasks.sender = Some(tokio::spawn(async move {
                while let Some(wake) = wake.upgrade() {
                    wake.notify_others().await;
                    drop(wake);
                    // The next notification covers everything committed during the pause.
                    tokio::time::sleep(NOTIFY_INTERVAL).await;
                    requested.notified().await;
                }
            }));
        }
        drop(tasks);
        self.requested.notify_one();
    }

    /// Notifies other processes if there is anything new.
    async fn notify_others(&self) {
        if !self.pending.swap(false, Ordering::SeqCst) {
            return;
        }
        // On failure, the others find the change by polling.
        if let Ok(client) = self.pool.get().await {
            // A notification need not survive a crash, and must not compete with appends
            // for the disk.
            let sql = "SELECT set_config('synchronous_commit', 'off', true), pg_notify($1, '')";
            if let Ok(notify) = client.prepare_cached(sql).await {
                let _ = client.query(&notify, &[&CHANNEL]).await;
            }
        }
    }

    /// Returns a counter that increases whenever something may have changed.
    pub(crate) fn subscribe(self: &Arc<Self>) -> watch::Receiver<u64> {
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        if tasks.listener.is_none() && !tasks.closed {
            let (connection, changes) = (self.connection.clone(), self.changes.clone());
            tasks.listener = Some(tokio::spawn(run_listener(connection, changes)));
        }
        self.changes.subscribe()
    }

    /// Stops the tasks and sends a pending notification.
    pub(crate) async fn close(&self) {
        let tasks = {
            let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
            let ended = std::mem::take(&mut *tasks);
            tasks.closed = true;
            ended
        };
        for task in [tasks.sender, tasks.listener].into_iter().flatten() {
            task.abort();
            // The error is the cancellation requested above.
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

/// Listens for notifications until the task is aborted, reconnecting as needed.
async fn run_listener(database: ConnectionConfig, changes: watch::Sender<u64>) {
    loop {
        if let Ok((client, mut connection)) = database.config.connect(database.tls.clone()).await {
            let mut messages = futures_util::stream::poll_fn(move |cx| connection.poll_message(cx));
            let listening = async {
                let subscribed = client.batch_execute(&format!("LISTEN {CHANNEL}")).await;
                // Notifications may have been missed while disconnected: have subscribers
                // check.
                changes.send_modify(|count| *count += 1);
                subscribed?;
                std::future::pending::<Result<(), tokio_postgres::Error>>().await
            };
            let hearing = async {
                use futures_util::StreamExt as _;
                while let Some(Ok(message)) = messages.next().await {
                    if let AsyncMessage::Notification(_) = message {
                        changes.send_modify(|count| *count += 1);
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

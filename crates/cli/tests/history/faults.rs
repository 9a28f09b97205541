//! Injects faults while clients are at work: kills, pauses, restarts, restores and clock
//! skew.

use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::Duration;

use throughline_cluster::Cluster;

use crate::clients::SharedState;
use crate::recorded_history::{Restore, Span};
use crate::seeded_rng::SeededRng;
use crate::servers::Servers;

/// Clock offsets, in seconds.
const SKEWS: [i64; 7] = [-86_400, -3_600, -60, 0, 60, 3_600, 86_400];

/// The database that the servers share.
pub(crate) enum Database {
    Sqlite,
    Postgres(Cluster),
}

/// Injects one fault after another.
pub(crate) struct FaultInjector<'a> {
    rng: SeededRng,
    shared: &'a SharedState,
    servers: &'a mut Servers,
    database: &'a mut Database,
    /// The newest backup, and when it was made.
    backup: Option<(PathBuf, Span)>,
    backups: usize,
    /// A log of the faults, for diagnosing a failure.
    pub(crate) log: Vec<String>,
    pub(crate) counts: FaultCounts,
}

/// How many faults of each kind were injected.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FaultCounts {
    pub(crate) kills: usize,
    pub(crate) stops: usize,
    pub(crate) pauses: usize,
    pub(crate) skews: usize,
    pub(crate) restores: usize,
    pub(crate) database_stops: usize,
    /// Servers that ended without being stopped.
    pub(crate) exits: usize,
}

impl fmt::Display for FaultCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} kills, {} stops, {} pauses, {} clock changes, {} restores, {} database stops, {} exits",
            self.kills,
            self.stops,
            self.pauses,
            self.skews,
            self.restores,
            self.database_stops,
            self.exits
        )
    }
}

impl<'a> FaultInjector<'a> {
    pub(crate) fn new(
        rng: SeededRng,
        shared: &'a SharedState,
        servers: &'a mut Servers,
        database: &'a mut Database,
    ) -> Self {
        Self {
            rng,
            shared,
            servers,
            database,
            backup: None,
            backups: 0,
            log: Vec::new(),
            counts: FaultCounts::default(),
        }
    }

    fn log_event(&mut self, what: impl fmt::Display) {
        let at = self.shared.now();
        self.log.push(format!("{at:.3?} {what}"));
    }

    /// Injects one fault, and lets the clients continue for a while.
    pub(crate) fn inject_one(&mut self) {
        self.relaunch_ended();
        let server = self.pick_server();
        let kinds = if self.servers.can_skew() { 100 } else { 85 };
        match self.rng.below(kinds) {
            0..30 => self.kill(server),
            30..38 => self.stop(server),
            38..65 => self.pause(server),
            65..85 => self.disturb_database(),
            _ => self.skew(server),
        }
        self.sleep_random(200, 700);
    }

    fn pick_server(&mut self) -> usize {
        usize::try_from(self.rng.below(self.servers.len() as u64)).unwrap()
    }

    fn sleep_random(&mut self, least: u64, more: u64) {
        let pause = least + self.rng.below(more);
        std::thread::sleep(Duration::from_millis(pause));
    }

    fn kill(&mut self, server: usize) {
        self.log_event(format_args!("kill server {server}"));
        self.counts.kills += 1;
        self.servers.kill(server);
        self.sleep_random(0, 400);
        self.launch(server);
    }

    fn stop(&mut self, server: usize) {
        self.log_event(format_args!("stop server {server}"));
        self.counts.stops += 1;
        // A process that waits for a paused one would not end.
        self.resume_all();
        self.servers.stop(server);
        self.launch(server);
    }

    fn pause(&mut self, server: usize) {
        self.log_event(format_args!("pause server {server}"));
        self.counts.pauses += 1;
        self.servers.pause(server);
        self.sleep_random(50, 2_000);
        // Sometimes it stays paused while another fault is injected.
        if self.rng.percent(60) {
            self.log_event(format_args!("resume server {server}"));
            self.servers.resume(server);
        }
    }

    fn skew(&mut self, server: usize) {
        let at = usize::try_from(self.rng.below(SKEWS.len() as u64)).unwrap();
        self.log_event(format_args!(
            "set the clock of server {server} {} s off",
            SKEWS[at]
        ));
        self.counts.skews += 1;
        self.servers.skew(server, SKEWS[at]);
    }

    /// Restarts PostgreSQL, or makes or restores a backup of a SQLite file.
    fn disturb_database(&mut self) {
        self.resume_all();
        if let Database::Postgres(cluster) = &mut *self.database {
            self.counts.database_stops += 1;
            cluster.stop_immediately().unwrap();
            let pause = self.rng.below(1_500);
            std::thread::sleep(Duration::from_millis(pause));
            cluster.ensure_running().unwrap();
            self.log_event(format_args!("restarted PostgreSQL after {pause} ms"));
            return;
        }
        match self.backup.take() {
            Some((file, made)) if self.rng.percent(60) => self.restore(file, made),
            _ => self.back_up(),
        }
    }

    pub(crate) fn back_up(&mut self) {
        self.backups += 1;
        let file = self
            .servers
            .folder()
            .join(format!("backup-{}.db", self.backups));
        let start = self.shared.now();
        self.servers.run(&["backup", file.to_str().unwrap()]);
        let end = self.shared.now();
        let number = self.backups;
        self.log_event(format_args!("made backup {number}"));
        self.backup = Some((file, Span { start, end }));
    }

    /// Replaces the file by a backup while no process uses it.
    fn restore(&mut self, file: PathBuf, made: Span) {
        self.log_event("restore the backup");
        self.counts.restores += 1;
        let start = self.shared.now();
        for server in 0..self.servers.len() {
            self.servers.kill(server);
        }
        self.shared.restores.fetch_add(1, Ordering::SeqCst);
        let store = self.servers.file();
        for suffix in ["", "-wal", "-shm"] {
            let mut path = store.clone().into_os_string();
            path.push(suffix);
            // There is no write-ahead log if the last process closed the store.
            let _ = std::fs::remove_file(path);
        }
        std::fs::rename(file, &store).unwrap();
        let span = Span {
            start,
            end: self.shared.now(),
        };
        let restore = Restore { backup: made, span };
        self.shared.history.lock().unwrap().restores.push(restore);
        for server in 0..self.servers.len() {
            self.launch(server);
        }
    }

    fn launch(&mut self, server: usize) {
        if self.servers.can_skew() && self.rng.percent(20) {
            self.skew(server);
        }
        self.servers.launch(server);
    }

    fn resume_all(&mut self) {
        for server in 0..self.servers.len() {
            self.servers.resume(server);
        }
    }

    /// Restarts servers that ended by themselves.
    fn relaunch_ended(&mut self) {
        for server in 0..self.servers.len() {
            if self.servers.has_ended(server) {
                self.log_event(format_args!("server {server} had ended by itself"));
                self.counts.exits += 1;
                self.servers.kill(server);
                self.servers.launch(server);
            }
        }
    }

    /// Ends all faults: every server runs and has the right time.
    pub(crate) fn end_faults(&mut self) {
        self.resume_all();
        for server in 0..self.servers.len() {
            self.servers.skew(server, 0);
            self.servers.wait_until_up(server);
        }
        self.relaunch_ended();
        for server in 0..self.servers.len() {
            self.servers.wait_until_up(server);
        }
        self.log_event("all faults are over");
    }
}

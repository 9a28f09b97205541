//! Imports other agents' sessions while they run.
//!
//! File system notifications trigger a scan of the agents' folders; the scan finds out what
//! changed, so that a lost notification does no harm. The folders are also polled regularly.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use indicatif::ProgressBar;
use notify::{RecommendedWatcher, RecursiveMode, Watcher};
use throughline::IndexWait;
use throughline_formats::SourceFormat;
use tokio::sync::mpsc;

use super::{AgentImporter, ImportTotals, find_sources, source_roots};
use crate::app::App;

/// Time without notifications before a scan starts.
const DEBOUNCE: Duration = Duration::from_millis(200);
/// Maximum number of debounce periods before a scan starts anyway.
const MAX_DEBOUNCES: usize = 20;
/// Interval between scans without notifications.
const POLL_INTERVAL: Duration = Duration::from_secs(30);
/// Time limit for indexing after a scan.
const INDEX_TIMEOUT: Duration = Duration::from_secs(2);

/// Watches agents' folders and imports changes.
pub(crate) struct AgentFollower {
    agents: Vec<SourceFormat>,
    paths: Vec<PathBuf>,
    importer: AgentImporter,
    watcher: RecommendedWatcher,
    watched: BTreeSet<PathBuf>,
    notices: mpsc::UnboundedReceiver<()>,
}

impl AgentFollower {
    /// Starts watching before the first scan, so that later changes are noticed.
    pub(crate) async fn start(
        app: &App,
        agents: Vec<SourceFormat>,
        paths: Vec<PathBuf>,
    ) -> Result<Self> {
        let (sender, notices) = mpsc::unbounded_channel();
        let watcher = notify::recommended_watcher(move |_| {
            // The receiver is gone: the program is exiting.
            let _ = sender.send(());
        })
        .context("file changes cannot be watched")?;
        let mut following = Self {
            agents,
            paths,
            importer: AgentImporter::new(app, false).await?,
            watcher,
            watched: BTreeSet::new(),
            notices,
        };
        following.watch_folders(app);
        Ok(following)
    }

    /// Watches every folder that exists by now.
    fn watch_folders(&mut self, app: &App) {
        let agents = self.agents.clone().into_iter();
        for root in agents.flat_map(|agent| source_roots(app, agent, &self.paths)) {
            let (path, mode) = if root.is_dir() {
                (root, RecursiveMode::Recursive)
            } else {
                match root.parent() {
                    Some(folder) if root.exists() => {
                        (folder.to_owned(), RecursiveMode::NonRecursive)
                    }
                    _ => continue,
                }
            };
            if !self.watched.contains(&path) {
                match self.watcher.watch(&path, mode) {
                    Ok(()) => {
                        self.watched.insert(path);
                    }
                    // The folder is still scanned at every poll.
                    Err(error) => app.ui.warn(format_args!(
                        "{} cannot be watched, only polled: {error}",
                        path.display()
                    )),
                }
            }
        }
    }

    /// Returns the watched folders.
    pub(crate) fn watched_folders(&self) -> impl Iterator<Item = &PathBuf> {
        self.watched.iter()
    }

    /// Imports changes. Returns only agents with new entries or errors.
    pub(crate) async fn import_changes(
        &mut self,
        app: &App,
    ) -> Result<BTreeMap<SourceFormat, ImportTotals>> {
        self.watch_folders(app);
        let found = find_sources(app, &self.agents, &self.paths);
        let bar = ProgressBar::hidden();
        let mut totals = ImportTotals::by_agent(self.importer.import(found, &bar).await?);
        totals.retain(|_, totals| totals.report.appended + totals.report.created > 0);
        if !totals.is_empty() {
            let tl = app.tl().await?;
            tl.catch_up(IndexWait::For(INDEX_TIMEOUT), &mut |_, _| {})
                .await?;
        }
        Ok(totals)
    }

    /// Waits for a change and for notifications to settle, or until the next poll.
    pub(crate) async fn wait_for_change(&mut self) {
        if tokio::time::timeout(POLL_INTERVAL, self.notices.recv())
            .await
            .is_err()
        {
            return;
        }
        for _ in 0..MAX_DEBOUNCES {
            match tokio::time::timeout(DEBOUNCE, self.notices.recv()).await {
                Ok(Some(())) => {}
                Ok(None) | Err(_) => return,
            }
        }
    }
}

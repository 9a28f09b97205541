//! Keeping up with other agents while they work.
//!
//! The system tells when something changed in their folders; what did is found out by
//! looking, so that nothing hangs on a notice that was lost. Every so often it is looked at
//! without a notice too.

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

/// How long it must be quiet before it is looked at what changed.
const DEBOUNCE: Duration = Duration::from_millis(200);
/// And how long at most it is waited for quiet.
const MAX_DEBOUNCES: usize = 20;
/// How often it is looked without a notice.
const POLL_INTERVAL: Duration = Duration::from_secs(30);
/// How long a round lets the index catch up.
const INDEX_TIMEOUT: Duration = Duration::from_secs(2);

/// Follows agents.
pub(crate) struct AgentFollower {
    agents: Vec<SourceFormat>,
    paths: Vec<PathBuf>,
    importer: AgentImporter,
    watcher: RecommendedWatcher,
    watched: BTreeSet<PathBuf>,
    notices: mpsc::UnboundedReceiver<()>,
}

impl AgentFollower {
    /// Starts to follow, before anything was looked at: what changes from here on is noticed.
    pub(crate) async fn start(
        app: &App,
        agents: Vec<SourceFormat>,
        places: Vec<PathBuf>,
    ) -> Result<Self> {
        let (sender, notices) = mpsc::unbounded_channel();
        let watcher = notify::recommended_watcher(move |_| {
            // Nobody listens any more: the program ends.
            let _ = sender.send(());
        })
        .context("the system cannot tell of changes to files")?;
        let mut following = Self {
            agents,
            paths: places,
            importer: AgentImporter::new(app, false).await?,
            watcher,
            watched: BTreeSet::new(),
            notices,
        };
        following.watch_folders(app);
        Ok(following)
    }

    /// Watches every place that is there by now.
    fn watch_folders(&mut self, app: &App) {
        let agents = self.agents.clone().into_iter();
        for place in agents.flat_map(|agent| source_roots(app, agent, &self.paths)) {
            let (path, mode) = if place.is_dir() {
                (place, RecursiveMode::Recursive)
            } else {
                match place.parent() {
                    Some(folder) if place.exists() => {
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
                    // It is still looked at every round.
                    Err(error) => app.ui.warn(format_args!(
                        "changes in {} are not told by the system: {error}",
                        path.display()
                    )),
                }
            }
        }
    }

    /// The places that are watched.
    pub(crate) fn watched_folders(&self) -> impl Iterator<Item = &PathBuf> {
        self.watched.iter()
    }

    /// Brings in what is new; only agents with something new, or something wrong.
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

    /// Waits until something changed and it is quiet again, or until the next round.
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

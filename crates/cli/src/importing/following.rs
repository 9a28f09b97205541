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
use throughline::Patience;
use throughline_formats::Agent;
use tokio::sync::mpsc;

use super::{Bringing, Totals, roots, sources};
use crate::app::App;

/// How long it must be quiet before it is looked at what changed.
const QUIET: Duration = Duration::from_millis(200);
/// And how long at most it is waited for quiet.
const AT_MOST: usize = 20;
/// How often it is looked without a notice.
const ROUND: Duration = Duration::from_secs(30);
/// How long a round lets the index catch up.
const PATIENCE: Duration = Duration::from_secs(2);

/// Follows agents.
pub(crate) struct Following {
    agents: Vec<Agent>,
    places: Vec<PathBuf>,
    bringing: Bringing,
    watcher: RecommendedWatcher,
    watched: BTreeSet<PathBuf>,
    notices: mpsc::UnboundedReceiver<()>,
}

impl Following {
    /// Starts to follow, before anything was looked at: what changes from here on is noticed.
    pub(crate) async fn start(app: &App, agents: Vec<Agent>, places: Vec<PathBuf>) -> Result<Self> {
        let (sender, notices) = mpsc::unbounded_channel();
        let watcher = notify::recommended_watcher(move |_| {
            // Nobody listens any more: the program ends.
            let _ = sender.send(());
        })
        .context("the system cannot tell of changes to files")?;
        let mut following = Self {
            agents,
            places,
            bringing: Bringing::new(app, false).await?,
            watcher,
            watched: BTreeSet::new(),
            notices,
        };
        following.watch(app);
        Ok(following)
    }

    /// Watches every place that is there by now.
    fn watch(&mut self, app: &App) {
        let agents = self.agents.clone().into_iter();
        for place in agents.flat_map(|agent| roots(app, agent, &self.places)) {
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
    pub(crate) fn watched(&self) -> impl Iterator<Item = &PathBuf> {
        self.watched.iter()
    }

    /// Brings in what is new; only agents with something new, or something wrong.
    pub(crate) async fn round(&mut self, app: &App) -> Result<BTreeMap<Agent, Totals>> {
        self.watch(app);
        let found = sources(app, &self.agents, &self.places);
        let bar = ProgressBar::hidden();
        let mut totals = Totals::of(self.bringing.bring(found, &bar).await?);
        totals.retain(|_, totals| totals.report.appended + totals.report.created > 0);
        if !totals.is_empty() {
            let tl = app.tl().await?;
            tl.catch_up(Patience::For(PATIENCE), &mut |_, _| {}).await?;
        }
        Ok(totals)
    }

    /// Waits until something changed and it is quiet again, or until the next round.
    pub(crate) async fn change(&mut self) {
        if tokio::time::timeout(ROUND, self.notices.recv())
            .await
            .is_err()
        {
            return;
        }
        for _ in 0..AT_MOST {
            match tokio::time::timeout(QUIET, self.notices.recv()).await {
                Ok(Some(())) => {}
                Ok(None) | Err(_) => return,
            }
        }
    }
}

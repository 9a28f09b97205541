//! `tl memory list`, `search` and `history`: show the facts of a memory.

use anyhow::Result;
use serde_json::json;
use throughline::{Body, Entry, Fact, FactMatch, MemoryScope, PERSON, Seq};

use super::MemoryTarget;
use super::fact::{FactId, FactView, render_table};
use crate::app::App;
use crate::markdown::{sanitize, wrap_plain};
use crate::time::format_time;

/// List facts
///
/// Lists the project's facts and owner-wide ones, whose ids begin with an o.
#[derive(clap::Args, Debug, Default)]
pub(super) struct ListArgs {
    /// Include proposed, replaced and forgotten facts
    #[arg(long, conflicts_with_all = ["proposed", "forgotten"])]
    all: bool,
    /// Only proposed facts
    #[arg(long, conflicts_with = "forgotten")]
    proposed: bool,
    /// Only forgotten facts
    #[arg(long)]
    forgotten: bool,
    /// Only facts about a file or folder (may be repeated)
    #[arg(long, value_name = "PATH")]
    file: Vec<String>,
}

/// Search facts
#[derive(clap::Args, Debug)]
pub(super) struct SearchArgs {
    /// The query
    #[arg(required = true, value_name = "QUERY")]
    query: Vec<String>,
}

/// Show the history of one fact, or of all
///
/// Shows what replaced what, who changed it and when.
#[derive(clap::Args, Debug)]
pub(super) struct HistoryArgs {
    /// The fact's id [default: all]
    fact: Option<FactId>,
}

impl ListArgs {
    fn matches(&self, fact: &Fact) -> bool {
        if self.all {
            true
        } else if self.proposed {
            fact.proposed && fact.is_current()
        } else if self.forgotten {
            fact.forgotten
        } else {
            fact.is_in_effect()
        }
    }
}

/// Numbers of facts that a listing hides by default.
#[derive(serde::Serialize, Default)]
struct HiddenCounts {
    proposed: u64,
    replaced: u64,
    forgotten: u64,
}

impl HiddenCounts {
    fn count(&mut self, fact: &Fact) {
        if fact.superseded_by.is_some() {
            self.replaced += 1;
        } else if fact.forgotten {
            self.forgotten += 1;
        } else {
            self.proposed += 1;
        }
    }
}

pub(super) async fn list(app: &App, target: &MemoryTarget, args: ListArgs) -> Result<()> {
    let files = args.file.iter().map(|file| target.relative_path(app, file));
    let files = files.collect::<Result<Vec<_>>>()?;
    let mut hidden = HiddenCounts::default();
    let mut facts: Vec<(&MemoryScope, Fact)> = Vec::new();
    for memory in [&target.project_memory, &target.owner_memory] {
        for fact in memory.facts().await?.iter() {
            if !files.is_empty() && !fact.is_related_to(&files) {
                continue;
            }
            if args.matches(fact) {
                facts.push((memory.scope(), fact.clone()));
            } else if !fact.is_in_effect() {
                hidden.count(fact);
            }
        }
    }
    let shown: Vec<_> = facts
        .iter()
        .map(|(scope, fact)| FactView::new(scope, fact))
        .collect();
    if app.ui.json {
        app.ui.json(&json!({
            "project": target.project.id,
            "facts": shown,
            "hidden": hidden,
        }))?;
        return Ok(());
    }
    if shown.is_empty() {
        let plain = !args.proposed && !args.forgotten && files.is_empty();
        app.ui.status(match (plain, args.proposed) {
            (true, _) => "No facts yet: `tl memory add TEXT` adds one.",
            (false, true) => "No proposed facts.",
            (false, false) => "No fact matches.",
        });
    } else {
        app.ui.page(&render_table(app, target, &shown))?;
    }
    if !args.proposed && !args.forgotten {
        report_hidden(app, &hidden);
    }
    Ok(())
}

fn report_hidden(app: &App, hidden: &HiddenCounts) {
    let mut parts = Vec::new();
    if hidden.proposed > 0 {
        parts.push(format!("{} proposed (--proposed)", hidden.proposed));
    }
    if hidden.forgotten > 0 {
        parts.push(format!("{} forgotten (--forgotten)", hidden.forgotten));
    }
    if hidden.replaced > 0 {
        parts.push(format!("{} replaced (--all)", hidden.replaced));
    }
    if !parts.is_empty() {
        app.ui
            .status(format_args!("Not shown: {}", parts.join(", ")));
    }
}

pub(super) async fn search(app: &App, target: &MemoryTarget, args: SearchArgs) -> Result<()> {
    let query = args.query.join(" ");
    let mut found: Vec<(&MemoryScope, FactMatch)> = Vec::new();
    for memory in [&target.project_memory, &target.owner_memory] {
        let here = memory.search(&query).await?;
        found.extend(here.into_iter().map(|found| (memory.scope(), found)));
    }
    found.sort_by(|(_, a), (_, b)| b.score.total_cmp(&a.score));
    let shown: Vec<_> = found
        .iter()
        .map(|(scope, found)| FactView::new(scope, &found.fact).with_score(found.score))
        .collect();
    if app.ui.json {
        app.ui.json(&json!({"query": query, "facts": shown}))?;
    } else if shown.is_empty() {
        app.ui
            .status(format_args!("No fact matches {}", sanitize(&query)));
    } else {
        app.ui.page(&render_table(app, target, &shown))?;
    }
    Ok(())
}

pub(super) async fn show_history(
    app: &App,
    target: &MemoryTarget,
    args: HistoryArgs,
) -> Result<()> {
    let mut changes: Vec<(bool, Entry)> = Vec::new();
    for owner_wide in [false, true] {
        if args.fact.is_some_and(|fact| fact.owner_wide != owner_wide) {
            continue;
        }
        let seq = args.fact.map(|fact| fact.seq);
        let entries = target.memory(owner_wide).history(seq).await?;
        // Uses of facts are noise in the history of all facts.
        let tells = |entry: &Entry| seq.is_some() || !matches!(entry.body, Body::Used { .. });
        changes.extend(
            entries
                .into_iter()
                .filter(tells)
                .map(|entry| (owner_wide, entry)),
        );
    }
    changes.sort_by_key(|(_, entry)| entry.at);
    if app.ui.json {
        let entries: Vec<_> = changes
            .iter()
            .map(|(owner_wide, entry)| {
                let scope = if *owner_wide { "owner" } else { "project" };
                json!({"scope": scope, "entry": entry})
            })
            .collect();
        app.ui.json(&json!({"history": entries}))?;
        return Ok(());
    }
    if changes.is_empty() {
        app.ui.status("No history yet.");
        return Ok(());
    }
    let now = app.tl().await?.now();
    let mut text = String::new();
    for (owner_wide, entry) in &changes {
        let owner_wide = *owner_wide;
        let seq = entry.seq;
        let id = FactId { owner_wide, seq };
        let when = format_time(entry.at, now, &app.zone);
        let start = app.ui.dim(&format!("{id:>4}  {when}"));
        text.push_str(&format!(
            "{start}  {}\n",
            sanitize(&describe_change(&entry.body, owner_wide))
        ));
        if let Body::Remembered(fact) = &entry.body {
            let lines = wrap_plain(&fact.text, app.ui.width.min(100).saturating_sub(6));
            for line in lines.lines() {
                text.push_str(format!("      {line}").trim_end());
                text.push('\n');
            }
        }
    }
    app.ui.page(&text)?;
    Ok(())
}

/// Describes in a few words what an entry of a memory changed.
fn describe_change(body: &Body, owner_wide: bool) -> String {
    let ids = |seqs: &[Seq]| {
        let ids = seqs.iter().map(|seq| {
            let seq = *seq;
            FactId { owner_wide, seq }.to_string()
        });
        ids.collect::<Vec<_>>().join(", ")
    };
    match body {
        Body::Remembered(fact) => {
            let what = if fact.proposed {
                "proposed"
            } else {
                "remembered"
            };
            let by = match fact.by.as_str() {
                PERSON => "a person",
                program => program,
            };
            let mut parts = vec![format!("{what} by {by}")];
            let source = fact.source.as_ref();
            parts.extend(source.map(|at| format!("from {}:{}", at.session, at.seq)));
            if !fact.supersedes.is_empty() {
                parts.push(format!("replacing {}", ids(&fact.supersedes)));
            }
            parts.join(", ")
        }
        Body::Accepted { fact } => format!("{} accepted", ids(&[*fact])),
        Body::Forgotten { fact, reason } => {
            let colon = reason.as_ref().map_or("", |_| ": ");
            let reason = reason.as_deref().unwrap_or_default();
            format!("{} forgotten{colon}{reason}", ids(&[*fact]))
        }
        Body::Used { facts, session } => format!("{} used in {session}", ids(facts)),
        other => other.kind().to_owned(),
    }
}
